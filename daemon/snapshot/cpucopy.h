/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Cpucopy
 *
 * One CPU's rings, copied while their writer goes on. The PT is taken newest bytes first, a slice
 * at a time; what the writer may have reached meanwhile is dropped.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/base.h"
#include "base/cursor.h"
#include "daemon/source/source.h"

struct cpucopy {
	uint8_t *switches; /* whole records, oldest first */
	size_t switches_size;
	bool switches_cut; /* older ones are gone, or not wanted */
	uint64_t switches_oldest, switches_newest;

	uint8_t *pt;     /* mapped */
	size_t pt_room;  /* whole pages */
	size_t pt_size;  /* of the copy */
	size_t pt_start; /* what is before was overtaken */
	uint64_t pt_head;
	uint64_t pt_bytes;       /* that were kept */
	uint64_t pt_dropped;     /* overwritten while it was copied */
	uint64_t pt_overwritten; /* of what was wanted: then, or before */
	uint64_t pt_oldest;      /* what is kept can be decoded since then, in ns; 0: not known */
	uint64_t gap_ns;         /* for how long PT was off because of it, at most */
	enum source_end end;
};

/*
 * Have memory for @size bytes of PT, so that cpucopy_pt() need not get it, if there is so much.
 *
 * @large: in large pages if the kernel has them: a fault for each 2 MiB, not for each 4 KiB. It may
 *         take long to make them, if not enough are free.
 */
void cpucopy_reserve(struct cpucopy *copy, size_t size, bool large);

/*
 * Copy the rings of @cpu as they were at the last hold, but not what is older than the source's
 * last bookmark before @since_ns (CLOCK_MONOTONIC; 0: all).
 *
 * Return: 0, or negative errno.
 */
_must_check_ int cpucopy_pt(struct cpucopy *copy, struct source *source, uint32_t cpu,
			    uint64_t since_ns);
_must_check_ int cpucopy_switches(struct cpucopy *copy, struct source *source, uint32_t cpu,
				  uint64_t since_ns);

/* Since when it can be decoded: fill in @copy->pt_oldest, from the bytes. @facts and @now_ns: the
 * source's, and the records' clock, as of the hold. */
void cpucopy_find_oldest(struct cpucopy *copy, const struct source_facts *facts, uint64_t now_ns);

/* The switch records that were kept. */
struct cursor cpucopy_records(const struct cpucopy *copy);

/* Release the bytes of PT; the numbers stay. */
void cpucopy_forget_pt(struct cpucopy *copy);
void cpucopy_deinit(struct cpucopy *copy);

/* Print what the manifest says of @cpu: nothing if it was never used. */
void cpucopy_print(const struct cpucopy *copy, uint32_t cpu, FILE *f);
