/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Code record
 *
 * A message by which a recorded program hands over to ptd code that is in no file, or that differs
 * from the file. The code ring of the pool consists of such records. QEMU translates code before
 * the code runs, and again after it was written to; so one record for each translation with unknown
 * bytes says exactly what ran, and since when. A record is this header and @n_bytes bytes of code;
 * the next record begins at a multiple of 8.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"

#define CODERECORD_BYTES_MAX 16384u /* a translation of QEMU has code of at most two pages */

enum coderecord_kind {
	/*
	 * The program of process @pid begins at the time @start, which identifies it from now on:
	 * code that was handed over for @pid before belongs to another program. If @parent_pid is
	 * not 0, the program is a fork of that process's program that began at the time @address,
	 * and has the code that this one had at @time.
	 */
	CODERECORD_START = 1,

	/* Code at @address. Bytes that were unknown before are the first bytes there. */
	CODERECORD_NEW,

	/* Code at @address where other bytes were before @time, in memory or in the file. */
	CODERECORD_CHANGED,

	/* ptd alone writes this: since @time, records of programs are missing, which may have
	 * changed any of their code. */
	CODERECORD_LOST,
};

struct coderecord {
	uint32_t size; /* of the record, a multiple of 8 */
	uint32_t kind; /* enum coderecord_kind */
	uint32_t pid;
	uint32_t parent_pid;
	uint64_t start; /* when the program began, in ns of CLOCK_MONOTONIC */
	uint64_t time;  /* in ns of CLOCK_MONOTONIC */
	uint64_t address;
	uint32_t n_bytes;
	uint32_t uid; /* whose process it is, as ptd says; programs leave it 0 */
};

/* Return: the size of a record with @n_bytes of code. */
static inline uint32_t coderecord_size(uint32_t n_bytes)
{
	return (uint32_t)((sizeof(struct coderecord) + n_bytes + 7) & ~(size_t)7);
}

/* Return: whether the size of a record is that of its code, and the code ends below the end of the
 * address space. */
static inline bool coderecord_makes_sense(const struct coderecord *record)
{
	return record->n_bytes <= CODERECORD_BYTES_MAX &&
	       record->size == coderecord_size(record->n_bytes) &&
	       record->address <= UINT64_MAX - CODERECORD_BYTES_MAX;
}
