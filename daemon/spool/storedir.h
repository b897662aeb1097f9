/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Store directory
 *
 * A folder of files that are named by the SHA-256 of what is in them. A name is only ever given to
 * bytes that were hashed after they were copied, so nobody can have his bytes taken for others':
 * not by a build-id, which anybody can write into any file, and not by writing to the original
 * meanwhile.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "util/sha256.h"

struct effort;
struct spool_limits;

/* The largest file that is taken. */
#define STOREDIR_FILE_MAX ((uint64_t)512 << 20)

/* Copies that no snapshot has may take that part of MaxUse=, its half: else whoever executes many
 * files would leave no room for snapshots. */
#define STOREDIR_PART 2u

/* Does the store have it? */
bool storedir_has(int store_fd, const char *hash);

/*
 * Copy @fd into the store without giving it a name; there is one such copy at a time, and the next
 * one takes its place.
 *
 * @alone: bytes on the disk of copies that no snapshot has
 * @effort: how many bytes the file may have by now, and how long it may take
 *
 * Return: 0, @ret_copy_fd, which the caller closes, the hash of what was copied, and the bytes that
 *         it takes on the disk; -EFBIG; -EDQUOT and -ENOSPC if the limits do not allow it;
 *         -ECANCELED or -ETIMEDOUT; or another negative errno.
 */
_must_check_ int storedir_copy(int store_fd, int fd, const struct spool_limits *limits,
			       uint64_t alone, const struct effort *effort, int *ret_copy_fd,
			       char ret_hash[static SHA256_HEX_SIZE], uint64_t *ret_taken);

/* Name the copy. Return: 0, or negative errno. */
_must_check_ int storedir_name(int store_fd, const char *hash);

/*
 * The file @path under @dir_fd, which is complete and has that hash, and the store's of that name
 * become one; if the store has none, it is the store's, too. Where that cannot be done both stay as
 * they are.
 */
void storedir_share(int store_fd, const char *hash, int dir_fd, const char *path);

/* Return: how many bytes on the disk removing the file would free: none if a snapshot has it, too,
 * or there is no such file. */
uint64_t storedir_alone(int store_fd, const char *hash);

/* Remove the file, unless a snapshot has a link to it, or the copy without a name if @hash is NULL.
 * Return: how many bytes that made free. */
uint64_t storedir_forget(int store_fd, const char *hash);

/*
 * Remove all that no snapshot has a link to and of which @needed says that nobody else needs it.
 *
 * Return: 0 and the bytes on the disk of what is left and no snapshot has a link to, or negative
 *         errno.
 */
_must_check_ int storedir_sweep(int store_fd, bool (*needed)(const char *hash, void *userdata),
				void *userdata, uint64_t *ret_alone);
