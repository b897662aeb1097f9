/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * CPU copy
 *
 * A copy of the rings of one CPU, made while their writers go on. The PT is copied in slices, the
 * newest bytes first; what a writer may have overwritten before it was copied is dropped.
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
	bool switches_cut;                         /* older ones are gone, or not wanted */
	uint64_t switches_oldest, switches_newest; /* ns on the records' clock; 0: there is none */

	struct source_event *events; /* oldest first */
	size_t n_events;

	uint8_t *pt;             /* mapped */
	size_t pt_room;          /* bytes that are mapped: whole pages */
	size_t pt_size;          /* bytes of the copy */
	size_t pt_start;         /* bytes before this place were overwritten */
	uint64_t pt_head;        /* running count of the bytes that were ever written */
	uint64_t pt_bytes;       /* that were kept: from pt_start to pt_size */
	uint64_t pt_dropped;     /* bytes that were overwritten while they were copied */
	uint64_t pt_overwritten; /* bytes that were wanted, and overwritten then or before */
	uint64_t pt_oldest;      /* what was kept can be decoded from this time on, in ns on the
				  * records' clock; 0: not known */
	uint64_t gap_ns;         /* PT was off for at most so long because of the copy */
	enum source_end end;
};

/*
 * Allocate and fault in @size bytes for PT, so that cpucopy_pt() need not. If there is not so much
 * memory, cpucopy_pt() tries again.
 *
 * @large: use large pages if the kernel has them: one fault for 2 MiB, not for 4 KiB. It may take
 *         the kernel long to make them if not enough are free.
 */
void cpucopy_reserve(struct cpucopy *copy, size_t size, bool large);

/*
 * Copy the PT, or the switch records and the events, of @cpu as they were at the last hold, but not
 * what is older than the source's last bookmark before @since_ns (CLOCK_MONOTONIC; 0: copy all).
 *
 * Return: 0, or negative errno.
 */
_must_check_ int cpucopy_pt(struct cpucopy *copy, struct source *source, uint32_t cpu,
			    uint64_t since_ns);
_must_check_ int cpucopy_switches(struct cpucopy *copy, struct source *source, uint32_t cpu,
				  uint64_t since_ns);

/* Fill in @copy->pt_oldest from the first PSB in the bytes. @facts and @now_ns are the source's
 * facts and the time on the records' clock at the last hold. */
void cpucopy_find_oldest(struct cpucopy *copy, const struct source_facts *facts, uint64_t now_ns);

/* Return: the switch records. */
struct cursor cpucopy_records(const struct cpucopy *copy);

/* Release the bytes of PT. The numbers stay. */
void cpucopy_forget_pt(struct cpucopy *copy);
void cpucopy_deinit(struct cpucopy *copy);

/* Write the lines of the manifest about @cpu, none if the CPU was never used. */
void cpucopy_write_manifest(const struct cpucopy *copy, uint32_t cpu, FILE *f);

/* --- PSB time --------------------------------------------------------------------------------- */

/* Find the first PSB in the @size bytes at @pt that is followed by a TSC packet, with nothing but
 * padding between. Return: whether there is one; @ret_tsc is the lower 56 bits of its TSC. */
_must_check_ bool psbtime_find(const uint8_t *pt, size_t size, uint64_t *ret_tsc);

/* Return: the latest TSC, not later than @now, whose lower 56 bits are @low. */
uint64_t psbtime_tsc(uint64_t low, uint64_t now);
