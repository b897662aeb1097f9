/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Stays
 *
 * Who ran while an AUX buffer was filled: on its CPU; or on whatever CPU its thread was, if it is
 * the buffer of a thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "decoder/sideband/timeline.h"
#include "decoder/trace/trace.h"

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
