/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Track spans
 *
 * The tracks of the trace (export/viewtracks.h) as spans and outliers: what is open on each track,
 * and on which row.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/sink/export/viewtracks.h"
#include "decoder/sink/html/spans.h"
#include "decoder/sink/openstacks.h"
#include "ptd/record.h"
#include "util/vec.h"

/*
 * The slowest executions of each function. As with the format latency, an execution is a call of
 * the function while no other call of it is open on the stack, and it counts if it was seen from
 * its beginning to its end.
 */

#define OUTLIERS_KEPT 5 /* of each function */

struct outlier {
	uint64_t t, duration;
	uint64_t n_insns;
	uint32_t track;
};

struct outliers_function {
	struct outlier slowest[OUTLIERS_KEPT]; /* the slowest first */
	size_t n;
};

struct outliers {
	bool has_time;                           /* else the one with more instructions is the
						  * slower; the caller sets it */
	VEC(struct outliers_function) functions; /* by their ids */
};

/* Return: those of the function, which may be none. */
const struct outliers_function *outliers_of(const struct outliers *outliers, uint32_t function);

/* A function that is open, or a region that the thread noted itself. */
struct trackspans_open {
	struct open_frame frame; /* its function is NULL: it is a region, called by: */
	uint32_t name;
	uint64_t t; /* as the track shows it */
	int32_t row;
};

struct trackspans_track {
	VEC(struct trackspans_open) open; /* the innermost is the last */
	bool has_part;                    /* a function began since the start */
	struct ptd_mark gap;              /* that is open */
	uint64_t t_gap;
	bool has_gap;
};

struct trackspans {
	struct viewtracks tracks;
	struct spans spans;
	struct outliers outliers;
	VEC(struct trackspans_track) items; /* by id of the track */

	VEC(const struct ptd_symbol *) names; /* of what threads noted, by their numbers */
	struct map names_by_symbol;           /* address of the symbol → number */

	uint64_t t_in; /* when the thread that is on a CPU came to it */
};

/* @ts must stay where it is. */
void trackspans_init(struct trackspans *ts, enum ptd_clock clock);
void trackspans_deinit(struct trackspans *ts);
