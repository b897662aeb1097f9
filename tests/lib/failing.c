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
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "util/arena.h"
#include "util/map.h"

#define CALLS_MAX       20000u
#define DESCRIPTORS_MAX 256
#define LIVE_SLOTS_MIN  (1u << 12) /* a power of two */
#define EXIT_WAITS_MAX  1000       /* ms */

/* Of the thread whose calls fail; 0: of none. */
static _Thread_local struct {
	unsigned nth; /* call fails; 0: none */
	unsigned n;   /* calls so far */
	const char *failed;
	int error;
} failing;

/* A piece of memory that is not freed. */
struct piece {
	void *at;
	unsigned round; /* of failing_each(), whose call allocated it; 0: none */
};

/* All of them: a hash table by address, which doubles when it is half full. */
static struct {
	pthread_mutex_t lock;
	struct piece *slots;
	size_t n_slots, n;
	unsigned round;
	size_t n_of_round;
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

void __real_free(void *p);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);

/* Return: where @p is, or would be. */
static size_t live_find(const void *p)
{
	size_t i = ((uintptr_t)p >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (live.n_slots - 1);

	while (live.slots[i].at && live.slots[i].at != p)
		i = (i + 1) & (live.n_slots - 1);
	return i;
}

static void live_grow(void)
{
	struct piece *old = live.slots;
	const size_t n_old = live.n_slots;

	live.n_slots = n_old ? 2 * n_old : LIVE_SLOTS_MIN;
	live.slots = __real_calloc(live.n_slots, sizeof(*live.slots));
	if (!live.slots)
		abort();
	for (size_t i = 0; i < n_old; i++)
		if (old[i].at)
			live.slots[live_find(old[i].at)] = old[i];
	__real_free(old);
}

static void *live_add(void *p)
{
	if (!p)
		return p;
	(void)pthread_mutex_lock(&live.lock);
	if (2 * live.n >= live.n_slots)
		live_grow();
	live.slots[live_find(p)] = (struct piece){ p, failing.nth ? live.round : 0 };
	live.n++;
	live.n_of_round += failing.nth != 0;
	(void)pthread_mutex_unlock(&live.lock);
	return p;
}

static void live_remove(const void *p)
{
	size_t hole;

	(void)pthread_mutex_lock(&live.lock);
	hole = live.n_slots && p ? live_find(p) : 0;
	/* What a library allocated is not in the table. */
	if (live.n_slots && p && live.slots[hole].at) {
		live.n--;
		live.n_of_round -= live.slots[hole].round && live.slots[hole].round == live.round;
		live.slots[hole].at = NULL;
		/* Whoever was turned away from here comes nearer to its home. */
		for (size_t i = (hole + 1) & (live.n_slots - 1); live.slots[i].at;
		     i = (i + 1) & (live.n_slots - 1)) {
			const struct piece moved = live.slots[i];

			live.slots[i].at = NULL;
			live.slots[live_find(moved.at)] = moved;
		}
	}
	(void)pthread_mutex_unlock(&live.lock);
}

static size_t live_count(void)
{
	size_t n;

	(void)pthread_mutex_lock(&live.lock);
	n = live.n;
	(void)pthread_mutex_unlock(&live.lock);
	return n;
}

/* A unit that passed, but left memory, fails. A thread may free its own only now. */
static void check_at_exit(int status, void *userdata)
{
	(void)userdata;
	if (status != 0)
		return;
	for (unsigned i = 0; i < EXIT_WAITS_MAX && live_count() > 0; i++)
		(void)nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	if (live_count() == 0)
		return;
	fprintf(stderr, "%zu pieces of memory were not freed\n", live_count());
	(void)fflush(NULL);
	_exit(1);
}

static void choose_rows(void)
{
	const char *which = getenv("PTD_FAILING");

	if (which && strcmp(which, "only") == 0)
		cmocka_set_test_filter("calls_that_fail*");
	else if (which && strcmp(which, "not") == 0)
		cmocka_set_skip_filter("calls_that_fail*");
}

__attribute__((constructor)) static void begin(void)
{
	choose_rows();
	if (on_exit(check_at_exit, NULL) != 0)
		abort();
}

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

/* This is what fortified code calls where it does not know the buffer's size. */
ssize_t __wrap___pread_chk(int fd, void *bytes, size_t size, off_t at, size_t room);

ssize_t __wrap___pread_chk(int fd, void *bytes, size_t size, off_t at, size_t room)
{
	return size <= room ? __wrap_pread(fd, bytes, size, at) : -1;
}

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

		live.round++;
		live.n_of_round = 0;
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
		if (live.n_of_round > 0 || n_left > 0)
			fail_msg(
			    "call %u, %s, failed, it returned %d and left %zu pieces of memory "
			    "and %u descriptors",
			    nth, failed ? failed : "none", r, live.n_of_round, n_left);
		if (nth == CALLS_MAX)
			fail_msg("there is no end of calls");
	} while (failed);
	print_message("  %u calls failed, one after another\n", nth - 1);
}
