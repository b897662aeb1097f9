/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Objects map
 *
 * The lines of a snapshot's objects.map: the identity of an object, a tab, and the path by which it
 * was mapped. A path may hold any byte but NUL. A newline and a backslash are written as in
 * /proc/mounts: a backslash and three octal digits.
 *
 * If several files had one path, and records tell them apart by device and inode, "@", these
 * numbers and a space stand before the identity.
 *
 * The identity of an object that is missing is "-", and what may follow is divided by spaces:
 * "sha256:" and the hash of its content, and the reason.
 */

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/base.h"
#include "util/sha256.h"

#define OBJECTSMAP_INODE "@%" PRIu32 ":%" PRIu32 ":%" PRIu64 " "
#define OBJECTSMAP_HASH  "sha256:"

/* What a record names a file by that it names no build-id of; all 0: nothing. */
struct objectsmap_inode {
	uint32_t maj, min;
	uint64_t ino;
};

static inline bool objectsmap_same_inode(const struct objectsmap_inode *a,
					 const struct objectsmap_inode *b)
{
	return a->ino == b->ino && a->maj == b->maj && a->min == b->min;
}

/* Write a line. @id has no tabs. Whether writing failed is to be asked of @f afterwards. */
void objectsmap_put(FILE *f, const char *id, const char *path);

/*
 * Split @line, which is changed and has no newline, into its two parts. Older snapshots have plain
 * backslashes: one that is not followed by three octal digits stands for itself.
 *
 * Return: 0, and @ret_id and @ret_path point into @line; -EBADMSG if it is no such line.
 */
_must_check_ int objectsmap_split(char *line, const char **ret_id, const char **ret_path);

/* Take device and inode off the identity at *@id, if there are any. Return: 0 and @ret_inode, whose
 * numbers are 0 if there are none; or -EBADMSG. */
_must_check_ int objectsmap_take_inode(const char **id, struct objectsmap_inode *ret_inode);

/* Return: whether the identity @id, without an inode, is that of a missing object; @ret_hash is the
 *         hash of its content, or empty. */
bool objectsmap_is_missing(const char *id, char ret_hash[static SHA256_HEX_SIZE]);
