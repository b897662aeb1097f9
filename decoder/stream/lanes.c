/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/stream/lanes.h"

#include <errno.h>
#include <stdlib.h>

#include "decoder/image/cache.h"
#include "decoder/image/view.h"
#include "decoder/pt/psbs.h"
#include "decoder/stream/extract.h"
#include "decoder/stream/runpool.h"
#include "decoder/stream/sections.h"
#include "decoder/trace/trace.h"
#include "decoder/util/threads.h"
#include "util/perf/tsc.h"

/*
 * How many parts of all lanes may be decoded ahead: a number for each thread, or, if there are more
 * lanes than that, two of each, up to a number that is bounded because each part takes memory.
 */
#define PARTS_PER_THREAD 3
#define PARTS_PER_LANE   2
#define PARTS_MAX        128

/* Blocks ahead of the one that is shown. */
#define SHOW_PREFETCH 4

static const struct trace *trace_of(const struct lanes *lanes)
{
	return lanes->config.lane.trace;
}

static struct cache *cache_of(const struct lanes *lanes)
{
	return lanes->config.lane.engine_config.cache;
}

/*
 * Make views: for the lanes alone, and for the parts that threads decode, the calling thread too
 * while it waits. Where those of the parts find no room, the lane has to decode.
 */
static int make_views(struct lanes *lanes)
{
	int r = views_new(cache_of(lanes), &lanes->views);

	if (r == 0 && threads_n(lanes->config.threads) > 1)
		r = views_new(cache_of(lanes), &lanes->part_views);
	if (r == 0 && lanes->part_views)
		views_share(lanes->part_views);
	return r;
}

int lanes_init(struct lanes *lanes, const struct lanes_config *config)
{
	const size_t n = config->lane.trace->n_queues;
	int r;

	*lanes = (struct lanes){ .config = *config };
	r = make_views(lanes);
	if (r == 0)
		r = runpool_new(threads_n(config->threads), &lanes->runs);
	if (r < 0)
		return r;
	lanes->config.lane.engine_config.views = lanes->views;
	lanes->config.lane.engine_config.budget = &lanes->budget;
	lanes->items = calloc(n ? n : 1, sizeof(*lanes->items));
	return lanes->items ? 0 : -ENOMEM;
}

void lanes_deinit(struct lanes *lanes)
{
	lanes_stop(lanes);
	free(lanes->items);
	views_free(lanes->part_views);
	views_free(lanes->views);
	runpool_free(lanes->runs);
}

/* How many parts of a lane may be decoded ahead. */
static size_t n_parts_of(const struct lanes *lanes)
{
	const size_t n_lanes = trace_of(lanes)->n_queues ?: 1;
	const size_t of_lanes =
	    PARTS_PER_LANE * n_lanes < PARTS_MAX ? PARTS_PER_LANE * n_lanes : PARTS_MAX;
	const size_t of_threads = PARTS_PER_THREAD * threads_n(lanes->config.threads);

	return (of_threads > of_lanes ? of_threads : of_lanes) / n_lanes;
}

int lanes_start(struct lanes *lanes)
{
	const struct ahead_config ahead = {
		.threads = lanes->config.threads,
		.views = lanes->part_views,
		.runs = lanes->runs,
		.counts = &lanes->counts,
		.n_parts = n_parts_of(lanes),
	};
	struct lane_config config = lanes->config.lane;
	int r = 0;

	lanes->budget.n_insns = ENGINE_INSNS_MIN;
	for (; lanes->n < trace_of(lanes)->n_queues; lanes->n++) {
		config.queue = &trace_of(lanes)->queues[lanes->n];
		r = ahead_init(&lanes->items[lanes->n], &ahead, &config);
		if (r < 0)
			return r;
		if (config.extract && !extract_asks_for_cpu(config.extract, config.queue->cpu))
			lane_leave_out(&lanes->items[lanes->n].lane);
	}
	for (size_t i = 0; i < lanes->n && r == 0; i++)
		r = ahead_fill(&lanes->items[i]);
	return r;
}

void lanes_stop(struct lanes *lanes)
{
	for (size_t i = 0; i < lanes->n; i++)
		ahead_deinit(&lanes->items[i]);
	lanes->n = 0;
	lanes->given = NULL;
}

/* Return: the lane whose slice begins first; NULL if all lanes have ended. */
static struct ahead *first_lane(const struct lanes *lanes)
{
	struct ahead *first = NULL;

	for (size_t i = 0; i < lanes->n; i++) {
		struct ahead *lane = &lanes->items[i];

		if (ahead_ready(lane) && (!first || lane->lane.slice.t0 < first->lane.slice.t0))
			first = lane;
	}
	return first;
}

/* Give the blocks of the batch that were not shown before their ids, and symbols. */
static int show_blocks(struct cache *cache, const struct ahead *lane)
{
	for (size_t i = 0; i < lane->n_new_blocks; i++) {
		const struct ptd_block *block = lane->new_blocks[i];
		int r;

		if (i + 2 * SHOW_PREFETCH < lane->n_new_blocks) {
			cache_prefetch(lane->new_blocks[i + 2 * SHOW_PREFETCH]);
			cache_prefetch_insns(lane->new_blocks[i + SHOW_PREFETCH]);
		}
		r = cache_has_shown(block) ? 0 : cache_show(cache, block);
		if (r < 0)
			return r;
	}
	return 0;
}

int lanes_next(struct lanes *lanes, struct ahead **ret_lane)
{
	int r = 0;

	*ret_lane = lanes->given;
	if (lanes->given)
		r = ahead_fill(lanes->given);
	if (r < 0)
		return r;
	*ret_lane = lanes->given = first_lane(lanes);
	return lanes->given ? show_blocks(cache_of(lanes), lanes->given) : 0;
}

bool lanes_can_seek(const struct lanes *lanes)
{
	const struct lane_config *config = &lanes->config.lane;
	const size_t n = trace_of(lanes)->n_queues;
	bool can = engine_can_join(config->engine);
	uint64_t since;

	for (size_t i = 0; i < n && can; i++) {
		const struct trace_queue *queue = &trace_of(lanes)->queues[i];

		can = sections_exist(&(struct sections_config){
		    .trace = trace_of(lanes), .queue = queue, .cut_size = config->cut_size });
		/* What no known thread ran is of one CPU, but not of one buffer of a thread. */
		if (n > 1 && queue->cpu == TRACE_NONE)
			can = can && !extract_asks_for_unknown(config->extract, queue->cpu, &since);
	}
	return can;
}

uint64_t lanes_latest_before(const struct lanes *lanes, uint64_t time)
{
	struct sections_config config = { .trace = trace_of(lanes),
					  .timeline = lanes->config.lane.timeline,
					  .extract = lanes->config.lane.extract };
	uint64_t latest = 0;

	for (size_t i = 0; i < trace_of(lanes)->n_queues; i++) {
		uint64_t t;

		config.queue = &trace_of(lanes)->queues[i];
		if (!extract_asks_for_cpu(config.extract, config.queue->cpu))
			continue;
		t = sections_latest_before(&config, time);
		latest = t > latest ? t : latest;
	}
	return latest;
}

uint64_t lanes_done(const struct lanes *lanes, uint64_t *ret_total)
{
	uint64_t done = 0;

	*ret_total = 0;
	for (size_t i = 0; i < lanes->n; i++) {
		const struct lane *lane = &lanes->items[i].lane;

		done += lane->stats.bytes_lost + lane->stats.bytes_decoded +
			lane->stats.bytes_out_of_scope;
		if (lane->engine)
			done += engine_decoded(lane->engine) - lane->span_decoded;
		*ret_total += lane->stats.bytes_in;
	}
	return done;
}

/* --- where the PT ends ------------------------------------------------------------------------ */

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
