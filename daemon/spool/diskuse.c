/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/spool/diskuse.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "util/dirs.h"
#include "util/map.h"
#include "util/vec.h"

#define BLOCK_SIZE 512u /* bytes of a block in st_blocks, on all file systems */

struct file {
	uint64_t bytes;
	uint64_t n_links; /* names that the file has in snapshots and the store */
	uint64_t n_names; /* those of them that are in snapshots */
	uint64_t n_own;   /* while one snapshot is looked at: its names there */
};

struct snapshot {
	VEC(size_t) files; /* their indices, one for each name */
};

struct diskuse {
	struct map by_inode; /* hash of device and inode → index of the file */
	VEC(struct file) files;
	VEC(struct snapshot) snapshots;
	struct diskuse_amount taken;
	uint64_t in_snapshots; /* bytes of the files that have names in snapshots */
};

int diskuse_new(struct diskuse **ret_diskuse)
{
	struct diskuse *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	*ret_diskuse = d;
	return 0;
}

struct diskuse *diskuse_free(struct diskuse *diskuse)
{
	if (!diskuse)
		return NULL;

	vec_deinit_each(&diskuse->snapshots, snapshot, vec_deinit(&snapshot->files));
	vec_deinit(&diskuse->files);
	map_deinit(&diskuse->by_inode);
	free(diskuse);
	return NULL;
}

/* A directory counts once, whatever its number of links is. */
static int add_file(struct diskuse *d, const struct stat *st, size_t *ret_file)
{
	const struct file file = {
		.bytes = (uint64_t)st->st_blocks * BLOCK_SIZE,
		.n_links = S_ISDIR(st->st_mode) ? 1 : st->st_nlink,
	};
	const uint64_t inode[] = { st->st_dev, st->st_ino };
	const uint64_t key = map_hash(inode, sizeof(inode));
	const uint64_t *known = map_get(&d->by_inode, key);
	int r;

	if (known) {
		*ret_file = (size_t)*known;
		return 0;
	}
	r = vec_reserve(&d->files, 1);
	if (r == 0)
		r = map_put(&d->by_inode, key, d->files.n);
	if (r < 0)
		return r;
	*ret_file = d->files.n;
	d->files.items[d->files.n++] = file; /* there is room */
	d->taken.bytes += file.bytes;
	d->taken.inodes++;
	return 0;
}

/* Count a name of a file in the snapshot. */
static int add_name(struct diskuse *d, struct snapshot *s, size_t i)
{
	struct file *file = &d->files.items[i];
	int r;

	r = vec_push(&s->files, i);
	if (r == 0 && file->n_names++ == 0)
		d->in_snapshots += file->bytes;
	return r;
}

/* Count one name of a file less. Return: how much that frees. */
static struct diskuse_amount drop_link(struct diskuse *d, size_t i)
{
	struct file *file = &d->files.items[i];
	struct diskuse_amount freed = {};

	if (file->n_links > 0 && --file->n_links == 0)
		freed = (struct diskuse_amount){ .bytes = file->bytes, .inodes = 1 };
	d->taken.bytes -= freed.bytes;
	d->taken.inodes -= freed.inodes;
	return freed;
}

static void drop_name(struct diskuse *d, size_t i)
{
	struct file *file = &d->files.items[i];

	if (--file->n_names == 0)
		d->in_snapshots -= file->bytes;
}

static int add_tree(struct diskuse *d, struct snapshot *s, int fd, int depth)
{
	_cleanup_(dirs_closep) DIR *dir = NULL;
	struct dirent *entry;
	struct stat st;
	size_t file;
	int r;

	if (depth > DIRS_DEPTH_MAX)
		return -ELOOP;
	dir = dirs_list(fd);
	if (!dir || fstat(fd, &st) < 0)
		return -errno;
	r = add_file(d, &st, &file);
	if (r == 0)
		r = add_name(d, s, file);
	while (r == 0 && (r = dirs_next(dir, &entry)) > 0) {
		_cleanup_(fd_closep) int child = -1;

		if (fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return -errno;
		if (S_ISDIR(st.st_mode)) {
			child = dirs_open(fd, entry->d_name);
			r = child < 0 ? child : add_tree(d, s, child, depth + 1);
			continue;
		}
		r = add_file(d, &st, &file);
		if (r == 0)
			r = add_name(d, s, file);
	}
	return r;
}

int diskuse_add_snapshot(struct diskuse *diskuse, int dir_fd)
{
	struct snapshot s = {};
	int r;

	r = add_tree(diskuse, &s, dir_fd, 0);
	if (r == 0)
		r = vec_reserve(&diskuse->snapshots, 1);
	if (r < 0) {
		vec_deinit(&s.files);
		return r;
	}
	diskuse->snapshots.items[diskuse->snapshots.n++] = s; /* there is room */
	return 0;
}

int diskuse_add_store(struct diskuse *diskuse, int dir_fd,
		      bool (*needed)(const char *name, void *userdata), void *userdata)
{
	_cleanup_(dirs_closep) DIR *dir = dirs_list(dir_fd);
	struct dirent *entry;
	struct stat st;
	size_t file;
	int r = 0;

	if (!dir)
		return -errno;
	while (r == 0 && (r = dirs_next(dir, &entry)) > 0) {
		r = 0;
		/* Another thread may have renamed or removed the file. */
		if (fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		r = add_file(diskuse, &st, &file);
		if (r == 0 && !needed(entry->d_name, userdata))
			(void)drop_link(diskuse, file);
	}
	return r;
}

struct diskuse_amount diskuse_taken(const struct diskuse *diskuse)
{
	return diskuse->taken;
}

uint64_t diskuse_in_snapshots(const struct diskuse *diskuse)
{
	return diskuse->in_snapshots;
}

struct diskuse_amount diskuse_own(const struct diskuse *diskuse, size_t n)
{
	const struct snapshot *s = &diskuse->snapshots.items[n];
	struct diskuse_amount own = {};

	for (size_t i = 0; i < s->files.n; i++)
		diskuse->files.items[s->files.items[i]].n_own = 0;
	for (size_t i = 0; i < s->files.n; i++) {
		struct file *file = &diskuse->files.items[s->files.items[i]];

		/* It has no name elsewhere. */
		if (++file->n_own != file->n_links)
			continue;
		own.bytes += file->bytes;
		own.inodes++;
	}
	return own;
}

struct diskuse_amount diskuse_remove(struct diskuse *diskuse, size_t n)
{
	struct snapshot *s = &diskuse->snapshots.items[n];
	struct diskuse_amount freed = {};

	for (size_t i = 0; i < s->files.n; i++) {
		const struct diskuse_amount one = drop_link(diskuse, s->files.items[i]);

		drop_name(diskuse, s->files.items[i]);
		freed.bytes += one.bytes;
		freed.inodes += one.inodes;
	}
	s->files.n = 0;
	return freed;
}
