/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/proc/traceable.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "daemon/proc/birth.h"
#include "util/dirs.h"

/* A process with more threads is nobody's. */
#define THREADS_MAX 4096u

/* Of /proc/PID/status, in which the groups of a process may take much. */
#define STATUS_SIZE (UINT32_C(1) << 17)

#define AUXV_SIZE 4096u

/* --- the text of status ----------------------------------------------------------------------- */

/* Return: what follows the name of the line, such as "Uid"; NULL if there is no such line. */
static const char *find_line(const char *text, const char *name)
{
	const size_t size = strlen(name);
	const char *at = text;

	/* The first line is the name of the process, in which the kernel escapes newlines. */
	while ((at = strchr(at, '\n'))) {
		at++;
		if (strncmp(at, name, size) == 0 && at[size] == ':')
			return at + size + 1;
	}
	return NULL;
}

/* Read the real, effective, saved and file system identity, which have to be one. */
static int read_identity(const char *text, const char *name, uint32_t *ret_id)
{
	const char *line = find_line(text, name);
	uint32_t ids[4];

	if (!line || sscanf(line, "%" SCNu32 "%" SCNu32 "%" SCNu32 "%" SCNu32, &ids[0], &ids[1],
			    &ids[2], &ids[3]) != 4)
		return -EPERM;
	for (size_t i = 1; i < ARRAY_LEN(ids); i++)
		if (ids[i] != ids[0])
			return -EPERM;
	*ret_id = ids[0];
	return 0;
}

static bool has_no_capability(const char *text)
{
	static const char *const sets[] = { "CapInh", "CapPrm", "CapEff", "CapAmb" };

	for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
		const char *line = find_line(text, sets[i]);
		uint64_t set;

		if (!line || sscanf(line, "%" SCNx64, &set) != 1 || set != 0)
			return false;
	}
	return true;
}

/* Read what rights a thread has. */
static int read_rights(const char *text, struct traceable *ret_traceable)
{
	uint32_t uid, gid;

	if (read_identity(text, "Uid", &uid) < 0 || read_identity(text, "Gid", &gid) < 0 ||
	    uid == 0 || !has_no_capability(text))
		return -EPERM;
	ret_traceable->uid = uid;
	ret_traceable->gid = gid;
	return 0;
}

int traceable_read_status(const char *text, struct traceable *ret_traceable,
			  unsigned *ret_n_threads)
{
	const char *threads = find_line(text, "Threads");
	unsigned n;

	/* Without memory the process is about to end, and it is not known whether it was
	 * dumpable. */
	if (!find_line(text, "VmSize") || !threads || sscanf(threads, "%u", &n) != 1 ||
	    read_rights(text, ret_traceable) < 0)
		return -EPERM;
	*ret_n_threads = n;
	return 0;
}

/* --- the auxiliary vector --------------------------------------------------------------------- */

/* What was said of each of these; a type that is said twice is believed if it is said alike. */
struct said {
	uint64_t type, expected;
	bool is_there;
};

/* Return: 0; -EPERM; or -EAGAIN: what the kernel writes last is missing. */
static int check_pairs(const uint8_t *bytes, size_t size, size_t word, struct said *said, size_t n)
{
	bool is_whole = false, is_as_expected = true;

	for (size_t at = 0; size - at >= 2 * word; at += 2 * word) {
		uint64_t pair[2] = {};

		memcpy(&pair[0], bytes + at, word);
		memcpy(&pair[1], bytes + at + word, word);
		if (pair[0] == AT_NULL)
			break;
		is_whole |= pair[0] == AT_EXECFN;
		for (size_t i = 0; i < n; i++) {
			if (said[i].type != pair[0])
				continue;
			is_as_expected &= said[i].expected == pair[1];
			said[i].is_there = true;
		}
	}
	for (size_t i = 0; i < n; i++)
		is_as_expected &= said[i].is_there;
	return is_as_expected ? 0 : is_whole ? -EPERM : -EAGAIN;
}

int traceable_check_auxv(const void *bytes, size_t size, uid_t uid, gid_t gid)
{
	static const size_t words[] = { sizeof(uint64_t), sizeof(uint32_t) };
	int r = -EAGAIN;

	/* That of a 32-bit program has other words, and then the first ones make no sense. */
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		struct said said[] = {
			{ .type = AT_PAGESZ, .expected = 4096 },
			{ .type = AT_SECURE },
			{ .type = AT_UID, .expected = uid },
			{ .type = AT_EUID, .expected = uid },
			{ .type = AT_GID, .expected = gid },
			{ .type = AT_EGID, .expected = gid },
		};
		const int found = check_pairs(bytes, size, words[i], said, ARRAY_LEN(said));

		if (found != -EAGAIN)
			r = found;
		if (found == 0)
			break;
	}
	return r;
}

/* --- the process ------------------------------------------------------------------------------ */

/* Read the whole file. Return: bytes; -EPERM if it is larger; or another negative errno. */
static ssize_t read_whole(int dir_fd, const char *name, char *to, size_t size)
{
	_cleanup_(fd_closep) int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
	size_t done = 0;
	ssize_t n = 0;

	if (fd < 0)
		return -errno;
	while (done < size && (n = read(fd, to + done, size - done)) > 0)
		done += (size_t)n;
	if (n < 0)
		return -errno;
	return done < size ? (ssize_t)done : -EPERM;
}

/* @ret_n_threads: NULL for a thread, which may be about to end */
static int read_status(int dir_fd, struct traceable *ret_traceable, unsigned *ret_n_threads)
{
	_cleanup_(freep) char *text = malloc(STATUS_SIZE);
	ssize_t n;

	if (!text)
		return -ENOMEM;
	n = read_whole(dir_fd, "status", text, STATUS_SIZE - 1);
	if (n < 0)
		return (int)n;
	text[n] = '\0';
	return ret_n_threads ? traceable_read_status(text, ret_traceable, ret_n_threads)
			     : read_rights(text, ret_traceable);
}

/* Files in /proc/PID that are no folders belong to root if the process is not dumpable. */
static int check_dumpable(int pid_fd, const struct traceable *t)
{
	struct stat st;

	if (fstatat(pid_fd, "status", &st, 0) < 0)
		return -errno;
	return st.st_uid == t->uid && st.st_gid == t->gid ? 0 : -EPERM;
}

static int check_namespace(int pid_fd)
{
	struct stat own, other;

	if (stat("/proc/self/ns/user", &own) < 0 || fstatat(pid_fd, "ns/user", &other, 0) < 0)
		return -errno;
	return own.st_ino == other.st_ino && own.st_dev == other.st_dev ? 0 : -EPERM;
}

/* The kernel may write the vector while it is read: it says no if it says the same again. */
static int check_auxv(int pid_fd, const struct traceable *t)
{
	char bytes[AUXV_SIZE], again[AUXV_SIZE];
	const ssize_t n = read_whole(pid_fd, "auxv", bytes, sizeof(bytes));
	int r;

	if (n < 0)
		return (int)n;
	r = traceable_check_auxv(bytes, (size_t)n, t->uid, t->gid);
	if (r == -EPERM && (read_whole(pid_fd, "auxv", again, sizeof(again)) != n ||
			    memcmp(again, bytes, (size_t)n) != 0))
		r = -EAGAIN;
	return r;
}

/* The program gives rights to nobody who executes it. A process that has given them up can rewrite
 * its auxiliary vector (PR_SET_MM_MAP), but not what its program is. */
static int check_program(int pid_fd)
{
	_cleanup_(fd_closep) int fd = openat(pid_fd, "exe", O_PATH | O_CLOEXEC);
	char path[32];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_mode & (S_ISUID | S_ISGID))
		return -EPERM;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (getxattr(path, "security.capability", NULL, 0) >= 0)
		return -EPERM;
	return errno == ENODATA || errno == EOPNOTSUPP ? 0 : -EPERM;
}

static int check_thread(int threads_fd, const char *name, const struct traceable *t)
{
	_cleanup_(fd_closep) int fd = dirs_open(threads_fd, name);
	struct traceable thread;
	int r;

	if (fd < 0)
		return fd;
	r = read_status(fd, &thread, NULL);
	return r == 0 && (thread.uid != t->uid || thread.gid != t->gid) ? -EPERM : r;
}

/* One that ends meanwhile is left out: those that are left have no right that it did not have. */
static int check_threads(int pid_fd, const struct traceable *t)
{
	_cleanup_(dirs_closep) DIR *threads = NULL;
	struct dirent *entry;
	unsigned n = 0;
	int fd, r;

	fd = dirs_open(pid_fd, "task");
	threads = fd < 0 ? NULL : fdopendir(fd);
	if (!threads) {
		(void)fd_close(fd);
		return fd < 0 ? fd : -ENOMEM;
	}
	while ((r = dirs_next(threads, &entry)) > 0) {
		if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
			continue;
		if (++n > THREADS_MAX)
			return -EPERM;
		r = check_thread(dirfd(threads), entry->d_name, t);
		if (r < 0 && r != -ENOENT && r != -ESRCH)
			return r;
	}
	return r;
}

int traceable_check(int pid_fd, struct traceable *ret_traceable)
{
	struct traceable t = { .birth = birth_at(pid_fd) }, last = {};
	unsigned n_threads;
	int r;

	if (t.birth == 0)
		return -ESRCH;
	r = read_status(pid_fd, &t, &n_threads);
	if (r == 0)
		r = check_dumpable(pid_fd, &t);
	if (r == 0)
		r = check_namespace(pid_fd);
	if (r == 0)
		r = check_auxv(pid_fd, &t);
	if (r == 0)
		r = check_program(pid_fd);
	if (r == 0 && n_threads > 1)
		r = check_threads(pid_fd, &t);
	/* Who is dumpable with memory behind it was so with this memory. */
	if (r == 0)
		r = check_dumpable(pid_fd, &t);
	if (r == 0)
		r = read_status(pid_fd, &last, &n_threads);
	if (r == 0 && (last.uid != t.uid || last.gid != t.gid))
		r = -EPERM;
	if (r == 0 && birth_at(pid_fd) != t.birth)
		r = -ESRCH;
	if (r == 0)
		*ret_traceable = t;
	return r;
}
