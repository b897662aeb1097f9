/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Pieces
 *
 * The SHA-256 of each piece of a file, by which bytes of the file can be checked without reading
 * the rest. All pieces have PIECES_SIZE bytes, but for the last one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/base.h"
#include "util/sha256.h"

#define PIECES_SIZE (UINT64_C(1) << 20)

struct effort;
struct pieces;

/*
 * Hash the file that is open at @fd: each piece, and the whole file, whose hash is @ret_hex.
 * @effort may be NULL, see util/effort.h.
 *
 * Return: 0; what effort_check() says; or another negative errno.
 */
_must_check_ int pieces_of_file(int fd, const struct effort *effort,
				char ret_hex[static SHA256_HEX_SIZE], struct pieces **ret_pieces);

/* Print a line for each piece: its hash, hexadecimal. */
void pieces_print(const struct pieces *pieces, FILE *stream);

/*
 * Read the @n_bytes bytes of lines at @text, which are of a file of @size bytes.
 *
 * Return: 0; -EBADMSG if they are not such lines, or not as many as the file has pieces; -ENOMEM.
 */
_must_check_ int pieces_read(const char *text, size_t n_bytes, uint64_t size,
			     struct pieces **ret_pieces);
struct pieces *pieces_free(struct pieces *pieces);

/*
 * Check the pieces of the file open at @fd in which the @n bytes at @offset lie, each once, up to
 * the first one that has another hash. Several threads may do so at the same time.
 *
 * Return: 0 and @ret_n, how many of the bytes lie before that piece, at least one; -EKEYREJECTED if
 *         none does; or another negative errno of reading.
 */
_must_check_ int pieces_check(struct pieces *pieces, int fd, uint64_t offset, uint64_t n,
			      uint64_t *ret_n);

/* Return: whether a piece had another hash, and @ret_offset, where the first such one begins. */
bool pieces_failed(const struct pieces *pieces, uint64_t *ret_offset);

DEFINE_CLEANUP(struct pieces *, pieces_free);
