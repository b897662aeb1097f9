/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Code record
 *
 * What a recorded program hands over to ptd of its code that is in no file, or not as the file has
 * it: a ring of such records is part of the pool. QEMU translates code before it runs, and again
 * when it was written, so that a record for each translation whose bytes are not known yet says
 * exactly what ran, and since when. Each record is this header and then @n_bytes bytes of code; the
 * next one begins at a multiple of 8.
 */

#include <stdint.h>

#include "base/base.h"

#define CODERECORD_BYTES_MAX 16384u /* QEMU's translations end at the second page */

enum coderecord_kind {
	/*
	 * The program of process @pid begins at @start, which is its name from now on: what was
	 * handed over for @pid before belongs to another program. If @parent_pid is not 0, it is a
	 * fork of that process's program that began at @address, and has the code that this one had
	 * at @time.
	 */
	CODERECORD_START = 1,

	/* Code at @address. Of bytes of which nothing was known: they are the first there. */
	CODERECORD_NEW,

	/* The same, but other bytes were there before @time: in memory, or in the file. */
	CODERECORD_CHANGED,
};

struct coderecord {
	uint32_t size; /* of all, a multiple of 8 */
	uint32_t kind; /* enum coderecord_kind */
	uint32_t pid;
	uint32_t parent_pid;
	uint64_t start; /* when the program began, in ns of CLOCK_MONOTONIC */
	uint64_t time;  /* the same clock */
	uint64_t address;
	uint32_t n_bytes;
	uint32_t reserved;
};

static inline uint32_t coderecord_size(uint32_t n_bytes)
{
	return (uint32_t)((sizeof(struct coderecord) + n_bytes + 7) & ~(size_t)7);
}
