/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * SHA-256
 *
 * The hash of a file, or of bytes, computed by libcrypto.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

#define SHA256_HEX_SIZE 65

struct effort;
struct progress;

/*
 * Hash the file open at @fd from its start to its end, without changing the file offset. @ret_size
 * is the number of its bytes.
 *
 * @effort: may be NULL, see util/effort.h
 * @progress: may be NULL, see util/progress.h
 *
 * Return: 0; -EFBIG if the file has more bytes than @effort allows; -ECANCELED or -ETIMEDOUT, as
 *         effort_check() says; or another negative errno.
 */
_must_check_ int sha256_fd(int fd, const struct effort *effort, struct progress *progress,
			   char ret_hex[static SHA256_HEX_SIZE], uint64_t *ret_size);

/* Return: whether the file open at @fd can be read and has the hash @hex. */
bool sha256_fd_is(int fd, const char *hex);

/* Hash the @size bytes at @bytes. Return: 0, or negative errno. */
_must_check_ int sha256_bytes(const void *bytes, size_t size, char ret_hex[static SHA256_HEX_SIZE]);

/* A hash of bytes that come one after the other. */
struct sha256;

/* Return: 0 or -ENOMEM. */
_must_check_ int sha256_new(struct sha256 **ret_sha256);
struct sha256 *sha256_free(struct sha256 *sha256);

/* Add bytes. Return: 0, or negative errno. */
_must_check_ int sha256_add(struct sha256 *sha256, const void *bytes, size_t size);

/* Get the hash of all that was added; nothing can be added afterwards. Return: as above. */
_must_check_ int sha256_finish(struct sha256 *sha256, char ret_hex[static SHA256_HEX_SIZE]);

DEFINE_CLEANUP(struct sha256 *, sha256_free);
