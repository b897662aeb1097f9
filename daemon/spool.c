/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "decoder/util/dirs.h"
#include "decoder/util/mapfile.h"
#include "decoder/util/vec.h"
#include "ptd/snapshot.h"

#define HIDDEN_PREFIX ".new-"
#define MANIFEST_MAX  ((size_t)1 << 20)

struct spool {
	int dir_fd; /* of the snapshots; holds the lock */
	int store_fd;
	char *path;
};

static int sweep(struct spool *s)
{
	_cleanup_(dirs_closep) DIR *dir = dirs_list(s->dir_fd);
	struct dirent *entry;
	int r = 0;

	if (!dir)
		return -errno;
	while (r == 0 && (r = dirs_next(dir, &entry)) > 0)
		r = strncmp(entry->d_name, HIDDEN_PREFIX, strlen(HIDDEN_PREFIX)) == 0
			? dirs_remove(s->dir_fd, entry->d_name)
			: 0;
	return r;
}

static int open_folder(const char *state_dir, const char *name, int *ret_fd)
{
	_cleanup_(fd_closep) int state = -1;
	int fd;

	state = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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
	*s = (struct spool){ .dir_fd = -1, .store_fd = -1 };

	r = open_folder(state_dir, "snapshots", &s->dir_fd);
	if (r == 0)
		r = open_folder(state_dir, "store", &s->store_fd);
	if (r < 0)
		return r;
	if (flock(s->dir_fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	if (!realpath(state_dir, path))
		return -errno;
	if (asprintf(&s->path, "%s/snapshots", path) < 0) {
		s->path = NULL;
		return -ENOMEM;
	}
	r = sweep(s);
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

bool spool_id_valid(const char *id)
{
	static const char allowed[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ.-";
	const size_t n = strlen(id);

	return n > 0 && n < SPOOL_ID_MAX && id[0] != '.' && strspn(id, allowed) == n;
}

static void hidden_name(const char *id, char ret_name[static SPOOL_ID_MAX + 8])
{
	(void)snprintf(ret_name, SPOOL_ID_MAX + 8, HIDDEN_PREFIX "%s", id);
}

int spool_begin(struct spool *spool, const char *id, int *ret_dir_fd)
{
	char name[SPOOL_ID_MAX + 8];
	int fd;

	if (!spool_id_valid(id))
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
	char name[SPOOL_ID_MAX + 8];
	int r;

	r = dirs_sync(dir_fd);
	if (r < 0)
		return r;
	hidden_name(id, name);
	if (renameat2(spool->dir_fd, name, spool->dir_fd, id, RENAME_NOREPLACE) < 0)
		return -errno;
	if (fsync(spool->dir_fd) < 0) {
		/* Who is told that it failed is not to find it all the same. */
		r = -errno;
		(void)renameat(spool->dir_fd, id, spool->dir_fd, name);
		return r;
	}
	return 0;
}

void spool_abort(struct spool *spool, const char *id)
{
	char name[SPOOL_ID_MAX + 8];

	hidden_name(id, name);
	(void)!dirs_remove(spool->dir_fd, name);
}

int spool_open(const struct spool *spool, const char *id, int *ret_dir_fd)
{
	int fd;

	if (!spool_id_valid(id))
		return -ENOENT;
	fd = dirs_open(spool->dir_fd, id);
	if (fd < 0)
		return fd;
	*ret_dir_fd = fd;
	return 0;
}

/* Copy the value of @key from the manifest's lines; nothing if it has none. */
static void manifest_get(const struct mapfile *manifest, const char *key, char *ret_value,
			 size_t size)
{
	const char *at = (const char *)manifest->bytes, *end = at + manifest->size;
	const size_t n = strlen(key);

	ret_value[0] = 0;
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;
		const size_t length = (size_t)(stop - at);

		if (length > n && at[n] == '=' && memcmp(at, key, n) == 0) {
			(void)snprintf(ret_value, size, "%.*s", (int)(length - n - 1), at + n + 1);
			return;
		}
		at = newline ? newline + 1 : end;
	}
}

static int read_entry(const struct spool *s, const char *id, struct spool_entry *ret_entry)
{
	struct spool_entry e = {};
	struct mapfile manifest;
	char path[SPOOL_ID_MAX + 16], number[32];
	int r;

	(void)snprintf(e.id, sizeof(e.id), "%.*s", SPOOL_ID_MAX - 1, id);
	(void)snprintf(path, sizeof(path), "%s/" PTD_SNAPSHOT_MANIFEST, e.id);
	r = mapfile_init(&manifest, s->dir_fd, path);
	if (r < 0)
		return r;
	if (manifest.size <= MANIFEST_MAX) {
		manifest_get(&manifest, "created", e.created, sizeof(e.created));
		manifest_get(&manifest, "bytes", number, sizeof(number));
		e.bytes = strtoull(number, NULL, 10);
		manifest_get(&manifest, "cpus", number, sizeof(number));
		e.n_cpus = (uint32_t)strtoul(number, NULL, 10);
	}
	mapfile_deinit(&manifest);
	*ret_entry = e;
	return 0;
}

uint64_t spool_sequence(const char *id)
{
	const char *dash = strrchr(id, '-');

	return dash ? strtoull(dash + 1, NULL, 10) : 0;
}

static int by_age(const void *a, const void *b)
{
	const struct spool_entry *x = a, *y = b;
	const uint64_t m = spool_sequence(x->id), n = spool_sequence(y->id);

	return m != n ? (m > n) - (m < n) : strcmp(x->id, y->id);
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

		/* What is no snapshot was put there by somebody else, and is left alone. */
		if (!spool_id_valid(entry->d_name) || read_entry(spool, entry->d_name, &e) < 0)
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
	if (entries.n > 1)
		qsort(entries.items, entries.n, sizeof(*entries.items), by_age);
	*ret_entries = entries.items;
	*ret_n_entries = entries.n;
	return 0;
}

size_t spool_count(const struct spool *spool)
{
	_cleanup_(dirs_closep) DIR *dir = dirs_list(spool->dir_fd);
	char path[SPOOL_ID_MAX + 16];
	struct dirent *entry;
	size_t n = 0;

	while (dir && dirs_next(dir, &entry) > 0) {
		if (!spool_id_valid(entry->d_name))
			continue;
		(void)snprintf(path, sizeof(path), "%.*s/" PTD_SNAPSHOT_MANIFEST, SPOOL_ID_MAX - 1,
			       entry->d_name);
		n += faccessat(spool->dir_fd, path, R_OK, 0) == 0;
	}
	return n;
}

int spool_capacity(const struct spool *spool, uint64_t *ret_bytes)
{
	struct statvfs fs;

	if (fstatvfs(spool->dir_fd, &fs) < 0)
		return -errno;
	*ret_bytes = (uint64_t)fs.f_blocks * fs.f_frsize;
	return 0;
}

static bool over_limit(const struct spool *s, const struct spool_limits *limits, uint64_t used,
		       uint64_t needed)
{
	struct statvfs fs;
	uint64_t left;

	if (used > limits->max_use || needed > limits->max_use - used)
		return true;
	if (fstatvfs(s->dir_fd, &fs) < 0)
		return false;
	left = (uint64_t)fs.f_bavail * fs.f_frsize;
	return left < limits->keep_free || left - limits->keep_free < needed;
}

/* Bytes of the store that are in no snapshot, so not counted there. */
static uint64_t store_use(const struct spool *s)
{
	_cleanup_(dirs_closep) DIR *dir = dirs_list(s->store_fd);
	struct dirent *entry;
	uint64_t used = 0;
	struct stat st;

	while (dir && dirs_next(dir, &entry) > 0)
		if (fstatat(s->store_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    st.st_nlink == 1)
			used += (uint64_t)st.st_size;
	return used;
}

/* Rename first, so that nobody finds half a snapshot. */
static int remove_snapshot(struct spool *s, const char *id)
{
	char name[SPOOL_ID_MAX + 8];

	hidden_name(id, name);
	if (renameat(s->dir_fd, id, s->dir_fd, name) < 0)
		return -errno;
	return dirs_remove(s->dir_fd, name);
}

int spool_vacuum(struct spool *spool, const struct spool_limits *limits, uint64_t needed,
		 size_t keep, size_t *ret_n_removed)
{
	_cleanup_(freep) struct spool_entry *entries = NULL;
	uint64_t used = store_use(spool);
	size_t n;
	int r;

	*ret_n_removed = 0;
	r = spool_list(spool, &entries, &n);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		used += entries[i].bytes;
	for (size_t i = 0; i + keep < n && over_limit(spool, limits, used, needed); i++) {
		r = remove_snapshot(spool, entries[i].id);
		/* Somebody else may have removed it meanwhile. */
		if (r < 0 && r != -ENOENT)
			return r;
		used -= entries[i].bytes;
		*ret_n_removed += r == 0;
	}
	return 0;
}
