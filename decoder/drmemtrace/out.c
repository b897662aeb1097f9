/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/drmemtrace/out.h"

#include <assert.h>
#include <errno.h>
#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "decoder/drmemtrace/record.h"
#include "decoder/util/outdir.h"
#include "decoder/util/threads.h"
#include "util/fullwrite.h"
#include "util/map.h"
#include "util/message.h"

/* --- packing ---------------------------------------------------------------------------------- */

/*
 * All threads there are compress what is written. The bytes of a file are cut into pieces where the
 * file says, and each piece is compressed by itself: so the files do not depend on the number of
 * threads. Pieces of all files wait in one ring and leave it in the order in which they came; the
 * ring bounds the memory.
 *
 * A piece becomes raw deflate that ends at a byte, so that pieces can be put one behind the other.
 * It may refer to bytes before it in the same file, its dictionary.
 *
 * A piece can be taken verbatim: its bytes then stand as they are in what it becomes, so that they
 * can be changed in the file.
 *
 * Pieces of plain files are not compressed: the thread writes them where they belong.
 */

#define MEMTRACE_PIECE      ((size_t)12 * 21845) /* bytes: whole records */
#define MEMTRACE_PIECE_ROOM ((size_t)64 << 10)   /* for bytes behind a piece that is complete */
#define MEMTRACE_DICTIONARY ((size_t)32 << 10)   /* bytes that deflate can refer to */

/* Where the bytes of a verbatim piece begin in what it becomes: behind the header of a block. */
#define STORED_HEADER 5

struct memtrace_piece {
	struct task task;
	struct memtrace_packing *packing;

	struct memtrace_out *out; /* whose bytes they are; borrowed; NULL: they are not wanted */
	uint64_t offset;          /* of the bytes before they are compressed */
	int fd;              /* of a plain file, which stays open until they are written; or -1 */
	uint8_t *bytes;      /* owned, with MEMTRACE_DICTIONARY bytes before them */
	size_t n;            /* at most MEMTRACE_PIECE */
	size_t n_dictionary; /* how many bytes before @bytes may be referred to */
	bool is_verbatim;
	bool ends_member; /* the next piece of the file is in another member of the archive */
	bool ends_file;

	uint8_t *packed;
	size_t n_packed;
	uint32_t crc; /* CRC-32 of @bytes */
	int r;        /* 0, or negative errno of compressing, or of writing a plain file */
};

/* One is compressed, and others wait for a thread or to be written. */
#define PIECES_PER_THREAD 4

/* Deflated literals have at most 15 bits; the rest is for headers of blocks. */
#define PACKED_MAX (2 * MEMTRACE_PIECE + 4096)

/* Of the library's levels 0 to 3, the first that finds matches as zlib's level 1 does. */
#define LEVEL          1
#define LEVEL_BUF_SIZE ISAL_DEF_LVL1_DEFAULT

/* What stands behind the last piece of a member: a last, empty block with fixed codes. */
static const uint8_t pack_end[2] = { 0x03, 0x00 };

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
	memcpy(piece->packed + STORED_HEADER, piece->bytes, n);
	piece->n_packed = STORED_HEADER + n;
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

	if (piece->fd >= 0) {
		piece->r = fullwrite_at(piece->fd, piece->bytes, piece->n, piece->offset);
		return;
	}
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

/*
 * Return: room for the bytes of a piece, with room for a dictionary before them and
 *         MEMTRACE_PIECE_ROOM behind them, which belongs to the caller until it is part of a piece,
 *         or is given back; or NULL.
 */
static uint8_t *packing_buffer(struct memtrace_packing *packing)
{
	uint8_t *buffer;

	if (packing->spare.n > 0)
		return packing->spare.items[--packing->spare.n];
	buffer = malloc(MEMTRACE_DICTIONARY + MEMTRACE_PIECE + MEMTRACE_PIECE_ROOM);
	return buffer ? buffer + MEMTRACE_DICTIONARY : NULL;
}

static void packing_give_back(struct memtrace_packing *packing, uint8_t *buffer)
{
	if (packing->spare.n >= packing->n_pieces || vec_push(&packing->spare, buffer) < 0)
		free(buffer - MEMTRACE_DICTIONARY);
}

/*
 * Return: the oldest piece, borrowed, once it is compressed; NULL if there is none, or if @waits is
 *         false and it is not ready.
 */
static struct memtrace_piece *packing_oldest(struct memtrace_packing *packing, bool waits)
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

/* Drop the oldest piece, which is compressed. */
static void packing_drop(struct memtrace_packing *packing)
{
	packing_give_back(packing, packing->pieces[packing->oldest].bytes);
	packing->oldest = (packing->oldest + 1) % packing->n_pieces;
	packing->n_waiting--;
}

static struct memtrace_packing *packing_free(struct memtrace_packing *packing)
{
	if (!packing)
		return NULL;
	while (packing_oldest(packing, true))
		packing_drop(packing);
	for (size_t i = 0; i < packing->n_pieces; i++)
		free(packing->pieces[i].packed);
	free(packing->pieces);
	for (size_t i = 0; packing->packers && i < packing->n_threads; i++)
		free(packing->packers[i]);
	free(packing->packers);
	vec_deinit_each(&packing->spare, buffer, free(*buffer - MEMTRACE_DICTIONARY));
	free(packing);
	return NULL;
}

DEFINE_CLEANUP(struct memtrace_packing *, packing_free);

/* Make a ring. @threads, which may be NULL, is borrowed; the caller is their owner.
 * Return: 0, or negative errno. */
static int packing_new(struct ptd_threads *threads, struct memtrace_packing **ret_packing)
{
	_cleanup_(packing_freep) struct memtrace_packing *packing = calloc(1, sizeof(*packing));
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

/* Return: whether no further piece can be added before the oldest is dropped. */
static bool packing_is_full(const struct memtrace_packing *packing)
{
	return packing->n_waiting == packing->n_pieces;
}

/* Have a copy of @piece compressed. Its fields up to ends_file are set. */
static void packing_add(struct memtrace_packing *packing, const struct memtrace_piece *piece)
{
	struct memtrace_piece *added =
	    &packing->pieces[(packing->oldest + packing->n_waiting) % packing->n_pieces];
	uint8_t *packed = added->packed;

	assert(!packing_is_full(packing));
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

/* Nothing of @out is wanted any more, which goes away with its descriptor. */
static void packing_forget(struct memtrace_packing *packing, const struct memtrace_out *out)
{
	for (size_t i = 0; i < packing->n_waiting; i++) {
		struct memtrace_piece *piece =
		    &packing->pieces[(packing->oldest + i) % packing->n_pieces];

		if (piece->out != out)
			continue;
		piece->out = NULL;
		if (packing->n_threads > 1)
			threads_wait(packing->threads, &piece->task);
	}
}

/* --- the pool --------------------------------------------------------------------------------- */

static_assert(MEMTRACE_OUT_BUFFER <= MEMTRACE_PIECE_ROOM, "what is added fits behind a piece");

#define NUMBER_MAX 9999
#define PART       ".part"

int memtrace_out_pool_init(struct memtrace_out_pool *pool, int dir_fd, uint64_t *room,
			   bool is_plain, struct ptd_threads *threads)
{
	*pool = (struct memtrace_out_pool){ .dir_fd = dir_fd, .room = room, .is_plain = is_plain };
	return packing_new(threads, &pool->packing);
}

void memtrace_out_pool_deinit(struct memtrace_out_pool *pool)
{
	map_deinit(&pool->n_made);
	assert(!pool->newest);
	(void)packing_free(pool->packing);
	*pool = (struct memtrace_out_pool){ .dir_fd = -1 };
}

/* --- files that are open ---------------------------------------------------------------------- */

static void link_newest(struct memtrace_out *out)
{
	struct memtrace_out_pool *pool = out->pool;

	out->newer = NULL;
	out->older = pool->newest;
	if (pool->newest)
		pool->newest->newer = out;
	else
		pool->oldest = out;
	pool->newest = out;
}

static void unlink_out(struct memtrace_out *out)
{
	struct memtrace_out_pool *pool = out->pool;

	if (out->newer)
		out->newer->older = out->older;
	else
		pool->newest = out->older;
	if (out->older)
		out->older->newer = out->newer;
	else
		pool->oldest = out->newer;
}

/* Take @size bytes of what may still be written. Return: 0 or -EFBIG. */
static int take_room(struct memtrace_out_pool *pool, size_t size)
{
	if (pool->room && size > *pool->room)
		return -EFBIG;
	if (pool->room)
		*pool->room -= size;
	return 0;
}

/* Close the file at @fd, which is whole, and give it its name. */
static int close_whole(struct memtrace_out_pool *pool, const char *name, int fd)
{
	_cleanup_(freep) char *part = message_text("%s" PART, name);
	int r = part ? 0 : -ENOMEM;

	/* Some file systems report only here that the disk is full. */
	if (close(fd) < 0 && r == 0)
		r = -errno;
	return r < 0 ? r : outdir_rename(pool->dir_fd, part, name);
}

/* The file takes no more bytes until it is opened again. */
static void free_buffer(struct memtrace_out *out)
{
	packing_give_back(out->pool->packing, out->buffer);
	out->buffer = NULL;
	out->n = 0;
	out->n_dictionary = 0;
	unlink_out(out);
	out->pool->n_open--;
}

static int close_fd(struct memtrace_out *out)
{
	const int fd = out->fd;

	out->fd = -1;
	return close(fd) < 0 ? -errno : 0;
}

/* --- pieces ----------------------------------------------------------------------------------- */

/* Append bytes to the file itself. */
static int append(struct memtrace_out *out, const uint8_t *bytes, size_t size)
{
	int r = take_room(out->pool, size);

	if (r == 0)
		r = fullwrite_at(out->fd, bytes, size, out->size);
	if (r == 0)
		out->size += size;
	return r;
}

static int begin_member(struct memtrace_out *out)
{
	struct zip_member member = { .offset = out->size };
	uint8_t header[ZIP_HEADER_MAX];
	int r;

	(void)snprintf(member.name, sizeof(member.name), "chunk.%08zu", out->members.n);
	r = vec_push(&out->members, member);
	if (r == 0)
		r = append(out, header, zip_put_header(&member, header));
	out->is_in_member = true;
	return r;
}

/* Write the header of a member that is complete, or was changed afterwards. */
static int write_header(struct memtrace_out *out, const struct zip_member *member)
{
	uint8_t header[ZIP_HEADER_MAX];
	const size_t size = zip_put_header(member, header);

	return fullwrite_at(out->fd, header, size, member->offset);
}

static int end_member(struct memtrace_out *out)
{
	struct zip_member *member = &out->members.items[out->members.n - 1];
	int r = append(out, pack_end, sizeof(pack_end));

	if (r < 0)
		return r;
	member->packed_size += sizeof(pack_end);
	out->is_in_member = false;
	return write_header(out, member);
}

/* The bytes of @piece, which are watched, are about to be appended. */
static void place_watch(struct memtrace_out *out, const struct memtrace_piece *piece)
{
	for (size_t i = 0; i < out->watches.n; i++) {
		struct memtrace_watch *watch = &out->watches.items[i];

		if (watch->offset != piece->offset)
			continue;
		watch->at = out->size + STORED_HEADER;
		memcpy(watch->bytes, piece->bytes, sizeof(watch->bytes));
		watch->member = out->members.n - 1;
		watch->offset_in_member = out->members.items[watch->member].size;
	}
}

static int write_piece(struct memtrace_out *out, const struct memtrace_piece *piece)
{
	struct zip_member *member;
	int r = piece->r;

	if (r < 0 || out->pool->is_plain)
		return r;
	if (!out->is_in_member)
		r = begin_member(out);
	if (r < 0)
		return r;
	if (piece->is_verbatim)
		place_watch(out, piece);
	r = append(out, piece->packed, piece->n_packed);
	if (r < 0)
		return r;
	member = &out->members.items[out->members.n - 1];
	member->crc = (uint32_t)crc32_combine(member->crc, piece->crc, (z_off_t)piece->n);
	member->packed_size += piece->n_packed;
	member->size += piece->n;
	if (member->size > ZIP_SIZE_MAX - MEMTRACE_PIECE ||
	    member->packed_size > ZIP_SIZE_MAX - 2 * MEMTRACE_PIECE)
		return -EFBIG;
	return piece->ends_member ? end_member(out) : 0;
}

/* All pieces of the file are written. */
static int end_file(struct memtrace_out *out)
{
	_cleanup_(freep) uint8_t *directory = NULL;
	size_t size;
	const int fd = out->fd;
	int r = 0;

	if (!out->pool->is_plain)
		r = zip_directory(out->members.items, out->members.n, out->size, &directory, &size);
	if (r == 0 && directory)
		r = append(out, directory, size);
	if (r < 0)
		return r;
	out->fd = -1;
	return close_whole(out->pool, out->name, fd);
}

/* Write the oldest piece, which is compressed. */
static int write_oldest(struct memtrace_out_pool *pool, const struct memtrace_piece *piece)
{
	struct memtrace_out *out = piece->out;
	const bool ends_file = piece->ends_file;
	int r;

	if (!out) {
		packing_drop(pool->packing);
		return 0;
	}
	r = write_piece(out, piece);
	packing_drop(pool->packing);
	out->n_packing--;
	if (r == 0 && ends_file)
		return end_file(out);
	/* It was closed to make room while pieces of it were compressed. */
	if (r == 0 && out->n_packing == 0 && !out->buffer)
		return close_fd(out);
	return r;
}

/* Write what is compressed; with @all, wait for what is not. */
static int write_ready(struct memtrace_out_pool *pool, bool all)
{
	const struct memtrace_piece *piece;
	int r = 0;

	while (r == 0 && (piece = packing_oldest(pool->packing, all)))
		r = write_oldest(pool, piece);
	return r;
}

int memtrace_out_pool_flush(struct memtrace_out_pool *pool)
{
	return write_ready(pool, true);
}

enum piece_kind {
	PIECE_COMPRESSED,
	PIECE_VERBATIM,
	PIECE_ENDS_MEMBER, /* compressed; likewise the next */
	PIECE_ENDS_FILE,
};

/*
 * Hand on the first @n bytes of the buffer; those behind them stay. What comes may refer to the
 * bytes handed on, unless they may still change, or end a member.
 */
static int hand_on(struct memtrace_out *out, size_t n, enum piece_kind kind)
{
	struct memtrace_packing *packing = out->pool->packing;
	const size_t before = out->n_dictionary + n;
	const struct memtrace_piece piece = {
		.out = out,
		.offset = out->n_written,
		.fd = out->pool->is_plain ? out->fd : -1,
		.bytes = out->buffer,
		.n = n,
		.n_dictionary = out->n_dictionary,
		.is_verbatim = kind == PIECE_VERBATIM,
		.ends_member = kind == PIECE_ENDS_MEMBER || kind == PIECE_ENDS_FILE,
		.ends_file = kind == PIECE_ENDS_FILE,
	};
	uint8_t *next;
	int r = 0;

	if (n == 0 && !piece.ends_member)
		return 0;
	if (out->pool->is_plain)
		r = take_room(out->pool, n);
	if (r < 0)
		return r;
	next = packing_buffer(packing);
	if (!next)
		return -ENOMEM;
	out->n_dictionary = before < MEMTRACE_DICTIONARY ? before : MEMTRACE_DICTIONARY;
	if (kind != PIECE_COMPRESSED || out->pool->is_plain)
		out->n_dictionary = 0;
	memcpy(next - out->n_dictionary, out->buffer + n - out->n_dictionary, out->n_dictionary);
	memcpy(next, out->buffer + n, out->n - n);
	out->buffer = next;
	out->n -= n;
	out->n_written += n;

	if (packing_is_full(packing))
		r = write_oldest(out->pool, packing_oldest(packing, true));
	if (r < 0) {
		packing_give_back(packing, piece.bytes);
		return r;
	}
	out->n_packing++;
	packing_add(packing, &piece);
	return write_ready(out->pool, false);
}

/* Hand on @n bytes of the buffer. Those of watched records become pieces of their own. */
static int hand_on_parts(struct memtrace_out *out, size_t n, enum piece_kind last)
{
	const uint64_t end = out->n_written + n;
	int r = 0;

	for (size_t i = 0; i < out->watches.n && r == 0; i++) {
		const uint64_t offset = out->watches.items[i].offset;

		if (offset < out->n_written || offset >= end)
			continue;
		r = hand_on(out, (size_t)(offset - out->n_written), PIECE_COMPRESSED);
		if (r == 0)
			r = hand_on(out, MEMTRACE_OUT_WATCHED, PIECE_VERBATIM);
	}
	return r < 0 ? r : hand_on(out, (size_t)(end - out->n_written), last);
}

/*
 * Hand on the pieces that are complete. This is done before anything else happens to the file, so
 * that its bytes do not depend on how many were added at a time.
 */
static int hand_on_complete(struct memtrace_out *out)
{
	int r = 0;

	while (r == 0 && out->n >= MEMTRACE_PIECE)
		r = hand_on_parts(out, MEMTRACE_PIECE, PIECE_COMPRESSED);
	return r;
}

/* Hand on all that is in the buffer. */
static int hand_on_all(struct memtrace_out *out, enum piece_kind last)
{
	const int r = hand_on_complete(out);

	return r < 0 ? r : hand_on_parts(out, out->n, last);
}

/* --- the life of a file ----------------------------------------------------------------------- */

/* Close the file to make room for another. */
static int close_for_now(struct memtrace_out *out)
{
	int r = hand_on_all(out, PIECE_COMPRESSED);

	free_buffer(out);
	if (out->n_packing == 0 && out->fd >= 0) {
		const int q = close_fd(out);

		r = r < 0 ? r : q;
	}
	return r;
}

/* @fd belongs to @out afterwards; on failure it is closed. */
static int adopt(struct memtrace_out *out, int fd)
{
	out->buffer = packing_buffer(out->pool->packing);
	if (!out->buffer) {
		(void)close(fd);
		out->fd = -1;
		return -ENOMEM;
	}
	out->fd = fd;
	out->pool->n_open++;
	link_newest(out);
	return 0;
}

/* Open the file, closing others for as long as there are too many. Return: its fd, or -errno. */
static int open_file(struct memtrace_out_pool *pool, const char *name, bool is_new)
{
	for (;;) {
		int r = -EMFILE;

		if (pool->n_open < MEMTRACE_OUT_OPEN_MAX) {
			r = outdir_open(pool->dir_fd, name, is_new);
			if (r >= 0)
				return r;
		}
		if ((r != -EMFILE && r != -ENFILE) || !pool->oldest)
			return r;
		r = close_for_now(pool->oldest);
		/* The descriptors of files that are being compressed are still open. */
		if (r == 0 && pool->n_open < MEMTRACE_OUT_OPEN_MAX - 1)
			r = write_ready(pool, true);
		if (r < 0)
			return r;
	}
}

static int open_part(struct memtrace_out_pool *pool, const char *name, bool is_new)
{
	_cleanup_(freep) char *part = message_text("%s" PART, name);

	return part ? open_file(pool, part, is_new) : -ENOMEM;
}

int memtrace_out_create(struct memtrace_out *out, struct memtrace_out_pool *pool, const char *stem)
{
	const uint64_t key = map_hash(stem, strlen(stem));
	const uint64_t *made = map_get(&pool->n_made, key);
	int r;

	/* One that is complete has another name, so its number does not show in what there is. */
	for (uint64_t i = made ? *made : 0; i <= NUMBER_MAX; i++) {
		_cleanup_(freep) char *name = message_text("%s.%04u.trace%s", stem, (unsigned)i,
							   pool->is_plain ? "" : ".zip");
		int fd;

		if (!name)
			return -ENOMEM;
		fd = open_part(pool, name, true);
		if (fd == -EEXIST)
			continue;
		if (fd < 0)
			return fd;

		*out = (struct memtrace_out){ .pool = pool, .fd = -1 };
		r = adopt(out, fd);
		if (r < 0)
			return r;
		r = map_put(&pool->n_made, key, i + 1);
		if (r < 0)
			return r;
		out->name = TAKE(name);
		return 0;
	}
	return -EEXIST;
}

int memtrace_out_use(struct memtrace_out *out)
{
	int fd, r = 0;

	if (out->buffer) {
		if (out->pool->newest != out) {
			unlink_out(out);
			link_newest(out);
		}
		return 0;
	}

	if (out->pool->n_open >= MEMTRACE_OUT_OPEN_MAX)
		r = close_for_now(out->pool->oldest);
	if (r < 0)
		return r;
	/* It is still open if pieces of it are being compressed. */
	fd = out->fd >= 0 ? out->fd : open_part(out->pool, out->name, false);
	return fd < 0 ? fd : adopt(out, fd);
}

int memtrace_out_room(struct memtrace_out *out, size_t size, uint8_t **ret_room)
{
	const int r = hand_on_complete(out);

	assert(out->buffer);
	assert(size <= MEMTRACE_OUT_BUFFER);

	*ret_room = out->buffer + out->n;
	return r;
}

int memtrace_out_end_member(struct memtrace_out *out)
{
	return hand_on_all(out, PIECE_ENDS_MEMBER);
}

int memtrace_out_watch(struct memtrace_out *out, uint64_t offset)
{
	int r;

	assert(offset + MEMTRACE_OUT_WATCHED == memtrace_out_offset(out));

	if (out->pool->is_plain)
		return 0;
	if (out->watches.n == MEMTRACE_OUT_WATCH_MAX) {
		out->watches.n--;
		memmove(out->watches.items, out->watches.items + 1,
			out->watches.n * sizeof(*out->watches.items));
	}
	r = vec_push(&out->watches, { .offset = offset });
	return r < 0 ? r : hand_on_complete(out);
}

int memtrace_out_settle(struct memtrace_out *out, uint64_t offset)
{
	const int r = hand_on_complete(out);

	while (out->watches.n > 0 && out->watches.items[out->watches.n - 1].offset >= offset)
		out->watches.n--;
	return r;
}

/* Change the bytes that are watched, and were handed on. */
static int change(struct memtrace_out *out, struct memtrace_watch *watch, const uint8_t *bytes)
{
	struct zip_member *member;
	uint64_t n_behind;
	int r = 0;

	if (!watch->at)
		r = write_ready(out->pool, true);
	if (r == 0)
		r = fullwrite_at(out->fd, bytes, MEMTRACE_OUT_WATCHED, watch->at);
	if (r < 0)
		return r;

	/* A CRC is linear: what changed in it is what the change alone gives, with zeros behind. */
	member = &out->members.items[watch->member];
	n_behind = member->size - watch->offset_in_member - MEMTRACE_OUT_WATCHED;
	member->crc ^= (uint32_t)crc32_combine(crc32(0, watch->bytes, MEMTRACE_OUT_WATCHED) ^
						   crc32(0, bytes, MEMTRACE_OUT_WATCHED),
					       0, (z_off_t)n_behind);
	memcpy(watch->bytes, bytes, MEMTRACE_OUT_WATCHED);
	if (out->is_in_member && watch->member + 1 == out->members.n)
		return 0;
	return write_header(out, member);
}

int memtrace_out_patch(struct memtrace_out *out, uint64_t offset,
		       const uint8_t bytes[static MEMTRACE_OUT_WATCHED])
{
	int r = hand_on_complete(out);

	assert(out->buffer);
	assert(offset + MEMTRACE_OUT_WATCHED <= memtrace_out_offset(out));

	if (r < 0)
		return r;
	if (offset >= out->n_written) {
		memcpy(out->buffer + (offset - out->n_written), bytes, MEMTRACE_OUT_WATCHED);
		return 0;
	}
	if (out->pool->is_plain) {
		r = write_ready(out->pool, true);
		return r < 0 ? r : fullwrite_at(out->fd, bytes, MEMTRACE_OUT_WATCHED, offset);
	}
	for (size_t i = 0; i < out->watches.n; i++)
		if (out->watches.items[i].offset == offset)
			return change(out, &out->watches.items[i], bytes);
	return -ENOENT;
}

int memtrace_out_finish(struct memtrace_out *out)
{
	const int r = hand_on_all(out, PIECE_ENDS_FILE);

	free_buffer(out);
	return r;
}

int memtrace_out_whole(struct memtrace_out_pool *pool, const char *name, const uint8_t *bytes,
		       size_t size)
{
	int fd, r;

	fd = open_part(pool, name, true);
	if (fd < 0)
		return fd;
	r = take_room(pool, size);
	if (r == 0)
		r = fullwrite_at(fd, bytes, size, 0);
	if (r == 0)
		return close_whole(pool, name, fd);
	(void)fd_close(fd);
	return r;
}

void memtrace_out_deinit(struct memtrace_out *out)
{
	if (out->pool)
		packing_forget(out->pool->packing, out);
	if (out->buffer)
		free_buffer(out);
	if (out->pool && out->fd >= 0)
		(void)close_fd(out);
	out->fd = -1;
	vec_deinit(&out->members);
	vec_deinit(&out->watches);
	free(out->name);
	*out = (struct memtrace_out){ .fd = -1 };
}
