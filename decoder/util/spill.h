/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Spill
 *
 * Bytes that are written once and read later, and may be too many for memory. They go to a
 * temporary file without a name, in $TMPDIR or /var/tmp, and are then read from it, or mapped.
 * Where no such file can be made, they stay in memory.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

/* How many can be written at a time to files that were prepared. */
#define SPILL_PREPARED 8

/*
 * What several spills share: how much they may have together. Freeing a spill does not lower the
 * count, since the files of a confined process only grow.
 */
struct spills {
	uint64_t room; /* bytes that may still be written */
	int failure;   /* the last error: -EFBIG if that was too much; 0: none */
};

/* Return: the directory in which the files are. */
const char *spill_directory(void);

/* A spill that is all zero is empty, may be used, and may have any size. */
struct spill {
	struct spills *spills; /* whose room it takes; borrowed, or NULL */
	bool is_open;
	bool is_prepared; /* it has a file of spill_prepare()'s: */
	size_t prepared;  /* the number of that file */
	int fd;
	uint64_t start; /* where the bytes begin in the file */
	uint64_t size;
};

/*
 * Make temporary files now, for a process that will soon not be allowed to. Spills share them, one
 * after the other. A failure is not reported here: the spill that needs a file tries again.
 */
void spill_prepare(void);

void spill_deinit(struct spill *spill);

/*
 * Add bytes at the end.
 *
 * Return: 0; -EFBIG if all spills together would exceed their maximum; or another negative errno.
 */
_must_check_ int spill_write(struct spill *spill, const void *bytes, size_t size);

/* Add all bytes from @fd up to its end. Return: like spill_write(). */
_must_check_ int spill_copy(struct spill *spill, int fd);

/* Where the bytes of a spill are that has all of them. */
struct spillfile {
	int fd;        /* -1: there are no bytes */
	bool is_owned; /* the caller of spill_finish() has to close it; else it stays open */
	uint64_t offset, size;
};

/* End adding. The spill is empty then. Return: where the bytes are, to be read. */
struct spillfile spill_finish(struct spill *spill);

/*
 * Map the bytes (there must be at least one) so that writing to them changes the file:
 * their memory can be given back (MADV_DONTNEED) without a loss. The spill stays open.
 *
 * Return: 0, and @ret_bytes, spill->size of them, which the caller unmaps; or negative errno.
 */
_must_check_ int spill_share(struct spill *spill, void **ret_bytes);
