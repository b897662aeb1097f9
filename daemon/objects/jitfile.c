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

#include "daemon/helper/collector/link.h"
#include "daemon/objects/asker.h"
#include "daemon/objects/original.h"
#include "daemon/proc/process.h"
#include "daemon/share/share.h"
#include "daemon/sideband/tasks.h"
#include "util/map.h"
#include "util/mapname.h"
#include "util/perf/record.h"
#include "util/vec.h"

/* The event loop waits. */
#define TIMEOUT_MS 200u

/* A jitdump of a process, or a process that has none. */
struct process {
	uint32_t pid;
	uid_t uid;
	int fd; /* of the jitdump, or -1 */
	const char *reason;
	bool has_dump; /* the process claims to have a jitdump */
	uint64_t seen; /* number of the last record of a mapping by the process */

	/* Of the jitdump. */
	char *path;        /* owned */
	uint64_t dev, ino; /* 0: it could not be opened */
	uint64_t since;    /* as struct jitfile has it */
};

struct jitfiles {
	VEC(struct process) processes; /* oldest first */
	VEC(uint32_t) given_up; /* pids of processes whose jitdumps were forgotten, oldest first */
	uint64_t moment;
	bool is_claimed; /* see struct source_facts */
	struct collectorlink *link;
	struct patience patience; /* with users */
	struct share share;       /* of descriptors; up to date when what is taken was counted */
};

static int open_path(struct collectorlink *link, const struct jitfile_claim *claim,
		     struct collector_answer *ret_answer, int *ret_fd)
{
	struct collector_request request = {
		.verb = COLLECTOR_OPEN_PATH,
		.flags = COLLECTOR_NOFOLLOW | (claim->is_map ? COLLECTOR_PERF_MAP : 0),
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

int jitfiles_new(bool is_claimed, const char *runtime_dir, struct jitfiles **ret_files)
{
	_cleanup_(jitfiles_freep) struct jitfiles *files = calloc(1, sizeof(*files));
	int r;

	if (!files)
		return -ENOMEM;
	files->is_claimed = is_claimed;
	r = collectorlink_new(runtime_dir, true, &files->link);
	if (r < 0)
		return r;
	*ret_files = TAKE(files);
	return 0;
}

static void deinit_process(struct process *p)
{
	p->fd = fd_close(p->fd);
	free(p->path);
	p->path = NULL;
}

struct jitfiles *jitfiles_free(struct jitfiles *files)
{
	if (!files)
		return NULL;

	vec_deinit_each(&files->processes, process, deinit_process(process));
	vec_deinit(&files->given_up);
	patience_deinit(&files->patience);
	(void)collectorlink_free(files->link);
	free(files);
	return NULL;
}

static int open_for(struct jitfiles *files, const struct jitfile_claim *claim,
		    struct jitfile_found *ret_found, const char **reterr_reason)
{
	if (!patience_begin(&files->patience, claim->uid))
		return -EBUSY;
	return patience_end(&files->patience, claim->uid,
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

/* Find the user who has more descriptors than their share, and the most. Return: whether there is
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
	deinit_process(least);
	files->processes.n--;
	memmove(least, least + 1, (size_t)(items + files->processes.n - least) * sizeof(*items));
	return true;
}

/* Find the user of the process. It is read while the process is known to live, and may change by
 * setuid(), or because another process has the number now. @user: who it is if the process has
 * ended. Return: whether it has one user. */
static bool find_user(uint32_t pid, const struct jitfile_user *user, struct jitfile_user *ret_user)
{
	const int r = process_user_of(pid, &ret_user->uid);

	ret_user->is_known = r == 0;
	if (r == -ESRCH)
		*ret_user = *user;
	return r == 0 || r == -ESRCH;
}

/* Remember a process, or a jitdump of one. Return: NULL if there is no room. */
static struct process *add_process(struct jitfiles *files, uint32_t pid, uid_t uid, bool has_dump)
{
	if (files->processes.n == JITFILES_MAX && !make_process_room(files, has_dump))
		return NULL;
	if (vec_push(&files->processes,
		     { .pid = pid, .uid = uid, .fd = -1, .has_dump = has_dump }) < 0)
		return NULL;
	return &files->processes.items[files->processes.n - 1];
}

static void note_process(struct jitfiles *files, uint32_t pid, const struct jitfile_user *user)
{
	struct process *p = find_process(files, pid);
	struct jitfile_user found;

	if (!find_user(pid, user, &found))
		return;
	if (!p)
		p = add_process(files, pid, found.uid, false);
	else if (!p->has_dump)
		p->uid = found.uid;
	if (p)
		p->seen = ++files->moment;
}

/* Have the kernel asked whether the process has the file mapped there. Return: 0 if it has;
 * -ENOENT; or another negative errno, -EPERM or -EACCES if that may not be seen. */
static int check_mapped(struct jitfiles *files, const struct record_mmap2 *mmap, uid_t uid,
			const struct original *found)
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
	};
	struct collector_answer answer;
	int none = -1, r;

	r = request.end == 0 ? -ENOENT
	    : !patience_begin(&files->patience, uid)
		? -EBUSY
		: patience_end(
		      &files->patience, uid,
		      collectorlink_ask(files->link, &request, NULL, NULL, &answer, &none));
	(void)fd_close(none);
	return r;
}

/* A jitdump that was found. */
struct found {
	int fd; /* -1: not taken */
	struct original original;
	const char *reason; /* why it is not */
};

/*
 * Return: why the file that was found is refused, or NULL.
 *
 * @by_inode: it is the one whose inode the record names
 */
static const char *judge_dump(struct jitfiles *files, const struct record_mmap2 *mmap, uid_t uid,
			      const struct original *original, bool by_inode)
{
	int r;

	if (original->uid != uid)
		return "it does not belong to the process's user";
	/* The kernel's record names the inode. */
	if (by_inode && !files->is_claimed)
		return NULL;
	r = check_mapped(files, mmap, uid, original);
	/* A process that has ended maps nothing any more; and without the right to see what one
	 * maps, ptd can only open files that its own user may read. */
	if (r == 0 || (by_inode && (r == -ESRCH || r == -EPERM || r == -EACCES)))
		return NULL;
	return mmap->ino != 0 ? "it is not the file that the process mapped"
			      : "it cannot be seen that the process mapped it";
}

static int find_dump(struct jitfiles *files, const struct record_mmap2 *mmap,
		     const struct jitfile_user *user, struct found *ret_found)
{
	const enum original_way way = user->is_known ? ORIGINAL_OWN_JITDUMP : ORIGINAL_JITDUMP;

	if (!patience_begin(&files->patience, user->uid))
		return -EBUSY;
	return patience_end(&files->patience, user->uid,
			    original_find(files->link, way, files->is_claimed, mmap, user->uid,
					  NULL, &ret_found->fd, &ret_found->original));
}

/* Open the file that is mapped, if it is a jitdump. Return: whether it is one; of a file that
 * cannot be seen, whether it has the usual name of one. */
static bool open_dump(struct jitfiles *files, const struct record_mmap2 *mmap,
		      const struct jitfile_user *user, struct found *ret_found)
{
	struct record_mmap2 unknown = *mmap;
	bool by_inode = mmap->ino != 0;
	int r;

	*ret_found = (struct found){ .fd = -1 };
	r = find_dump(files, mmap, user, ret_found);
	/* Some file systems show another inode in records. */
	if (r == -ESTALE && by_inode) {
		unknown.maj = unknown.min = 0;
		unknown.ino = 0;
		by_inode = false;
		r = find_dump(files, &unknown, user, ret_found);
	}
	if (r == 0) {
		ret_found->reason =
		    judge_dump(files, mmap, user->uid, &ret_found->original, by_inode);
		if (ret_found->reason)
			ret_found->fd = fd_close(ret_found->fd);
		return true;
	}
	ret_found->reason = collectorlink_may_retry(r) ? "the collector did not answer in time"
			    : r == -ENOEXEC            ? "it is not a regular file, or no jitdump"
			    : r == -ESTALE ? "it is not the file that the process mapped"
					   : "it cannot be opened";
	return mapname_is_jitdump(mmap->name);
}

/* Return: what is remembered of this jitdump; NULL if it is a new one. */
static struct process *find_known_dump(const struct jitfiles *files,
				       const struct record_mmap2 *mmap, const struct found *found)
{
	for (size_t i = 0; i < files->processes.n; i++) {
		struct process *p = &files->processes.items[i];

		if (p->pid == mmap->pid && p->has_dump && strcmp(p->path, mmap->name) == 0 &&
		    (p->fd < 0 || found->fd < 0 ||
		     (p->dev == found->original.dev && p->ino == found->original.ino)))
			return p;
	}
	return NULL;
}

/* Remember the jitdump. Return: NULL if there is no room for it, or no memory. */
static struct process *note_dump(struct jitfiles *files, const struct record_mmap2 *mmap, uid_t uid,
				 const struct found *found, uint64_t time)
{
	struct process *p = find_known_dump(files, mmap, found);
	char *path;

	if (p)
		return p;
	path = strdup(mmap->name);
	if (!path)
		return NULL;
	p = find_process(files, mmap->pid);
	if (!p || p->has_dump)
		p = add_process(files, mmap->pid, uid, true);
	if (!p) {
		free(path);
		return NULL;
	}
	p->has_dump = true;
	p->path = path;
	p->since = time;
	return p;
}

void jitfiles_get_share(const struct jitfiles *files, struct share *ret_share)
{
	*ret_share = files->share;
}

static bool add_dump(struct jitfiles *files, const struct record_mmap2 *mmap, uint64_t time,
		     const struct jitfile_user *user)
{
	struct found found;
	struct process *p;
	struct jitfile_user by;

	if (!find_user(mmap->pid, user, &by) || !open_dump(files, mmap, &by, &found))
		return mapname_is_jitdump(mmap->name);
	p = note_dump(files, mmap, by.uid, &found, time);
	/* One that was opened stays open, whatever has become of its name. */
	if (!p || (p->fd >= 0 && found.fd < 0)) {
		(void)fd_close(found.fd);
		return true;
	}
	forget_given_up(files, p->pid);
	(void)fd_close(p->fd);
	p->uid = by.uid;
	p->fd = found.fd;
	p->dev = found.original.dev;
	p->ino = found.original.ino;
	p->reason = found.reason;
	p->seen = ++files->moment;
	return true;
}

/* Return: whether the mapping, which is executable, may be of a jitdump: compilers map its first
 * page. */
static bool may_be_dump(const struct record_mmap2 *mmap)
{
	return mmap->pgoff == 0 && mmap->build_id.size == 0 &&
	       (mapname_is_file(mmap->name) || mapname_is_memfd(mmap->name));
}

bool jitfiles_add(struct jitfiles *files, const struct record_mmap2 *mmap, uint64_t time,
		  const struct jitfile_user *user)
{
	if (!(mmap->prot & PROT_EXEC))
		return false;
	if (may_be_dump(mmap) && add_dump(files, mmap, time, user))
		return true;
	if (mapname_is_memory(mmap->name))
		note_process(files, mmap->pid, user);
	return false;
}

void jitfiles_fork(struct jitfiles *files, uint32_t pid, uint32_t parent,
		   const struct jitfile_user *user)
{
	if (find_process(files, parent))
		note_process(files, pid, user);
}

/* Open the list of names that a JIT compiler may write instead of a jitdump, or beside it. Return:
 * whether there is one, or a reason why it was refused. */
static bool open_map(struct jitfiles *files, const struct process *p, struct jitfile *file)
{
	struct jitfile_found found;
	char path[64];
	int r;

	(void)snprintf(path, sizeof(path), "/tmp/perf-%" PRIu32 ".map", p->pid);
	r = open_for(
	    files,
	    &(struct jitfile_claim){ .path = path, .pid = p->pid, .uid = p->uid, .is_map = true },
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
	const int fds[CHANNEL_FDS_MAX] = { file->fd, -1 };
	struct collector_request request = {
		.verb = COLLECTOR_STAT, .timeout_ms = TIMEOUT_MS, .pid = file->pid, .uid = file->uid
	};
	struct collector_answer answer;
	int none = -1, r;

	if (!patience_begin(&files->patience, file->uid))
		return -EBUSY;
	r = patience_end(&files->patience, file->uid,
			 collectorlink_ask(files->link, &request, fds, NULL, &answer, &none));
	(void)fd_close(none);
	if (r == 0)
		file->size = answer.size;
	return r;
}

/* Return: whether there is something to list. A file that was mapped while it was empty, and still
 * is, need not be a jitdump. */
static bool list_dump(struct jitfiles *files, const struct process *p, struct jitfile *file)
{
	file->since = p->since;
	file->path = strdup(p->path);
	if (p->fd < 0) {
		file->reason = p->reason;
		return file->path;
	}
	file->fd = fcntl(p->fd, F_DUPFD_CLOEXEC, 3);
	if (file->fd < 0) {
		file->reason = "there is no descriptor left for it";
	} else if (find_size(files, file) < 0) {
		file->fd = fd_close(file->fd);
		file->reason = "it cannot be read";
	}
	if (file->path && (file->reason || file->size > 0 || mapname_is_jitdump(p->path)))
		return true;
	file->fd = fd_close(file->fd);
	free(file->path);
	return false;
}

/* Return: whether it is the first one that is remembered of its process. */
static bool is_first(const struct jitfiles *files, const struct process *p)
{
	return p == find_process(files, p->pid);
}

int jitfiles_list(struct jitfiles *files, struct jitfile **ret_list, size_t *ret_n)
{
	struct jitfile *list =
	    calloc(2 * files->processes.n + files->given_up.n + 1, sizeof(*list));
	size_t n = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < files->processes.n; i++) {
		const struct process *p = &files->processes.items[i];
		struct jitfile dump = { .pid = p->pid, .uid = p->uid, .is_dump = true, .fd = -1 };
		struct jitfile map = { .pid = p->pid, .uid = p->uid, .fd = -1 };

		if (p->has_dump && list_dump(files, p, &dump))
			list[n++] = dump;
		if (is_first(files, p) && open_map(files, p, &map))
			list[n++] = map;
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

bool jitfiles_has_dump(const struct jitfile *list, size_t n, const struct record_mmap2 *mmap)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].path && list[i].pid == mmap->pid &&
		    strcmp(list[i].path, mmap->name) == 0)
			return true;
	return false;
}

void jitfiles_list_free(struct jitfile *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		(void)fd_close(list[i].fd);
		free(list[i].path);
	}
	free(list);
}
