/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/ptend.h"

#include <stdbool.h>
#include <stddef.h>

#include "decoder/pt/engine.h"
#include "decoder/pt/walk.h"
#include "decoder/trace/trace.h"
#include "record/tsc.h"

/* Return: how to search for PSBs and times; its PT is to be set. */
static struct walk_config search_config(const struct engine_config *config)
{
	return (struct walk_config){ .window = WALK_WINDOW_PSBS,
				     .mtc_freq = config->mtc_freq,
				     .nom_freq = config->nom_freq,
				     .cpuid_15_eax = config->cpuid_15_eax,
				     .cpuid_15_ebx = config->cpuid_15_ebx };
}

/* Find out when the PT of @queue ends; 0: that is not known. Return: 0, or -errno of reading. */
static int end_of_queue(const struct trace *trace, const struct trace_queue *queue,
			struct walk_config config, uint64_t *ret_end)
{
	const struct tsc_conv *clock = &trace->facts.clock;
	uint64_t end = 0;
	int r = 0;

	for (size_t i = queue->n_spans; i > 0 && end == 0 && r == 0; i--) {
		struct walk walk;

		config.pt = queue->spans[i - 1].pt;
		walk_init(&walk, &config);
		end = walk_last_time(&walk);
		r = walk_read_error(&walk);
		walk_deinit(&walk);
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

		r = end_of_queue(trace, &trace->queues[i], search_config(config), &t);
		end = t > end ? t : end;
	}
	*ret_end = end;
	return r;
}

/* Cut the PT of @queue off behind the first packet of a time later than @until, a TSC. That packet
 * stays, because it bounds the code before it. Return: 0, or -errno of reading. */
static int end_queue(struct trace_queue *queue, struct walk_config config, uint64_t until)
{
	bool is_done = false;
	int r = 0;

	/* The spans are in the order of time. */
	for (size_t i = queue->n_spans; i > 0 && !is_done && r == 0; i--) {
		struct fileparts *pt = &queue->spans[i - 1].pt;
		struct walk walk;
		uint64_t size, begin;

		config.pt = *pt;
		walk_init(&walk, &config);
		size = walk_find_later(&walk, until);
		begin = walk_psb_time(&walk, walk_find_psb(&walk, 0));
		is_done = begin > 0 && begin <= until;
		r = walk_read_error(&walk);
		walk_deinit(&walk);
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
		r = end_queue(&trace->queues[i], search_config(config),
			      tsc_from_ns(&facts->clock, facts->complete_until));
	return r;
}
