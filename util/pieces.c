/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/pieces.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/effort.h"
#include "util/fileparts.h"
#include "util/fullwrite.h"
#include "util/sha256.h"
#include "util/vec.h"

#define HEX_SIZE (SHA256_HEX_SIZE - 1)

enum piece_state {
	PIECE_UNKNOWN,
	PIECE_GOOD,
	PIECE_BAD, /* it has another hash */
};

struct piece {
	char hex[SHA256_HEX_SIZE];
	uint8_t state; /* enum piece_state */
};

struct pieces {
	uint64_t size; /* of the file */
	VEC(struct piece) items;
};

struct pieces *pieces_free(struct pieces *pieces)
{
	if (!pieces)
		return NULL;
	vec_deinit(&pieces->items);
	free(pieces);
	return NULL;
}

int pieces_of_file(int fd, const struct effort *effort, char ret_hex[static SHA256_HEX_SIZE],
		   struct pieces **ret_pieces)
{
	_cleanup_(pieces_freep) struct pieces *pieces = calloc(1, sizeof(*pieces));
	_cleanup_(sha256_freep) struct sha256 *whole = NULL;
	_cleanup_(freep) uint8_t *buffer = malloc(PIECES_SIZE);
	ssize_t size;
	int r;

	r = pieces && buffer ? sha256_new(&whole) : -ENOMEM;
	if (r < 0)
		return r;
	while ((size = fullread_at(fd, buffer, PIECES_SIZE, pieces->size)) > 0) {
		struct piece piece = {};

		r = effort_check(effort);
		if (r == 0)
			r = sha256_add(whole, buffer, (size_t)size);
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
	r = sha256_finish(whole, ret_hex);
	if (r == 0)
		*ret_pieces = TAKE(pieces);
	return r;
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
	pieces = calloc(1, sizeof(*pieces));
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

static enum piece_state state_of(const struct pieces *pieces, size_t i)
{
	return __atomic_load_n(&pieces->items.items[i].state, __ATOMIC_RELAXED);
}

/* Hash piece @i. Return: 0, or negative errno of reading. */
static int hash_piece(struct pieces *pieces, int fd, size_t i, uint8_t *buffer)
{
	struct piece *piece = &pieces->items.items[i];
	const uint64_t offset = i * PIECES_SIZE, left = pieces->size - offset;
	const size_t size = left < PIECES_SIZE ? left : PIECES_SIZE;
	char hex[SHA256_HEX_SIZE];
	int r;

	r = fileparts_read_fd(fd, offset, buffer, size);
	if (r == 0)
		r = sha256_bytes(buffer, size, hex);
	if (r == 0)
		__atomic_store_n(&piece->state,
				 strcmp(hex, piece->hex) == 0 ? PIECE_GOOD : PIECE_BAD,
				 __ATOMIC_RELAXED);
	return r;
}

int pieces_check(struct pieces *pieces, int fd, uint64_t offset, uint64_t n, uint64_t *ret_n)
{
	_cleanup_(freep) uint8_t *buffer = NULL;
	const uint64_t end = offset + n;

	/* What is behind the end cannot be read. */
	for (uint64_t i = offset / PIECES_SIZE; i < pieces->items.n && i * PIECES_SIZE < end; i++) {
		const uint64_t start = i * PIECES_SIZE;
		int r = 0;

		if (state_of(pieces, i) == PIECE_UNKNOWN) {
			if (!buffer)
				buffer = malloc(PIECES_SIZE);
			r = buffer ? hash_piece(pieces, fd, i, buffer) : -ENOMEM;
		}
		if (r == 0 && state_of(pieces, i) == PIECE_BAD)
			r = -EKEYREJECTED;
		if (r == -EKEYREJECTED && start > offset) {
			*ret_n = start - offset;
			return 0;
		}
		if (r < 0)
			return r;
	}
	*ret_n = n;
	return 0;
}

bool pieces_failed(const struct pieces *pieces, uint64_t *ret_offset)
{
	for (size_t i = 0; i < pieces->items.n; i++) {
		if (state_of(pieces, i) != PIECE_BAD)
			continue;
		*ret_offset = i * PIECES_SIZE;
		return true;
	}
	return false;
}
