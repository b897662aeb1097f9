/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Spill
 *
 * Bytes that are made once and read later, and may be more than memory should be spent on: they go
 * to a temporary file without a name, in $TMPDIR or /var/tmp, and are then read like any mapped
 * file. Where no such file can be made they are in memory after all.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "util/mapfile.h"

/* How many can be written at a time to files that were prepared. */
#define SPILL_PREPARED 8

/*
 * Let all spills together write at most @max bytes, from now on. What is given back does not count:
 * the files of a confined process only grow.
 */
void spill_set_max(uint64_t max);

/*
 * Why a spill could not be written, since spill_set_max().
 *
 * Return: 0 if each could; -EFBIG if that was too much; or another negative errno.
 */
int spill_failure(void);

/* Return: the directory in which the files are. */
const char *spill_directory(void);

/* All zero is an empty one. */
struct spill {
	bool is_open;
	bool is_prepared; /* by spill_prepare(), and then which */
	size_t prepared;
	int fd;
	uint64_t start; /* in the file */
	uint64_t size;
};

/*
 * Make temporary files now, for a process that soon will not be allowed to any more. Spills share
 * them, one behind the other. What fails is not told: each spill tries again.
 */
void spill_prepare(void);

void spill_deinit(struct spill *spill);

/*
 * Add bytes at the end.
 *
 * Return: 0; -EFBIG if all spills would have more than they may; or another negative errno.
 */
_must_check_ int spill_write(struct spill *spill, const void *bytes, size_t size);

/* Add all that comes from @fd, up to its end. Return: as above. */
_must_check_ int spill_copy(struct spill *spill, int fd);

/*
 * Map what was written; nothing can be added afterwards.
 *
 * Return: 0, and the caller owns @ret_map; or negative errno.
 */
_must_check_ int spill_finish(struct spill *spill, struct mapfile *ret_map);

/*
 * Map what was written, and at least a byte was, so that writing to it changes the file: the memory
 * can be given back (MADV_DONTNEED) and nothing is lost. The spill stays open.
 *
 * Return: 0, and @ret_bytes of spill->size as it was, which the caller unmaps; or negative errno.
 */
_must_check_ int spill_share(struct spill *spill, void **ret_bytes);
