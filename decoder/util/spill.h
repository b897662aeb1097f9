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
#include "decoder/util/mapfile.h"

struct spill {
	int fd;         /* -1: none yet */
	bool prepared;  /* the file is the one of spill_prepare() */
	uint64_t start; /* in the file */
	uint64_t size;
};

#define SPILL_INIT       \
	{                \
		.fd = -1 \
	}

/*
 * Make the temporary file now, for a process that soon will not be allowed to any more. Spills share
 * it, one behind the other. What fails is not told: each spill tries again.
 */
void spill_prepare(void);

void spill_deinit(struct spill *spill);

/* Add bytes at the end. Return: 0, or negative errno. */
_must_check_ int spill_write(struct spill *spill, const void *bytes, size_t size);

/* Add all that comes from @fd, up to its end. Return: as above. */
_must_check_ int spill_copy(struct spill *spill, int fd);

/*
 * Map what was written; nothing can be added afterwards.
 *
 * Return: 0, and the caller owns @ret_map; or negative errno.
 */
_must_check_ int spill_finish(struct spill *spill, struct mapfile *ret_map);
