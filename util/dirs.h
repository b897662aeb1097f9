/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Directories
 *
 * Lists, makes, copies, syncs and removes directories and whole trees. Symbolic links are never
 * followed, and trees are at most DIRS_DEPTH_MAX deep.
 */

#include <dirent.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/base.h"

#define DIRS_DEPTH_MAX 8

/* For _cleanup_. */
static inline void dirs_closep(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

/* Open the directory @path under @at. Return: its descriptor, or negative errno. */
_must_check_ int dirs_open(int at, const char *path);

/*
 * Open a stream over the directory @fd, which stays the caller's.
 *
 * Return: the stream, to be closed by closedir(3); NULL and errno on failure.
 */
DIR *dirs_list(int fd);

/* Read the next entry other than "." and "..". Return: 1; 0 at the end; or negative errno. */
_must_check_ int dirs_next(DIR *dir, struct dirent **ret_entry);

/* Return: 0 if the directory @fd is empty; -ENOTEMPTY; or another negative errno. */
_must_check_ int dirs_check_empty(int fd);

/*
 * Make the directory @path under @at, and those above it; any of them may exist already.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int dirs_make(int at, const char *path, mode_t mode);

/* Make the directory @path unless it exists. If root makes it, every user can come to what is in
 * it, whatever the umask is. Return: 0, or negative errno. */
_must_check_ int dirs_make_public(const char *path);

/*
 * Copy the contents of the directory @from into the empty directory @to. Only the caller may read
 * the copies. Entries that are neither regular files nor directories are left out.
 *
 * @last: the name of the file that is copied after all others; NULL: any order
 *
 * Return: 0, or negative errno.
 */
_must_check_ int dirs_copy(int from, int to, const char *last);

/*
 * Sync the directory @fd and all files under it to the disk, with what else its file system has to
 * write. One fsync() for each file would cost a flush of the disk each, and there may be thousands
 * of them. Return: 0, or negative errno.
 */
_must_check_ int dirs_sync(int fd);

/* Remove the contents of the directory @fd. Return: 0, or negative errno. */
_must_check_ int dirs_empty(int fd);

/* Remove @name under @at, with its contents if it is a directory. Return: 0, or negative errno. */
_must_check_ int dirs_remove(int at, const char *name);
