/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/spool/diskuse.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "daemon/share/share.h"
#include "util/dirs.h"
#include "util/map.h"
#include "util/vec.h"

#define BLOCK_SIZE 512u /* bytes of a block in st_blocks, on all file systems */

struct file {
	uint64_t bytes;
	uint64_t n_links; /* names that the file has in snapshots and the store */
	/* Of the snapshots that have it, while they are counted. */
	uid_t uid;
	enum { OF_NOBODY, OF_ONE, OF_SEVERAL } users;
};

struct snapshot {
	uid_t uid;
	VEC(size_t) files; /* their indices, one for each name */
};

struct diskuse {
	struct map by_inode; /* hash of device and inode → index of the file */
	VEC(struct file) files;
	VEC(struct snapshot) snapshots;
	struct diskuse_amount taken;
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

	for (size_t i = 0; i < diskuse->snapshots.n; i++)
		vec_deinit(&diskuse->snapshots.items[i].files);
	vec_deinit(&diskuse->snapshots);
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
		r = vec_push(&s->files, file);
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
			r = vec_push(&s->files, file);
	}
	return r;
}

int diskuse_add_snapshot(struct diskuse *diskuse, int dir_fd, uid_t uid)
{
	struct snapshot s = { .uid = uid };
	int r;

	r = add_tree(diskuse, &s, dir_fd, 0);
	if (r == 0)
		r = vec_push(&diskuse->snapshots, s);
	if (r < 0)
		vec_deinit(&s.files);
	return r;
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

static void note_user(struct file *file, uid_t uid)
{
	if (file->users == OF_NOBODY)
		*file = (struct file){ file->bytes, file->n_links, uid, OF_ONE };
	else if (file->uid != uid)
		file->users = OF_SEVERAL;
}

void diskuse_share(struct diskuse *diskuse, struct share *ret_share)
{
	*ret_share = (struct share){};
	for (size_t i = 0; i < diskuse->files.n; i++)
		diskuse->files.items[i].users = OF_NOBODY;
	for (size_t i = 0; i < diskuse->snapshots.n; i++) {
		const struct snapshot *s = &diskuse->snapshots.items[i];

		for (size_t k = 0; k < s->files.n; k++)
			note_user(&diskuse->files.items[s->files.items[k]], s->uid);
	}
	for (size_t i = 0; i < diskuse->files.n; i++) {
		const struct file *file = &diskuse->files.items[i];

		if (file->users == OF_ONE)
			share_take(ret_share, file->uid, file->bytes);
	}
}

struct diskuse_amount diskuse_remove(struct diskuse *diskuse, size_t n)
{
	struct snapshot *s = &diskuse->snapshots.items[n];
	struct diskuse_amount freed = {};

	for (size_t i = 0; i < s->files.n; i++) {
		const struct diskuse_amount one = drop_link(diskuse, s->files.items[i]);

		freed.bytes += one.bytes;
		freed.inodes += one.inodes;
	}
	s->files.n = 0;
	return freed;
}
