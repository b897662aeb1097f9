/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * SHA-256
 *
 * The hash of a file, or of bytes, computed by libcrypto.
 */

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

/* Hash the @size bytes at @bytes. Return: 0, or negative errno. */
_must_check_ int sha256_bytes(const void *bytes, size_t size, char ret_hex[static SHA256_HEX_SIZE]);
