/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/stream/ptend.h"

#include <stdbool.h>
#include <stddef.h>

#include "decoder/pt/psbs.h"
#include "decoder/trace/trace.h"
#include "util/perf/tsc.h"

/* Find out when the PT of @queue ends; 0: that is not known. Return: 0, or -errno of reading. */
static int end_of_queue(const struct trace *trace, const struct trace_queue *queue,
			const struct engine_config *config, uint64_t *ret_end)
{
	const struct tsc_conv *clock = &trace->facts.clock;
	uint64_t end = 0;
	int r = 0;

	for (size_t i = queue->n_spans; i > 0 && end == 0 && r == 0; i--) {
		struct psbs psbs;

		psbs_init(&psbs, &queue->spans[i - 1].pt, config);
		end = psbs_last_time(&psbs);
		r = psbs_error(&psbs);
		psbs_deinit(&psbs);
	}
	*ret_end = end && clock->valid ? tsc_to_ns(clock, end) : end;
	return r;
}

int ptend_find(const struct trace *trace, const struct engine_config *config, uint64_t *ret_end)
{
	uint64_t end = 0;
	int r = 0;

	for (size_t i = 0; i < trace->n_queues && r == 0; i++) {
		uint64_t t;

		r = end_of_queue(trace, &trace->queues[i], config, &t);
		end = t > end ? t : end;
	}
	*ret_end = end;
	return r;
}

/* Cut the PT of @queue off behind the first packet of a time later than @until, a TSC. That packet
 * stays, because it bounds the code before it. Return: 0, or -errno of reading. */
static int end_queue(struct trace_queue *queue, const struct engine_config *config, uint64_t until)
{
	bool is_done = false;
	int r = 0;

	/* The spans are in the order of time. */
	for (size_t i = queue->n_spans; i > 0 && !is_done && r == 0; i--) {
		struct fileparts *pt = &queue->spans[i - 1].pt;
		struct psbs psbs;
		uint64_t size, begin;

		psbs_init(&psbs, pt, config);
		size = psbs_find_later(&psbs, until);
		begin = psbs_time(&psbs, psbs_find(&psbs, 0));
		is_done = begin > 0 && begin <= until;
		r = psbs_error(&psbs);
		psbs_deinit(&psbs);
		pt->size = size;
	}
	return r;
}

int ptend_cut(struct trace *trace, const struct engine_config *config)
{
	const struct trace_facts *facts = &trace->facts;
	int r = 0;

	if (facts->complete_until == 0 || !facts->has_tsc || !facts->clock.valid)
		return 0;
	for (size_t i = 0; i < trace->n_queues && r == 0; i++)
		r = end_queue(&trace->queues[i], config,
			      tsc_from_ns(&facts->clock, facts->complete_until));
	return r;
}
