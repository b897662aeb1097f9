/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Store directory
 *
 * The folder of the object store. The name of each file in it is the SHA-256 of its content. A file
 * gets its name only after it was copied and its copy was hashed, so no user can substitute other
 * content: neither by a build-id, which anyone can write into any file, nor by writing to the
 * original while it is copied.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "util/sha256.h"

struct spool_limits;

/* The size of the largest file that is copied, in bytes. */
#define STOREDIR_FILE_MAX ((uint64_t)512 << 20)

/* Return: whether there is a file with that hash. */
bool storedir_has(int store_fd, const char *hash);

/* Copies without a name that there may be at a time. */
#define STOREDIR_SLOTS 4u

/*
 * Make a copy in the folder without giving it a name.
 *
 * @slot: less than STOREDIR_SLOTS; there is one such copy for each, and the next one replaces it
 * @disk_bytes: that the original takes on the disk
 * @fill: writes the bytes to @fd, an empty file. Return: 0, or negative errno
 *
 * Return: 0, @ret_copy_fd, which the caller closes, the hash of the copy, and the bytes that it
 *         takes on the disk; -ENOSPC if the limits do not allow it; or the error of @fill or
 *         another negative errno.
 */
_must_check_ int storedir_make(int store_fd, unsigned slot, const struct spool_limits *limits,
			       uint64_t disk_bytes, int (*fill)(void *userdata, int fd),
			       void *userdata, int *ret_copy_fd,
			       char ret_hash[static SHA256_HEX_SIZE], uint64_t *ret_taken);

/* Give the copy its name. Return: 0, or negative errno. */
_must_check_ int storedir_name(int store_fd, unsigned slot, const char *hash);

/* Remove the copy without a name, if there is one. */
void storedir_drop(int store_fd, unsigned slot);

/*
 * Make the file @path under @dir_fd, which is complete and has that hash, a hard link to the
 * store's file. If the store has no such file, it gets a link to @path. On failure both stay as
 * they are.
 */
void storedir_share(int store_fd, const char *hash, int dir_fd, const char *path);

/* Return: how many bytes on the disk become free if the file is removed; 0 if a snapshot links to
 *         it, or there is no such file. */
uint64_t storedir_alone(int store_fd, const char *hash);

/* Remove the file unless a snapshot links to it. Return: how many bytes became free. */
uint64_t storedir_forget(int store_fd, const char *hash);

/*
 * Remove all files to which no snapshot links and for which @needed returns false, and call @count
 * for each of the others to which no snapshot links, with the bytes that it takes on the disk.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int storedir_sweep(int store_fd, bool (*needed)(const char *hash, void *userdata),
				void (*count)(const char *hash, uint64_t bytes, void *userdata),
				void *userdata);
