/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Rank
 *
 * Which branches went another way in runs that failed than in runs that did not: statistical
 * debugging. Of each run it counts only whether something was seen in it: that a conditional branch
 * was taken, or was not, or went only one way; that an indirect one led to a place; that a function
 * was entered. What was seen is ranked by how well it tells bad runs from good ones, by Jaccard's
 * coefficient: the number of bad runs in which it was seen, divided by that of the runs which are
 * bad or in which it was seen. This is 1 for what was in all bad runs and in no good one.
 *
 * What was seen in the same runs is one group, in which the program goes before its libraries, then
 * that of which the source line is known, then what came first in the bad runs: what fails later
 * because of it predicts the failure, too. Groups of the system's libraries alone go behind those
 * of programs, unless these are no more frequent in bad runs than in all.
 *
 * The streams are taken one after the other. Code of one object is the same in all of them if it
 * has the same build-id, or without one the same name.
 */

#include <stdbool.h>

#include "base/base.h"
#include "decoder/sink/sink.h"
#include "ptd/record.h"

struct ptd_decoder;
struct rank;
struct rank_run;

/* Return: 0 or -ENOMEM. */
_must_check_ int rank_new(struct rank **ret_rank);
struct rank *rank_free(struct rank *rank);

enum rank_kind {
	RANK_GOOD,
	RANK_BAD,
	RANK_CRASH, /* it is bad if a signal killed a process */
	RANK_ENTER, /* it is bad if the function was entered */
};

/*
 * Read what makes a run bad: "crash", or "enter:" and the name of a function, which is borrowed.
 *
 * Return: 0; or -EINVAL if @text is neither.
 */
_must_check_ int rank_kind_of(const char *text, enum rank_kind *ret_kind,
			      const char **ret_function);

/* The runs that follow are of the stream of @decoder, which is borrowed until the next one is used,
 * or all runs are counted. */
void rank_use(struct rank *rank, struct ptd_decoder *decoder);

/*
 * A run begins. Several may be taken at the same time. @function is that of RANK_ENTER, borrowed
 * until it is over. Of RANK_CRASH all sideband records are taken.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int rank_run_new(struct rank *rank, enum rank_kind kind, const char *function,
			      struct rank_run **ret_run);
struct rank_run *rank_run_free(struct rank_run *run);

/* Take the next batch of the run. Return: 0 or -ENOMEM. */
_must_check_ int rank_run_batch(struct rank_run *run, const struct ptd_batch *batch);

/* The run is over, and counts; its decoder still exists. Return: 0 or -ENOMEM. */
_must_check_ int rank_run_end(struct rank_run *run);

/* Return: how many runs were bad, or were good. */
uint32_t rank_n_runs(const struct rank *rank, bool is_bad);

DEFINE_CLEANUP(struct rank *, rank_free);
DEFINE_CLEANUP(struct rank_run *, rank_run_free);

/*
 * The kind of sink that writes the ranking after the last run: a struct rank is the userdata of its
 * config. The sink takes no batches.
 */
extern const struct sink_ops rank_ops;
