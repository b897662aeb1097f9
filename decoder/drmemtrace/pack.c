/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/drmemtrace/pack.h"

#include <assert.h>
#include <errno.h>
#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <string.h>

#include "decoder/drmemtrace/record.h"
#include "util/vec.h"

/* One is compressed, and others wait for a thread or to be written. */
#define PIECES_PER_THREAD 4

/* Deflated literals have at most 15 bits; the rest is for headers of blocks. */
#define PACKED_MAX (2 * MEMTRACE_PIECE + 4096)

/* Of the library's levels 0 to 3, the first that finds matches as zlib's level 1 does. */
#define LEVEL          1
#define LEVEL_BUF_SIZE ISAL_DEF_LVL1_DEFAULT

/* A last, empty block with fixed codes. */
const uint8_t memtrace_pack_end[2] = { 0x03, 0x00 };

/* What one thread compresses with. */
struct packer {
	struct isal_zstream stream;
	uint8_t level_buf[LEVEL_BUF_SIZE];
};

struct memtrace_packing {
	struct ptd_threads *threads; /* borrowed */
	struct packer **packers;     /* of each thread */
	size_t n_threads;

	/* The ring: @n_waiting from @oldest on were added. */
	struct memtrace_piece *pieces;
	size_t n_pieces, oldest, n_waiting;

	VEC(uint8_t *) spare; /* unused buffers */
};

/* --- compressing ------------------------------------------------------------------------------ */

/* Make a stored block of the first @n bytes (RFC 1951, 3.2.4). */
static void store(struct memtrace_piece *piece, size_t n)
{
	const uint16_t length = (uint16_t)n, not_length = (uint16_t)~length;

	assert(n <= UINT16_MAX);
	piece->packed[0] = 0;
	memcpy(piece->packed + 1, &length, sizeof(length));
	memcpy(piece->packed + 3, &not_length, sizeof(not_length));
	memcpy(piece->packed + MEMTRACE_PACK_VERBATIM, piece->bytes, n);
	piece->n_packed = MEMTRACE_PACK_VERBATIM + n;
}

/*
 * ISA-L (2.30 to 2.32, isal_deflate_icf_body_hash_hist) enters the third byte of a stream that has
 * no history into its table of matches under a hash of the stream's address, so that a match may be
 * found or not depending on where malloc() put the stream. With a dictionary it does not do so.
 * A piece that has none therefore begins with a stored block, which is the dictionary of the rest.
 */
static int deflate_piece(struct packer *packer, struct memtrace_piece *piece)
{
	const size_t n_stored = piece->n_dictionary ? 0
				: piece->n < sizeof(struct memtrace_record)
				    ? piece->n
				    : sizeof(struct memtrace_record);
	const size_t n_dictionary = piece->n_dictionary + n_stored;
	struct isal_zstream *s = &packer->stream;

	if (n_stored > 0)
		store(piece, n_stored);
	if (n_stored == piece->n)
		return 0;
	isal_deflate_init(s);
	s->level = LEVEL;
	s->level_buf = packer->level_buf;
	s->level_buf_size = LEVEL_BUF_SIZE;
	s->flush = SYNC_FLUSH;
	s->next_in = piece->bytes + n_stored;
	s->avail_in = (uint32_t)(piece->n - n_stored);
	if (isal_deflate_set_dict(s, s->next_in - n_dictionary, (uint32_t)n_dictionary) != COMP_OK)
		return -EIO;
	s->next_out = piece->packed + piece->n_packed;
	s->avail_out = (uint32_t)(PACKED_MAX - piece->n_packed);
	if (isal_deflate(s) != COMP_OK || s->avail_in > 0 || s->avail_out == 0)
		return -EIO;
	piece->n_packed += s->total_out;
	return 0;
}

/* A thread's task. */
static void pack_piece(struct task *task, size_t thread)
{
	struct memtrace_piece *piece =
	    (struct memtrace_piece *)((char *)task - offsetof(struct memtrace_piece, task));
	const struct memtrace_packing *packing = piece->packing;

	piece->n_packed = 0;
	piece->crc = crc32_gzip_refl(0, piece->bytes, piece->n);
	piece->r = 0;
	if (piece->is_verbatim)
		store(piece, piece->n);
	else if (piece->n)
		piece->r = deflate_piece(packing->packers[thread], piece);
}

/* --- the ring --------------------------------------------------------------------------------- */

static int make_packers(struct memtrace_packing *packing)
{
	packing->packers = calloc(packing->n_threads, sizeof(*packing->packers));
	if (!packing->packers)
		return -ENOMEM;
	for (size_t i = 0; i < packing->n_threads; i++) {
		packing->packers[i] = malloc(sizeof(*packing->packers[i]));
		if (!packing->packers[i])
			return -ENOMEM;
	}
	return 0;
}

static int make_pieces(struct memtrace_packing *packing, size_t n)
{
	packing->pieces = calloc(n, sizeof(*packing->pieces));
	if (!packing->pieces)
		return -ENOMEM;
	for (; packing->n_pieces < n; packing->n_pieces++) {
		struct memtrace_piece *piece = &packing->pieces[packing->n_pieces];

		piece->packed = malloc(PACKED_MAX);
		if (!piece->packed)
			return -ENOMEM;
	}
	return 0;
}

int memtrace_packing_new(struct ptd_threads *threads, struct memtrace_packing **ret_packing)
{
	_cleanup_(memtrace_packing_freep) struct memtrace_packing *packing =
	    calloc(1, sizeof(*packing));
	int r;

	if (!packing)
		return -ENOMEM;
	packing->threads = threads;
	packing->n_threads = threads_n(threads);
	r = make_packers(packing);
	if (r == 0)
		r = make_pieces(
		    packing, packing->n_threads > 1 ? PIECES_PER_THREAD * packing->n_threads : 1);
	if (r < 0)
		return r;
	*ret_packing = TAKE(packing);
	return 0;
}

struct memtrace_packing *memtrace_packing_free(struct memtrace_packing *packing)
{
	if (!packing)
		return NULL;
	while (memtrace_packing_oldest(packing, true))
		memtrace_packing_drop(packing);
	for (size_t i = 0; i < packing->n_pieces; i++)
		free(packing->pieces[i].packed);
	free(packing->pieces);
	for (size_t i = 0; packing->packers && i < packing->n_threads; i++)
		free(packing->packers[i]);
	free(packing->packers);
	for (size_t i = 0; i < packing->spare.n; i++)
		free(packing->spare.items[i] - MEMTRACE_DICTIONARY);
	vec_deinit(&packing->spare);
	free(packing);
	return NULL;
}

uint8_t *memtrace_packing_buffer(struct memtrace_packing *packing)
{
	uint8_t *buffer;

	if (packing->spare.n > 0)
		return packing->spare.items[--packing->spare.n];
	buffer = malloc(MEMTRACE_DICTIONARY + MEMTRACE_PIECE + MEMTRACE_PIECE_ROOM);
	return buffer ? buffer + MEMTRACE_DICTIONARY : NULL;
}

void memtrace_packing_give_back(struct memtrace_packing *packing, uint8_t *buffer)
{
	if (packing->spare.n >= packing->n_pieces || vec_push(&packing->spare, buffer) < 0)
		free(buffer - MEMTRACE_DICTIONARY);
}

bool memtrace_packing_is_full(const struct memtrace_packing *packing)
{
	return packing->n_waiting == packing->n_pieces;
}

void memtrace_packing_add(struct memtrace_packing *packing, const struct memtrace_piece *piece)
{
	struct memtrace_piece *added =
	    &packing->pieces[(packing->oldest + packing->n_waiting) % packing->n_pieces];
	uint8_t *packed = added->packed;

	assert(!memtrace_packing_is_full(packing));
	*added = *piece;
	added->packing = packing;
	added->packed = packed;
	added->task.run = pack_piece;
	packing->n_waiting++;
	if (packing->n_threads > 1)
		threads_add(packing->threads, &added->task);
	else
		pack_piece(&added->task, 0);
}

struct memtrace_piece *memtrace_packing_oldest(struct memtrace_packing *packing, bool waits)
{
	struct memtrace_piece *piece = &packing->pieces[packing->oldest];

	if (packing->n_waiting == 0)
		return NULL;
	if (packing->n_threads > 1 && waits)
		threads_wait(packing->threads, &piece->task);
	else if (packing->n_threads > 1 && !threads_is_done(packing->threads, &piece->task))
		return NULL;
	return piece;
}

void memtrace_packing_drop(struct memtrace_packing *packing)
{
	memtrace_packing_give_back(packing, packing->pieces[packing->oldest].bytes);
	packing->oldest = (packing->oldest + 1) % packing->n_pieces;
	packing->n_waiting--;
}

void memtrace_packing_forget(struct memtrace_packing *packing, const struct memtrace_out *out)
{
	for (size_t i = 0; i < packing->n_waiting; i++) {
		struct memtrace_piece *piece =
		    &packing->pieces[(packing->oldest + i) % packing->n_pieces];

		if (piece->out == out)
			piece->out = NULL;
	}
}
