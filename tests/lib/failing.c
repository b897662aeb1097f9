/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/failing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "util/arena.h"
#include "util/map.h"

#define CALLS_MAX       20000u
#define DESCRIPTORS_MAX 256
#define LIVE_MAX        (1u << 16) /* a power of two */

/* Of the thread whose calls fail; 0: of none. */
static _Thread_local struct {
	unsigned nth; /* call fails; 0: none */
	unsigned n;   /* calls so far */
	const char *failed;
	int error;
} failing;

/* What was allocated while calls could fail, and is not freed: a hash table of addresses. */
static struct {
	pthread_mutex_t lock;
	void *items[LIVE_MAX];
	size_t n;
} live = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool fails(const char *name, int error)
{
	if (failing.nth == 0 || ++failing.n != failing.nth)
		return false;
	failing.failed = name;
	failing.error = error;
	errno = error;
	return true;
}

/* --- memory ---------------------------------------------------------------------------------- */

static size_t live_home(const void *p)
{
	return ((uintptr_t)p >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 48 & (LIVE_MAX - 1);
}

/* Return: where @p is, or would be. */
static size_t live_find(const void *p)
{
	size_t i = live_home(p);

	while (live.items[i] && live.items[i] != p)
		i = (i + 1) & (LIVE_MAX - 1);
	return i;
}

static void *live_add(void *p)
{
	if (failing.nth == 0 || !p)
		return p;
	(void)pthread_mutex_lock(&live.lock);
	if (live.n == LIVE_MAX / 2)
		fail_msg("too much memory to keep account of");
	live.items[live_find(p)] = p;
	live.n++;
	(void)pthread_mutex_unlock(&live.lock);
	return p;
}

static void live_remove(const void *p)
{
	size_t hole;

	(void)pthread_mutex_lock(&live.lock);
	hole = live_find(p);
	if (p && live.items[hole]) {
		live.n--;
		live.items[hole] = NULL;
		/* Whoever was turned away from here comes nearer to its home. */
		for (size_t i = (hole + 1) & (LIVE_MAX - 1); live.items[i];
		     i = (i + 1) & (LIVE_MAX - 1)) {
			void *moved = live.items[i];

			live.items[i] = NULL;
			live.items[live_find(moved)] = moved;
		}
	}
	(void)pthread_mutex_unlock(&live.lock);
}

void __real_free(void *p);
void *__real_realloc(void *p, size_t size);

void __wrap_free(void *p);
void *__wrap_realloc(void *p, size_t size);

void __wrap_free(void *p)
{
	live_remove(p);
	__real_free(p);
}

void *__wrap_realloc(void *p, size_t size)
{
	void *moved;

	if (fails("realloc", ENOMEM))
		return NULL;
	live_remove(p);
	moved = __real_realloc(p, size);
	/* What was there before calls could fail is not accounted for wherever it moves. */
	return live_add(moved);
}

/* Define the wrapper of a function that allocates. */
#define ALLOCATES(name, parameters, ...)                     \
	void *__real_##name parameters;                      \
	void *__wrap_##name parameters;                      \
	void *__wrap_##name parameters                       \
	{                                                    \
		if (fails(#name, ENOMEM))                    \
			return NULL;                         \
		return live_add(__real_##name(__VA_ARGS__)); \
	}

ALLOCATES(malloc, (size_t size), size)
ALLOCATES(calloc, (size_t n, size_t size), n, size)
ALLOCATES(strdup, (const char *s), s)
ALLOCATES(strndup, (const char *s, size_t n), s, n)

int __real_vasprintf(char **ret, const char *format, va_list ap);

int __wrap_vasprintf(char **ret, const char *format, va_list ap);
int __wrap___vasprintf_chk(char **ret, int flag, const char *format, va_list ap);
int __wrap_asprintf(char **ret, const char *format, ...);
int __wrap___asprintf_chk(char **ret, int flag, const char *format, ...);

int __wrap_vasprintf(char **ret, const char *format, va_list ap)
{
	int n;

	if (fails("asprintf", ENOMEM))
		return -1;
	n = __real_vasprintf(ret, format, ap);
	if (n >= 0)
		(void)live_add(*ret);
	return n;
}

/* These are what fortified code calls. */
int __wrap___vasprintf_chk(char **ret, int flag, const char *format, va_list ap)
{
	(void)flag;
	return __wrap_vasprintf(ret, format, ap);
}

int __wrap_asprintf(char **ret, const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = __wrap_vasprintf(ret, format, ap);
	va_end(ap);
	return n;
}

int __wrap___asprintf_chk(char **ret, int flag, const char *format, ...)
{
	va_list ap;
	int n;

	(void)flag;
	va_start(ap, format);
	n = __wrap_vasprintf(ret, format, ap);
	va_end(ap);
	return n;
}

/* --- the system ------------------------------------------------------------------------------ */

#define FAILS(type, name, error, result, parameters, ...) \
	type __real_##name parameters;                    \
	type __wrap_##name parameters;                    \
	type __wrap_##name parameters                     \
	{                                                 \
		if (fails(#name, error))                  \
			return result;                    \
		return __real_##name(__VA_ARGS__);        \
	}

FAILS(ssize_t, read, EIO, -1, (int fd, void *bytes, size_t size), fd, bytes, size)
FAILS(ssize_t, pread, EIO, -1, (int fd, void *bytes, size_t size, off_t at), fd, bytes, size, at)
FAILS(ssize_t, write, ENOSPC, -1, (int fd, const void *bytes, size_t size), fd, bytes, size)
FAILS(ssize_t, pwrite, ENOSPC, -1, (int fd, const void *bytes, size_t size, off_t at), fd, bytes,
      size, at)
FAILS(off_t, lseek, EIO, -1, (int fd, off_t at, int whence), fd, at, whence)
FAILS(void *, mmap, ENOMEM, MAP_FAILED,
      (void *at, size_t size, int protection, int flags, int fd, off_t offset), at, size,
      protection, flags, fd, offset)
FAILS(int, ftruncate, EIO, -1, (int fd, off_t size), fd, size)
FAILS(int, fstat, EIO, -1, (int fd, struct stat *st), fd, st)
FAILS(int, stat, EIO, -1, (const char *path, struct stat *st), path, st)
FAILS(int, fstatat, EIO, -1, (int fd, const char *path, struct stat *st, int flags), fd, path, st,
      flags)
FAILS(int, fstatvfs, EIO, -1, (int fd, struct statvfs *fs), fd, fs)
FAILS(int, fsync, EIO, -1, (int fd), fd)
FAILS(int, mkdirat, ENOSPC, -1, (int fd, const char *path, mode_t mode), fd, path, mode)
FAILS(int, linkat, ENOSPC, -1,
      (int from_fd, const char *from, int to_fd, const char *to, int flags), from_fd, from, to_fd,
      to, flags)
FAILS(int, renameat, EIO, -1, (int from_fd, const char *from, int to_fd, const char *to), from_fd,
      from, to_fd, to)
FAILS(int, renameat2, EIO, -1,
      (int from_fd, const char *from, int to_fd, const char *to, unsigned flags), from_fd, from,
      to_fd, to, flags)
FAILS(ssize_t, readlink, EIO, -1, (const char *path, char *bytes, size_t size), path, bytes, size)
FAILS(FILE *, fopen, EMFILE, NULL, (const char *path, const char *mode), path, mode)
FAILS(FILE *, fdopen, ENOMEM, NULL, (int fd, const char *mode), fd, mode)
FAILS(DIR *, opendir, EMFILE, NULL, (const char *path), path)
FAILS(DIR *, fdopendir, ENOMEM, NULL, (int fd), fd)
FAILS(int, memfd_create, EMFILE, -1, (const char *name, unsigned flags), name, flags)
FAILS(int, eventfd, EMFILE, -1, (unsigned n, int flags), n, flags)
FAILS(int, epoll_create1, EMFILE, -1, (int flags), flags)
FAILS(int, epoll_ctl, ENOMEM, -1, (int fd, int what, int which, struct epoll_event *event), fd,
      what, which, event)
FAILS(int, socket, EMFILE, -1, (int domain, int type, int protocol), domain, type, protocol)
FAILS(int, socketpair, EMFILE, -1, (int domain, int type, int protocol, int *fds), domain, type,
      protocol, fds)
FAILS(int, pthread_create, EAGAIN, EAGAIN,
      (pthread_t * thread, const pthread_attr_t *attr, void *(*run)(void *), void *userdata),
      thread, attr, run, userdata)

/* Our own, which seldom need memory of the system: each call could be the one that does. */
FAILS(void *, arena_alloc, ENOMEM, NULL, (struct arena * arena, size_t size), arena, size)
FAILS(void *, arena_copy, ENOMEM, NULL, (struct arena * arena, const void *bytes, size_t size),
      arena, bytes, size)
FAILS(char *, arena_strdup, ENOMEM, NULL, (struct arena * arena, const char *string), arena, string)
FAILS(int, map_put, ENOMEM, -ENOMEM, (struct map * map, uint64_t key, uint64_t value), map, key,
      value)

int __real_open(const char *path, int flags, ...);
int __real_openat(int fd, const char *path, int flags, ...);

int __wrap_open(const char *path, int flags, ...);
int __wrap_openat(int fd, const char *path, int flags, ...);

static mode_t mode_of(int flags, va_list ap)
{
	return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(ap, mode_t) : 0;
}

int __wrap_open(const char *path, int flags, ...)
{
	mode_t mode;
	va_list ap;

	va_start(ap, flags);
	mode = mode_of(flags, ap);
	va_end(ap);
	return fails("open", EMFILE) ? -1 : __real_open(path, flags, mode);
}

int __wrap_openat(int fd, const char *path, int flags, ...)
{
	mode_t mode;
	va_list ap;

	va_start(ap, flags);
	mode = mode_of(flags, ap);
	va_end(ap);
	return fails("openat", EMFILE) ? -1 : __real_openat(fd, path, flags, mode);
}

/* --- one after another ----------------------------------------------------------------------- */

static unsigned count_descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < DESCRIPTORS_MAX; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

const char *failing_name(void)
{
	return failing.failed;
}

bool failing_is_memory(void)
{
	return failing.failed && failing.error == ENOMEM;
}

void failing_each(failing_call_fn call, failing_check_fn check, void *userdata)
{
	const char *failed;
	unsigned nth = 0;

	do {
		const unsigned n_descriptors = count_descriptors();
		unsigned n_left;
		int r;

		live = (__typeof__(live)){ .lock = PTHREAD_MUTEX_INITIALIZER };
		failing.nth = ++nth;
		failing.n = 0;
		failing.failed = NULL;
		r = call(userdata);
		failed = failing.failed;
		failing.nth = 0;

		if (!failed && r != 0)
			fail_msg("nothing failed, but it returned %d", r);
		if (r > 0)
			fail_msg("call %u, %s, failed, and it returned %d", nth, failed, r);
		if (r == 0)
			check(userdata);
		n_left = count_descriptors() - n_descriptors;
		if (live.n > 0 || n_left > 0)
			fail_msg(
			    "call %u, %s, failed, it returned %d and left %zu pieces of memory "
			    "and %u descriptors",
			    nth, failed ? failed : "none", r, live.n, n_left);
		if (nth == CALLS_MAX)
			fail_msg("there is no end of calls");
	} while (failed);
	print_message("  %u calls failed, one after another\n", nth - 1);
}
