/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/pieces.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/effort.h"
#include "util/fileparts.h"
#include "util/sha256.h"
#include "util/vec.h"

#define HEX_SIZE (SHA256_HEX_SIZE - 1)

#define NO_FAILURE UINT64_MAX

struct piece {
	char hex[SHA256_HEX_SIZE];
	bool is_checked;
};

struct pieces {
	uint64_t size;   /* of the file */
	uint64_t failed; /* offset of a piece with another hash; or NO_FAILURE */
	VEC(struct piece) items;
};

static struct pieces *pieces_new(void)
{
	struct pieces *pieces = calloc(1, sizeof(*pieces));

	if (pieces)
		pieces->failed = NO_FAILURE;
	return pieces;
}

struct pieces *pieces_free(struct pieces *pieces)
{
	if (!pieces)
		return NULL;
	vec_deinit(&pieces->items);
	free(pieces);
	return NULL;
}

/* Read a piece, or what there is of it up to the end. Return: its size, or negative errno. */
static ssize_t read_piece(int fd, uint64_t offset, uint8_t *ret_bytes)
{
	size_t done = 0;

	while (done < PIECES_SIZE) {
		const ssize_t n =
		    pread(fd, ret_bytes + done, PIECES_SIZE - done, (off_t)(offset + done));

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			break;
		done += n > 0 ? (size_t)n : 0;
	}
	return (ssize_t)done;
}

int pieces_of_file(int fd, const struct effort *effort, struct pieces **ret_pieces)
{
	_cleanup_(pieces_freep) struct pieces *pieces = pieces_new();
	_cleanup_(freep) uint8_t *buffer = malloc(PIECES_SIZE);
	ssize_t size;
	int r;

	if (!pieces || !buffer)
		return -ENOMEM;
	while ((size = read_piece(fd, pieces->size, buffer)) > 0) {
		struct piece piece = {};

		r = effort_check(effort);
		if (r == 0)
			r = sha256_bytes(buffer, (size_t)size, piece.hex);
		if (r == 0)
			r = vec_push(&pieces->items, piece);
		if (r < 0)
			return r;
		pieces->size += (uint64_t)size;
	}
	if (size < 0)
		return (int)size;
	*ret_pieces = TAKE(pieces);
	return 0;
}

void pieces_print(const struct pieces *pieces, FILE *stream)
{
	for (size_t i = 0; i < pieces->items.n; i++)
		(void)fprintf(stream, "%s\n", pieces->items.items[i].hex);
}

int pieces_read(const char *text, size_t n_bytes, uint64_t size, struct pieces **ret_pieces)
{
	const uint64_t n = size / PIECES_SIZE + (size % PIECES_SIZE > 0);
	_cleanup_(pieces_freep) struct pieces *pieces = NULL;

	if (n_bytes % (HEX_SIZE + 1) != 0 || n_bytes / (HEX_SIZE + 1) != n)
		return -EBADMSG;
	pieces = pieces_new();
	if (!pieces || vec_reserve(&pieces->items, n) < 0)
		return -ENOMEM;
	pieces->size = size;
	for (; pieces->items.n < n; text += HEX_SIZE + 1) {
		struct piece piece = {};

		memcpy(piece.hex, text, HEX_SIZE);
		if (strspn(piece.hex, "0123456789abcdef") != HEX_SIZE || text[HEX_SIZE] != '\n')
			return -EBADMSG;
		pieces->items.items[pieces->items.n++] = piece;
	}
	*ret_pieces = TAKE(pieces);
	return 0;
}

static int check_piece(struct pieces *pieces, int fd, size_t i, uint8_t *buffer)
{
	struct piece *piece = &pieces->items.items[i];
	const uint64_t offset = i * PIECES_SIZE, left = pieces->size - offset;
	const size_t size = left < PIECES_SIZE ? left : PIECES_SIZE;
	char hex[SHA256_HEX_SIZE];
	int r;

	r = fileparts_read_fd(fd, offset, buffer, size);
	if (r == 0)
		r = sha256_bytes(buffer, size, hex);
	if (r < 0)
		return r;
	if (strcmp(hex, piece->hex) != 0) {
		__atomic_store_n(&pieces->failed, offset, __ATOMIC_RELAXED);
		return -EKEYREJECTED;
	}
	__atomic_store_n(&piece->is_checked, true, __ATOMIC_RELAXED);
	return 0;
}

int pieces_check(struct pieces *pieces, int fd, uint64_t offset, uint64_t n)
{
	_cleanup_(freep) uint8_t *buffer = NULL;
	const uint64_t end = offset + n;
	int r = 0;

	/* What is behind the end cannot be read. */
	for (uint64_t i = offset / PIECES_SIZE;
	     i < pieces->items.n && i * PIECES_SIZE < end && r == 0; i++) {
		if (__atomic_load_n(&pieces->items.items[i].is_checked, __ATOMIC_RELAXED))
			continue;
		if (!buffer)
			buffer = malloc(PIECES_SIZE);
		r = buffer ? check_piece(pieces, fd, i, buffer) : -ENOMEM;
	}
	return r;
}

bool pieces_failed(const struct pieces *pieces, uint64_t *ret_offset)
{
	*ret_offset = __atomic_load_n(&pieces->failed, __ATOMIC_RELAXED);
	return *ret_offset != NO_FAILURE;
}
