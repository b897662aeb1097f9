/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/stream/stays.h"

#include <stddef.h>

/* How many stays, of one thread and the idle thread, are looked at for a stretch of code. */
#define STAYS_MAX 64

void stays_at(const struct timeline *timeline, const struct trace_queue *queue, uint64_t time,
	      struct stay *ret_stay)
{
	if (queue->cpu == TRACE_NONE)
		timeline_at_tid(timeline, queue->tid, time, ret_stay);
	else
		timeline_at(timeline, queue->cpu, time, ret_stay);
}

static bool same_thread(const struct stay *a, const struct stay *b)
{
	return a->pid == b->pid && a->tid == b->tid && a->space == b->space;
}

bool stays_between(const struct timeline *timeline, const struct trace_queue *queue, uint64_t from,
		   uint64_t to, bool is_user, struct stay *ret_stay)
{
	struct stay stay, next;

	stays_at(timeline, queue, from, &stay);
	next = stay;
	for (size_t n = 0; next.end <= to && next.end < UINT64_MAX; n++) {
		stays_at(timeline, queue, next.end, &next);
		if (is_user && next.tid == 0 && n < STAYS_MAX)
			continue;
		if (is_user && stay.tid == 0)
			stay = next;
		if (!same_thread(&stay, &next) || n >= STAYS_MAX)
			return false;
	}
	*ret_stay = stay;
	return true;
}
