/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/objects/jitfile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "daemon/proc/claimant.h"
#include "daemon/proc/mappedfile.h"
#include "daemon/share/share.h"
#include "daemon/tasks/tasks.h"
#include "record/record.h"
#include "util/cancel.h"
#include "util/mapname.h"
#include "util/regular.h"
#include "util/vec.h"

#define BLOCK_SIZE 65536u

struct process {
	uint32_t pid;
	uid_t uid;
	int fd; /* of its jitdump, or -1 */
	const char *reason;
	bool has_dump; /* the process claims to have a jitdump */
	uint64_t seen; /* number of the last record of a mapping by the process */
};

struct jitfiles {
	VEC(struct process) processes; /* oldest first */
	VEC(uint32_t) given_up; /* pids of processes whose jitdumps were forgotten, oldest first */
	uint64_t moment;
	struct claims claims;
	struct share share; /* of descriptors; up to date when what is taken was counted */
};

int jitfile_open(const struct jitfile_claim *claim, int *ret_fd, const char **reterr_reason)
{
	_cleanup_(fd_closep) int fd = regular_open(AT_FDCWD, claim->path, O_NOFOLLOW);
	struct stat st;

	if (fd == -ELOOP || fd == -EISDIR || fd == -EINVAL) {
		*reterr_reason =
		    fd == -ELOOP ? "it is a symbolic link" : "it is not a regular file";
		return -EPERM;
	}
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;

	*reterr_reason =
	    st.st_uid != claim->uid ? "it does not belong to the process's user"
	    : claim->must_match && (major(st.st_dev) != claim->maj ||
				    minor(st.st_dev) != claim->min || st.st_ino != claim->ino)
		? "it is not the file that the process mapped"
		: NULL;
	if (*reterr_reason)
		return -EPERM;
	*ret_fd = fd;
	fd = -1;
	return 0;
}

int jitfiles_new(const struct claims *claims, struct jitfiles **ret_files)
{
	struct jitfiles *files = calloc(1, sizeof(*files));

	if (!files)
		return -ENOMEM;
	files->claims = *claims;
	*ret_files = files;
	return 0;
}

struct jitfiles *jitfiles_free(struct jitfiles *files)
{
	if (!files)
		return NULL;

	for (size_t i = 0; i < files->processes.n; i++)
		(void)fd_close(files->processes.items[i].fd);
	vec_deinit(&files->processes);
	vec_deinit(&files->given_up);
	free(files);
	return NULL;
}

static struct process *find_process(const struct jitfiles *files, uint32_t pid)
{
	for (size_t i = 0; i < files->processes.n; i++)
		if (files->processes.items[i].pid == pid)
			return &files->processes.items[i];
	return NULL;
}

static void forget_given_up(struct jitfiles *files, uint32_t pid)
{
	uint32_t *items = files->given_up.items;

	for (size_t i = files->given_up.n; i-- > 0;)
		if (items[i] == pid)
			memmove(items + i, items + i + 1,
				(--files->given_up.n - i) * sizeof(*items));
}

/* Without memory, the jitdump is missing without a reason. */
static void note_given_up(struct jitfiles *files, uint32_t pid)
{
	forget_given_up(files, pid);
	if (files->given_up.n == JITFILES_GIVEN_UP_MAX)
		forget_given_up(files, files->given_up.items[0]);
	(void)!vec_push(&files->given_up, pid);
}

/* Return: how much would be lost if the process were forgotten. */
static unsigned process_worth(const struct process *p)
{
	return 2 * (p->fd >= 0) + tasks_is_alive(p->pid);
}

/* Find the user who has more descriptors than his share, and the most. Return: whether there is
 * one. */
static bool find_giver(struct jitfiles *files, uid_t *ret_uid)
{
	share_restart(&files->share);
	for (size_t i = 0; i < files->processes.n; i++)
		if (files->processes.items[i].fd >= 0)
			share_take(&files->share, files->processes.items[i].uid, 1);
	return share_giver(&files->share, JITFILES_MAX, ret_uid);
}

/* Find the process that is worth least. If all have a jitdump, it is one of the user who is to
 * give. */
static struct process *least_process(struct jitfiles *files)
{
	struct process *items = files->processes.items, *least = NULL;
	unsigned least_worth = 0;
	uid_t giver = 0;
	bool has_giver;

	has_giver = find_giver(files, &giver);
	for (struct process *p = items; p < items + files->processes.n; p++) {
		const unsigned w =
		    process_worth(p) + 4 * (has_giver && p->fd >= 0 && p->uid != giver);

		if (!least || w < least_worth || (w == least_worth && p->seen < least->seen)) {
			least_worth = w;
			least = p;
		}
	}
	return least;
}

/* Forget a process, to make room for one that has a jitdump or not. Return: whether a process was
 * forgotten. */
static bool make_process_room(struct jitfiles *files, bool has_dump)
{
	struct process *items = files->processes.items, *least = least_process(files);

	if (least->fd >= 0 && !has_dump)
		return false;
	if (least->fd >= 0)
		share_count_taken_back(&files->share, least->uid);
	if (least->has_dump)
		note_given_up(files, least->pid);
	(void)fd_close(least->fd);
	files->processes.n--;
	memmove(least, least + 1, (size_t)(items + files->processes.n - least) * sizeof(*items));
	return true;
}

/* The user of the process is read while the process is known to live. It may change by setuid(), or
 * because another process has the number now. */
static struct process *get_process(struct jitfiles *files, uint32_t pid, bool has_dump)
{
	_cleanup_(claimant_deinit) struct claimant by = { .pid_fd = -1 };
	struct process *p = find_process(files, pid);
	struct stat st;

	/* To check that a process writes records takes a while, so it is done once. */
	if (p && !has_dump && files->claims.is_writer)
		return p;
	by = claimant_find(&files->claims, pid);
	if (by.pid_fd < 0 || fstat(by.pid_fd, &st) < 0)
		return p;
	if (!by.is_true && !claimant_user_is(&by, st.st_uid))
		return p;
	if (p) {
		p->uid = st.st_uid;
		return p;
	}
	if (files->processes.n == JITFILES_MAX && !make_process_room(files, has_dump))
		return NULL;
	if (vec_push(&files->processes, { .pid = pid, .uid = st.st_uid, .fd = -1 }) < 0)
		return NULL;
	return &files->processes.items[files->processes.n - 1];
}

/* Ask the kernel whether the process has the file @fd mapped there. Return: whether it has; or
 * negative errno, -EPERM or -EACCES if that may not be seen. */
static int is_mapped(const struct record_mmap2 *mmap, int fd)
{
	_cleanup_(claimant_deinit) struct claimant by = claimant_find(NULL, mmap->pid);
	const struct mappedfile file = {
		.start = mmap->addr,
		.end = mmap->addr + mmap->len,
		.offset = mmap->pgoff,
	};
	struct stat mapped, st;
	int r;

	r = by.pid_fd < 0 ? -ESRCH : mappedfile_stat_mapping(by.pid_fd, &file, &mapped);
	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0)
		return -errno;
	return mapped.st_dev == st.st_dev && mapped.st_ino == st.st_ino;
}

/* Return: why the file that @claim led to is refused, or NULL. */
static const char *judge_dump(const struct jitfiles *files, const struct record_mmap2 *mmap,
			      const struct jitfile_claim *claim, int fd)
{
	int r;

	/* The kernel's record names the inode. */
	if (claim->must_match && !files->claims.is_writer)
		return NULL;
	r = is_mapped(mmap, fd);
	/* Without the right to see that, ptd can only open files that its own user may read. */
	if (r > 0 || (claim->must_match && (r == -EPERM || r == -EACCES)))
		return NULL;
	return mmap->ino != 0 ? "it is not the file that the process mapped"
			      : "it cannot be seen that the process mapped it";
}

static void open_dump(const struct jitfiles *files, struct process *p,
		      const struct record_mmap2 *mmap)
{
	struct jitfile_claim claim = { .path = mmap->name,
				       .uid = p->uid,
				       .must_match = mmap->ino != 0,
				       .maj = mmap->maj,
				       .min = mmap->min,
				       .ino = mmap->ino };
	int fd = -1, r;

	r = jitfile_open(&claim, &fd, &p->reason);
	/* Some file systems show another inode in records. */
	if (r == -EPERM && claim.must_match) {
		claim.must_match = false;
		r = jitfile_open(&claim, &fd, &p->reason);
	}
	if (r == 0) {
		p->reason = judge_dump(files, mmap, &claim, fd);
		if (p->reason)
			fd = fd_close(fd);
	} else if (r != -EPERM) {
		p->reason = "it cannot be opened";
	}
	p->fd = fd;
}

void jitfiles_get_share(const struct jitfiles *files, struct share *ret_share)
{
	*ret_share = files->share;
}

void jitfiles_add(struct jitfiles *files, const struct record_mmap2 *mmap)
{
	const bool is_dump = mapname_is_jitdump(mmap->name);
	struct process *p;

	if (!(mmap->prot & PROT_EXEC) || (!is_dump && !mapname_is_memory(mmap->name)))
		return;
	p = get_process(files, mmap->pid, is_dump);
	if (!p)
		return;
	p->seen = ++files->moment;
	if (!is_dump)
		return;
	forget_given_up(files, p->pid);
	/* A program that the process executed may begin another jitdump. */
	p->fd = fd_close(p->fd);
	p->reason = NULL;
	p->has_dump = true;
	open_dump(files, p, mmap);
}

/* Open the list of names of a JIT compiler that writes no jitdump. Return: whether there is one, or
 * a reason why it was refused. */
static bool open_map(const struct process *p, struct jitfile *file)
{
	char path[64];
	int r;

	(void)snprintf(path, sizeof(path), "/tmp/perf-%" PRIu32 ".map", p->pid);
	r = jitfile_open(&(struct jitfile_claim){ .path = path, .uid = p->uid }, &file->fd,
			 &file->reason);
	if (r < 0 && r != -EPERM && r != -ENOENT)
		file->reason = "it cannot be opened";
	return r != -ENOENT;
}

int jitfiles_list(const struct jitfiles *files, struct jitfile **ret_list, size_t *ret_n)
{
	struct jitfile *list = calloc(files->processes.n + files->given_up.n + 1, sizeof(*list));
	size_t n = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < files->processes.n; i++) {
		const struct process *p = &files->processes.items[i];
		struct jitfile file = {
			.pid = p->pid, .uid = p->uid, .is_dump = p->has_dump, .fd = -1
		};
		struct stat st;

		if (p->has_dump && p->fd < 0)
			file.reason = p->reason;
		else if (p->has_dump)
			file.fd = fcntl(p->fd, F_DUPFD_CLOEXEC, 3);
		else if (!open_map(p, &file))
			continue;
		if (!file.reason && file.fd < 0) {
			file.reason = "there is no descriptor left for it";
		} else if (!file.reason && fstat(file.fd, &st) < 0) {
			file.fd = fd_close(file.fd);
			file.reason = "it cannot be read";
		} else if (!file.reason) {
			file.size = (uint64_t)st.st_size;
		}
		list[n++] = file;
	}
	for (size_t i = 0; i < files->given_up.n; i++)
		list[n++] = (struct jitfile){ .pid = files->given_up.items[i],
					      .is_dump = true,
					      .fd = -1,
					      .reason = "too many processes have one" };
	*ret_list = list;
	*ret_n = n;
	return 0;
}

void jitfiles_list_free(struct jitfile *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		(void)fd_close(list[i].fd);
	free(list);
}

static bool is_zero(const uint8_t *bytes, size_t size)
{
	return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

int jitfile_copy(int from, int to, uint64_t size, const atomic_bool *cancel, int *reterr_error)
{
	_cleanup_(freep) uint8_t *block = malloc(BLOCK_SIZE);
	uint64_t at = 0;

	if (!block)
		return -ENOMEM;
	while (at < size) {
		const size_t want = size - at < BLOCK_SIZE ? (size_t)(size - at) : BLOCK_SIZE;
		const ssize_t n = pread(from, block, want, (off_t)at);

		if (cancel_asked(cancel))
			return -ECANCELED;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			*reterr_error = -errno;
			return JITFILE_UNREADABLE;
		}
		if (n == 0)
			break; /* the file became shorter */
		errno = ENOSPC;
		if (!is_zero(block, (size_t)n) && pwrite(to, block, (size_t)n, (off_t)at) != n)
			return -errno;
		at += (uint64_t)n;
	}
	return ftruncate(to, (off_t)at) < 0 ? -errno : 0;
}
