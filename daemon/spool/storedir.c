/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/spool/storedir.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "daemon/spool/spool.h"
#include "util/dirs.h"

#define NAMELESS ".new"

struct nameless {
	char name[16];
};

static struct nameless nameless_of(unsigned slot)
{
	struct nameless n;

	assert(slot < STOREDIR_SLOTS);
	(void)snprintf(n.name, sizeof(n.name), NAMELESS "%u", slot);
	return n;
}

bool storedir_has(int store_fd, const char *hash)
{
	return faccessat(store_fd, hash, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Return: the bytes that the file takes on the disk; one with holes takes fewer than its size. */
static uint64_t disk_bytes_of(const struct stat *st)
{
	return (uint64_t)st->st_blocks * 512;
}

static int check_room(int store_fd, const struct spool_limits *limits, uint64_t size)
{
	struct statvfs fs;
	uint64_t free_bytes;

	if (fstatvfs(store_fd, &fs) < 0)
		return -errno;
	if (fs.f_files > 0 && fs.f_favail <= limits->keep_free_inodes)
		return -ENOSPC;
	free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	return free_bytes < limits->keep_free || free_bytes - limits->keep_free < size ? -ENOSPC
										       : 0;
}

int storedir_make(int store_fd, unsigned slot, const struct spool_limits *limits,
		  uint64_t disk_bytes, int (*fill)(void *userdata, int fd), void *userdata,
		  int *ret_copy_fd, char ret_hash[static SHA256_HEX_SIZE], uint64_t *ret_taken)
{
	const struct nameless nameless = nameless_of(slot);
	_cleanup_(fd_closep) int copy = -1;
	struct stat st;
	uint64_t size;
	int r;

	r = check_room(store_fd, limits, disk_bytes);
	if (r < 0)
		return r;
	copy = openat(store_fd, nameless.name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
		      0640);
	if (copy < 0)
		return -errno;
	r = fill(userdata, copy);
	if (r == 0)
		r = sha256_fd(copy, NULL, NULL, ret_hash, &size);
	if (r == 0 && fstat(copy, &st) < 0)
		r = -errno;
	if (r < 0) {
		storedir_drop(store_fd, slot);
		return r;
	}
	*ret_copy_fd = copy;
	*ret_taken = disk_bytes_of(&st);
	copy = -1;
	return 0;
}

int storedir_name(int store_fd, unsigned slot, const char *hash)
{
	const struct nameless nameless = nameless_of(slot);

	return renameat(store_fd, nameless.name, store_fd, hash) < 0 ? -errno : 0;
}

void storedir_drop(int store_fd, unsigned slot)
{
	(void)unlinkat(store_fd, nameless_of(slot).name, 0);
}

void storedir_share(int store_fd, const char *hash, int dir_fd, const char *path)
{
	char other[PATH_MAX];

	/* The store's file may be removed before there is a second link to it; then it is not
	 * shared. */
	if (linkat(dir_fd, path, store_fd, hash, 0) == 0 || errno != EEXIST)
		return;
	(void)snprintf(other, sizeof(other), "%s" NAMELESS, path);
	if (linkat(store_fd, hash, dir_fd, other, 0) == 0 &&
	    renameat(dir_fd, other, dir_fd, path) < 0)
		(void)unlinkat(dir_fd, other, 0);
}

uint64_t storedir_alone(int store_fd, const char *hash)
{
	struct stat st;

	if (fstatat(store_fd, hash, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return S_ISREG(st.st_mode) && st.st_nlink == 1 ? disk_bytes_of(&st) : 0;
}

uint64_t storedir_forget(int store_fd, const char *hash)
{
	struct stat st;

	if (fstatat(store_fd, hash, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (S_ISREG(st.st_mode) && st.st_nlink > 1)
		return 0;
	/* Anything but a file is not from this version: earlier ones had folders here. */
	if (dirs_remove(store_fd, hash) < 0)
		return 0;
	return S_ISREG(st.st_mode) ? disk_bytes_of(&st) : 0;
}

int storedir_sweep(int store_fd, bool (*needed)(const char *hash, void *userdata),
		   void (*count)(const char *hash, uint64_t bytes, void *userdata), void *userdata)
{
	_cleanup_(dirs_closep) DIR *dir = dirs_list(store_fd);
	struct dirent *entry;
	uint64_t alone;
	int r;

	if (!dir)
		return -errno;
	while ((r = dirs_next(dir, &entry)) > 0) {
		/* The copy without a name is being written. */
		if (entry->d_name[0] == '.')
			continue;
		if (!needed(entry->d_name, userdata))
			(void)storedir_forget(store_fd, entry->d_name);
		alone = storedir_alone(store_fd, entry->d_name);
		if (alone > 0)
			count(entry->d_name, alone, userdata);
	}
	return r;
}
