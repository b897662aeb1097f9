/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/spool/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/printable.h"
#include "daemon/share/share.h"
#include "ptd/snapshot.h"
#include "util/dirs.h"
#include "util/mapfile.h"
#include "util/message.h"
#include "util/mutex.h"
#include "util/number.h"
#include "util/vec.h"

#define HIDDEN_PREFIX ".new-"
#define KEPT_PREFIX   ".keep-" /* the snapshot is kept */
#define NAME_MAX_SIZE (SNAPID_SIZE + 8)
#define MANIFEST_MAX  ((size_t)1 << 20)

struct spool {
	int dir_fd; /* of the snapshots; holds the lock */
	int store_fd;
	char *path;
	pthread_mutex_t lock; /* for which snapshots are kept, and which are removed */
};

bool spool_limits_equal(const struct spool_limits *a, const struct spool_limits *b)
{
	return a->max_use == b->max_use && a->keep_free == b->keep_free &&
	       a->keep_free_inodes == b->keep_free_inodes;
}

static bool has_prefix(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

static int sweep_unfinished(struct spool *s)
{
	_cleanup_(dirs_closep) DIR *dir = dirs_list(s->dir_fd);
	struct dirent *entry;
	int r = 0;

	if (!dir)
		return -errno;
	while (r == 0 && (r = dirs_next(dir, &entry)) > 0) {
		const char *name = entry->d_name;
		const bool goes = has_prefix(name, HIDDEN_PREFIX) ||
				  (has_prefix(name, KEPT_PREFIX) &&
				   faccessat(s->dir_fd, name + strlen(KEPT_PREFIX), F_OK, 0) < 0);

		r = goes ? dirs_remove(s->dir_fd, name) : 0;
	}
	return r;
}

static int open_folder(const char *state_dir, const char *name, int *ret_fd)
{
	_cleanup_(fd_closep) int state = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd;

	if (state < 0)
		return -errno;
	if (mkdirat(state, name, 0750) < 0 && errno != EEXIST)
		return -errno;
	fd = dirs_open(state, name);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

int spool_new(const char *state_dir, struct spool **ret_spool)
{
	_cleanup_(spool_freep) struct spool *s = NULL;
	char path[PATH_MAX];
	int r;

	r = state_dir[0] ? dirs_make(AT_FDCWD, state_dir, 0750) : -EINVAL;
	if (r < 0)
		return r;
	s = malloc(sizeof(*s));
	if (!s)
		return -ENOMEM;
	*s = (struct spool){
		.dir_fd = -1,
		.store_fd = -1,
		.lock = PTHREAD_MUTEX_INITIALIZER,
	};

	r = open_folder(state_dir, PTD_STATE_SNAPSHOTS, &s->dir_fd);
	if (r == 0)
		r = open_folder(state_dir, "store", &s->store_fd);
	if (r < 0)
		return r;
	if (flock(s->dir_fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	if (!realpath(state_dir, path))
		return -errno;
	s->path = message_text("%s/" PTD_STATE_SNAPSHOTS, path);
	if (!s->path)
		return -ENOMEM;
	r = sweep_unfinished(s);
	if (r < 0)
		return r;
	*ret_spool = TAKE(s);
	return 0;
}

struct spool *spool_free(struct spool *spool)
{
	if (!spool)
		return NULL;

	spool->dir_fd = fd_close(spool->dir_fd);
	spool->store_fd = fd_close(spool->store_fd);
	free(spool->path);
	(void)pthread_mutex_destroy(&spool->lock);
	free(spool);
	return NULL;
}

int spool_store_fd(const struct spool *spool)
{
	return spool->store_fd;
}

const char *spool_path(const struct spool *spool)
{
	return spool->path;
}

int spool_resolve(const struct spool *spool, const char *name, char ret_id[static SNAPID_SIZE])
{
	if (strcmp(name, SNAPID_LATEST) == 0)
		return snapid_latest(spool->dir_fd, ret_id);
	if (!snapid_valid(name))
		return -ENOENT;
	(void)snprintf(ret_id, SNAPID_SIZE, "%s", name);
	return 0;
}

static void hidden_name(const char *id, char ret_name[static NAME_MAX_SIZE])
{
	(void)snprintf(ret_name, NAME_MAX_SIZE, HIDDEN_PREFIX "%s", id);
}

static void kept_name(const char *id, char ret_name[static NAME_MAX_SIZE])
{
	(void)snprintf(ret_name, NAME_MAX_SIZE, KEPT_PREFIX "%s", id);
}

int spool_begin(struct spool *spool, const char *id, int *ret_dir_fd)
{
	char name[NAME_MAX_SIZE];
	int fd;

	if (!snapid_valid(id))
		return -EINVAL;
	hidden_name(id, name);
	if (mkdirat(spool->dir_fd, name, 0750) < 0)
		return -errno;
	fd = dirs_open(spool->dir_fd, name);
	if (fd < 0)
		return fd;
	*ret_dir_fd = fd;
	return 0;
}

int spool_commit(struct spool *spool, const char *id, int dir_fd)
{
	char name[NAME_MAX_SIZE];
	int r;

	r = dirs_sync(dir_fd);
	if (r < 0)
		return r;
	hidden_name(id, name);
	if (renameat2(spool->dir_fd, name, spool->dir_fd, id, RENAME_NOREPLACE) < 0)
		return -errno;
	if (fsync(spool->dir_fd) < 0) {
		/* If the caller gets an error, the snapshot must not be visible. */
		r = -errno;
		(void)renameat(spool->dir_fd, id, spool->dir_fd, name);
		return r;
	}
	return 0;
}

void spool_abort(struct spool *spool, const char *id)
{
	char name[NAME_MAX_SIZE];

	hidden_name(id, name);
	(void)!dirs_remove(spool->dir_fd, name);
}

int spool_open(const struct spool *spool, const char *name, int *ret_dir_fd)
{
	char id[SNAPID_SIZE];
	int fd, r;

	r = spool_resolve(spool, name, id);
	if (r < 0)
		return r;
	fd = dirs_open(spool->dir_fd, id);
	if (fd < 0)
		return fd;
	*ret_dir_fd = fd;
	return 0;
}

/* Find the first line at or behind @at that begins with @prefix. What follows the prefix is copied,
 * as far as there is room. Return: whether there is one; @at is behind it then. */
static bool manifest_next(const struct mapfile *manifest, const char *prefix, size_t *at,
			  char *ret_value, size_t size)
{
	const size_t n = strlen(prefix);

	while (*at < manifest->size) {
		const char *line = (const char *)manifest->bytes + *at;
		const char *newline = memchr(line, '\n', manifest->size - *at);
		const size_t length = newline ? (size_t)(newline - line) : manifest->size - *at;

		*at += length + 1;
		if (length < n || memcmp(line, prefix, n) != 0)
			continue;
		(void)snprintf(ret_value, size, "%.*s", (int)(length - n), line + n);
		return true;
	}
	return false;
}

/* Copy the value of @key from the manifest; "" if it has none. */
static void manifest_get(const struct mapfile *manifest, const char *key, char *ret_value,
			 size_t size)
{
	char prefix[64];
	size_t at = 0;

	(void)snprintf(prefix, sizeof(prefix), "%s=", key);
	if (!manifest_next(manifest, prefix, &at, ret_value, size))
		ret_value[0] = 0;
}

static uint64_t manifest_number(const struct mapfile *manifest, const char *key)
{
	char number[32];

	manifest_get(manifest, key, number, sizeof(number));
	return strtoull(number, NULL, 10);
}

static bool is_kept(const struct spool *s, const char *id)
{
	char name[NAME_MAX_SIZE];

	kept_name(id, name);
	return faccessat(s->dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int read_entry(const struct spool *s, const char *id, struct spool_entry *ret_entry)
{
	struct spool_entry e = {};
	struct mapfile manifest;
	char path[SNAPID_SIZE + 16], number[32];
	int r;

	(void)snprintf(e.id, sizeof(e.id), "%.*s", SNAPID_SIZE - 1, id);
	(void)snprintf(path, sizeof(path), "%s/" PTD_SNAPSHOT_MANIFEST, e.id);
	r = mapfile_read(&manifest, s->dir_fd, path);
	if (r < 0)
		return r;
	if (manifest.size <= MANIFEST_MAX) {
		manifest_get(&manifest, "created", e.created, sizeof(e.created));
		printable_clean(e.created, strlen(e.created));
		manifest_get(&manifest, PTD_MANIFEST_COMMAND, e.command, sizeof(e.command));
		printable_clean(e.command, strlen(e.command));
		manifest_get(&manifest, PTD_MANIFEST_COMMAND_COMPLETE, number, sizeof(number));
		e.command_cut = strcmp(number, "no") == 0;
		e.bytes = manifest_number(&manifest, "bytes");
		e.n_cpus = (uint32_t)manifest_number(&manifest, "cpus");
		e.pid = (uint32_t)manifest_number(&manifest, PTD_MANIFEST_COMMAND_PID);
		e.n_missing = (uint32_t)manifest_number(&manifest, "objects_missing");
		e.n_records_lost = manifest_number(&manifest, "sideband_lost");
		e.bytes_dropped = manifest_number(&manifest, PTD_MANIFEST_DROPPED);
		e.bytes_overwritten = manifest_number(&manifest, PTD_MANIFEST_OVERWRITTEN);
	}
	mapfile_deinit(&manifest);
	e.kept = is_kept(s, e.id);
	*ret_entry = e;
	return 0;
}

static int by_age(const void *a, const void *b)
{
	const struct spool_entry *x = a, *y = b;
	return snapid_compare(x->id, y->id);
}

int spool_list(const struct spool *spool, struct spool_entry **ret_entries, size_t *ret_n_entries)
{
	_cleanup_(dirs_closep) DIR *dir = dirs_list(spool->dir_fd);
	VEC(struct spool_entry) entries = {};
	struct dirent *entry;
	int r;

	if (!dir)
		return -errno;
	while ((r = dirs_next(dir, &entry)) > 0) {
		struct spool_entry e;

		/* Other files were put there by users, and are left alone. */
		if (!snapid_valid(entry->d_name) || read_entry(spool, entry->d_name, &e) < 0)
			continue;
		if (vec_push(&entries, e) < 0) {
			r = -ENOMEM;
			break;
		}
	}
	if (r < 0) {
		vec_deinit(&entries);
		return r;
	}
	vec_sort(&entries, by_age);
	*ret_entries = entries.items;
	*ret_n_entries = entries.n;
	return 0;
}

size_t spool_count(const struct spool *spool)
{
	_cleanup_(dirs_closep) DIR *dir = dirs_list(spool->dir_fd);
	char path[SNAPID_SIZE + 16];
	struct dirent *entry;
	size_t n = 0;

	while (dir && dirs_next(dir, &entry) > 0) {
		if (!snapid_valid(entry->d_name))
			continue;
		(void)snprintf(path, sizeof(path), "%.*s/" PTD_SNAPSHOT_MANIFEST, SNAPID_SIZE - 1,
			       entry->d_name);
		n += faccessat(spool->dir_fd, path, R_OK, 0) == 0;
	}
	return n;
}

int spool_capacity(const struct spool *spool, struct diskuse_amount *ret_room)
{
	struct statvfs fs;

	if (fstatvfs(spool->dir_fd, &fs) < 0)
		return -errno;
	*ret_room = (struct diskuse_amount){
		.bytes = (uint64_t)fs.f_blocks * fs.f_frsize,
		.inodes = fs.f_files,
	};
	return 0;
}

int spool_free_room(const struct spool *spool, struct diskuse_amount *ret_room)
{
	struct statvfs fs;

	if (fstatvfs(spool->dir_fd, &fs) < 0)
		return -errno;
	*ret_room = (struct diskuse_amount){
		.bytes = (uint64_t)fs.f_bavail * fs.f_frsize,
		/* Some file systems make inodes as needed, and do not count them. */
		.inodes = fs.f_files > 0 ? fs.f_favail : UINT64_MAX,
	};
	return 0;
}

int spool_measure(const struct spool *spool, const struct spool_entry *entries, size_t n_entries,
		  bool (*needed)(const char *name, void *userdata), void *userdata,
		  struct diskuse **ret_diskuse)
{
	_cleanup_(diskuse_freep) struct diskuse *d = NULL;
	int r;

	r = diskuse_new(&d);
	for (size_t i = 0; r == 0 && i < n_entries; i++) {
		_cleanup_(fd_closep) int dir = dirs_open(spool->dir_fd, entries[i].id);

		r = dir < 0 ? dir : diskuse_add_snapshot(d, dir);
	}
	if (r == 0)
		r = diskuse_add_store(d, spool->store_fd, needed, userdata);
	if (r < 0)
		return r;
	*ret_diskuse = TAKE(d);
	return 0;
}

/* Get the id of an existing snapshot. The lock is held. */
static int find_snapshot(const struct spool *s, const char *name, char ret_id[static SNAPID_SIZE])
{
	char path[SNAPID_SIZE + 16];
	int r;

	r = spool_resolve(s, name, ret_id);
	if (r < 0)
		return r;
	(void)snprintf(path, sizeof(path), "%s/" PTD_SNAPSHOT_MANIFEST, ret_id);
	return faccessat(s->dir_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

/* Make or remove the file that marks a snapshot as kept. The lock is held. */
static int set_kept(struct spool *s, const char *id, bool keep)
{
	_cleanup_(fd_closep) int fd = -1;
	char name[NAME_MAX_SIZE];

	kept_name(id, name);
	if (keep) {
		fd = openat(s->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
		if (fd < 0)
			return errno == EEXIST ? 0 : -errno;
		if (fsync(fd) < 0)
			return -errno;
	} else if (unlinkat(s->dir_fd, name, 0) < 0 && errno != ENOENT) {
		return -errno;
	}
	return fsync(s->dir_fd) < 0 ? -errno : 0;
}

int spool_keep(struct spool *spool, const char *name, bool keep)
{
	char id[SNAPID_SIZE];
	int r;

	HOLD(&spool->lock);
	r = find_snapshot(spool, name, id);
	return r < 0 ? r : set_kept(spool, id, keep);
}

/* The directory is renamed first, so that no reader finds half a snapshot. */
int spool_remove(struct spool *spool, const char *name)
{
	char id[SNAPID_SIZE] = "", hidden[NAME_MAX_SIZE];
	int r;

	(void)pthread_mutex_lock(&spool->lock);
	r = find_snapshot(spool, name, id);
	if (r == 0 && is_kept(spool, id))
		r = -EPERM;
	hidden_name(id, hidden);
	if (r == 0 && renameat(spool->dir_fd, id, spool->dir_fd, hidden) < 0)
		r = -errno;
	(void)pthread_mutex_unlock(&spool->lock);
	return r == 0 ? dirs_remove(spool->dir_fd, hidden) : r;
}
