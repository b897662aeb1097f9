/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Sections
 *
 * The sections of a span, from one cut to the next. Some can matter for what is asked for
 * of the trace, and others cannot. A cut is the first PSB at or behind a multiple of a size. What
 * lies behind a cut ran since the time that its PSB+ states, and up to the time that the next cut's
 * PSB+ states. The timeline says who ran then. So sections that can matter are found by binary
 * search, which reads some PSBs and nothing else.
 *
 * Where one thread gives way to another, code may be of no known thread. If that is asked for, the
 * sections are needed in which this can be so.
 *
 * The slices of a part are in the same order as in the whole stream. Therefore, of a slice that
 * goes on where the times that are asked for begin, the section where the slice begins is needed,
 * too.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/pt/psbs.h"
#include "decoder/sideband/timeline.h"
#include "decoder/stream/extract.h"
#include "decoder/trace/trace.h"

/*
 * Who ran while an AUX buffer was filled: on its CPU; or on whatever CPU its thread was, if it is
 * the buffer of a thread.
 */

/* Find the stay at @time. */
void stays_at(const struct timeline *timeline, const struct trace_queue *queue, uint64_t time,
	      struct stay *ret_stay);

/*
 * Find the stay of the thread whose code ran at some time between @from and @to, inclusive. The
 * idle thread does not count if the code is user code. If it is not known of a longer time, it may
 * still be known of a part of it; the reverse does not occur.
 *
 * Return: whether it is known; not if threads took turns in that time.
 */
bool stays_between(const struct timeline *timeline, const struct trace_queue *queue, uint64_t from,
		   uint64_t to, bool is_user, struct stay *ret_stay);

struct sections_config {
	const struct trace *trace;
	const struct trace_queue *queue; /* of the trace */
	const struct timeline *timeline;
	const struct extract *extract; /* NULL: all sections are needed */
	uint64_t cut_size;             /* 0: nothing is cut */
};

struct sections {
	struct sections_config config;
	struct psbs psbs;
	uint64_t size; /* of the span */

	/* Since when what no known thread ran is needed, once that was found out. */
	bool has_unknown;
	uint64_t unknown_since;
};

/* Begin with span @span of the queue. All that @config points to is borrowed. */
void sections_init(struct sections *sections, const struct sections_config *config, size_t span);
void sections_deinit(struct sections *sections);

/* Return: whether the queue of @config has sections that can be left out. */
bool sections_exist(const struct sections_config *config);

/*
 * Return: the latest time before @time at which something that is asked for may have run on the CPU
 *         of @config; 0: none.
 */
uint64_t sections_latest_before(const struct sections_config *config, uint64_t time);

/* Return: the cut behind the place @offset; the size of the span if there is none. */
uint64_t sections_next_cut(struct sections *sections, uint64_t offset);

/*
 * Find the first cut at or behind the cut @cut, or the beginning of the span, behind which a
 * section is needed. @slice is the stay whose slice is open there; NULL: none is.
 *
 * Return: that cut; the size of the span if nothing is needed any more.
 */
uint64_t sections_needed(struct sections *sections, uint64_t cut, const struct stay *slice);
