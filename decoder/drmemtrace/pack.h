/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memtrace packing
 *
 * Compresses what is written to the files of a drmemtrace directory, by all threads there are. The
 * bytes of a file are cut into pieces where the file says, and each piece is compressed by itself:
 * so the files do not depend on the number of threads. Pieces of all files wait in one ring and
 * leave it in the order in which they came; the ring bounds the memory.
 *
 * A piece becomes raw deflate that ends at a byte, so that pieces can be put one behind the other.
 * It may refer to bytes before it in the same file, its dictionary.
 *
 * A piece can be taken verbatim: its bytes then stand as they are in what it becomes, so that they
 * can be changed in the file.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/util/threads.h"

#define MEMTRACE_PIECE      ((size_t)12 * 21845) /* bytes: whole records */
#define MEMTRACE_PIECE_ROOM ((size_t)64 << 10)   /* for bytes behind a piece that is complete */
#define MEMTRACE_DICTIONARY ((size_t)32 << 10)   /* bytes that deflate can refer to */

struct memtrace_out;
struct memtrace_packing;

struct memtrace_piece {
	struct task task;
	struct memtrace_packing *packing;

	struct memtrace_out *out; /* whose bytes they are; borrowed; NULL: they are not wanted */
	uint64_t offset;          /* of the bytes before they are compressed */
	uint8_t *bytes;           /* owned, with MEMTRACE_DICTIONARY bytes before them */
	size_t n;                 /* at most MEMTRACE_PIECE */
	size_t n_dictionary;      /* how many bytes before @bytes may be referred to */
	bool is_verbatim;
	bool ends_member; /* the next piece of the file is in another member of the archive */
	bool ends_file;

	uint8_t *packed;
	size_t n_packed;
	uint32_t crc; /* CRC-32 of @bytes */
	int r;        /* 0, or negative errno of compressing */
};

/*
 * Make a ring. @threads, which may be NULL, is borrowed; the caller is their owner.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int memtrace_packing_new(struct ptd_threads *threads,
				      struct memtrace_packing **ret_packing);
struct memtrace_packing *memtrace_packing_free(struct memtrace_packing *packing);

/*
 * Return: room for the bytes of a piece, with room for a dictionary before them and
 *         MEMTRACE_PIECE_ROOM behind them, which belongs to the caller until it is part of a piece,
 *         or is given back; or NULL.
 */
uint8_t *memtrace_packing_buffer(struct memtrace_packing *packing);
void memtrace_packing_give_back(struct memtrace_packing *packing, uint8_t *buffer);

/* Return: whether no further piece can be added before the oldest is dropped. */
bool memtrace_packing_is_full(const struct memtrace_packing *packing);

/* Have a copy of @piece compressed. Its fields up to ends_file are set. */
void memtrace_packing_add(struct memtrace_packing *packing, const struct memtrace_piece *piece);

/*
 * Return: the oldest piece, borrowed, once it is compressed; NULL if there is none, or if @waits is
 *         false and it is not ready.
 */
struct memtrace_piece *memtrace_packing_oldest(struct memtrace_packing *packing, bool waits);

/* Drop the oldest piece, which is compressed. */
void memtrace_packing_drop(struct memtrace_packing *packing);

/* Nothing of @out is wanted any more, which goes away. */
void memtrace_packing_forget(struct memtrace_packing *packing, const struct memtrace_out *out);

/* Where the bytes of a verbatim piece begin in what it becomes: behind the header of a block. */
#define MEMTRACE_PACK_VERBATIM 5

/* What stands behind the last piece of a member, and ends the deflated bytes. */
extern const uint8_t memtrace_pack_end[2];

DEFINE_CLEANUP(struct memtrace_packing *, memtrace_packing_free);
