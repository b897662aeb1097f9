/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Dirs
 *
 * Walks over directories and whole trees: list, make, copy, bring to the disk, remove. Symbolic
 * links are never followed, and trees are at most DIRS_DEPTH_MAX deep.
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

/* A stream of its own over the directory @fd, which stays the caller's. Return: NULL and errno if
 * there is none. */
DIR *dirs_list(int fd);

/* The next entry but "." and "..". Return: 1; 0 at the end; or negative errno: the rest is not
 * known. */
_must_check_ int dirs_next(DIR *dir, struct dirent **ret_entry);

/* Return: 0 if nothing is in the directory @fd, -ENOTEMPTY, or another negative errno. */
_must_check_ int dirs_check_empty(int fd);

/* Make the directory @path under @at, and those above it; some may be there. Return: 0, or
 * negative errno. */
_must_check_ int dirs_make(int at, const char *path, mode_t mode);

/*
 * Copy what is in the directory @from into the empty one @to, for nobody but the caller to read.
 * What is neither a file nor a directory is left out.
 *
 * @last: name of the file in it that is copied when all others are there; may be NULL.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int dirs_copy(int from, int to, const char *last);

/* Bring everything under the directory @fd to the disk, the directory itself last. Return: 0, or
 * negative errno. */
_must_check_ int dirs_sync(int fd);

/* Remove all that is in the directory @fd. Return: 0, or negative errno. */
_must_check_ int dirs_empty(int fd);

/* Remove @name under @at, and all that is in it if it is a directory. Return: 0, or negative
 * errno. */
_must_check_ int dirs_remove(int at, const char *name);
