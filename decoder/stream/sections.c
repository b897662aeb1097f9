/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/stream/sections.h"

#include <stddef.h>

#include "decoder/pt/engine.h"
#include "util/perf/tsc.h"

void sections_init(struct sections *sections, const struct sections_config *config, size_t span)
{
	*sections =
	    (struct sections){ .config = *config, .size = config->queue->spans[span].pt.size };
	/* Of times, those that PSBs state are enough. */
	psbs_init(&sections->psbs, &config->queue->spans[span].pt, &(struct engine_config){});
}

void sections_deinit(struct sections *sections)
{
	psbs_deinit(&sections->psbs);
}

/* Return: the first PSB at or behind the multiple @n of the size of sections. */
static uint64_t cut_at(struct sections *sections, uint64_t n)
{
	const uint64_t cut_size = sections->config.cut_size;

	return n < sections->size / cut_size + 1 ? psbs_find(&sections->psbs, n * cut_size)
						 : sections->size;
}

uint64_t sections_next_cut(struct sections *sections, uint64_t offset)
{
	if (sections->config.cut_size == 0)
		return sections->size;
	return cut_at(sections, offset / sections->config.cut_size + 1);
}

/* Return: the time that the PSB+ at @cut states, on the clock of the stream; 0: none. */
static uint64_t time_at(struct sections *sections, uint64_t cut)
{
	const struct tsc_conv *clock = &sections->config.trace->facts.clock;
	const uint64_t tsc = cut < sections->size ? psbs_time(&sections->psbs, cut) : 0;

	return tsc && clock->valid ? tsc_to_ns(clock, tsc) : tsc;
}

static void stay_at(const struct sections_config *config, uint64_t time, struct stay *ret_stay)
{
	stays_at(config->timeline, config->queue, time, ret_stay);
}

/* Return: whether it is known of nothing that ran at @time which thread ran it. */
static bool is_before_sideband(const struct sections_config *config, uint64_t time)
{
	return config->trace->facts.clock.valid && time < config->queue->sideband_since;
}

/* Return: whether what ran between @from and @to, inclusive, may be of no known thread. */
static bool may_be_unknown(const struct sections_config *config, uint64_t from, uint64_t to)
{
	struct stay stay;

	return is_before_sideband(config, from) ||
	       !stays_between(config->timeline, config->queue, from, to, true, &stay) ||
	       stay.tid == PTD_ID_UNKNOWN;
}

/* What is lost between spans, and what the recorder lost, has its place in the stream. */
bool sections_exist(const struct sections_config *config)
{
	const struct trace_facts *facts = &config->trace->facts;

	return config->cut_size > 0 && facts->has_tsc && (facts->clock.valid || facts->is_bare) &&
	       config->queue->n_spans == 1 && config->queue->n_losses == 0;
}

uint64_t sections_latest_before(const struct sections_config *config, uint64_t time)
{
	uint64_t since;
	const bool asks_for_unknown =
	    extract_asks_for_unknown(config->extract, config->queue->cpu, &since);
	struct stay stay;

	for (; time > 0; time = stay.start) {
		stay_at(config, time - 1, &stay);
		/* What no known thread ran may be from before another thread came. */
		if (extract_asks_for_stay(config->extract, config->queue->cpu, &stay) ||
		    (asks_for_unknown &&
		     (stay.end < UINT64_MAX || is_before_sideband(config, time - 1))))
			return time - 1;
		if (stay.start >= time)
			break;
	}
	return 0;
}

static bool is_open(const struct stay *slice, const struct stay *stay)
{
	return slice && slice->pid == stay->pid && slice->tid == stay->tid &&
	       slice->space == stay->space && slice->start == stay->start;
}

/* Return: when something needed runs first, from @time on; UINT64_MAX: never. */
static uint64_t needed_since(const struct sections *sections, uint64_t time,
			     const struct stay *slice)
{
	const struct extract *extract = sections->config.extract;
	const uint64_t from = extract_from(extract), to = extract_to(extract);
	const uint32_t cpu = sections->config.queue->cpu;
	struct stay stay;

	if (time < from) {
		stay_at(&sections->config, from, &stay);
		if (extract_asks_for_stay(extract, cpu, &stay) && !is_open(slice, &stay))
			return time < stay.start ? stay.start : time;
		time = from;
	}
	while (time < to) {
		stay_at(&sections->config, time, &stay);
		if (extract_asks_for_stay(extract, cpu, &stay))
			return time;
		if (stay.end <= time)
			return time;
		time = stay.end;
	}
	return UINT64_MAX;
}

/*
 * Return: the last cut whose time is before @time, from the cut @cut on, whose time is.
 */
static uint64_t last_cut_before(struct sections *sections, uint64_t cut, uint64_t time)
{
	const uint64_t cut_size = sections->config.cut_size;
	uint64_t low = cut / cut_size, high = sections->size / cut_size + 1;

	while (high - low > 1) {
		const uint64_t middle = low + (high - low) / 2, at = cut_at(sections, middle);
		const uint64_t t = time_at(sections, at);

		if (t == 0 || t >= time) {
			high = middle;
		} else {
			low = middle;
			cut = at;
		}
	}
	return cut;
}

/*
 * Return: since when what no known thread ran is needed so that it is decoded from the beginning of
 *         its slice on, if something of the slice is needed from @since on.
 */
static uint64_t slice_of_unknown(struct sections *sections, uint64_t since)
{
	const uint64_t first = psbs_find(&sections->psbs, 0);
	uint64_t time;

	for (;; since = time) {
		time = time_at(sections, last_cut_before(sections, first, since));
		if (time == 0 || time >= since || !may_be_unknown(&sections->config, time, since))
			return since;
	}
}

/*
 * Return: a time, from @time on, before which nothing of no known thread is needed, and near which
 *         something may be; UINT64_MAX: there is none.
 */
static uint64_t unknown_since(struct sections *sections, uint64_t time)
{
	const struct sections_config *config = &sections->config;
	struct stay stay;
	uint64_t since;

	if (!extract_asks_for_unknown(config->extract, config->queue->cpu, &since) ||
	    time >= extract_to(config->extract))
		return UINT64_MAX;
	if (!sections->has_unknown) {
		sections->unknown_since = slice_of_unknown(sections, since);
		sections->has_unknown = true;
	}
	if (time < sections->unknown_since)
		time = sections->unknown_since;
	stay_at(config, time, &stay);
	return is_before_sideband(config, time) ? time : stay.end;
}

uint64_t sections_needed(struct sections *sections, uint64_t cut, const struct stay *slice)
{
	if (!sections->config.extract || !sections_exist(&sections->config))
		return cut;
	while (cut < sections->size) {
		const uint64_t next = sections_next_cut(sections, cut);
		/* What is before the first PSB has no time. */
		const uint64_t time =
		    time_at(sections, cut == 0 ? psbs_find(&sections->psbs, 0) : cut);
		uint64_t since, unknown, end;

		if (time == 0)
			return cut;
		since = needed_since(sections, time, slice);
		unknown = unknown_since(sections, time);
		if (since == UINT64_MAX && unknown == UINT64_MAX)
			return sections->size;
		end = time_at(sections, next);
		if (next == sections->size || end == 0 || since <= end)
			return cut;
		if (since <= unknown)
			return last_cut_before(sections, next, since);
		if (unknown > end)
			cut = last_cut_before(sections, next, unknown);
		else if (may_be_unknown(&sections->config, time, end))
			return cut;
		else
			cut = next;
	}
	return cut;
}

/* --- stays ------------------------------------------------------------------------------------ */

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
