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

#include "base/clock.h"
#include "daemon/collector/link.h"
#include "daemon/proc/claimant.h"
#include "daemon/share/share.h"
#include "daemon/tasks/tasks.h"
#include "record/record.h"
#include "util/map.h"
#include "util/mapname.h"
#include "util/vec.h"

/* The event loop waits. */
#define TIMEOUT_MS 200u

/* For so long it does not wait again for files of a user for which it waited in vain. */
#define HUNG_NS UINT64_C(10000000000)

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
	struct collectorlink *link;
	struct map hung;    /* user → when the event loop waited in vain for a file of his */
	struct share share; /* of descriptors; up to date when what is taken was counted */
};

static int open_path(struct collectorlink *link, const struct jitfile_claim *claim,
		     struct collector_answer *ret_answer, int *ret_fd)
{
	struct collector_request request = {
		.verb = COLLECTOR_OPEN_PATH,
		.flags = COLLECTOR_NOFOLLOW,
		.timeout_ms = TIMEOUT_MS,
		.pid = claim->pid,
		.uid = claim->uid,
		.path = claim->path,
	};

	return collectorlink_ask(link, &request, NULL, NULL, ret_answer, ret_fd);
}

int jitfile_open(struct collectorlink *link, const struct jitfile_claim *claim,
		 struct jitfile_found *ret_found, const char **reterr_reason)
{
	_cleanup_(fd_closep) int fd = -1;
	struct collector_answer answer;
	int r;

	r = open_path(link, claim, &answer, &fd);
	if (r == -ELOOP || r == -EISDIR || r == -EINVAL) {
		*reterr_reason = r == -ELOOP ? "it is a symbolic link" : "it is not a regular file";
		return -EPERM;
	}
	if (r < 0)
		return r == -EPERM ? -EACCES : r;

	*reterr_reason = answer.uid != claim->uid ? "it does not belong to the process's user"
			 : claim->must_match && (makedev(claim->maj, claim->min) != answer.dev ||
						 answer.ino != claim->ino)
			     ? "it is not the file that the process mapped"
			     : NULL;
	if (*reterr_reason)
		return -EPERM;
	*ret_found = (struct jitfile_found){
		.fd = fd, .dev = answer.dev, .ino = answer.ino, .size = answer.size
	};
	fd = -1;
	return 0;
}

int jitfiles_new(const struct claims *claims, const char *runtime_dir, struct jitfiles **ret_files)
{
	_cleanup_(jitfiles_freep) struct jitfiles *files = calloc(1, sizeof(*files));
	int r;

	if (!files)
		return -ENOMEM;
	files->claims = *claims;
	r = collectorlink_new(runtime_dir, true, &files->link);
	if (r < 0)
		return r;
	*ret_files = TAKE(files);
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
	map_deinit(&files->hung);
	(void)collectorlink_free(files->link);
	free(files);
	return NULL;
}

/* Return: whether the event loop is not to wait for files of the user at present: what it may wait
 * is to be there for others. */
static bool is_hung(const struct jitfiles *files, uid_t uid)
{
	const uint64_t *at = map_get(&files->hung, uid);

	return at && clock_ns(CLOCK_MONOTONIC) - *at < HUNG_NS;
}

/* Take note of what a request for a file of the user came to. Return: the same. */
static int note_end(struct jitfiles *files, uid_t uid, int r)
{
	if (r == -ETIMEDOUT && uid != 0)
		(void)!map_put(&files->hung, uid, clock_ns(CLOCK_MONOTONIC));
	return r;
}

static int open_for(struct jitfiles *files, const struct jitfile_claim *claim,
		    struct jitfile_found *ret_found, const char **reterr_reason)
{
	if (is_hung(files, claim->uid))
		return -EBUSY;
	return note_end(files, claim->uid,
			jitfile_open(files->link, claim, ret_found, reterr_reason));
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
	uid_t uid;

	/* To check that a process writes records takes a while, so it is done once. */
	if (p && !has_dump && files->claims.is_writer)
		return p;
	by = claimant_find(&files->claims, pid);
	/* Not the owner of /proc/PID, which is root if the process has disabled core dumps. */
	if (by.pid_fd < 0 || claimant_user(&by, &uid) < 0)
		return p;
	if (p) {
		p->uid = uid;
		return p;
	}
	if (files->processes.n == JITFILES_MAX && !make_process_room(files, has_dump))
		return NULL;
	if (vec_push(&files->processes, { .pid = pid, .uid = uid, .fd = -1 }) < 0)
		return NULL;
	return &files->processes.items[files->processes.n - 1];
}

/* Have the kernel asked whether the process has the file mapped there. Return: 0 if it has;
 * -ENOENT; or another negative errno, -EPERM or -EACCES if that may not be seen. */
static int check_mapped(struct jitfiles *files, const struct record_mmap2 *mmap, uid_t uid,
			const struct jitfile_found *found)
{
	struct collector_request request = {
		.verb = COLLECTOR_MAPPED,
		.timeout_ms = TIMEOUT_MS,
		.pid = mmap->pid <= INT32_MAX ? mmap->pid : 0,
		.uid = uid,
		.start = mmap->addr,
		.end = mmap->addr + mmap->len,
		.offset = mmap->pgoff,
		.dev = found->dev,
		.ino = found->ino,
		.path = "",
	};
	struct collector_answer answer;
	int none = -1, r;

	r = request.end == 0 ? -ENOENT
	    : is_hung(files, uid)
		? -EBUSY
		: note_end(files, uid,
			   collectorlink_ask(files->link, &request, NULL, NULL, &answer, &none));
	(void)fd_close(none);
	return r;
}

/* Return: why the file that @claim led to is refused, or NULL. */
static const char *judge_dump(struct jitfiles *files, const struct record_mmap2 *mmap,
			      const struct jitfile_claim *claim, const struct jitfile_found *found)
{
	int r;

	/* The kernel's record names the inode. */
	if (claim->must_match && !files->claims.is_writer)
		return NULL;
	r = check_mapped(files, mmap, claim->uid, found);
	/* Without the right to see that, ptd can only open files that its own user may read. */
	if (r == 0 || (claim->must_match && (r == -EPERM || r == -EACCES)))
		return NULL;
	return mmap->ino != 0 ? "it is not the file that the process mapped"
			      : "it cannot be seen that the process mapped it";
}

static void open_dump(struct jitfiles *files, struct process *p, const struct record_mmap2 *mmap)
{
	struct jitfile_found found = { .fd = -1 };
	struct jitfile_claim claim = { .path = mmap->name,
				       .pid = p->pid,
				       .uid = p->uid,
				       .must_match = mmap->ino != 0,
				       .maj = mmap->maj,
				       .min = mmap->min,
				       .ino = mmap->ino };
	int r;

	r = open_for(files, &claim, &found, &p->reason);
	/* Some file systems show another inode in records. */
	if (r == -EPERM && claim.must_match) {
		claim.must_match = false;
		r = open_for(files, &claim, &found, &p->reason);
	}
	if (r == 0) {
		p->reason = judge_dump(files, mmap, &claim, &found);
		if (p->reason)
			found.fd = fd_close(found.fd);
	} else if (r != -EPERM) {
		p->reason = collectorlink_may_retry(r) ? "the collector did not answer in time"
						       : "it cannot be opened";
	}
	p->fd = found.fd;
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
static bool open_map(struct jitfiles *files, const struct process *p, struct jitfile *file)
{
	struct jitfile_found found;
	char path[64];
	int r;

	(void)snprintf(path, sizeof(path), "/tmp/perf-%" PRIu32 ".map", p->pid);
	r = open_for(files, &(struct jitfile_claim){ .path = path, .pid = p->pid, .uid = p->uid },
		     &found, &file->reason);
	if (r < 0 && r != -EPERM && r != -ENOENT)
		file->reason = "it cannot be opened";
	if (r == 0) {
		file->fd = found.fd;
		file->size = found.size;
	}
	return r != -ENOENT;
}

/* It grows. */
static int find_size(struct jitfiles *files, struct jitfile *file)
{
	const int fds[COLLECTOR_FDS_MAX] = { file->fd, -1 };
	struct collector_request request = { .verb = COLLECTOR_STAT,
					     .timeout_ms = TIMEOUT_MS,
					     .pid = file->pid,
					     .uid = file->uid,
					     .path = "" };
	struct collector_answer answer;
	int none = -1, r;

	if (is_hung(files, file->uid))
		return -EBUSY;
	r = note_end(files, file->uid,
		     collectorlink_ask(files->link, &request, fds, NULL, &answer, &none));
	(void)fd_close(none);
	if (r == 0)
		file->size = answer.size;
	return r;
}

static void list_dump(struct jitfiles *files, const struct process *p, struct jitfile *file)
{
	if (p->fd < 0) {
		file->reason = p->reason;
		return;
	}
	file->fd = fcntl(p->fd, F_DUPFD_CLOEXEC, 3);
	if (file->fd < 0) {
		file->reason = "there is no descriptor left for it";
	} else if (find_size(files, file) < 0) {
		file->fd = fd_close(file->fd);
		file->reason = "it cannot be read";
	}
}

int jitfiles_list(struct jitfiles *files, struct jitfile **ret_list, size_t *ret_n)
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

		if (p->has_dump)
			list_dump(files, p, &file);
		else if (!open_map(files, p, &file))
			continue;
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
