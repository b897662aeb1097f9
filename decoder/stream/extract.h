/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Extract
 *
 * The part of a trace that is asked for (struct ptd_part), and what is left of the stream if all
 * else is left out. Batches are taken in the order of the stream, after they were decoded: so what
 * an extract keeps does not depend on how much of the trace was decoded around it.
 *
 * Of the threads, CPUs and times that are asked for, all marks are kept. Where symbols or objects
 * are asked for, these rules hold, too:
 *
 * - A gap is kept: what was lost may be what is asked for. Another mark is kept if the instruction
 *   of the thread before it is.
 * - Where instructions of a thread are left out between two that are kept, PTD_MARK_OUT_OF_SCOPE
 *   stands.
 *
 * Where the last instructions of each thread are asked for, the idle threads of two CPUs are two
 * threads, and so is what no known thread ran on two CPUs. Marks of a thread are kept from its
 * first instruction on that is, and gaps of no known thread from the first instruction on.
 *
 * If threads are asked for, and it is not known which thread ran, the instructions are left out. A
 * gap is kept, unless the timeline says that another thread was on the CPU then.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/decode.h"
#include "ptd/record.h"

struct ptd_logged;
struct extract;
struct map;
struct stay;
struct timeline;

/* What an extract did with the batches of one lane. */
struct extract_counts {
	/* Left out. */
	uint64_t n_insns, n_insns_early;
	uint64_t n_gaps[_PTD_GAP_REASONS];
	uint64_t gap_bytes[_PTD_GAP_REASONS];

	/* From when to when anything was kept; 0: nothing was, or it has no time. */
	uint64_t t_first, t_last;
};

/* Return: whether @part is less than the whole trace. */
bool extract_is_part(const struct ptd_part *part);

/*
 * Nothing of @part is borrowed. All times are asked for.
 *
 * @scope: the pids that are asked for if @part has none: a set, which is borrowed; NULL: all
 * @timeline: borrowed; may be NULL
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int extract_new(const struct ptd_part *part, const struct map *scope,
			     const struct timeline *timeline, struct extract **ret_extract);
struct extract *extract_free(struct extract *extract);

/* Ask only for times from @from on and before @to, on the clock of the stream. */
void extract_set_times(struct extract *extract, uint64_t from, uint64_t to);

uint64_t extract_from(const struct extract *extract);
uint64_t extract_to(const struct extract *extract);

/* Return: whether something that ran on @cpu may be asked for. */
bool extract_asks_for_cpu(const struct extract *extract, uint32_t cpu);

/* Return: whether something that ran in @stay on @cpu may be asked for. */
bool extract_asks_for_stay(const struct extract *extract, uint32_t cpu, const struct stay *stay);

/*
 * The last instructions of each thread may be asked for, and also those on each CPU for which it is
 * not known which thread ran them. A stay does not show these: they ran where two threads met.
 *
 * Return: whether such instructions on @cpu are asked for, and since which time.
 */
bool extract_asks_for_unknown(const struct extract *extract, uint32_t cpu, uint64_t *ret_since);

/*
 * To find the last instructions of each thread (ptd_part.last), the stream is decoded backwards,
 * from window to window of time, until each thread has enough. In a search, nothing is kept:
 * instructions are counted, of threads that have not enough yet. Times that were asked for stay.
 */
void extract_begin_search(struct extract *extract);

/* The next batches are of the times from @from on and before @to, where the last window began. */
void extract_begin_window(struct extract *extract, uint64_t from, uint64_t to);
void extract_end_window(struct extract *extract);

/* The next batch is the first one of the stream again, and is kept. */
void extract_end_search(struct extract *extract);

/*
 * Keep what is asked for of @batch, the next one of the stream, which has runs, or calls of a log.
 * @counts are those of its lane, and are added to. What @ret_batch points to is valid until the
 * next call. It has neither runs, calls nor marks if all is left out.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int extract_batch(struct extract *extract, const struct ptd_logged *batch,
			       struct extract_counts *counts, struct ptd_logged *ret_batch);

DEFINE_CLEANUP(struct extract *, extract_free);
