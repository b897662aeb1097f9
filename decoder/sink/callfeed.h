/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Call feed
 *
 * The calls of the stream, and the marks between them, one after the other, for a sink that writes
 * them:
 *
 *	r = callfeed_batch(&feed, batch);
 *	while (r == 0 && (r = callfeed_next(&feed, &item)) == 0)
 *		…;
 *	return r == PTD_END ? 0 : r;
 *
 * and the same with callfeed_finish() when the stream is over. Marks stand where they happened
 * among the calls of their thread. The functions that a gap ends are left before the gap.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/base.h"
#include "ptd/calls.h"
#include "ptd/decode.h"
#include "ptd/record.h"

struct callfeed {
	struct ptd_calls *layer;
	const struct ptd_batch *batch; /* that marks are given out of; NULL: none; borrowed */
	size_t mark;
	const struct ptd_call_batch *found; /* that calls are given out of, likewise */
	size_t call;
};

/* One of @call and @mark is NULL. All are valid until the next callfeed_next(). */
struct callfeed_item {
	const struct ptd_call *call;
	const struct ptd_call_thread *thread; /* of the call */
	const struct ptd_mark *mark;
	const struct ptd_slice *slice; /* of the mark; or of the call, if that belongs to the batch:
					* else NULL */
};

/* @info is borrowed until callfeed_deinit(). Return: 0 or -ENOMEM. */
_must_check_ int callfeed_init(struct callfeed *feed, const struct ptd_info *info);
void callfeed_deinit(struct callfeed *feed);

/* Go on with the next batch, which is borrowed until its items are given out. Return: 0 or -ENOMEM.
 */
_must_check_ int callfeed_batch(struct callfeed *feed, const struct ptd_batch *batch);

/* Likewise, with the next calls of a log. */
_must_check_ int callfeed_logged(struct callfeed *feed, const struct ptd_logged *logged);

/* The stream is over: what is open is left. Return: 0 or -ENOMEM. */
_must_check_ int callfeed_finish(struct callfeed *feed);

/* For callfeed_next(): ask the layer for more calls. Return: 0, PTD_END or -ENOMEM. */
_must_check_ int callfeed_fill(struct callfeed *feed);

/* Return: whether the next mark stands before @call. */
static inline bool callfeed_mark_is_before(const struct callfeed *feed, const struct ptd_call *call)
{
	const bool is_before = call->kind == PTD_CALL_LEAVE && call->how == PTD_CALL_BY_GAP;

	return feed->found->batch && feed->batch && feed->mark < feed->batch->n_marks &&
	       feed->batch->marks[feed->mark].run + is_before <= call->run;
}

/* Get the next item. Return: 0; PTD_END: there are no more for now; or -ENOMEM. */
_must_check_ static inline int callfeed_next(struct callfeed *feed, struct callfeed_item *ret_item)
{
	const int r = feed->found && feed->call < feed->found->n_calls ? 0 : callfeed_fill(feed);

	if (r < 0)
		return r;
	if (r == 0 && !callfeed_mark_is_before(feed, &feed->found->calls[feed->call])) {
		*ret_item = (struct callfeed_item){
			.call = &feed->found->calls[feed->call++],
			.thread = feed->found->thread,
			.slice = feed->found->batch ? feed->found->batch->slice : NULL,
		};
		return 0;
	}
	if (!feed->batch || feed->mark == feed->batch->n_marks) {
		feed->batch = NULL;
		return PTD_END;
	}
	*ret_item = (struct callfeed_item){ .mark = &feed->batch->marks[feed->mark++],
					    .slice = feed->batch->slice };
	return 0;
}

/*
 * The last item is a call. Take those behind it, too, up to the next mark, which lie behind it in
 * memory: it takes less time to look at many at once.
 *
 * Return: how many calls there are, with that of the item.
 */
static inline size_t callfeed_take_on(struct callfeed *feed)
{
	const size_t first = feed->call - 1, n = feed->found->n_calls;

	if (!feed->found->batch || !feed->batch || feed->mark == feed->batch->n_marks)
		feed->call = n;
	while (feed->call < n && !callfeed_mark_is_before(feed, &feed->found->calls[feed->call]))
		feed->call++;
	return feed->call - first;
}
