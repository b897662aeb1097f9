/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Track spans
 *
 * The tracks of the trace (export/viewtracks.h) as spans and outliers: what is open on each track,
 * and on which row.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/sink/export/viewtracks.h"
#include "decoder/sink/html/outliers.h"
#include "decoder/sink/html/spans.h"
#include "decoder/sink/openstacks.h"
#include "ptd/record.h"
#include "util/vec.h"

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
