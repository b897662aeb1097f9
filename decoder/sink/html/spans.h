/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Spans
 *
 * What a timeline shows, in memory that does not grow with the trace. A span is a time on a row of
 * a track: a call, a gap, a mark, a signal, or a stay on a CPU.
 *
 * Some SPANS_WHOLE spans that end last are kept as they are. When there are too many older ones,
 * those that are shorter than the resolution, and begin in the same step of that length, become one
 * span; the resolution is made twice as coarse until they are few enough. So the last moments of a
 * trace are shown in full, and what came before as it looks from afar. The stream has one stay on a
 * CPU after the other: what comes last need not end last.
 *
 * Functions that were open before the first instruction of a part (of what lies between two gaps,
 * as a rule) are found late, and are given rows below 0. When the part has ended, its rows are
 * counted from its outermost function.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "util/vec.h"

#define SPANS_MAX     (1u << 19)
#define SPANS_WHOLE   (1u << 16) /* about */
#define SPANS_OLD     (1u << 18) /* older ones are at most this many when some were merged */
#define SPANS_ROWS    192        /* functions below this many others are left out */
#define SPANS_TRACKS  1000       /* further tracks are left out */
#define SPANS_NO_PART 0u

enum span_kind {
	SPAN_RUN,      /* the thread was on a CPU: its number */
	SPAN_GAP,      /* enum ptd_gap_reason; SPAN_OUT_OF_SCOPE: the time was not asked for */
	SPAN_MARK,     /* enum ptd_mark_kind */
	SPAN_SIGNAL,   /* its number; SPAN_FATAL: it killed the process */
	SPAN_FUNCTION, /* id of the function */
	SPAN_NOTED,    /* number of the name of what the thread noted itself */
	_SPAN_KINDS,
};

#define SPAN_OUT_OF_SCOPE (1u << 16) /* added to the reason of a gap: it was not asked for */
#define SPAN_FATAL        (1u << 16) /* added to the number of a signal */

struct span {
	uint64_t t, duration;
	uint64_t busy;    /* sum of the durations of all that were merged */
	uint64_t n_insns; /* likewise of the instructions */
	uint32_t n;       /* how many were merged */
	uint32_t value;   /* see enum span_kind; of several, one that lasted long */
	uint32_t track;
	uint32_t part; /* SPANS_NO_PART: the row is final */
	int32_t row;   /* of a function, or of what was noted */
	uint8_t kind;  /* enum span_kind */
	bool is_mixed; /* those that were merged have different values */
};

/* A part of a track. */
struct spans_part {
	int32_t first_row;
	bool is_over;
};

struct spans {
	VEC(struct span) items;       /* on each row by their ends, until spans_finish() */
	VEC(struct spans_part) parts; /* the first is none */
	VEC(uint32_t) part_of_track;  /* SPANS_NO_PART: none goes on */
	uint64_t resolution;          /* shorter spans were merged; 0: none were */
	uint64_t t_whole;             /* spans that end then or later are kept as they are */
	uint64_t n_too_deep;          /* functions that were left out */
};

void spans_deinit(struct spans *spans);

/* Begin a part of the track: the one before it, if there is one, is over. Return: 0 or -ENOMEM. */
_must_check_ int spans_begin_part(struct spans *spans, uint32_t track);

/* The track's part has a function on this row. */
void spans_see_row(struct spans *spans, uint32_t track, int32_t row);

/*
 * Add a span, whose part need not be set. It ends after all that were added to its row. Return: 0
 * or -ENOMEM.
 */
_must_check_ int spans_add(struct spans *spans, const struct span *span);

/* All parts are over: sort the spans by track, kind, row and time. Return: 0 or -ENOMEM. */
_must_check_ int spans_finish(struct spans *spans);
