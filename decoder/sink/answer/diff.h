/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Diff
 *
 * Compares two streams, A and B: for each thread, where its path first differs (path.h), and for
 * each function how often it was entered and how many instructions it executed. Or it compares only
 * one execution of a function in A with one in B, which may be the same stream.
 *
 * The streams are compared one after the other, in memory that hardly depends on their length, so
 * each is decoded up to three times:
 *
 *	0	The steps of each thread are hashed, and the hash is noted now and then; functions
 *		are counted. Then threads are paired, and the first notes that differ say in which
 *		part of a path the first difference lies.
 *	1	The steps of that part, and of some parts behind it, are kept. Their comparison
 *		says behind how many instructions the paths differ, and where they go on alike
 *		(path.h).
 *	2	What happened there is looked at, and made text of.
 *
 * Passes 1 and 2 end as soon as they have seen what they want. A stream that is another one in a
 * later pass makes no harm, but the difference is not found then.
 *
 * Threads of A and B belong together if they have the same name; those of one name, and those left
 * over, are paired in the order of their first instructions.
 */

#include <stdbool.h>

#include "base/base.h"
#include "decoder/sink/sink.h"
#include "ptd/record.h"

#define DIFF_PASSES 3

struct diff;

enum diff_side {
	DIFF_A,
	DIFF_B,
	_DIFF_SIDES,
};

/* What is compared. Texts are borrowed. */
struct diff_subject {
	const char *names[_DIFF_SIDES]; /* what the streams are called in the text */

	/*
	 * The function whose executions are compared; NULL: all that the threads did. An
	 * execution is a call while no other call of the function is open on the stack; it has a
	 * number, in the order in which they began, from 1.
	 */
	const char *function;
	uint64_t numbers[_DIFF_SIDES];
};

/* Make a comparison. @subject is copied. Return: 0 or -ENOMEM. */
_must_check_ int diff_new(const struct diff_subject *subject, struct diff **ret_diff);
struct diff *diff_free(struct diff *diff);

/* Return: the clock of the streams. */
enum ptd_clock diff_clock(const struct diff *diff);

/* Return: whether the pass is needed, as the passes before it say. */
bool diff_needs(const struct diff *diff, unsigned int pass);

/*
 * Begin a pass over the stream of @side, which has @info. In each pass, A comes before B.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int diff_begin(struct diff *diff, unsigned int pass, enum diff_side side,
			    const struct ptd_info *info);

/* Take the next batch. Return: 0; DIFF_ENOUGH: the pass needs no more of them; or -ENOMEM. */
_must_check_ int diff_batch(struct diff *diff, const struct ptd_batch *batch);
enum {
	DIFF_ENOUGH = 1,
};

/* The pass over this stream is over; the decoder still exists. Return: 0 or -ENOMEM. */
_must_check_ int diff_end(struct diff *diff);

DEFINE_CLEANUP(struct diff *, diff_free);

/*
 * The kind of sink that writes the comparison after the last pass: a struct diff is the userdata
 * of its config. The sink takes no batches.
 */
extern const struct sink_ops diff_ops;
