/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/stream/ahead.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Parts with more runs are dropped. */
#define PART_CHUNKS_MAX 64
#define PART_RUNS_MAX   (PART_CHUNKS_MAX * RUNPOOL_CHUNK_RUNS)

/* A chunk with less room than this is full. */
#define CHUNK_ROOM_MIN (2 * (size_t)ENGINE_STEP_RUNS_MAX)

/* A part with more marks is left to the lane, which gives them out batch by batch. */
#define PART_MARKS_MAX ((size_t)1 << 16)

/* Once as many parts in a row did not fit as a lane has, one is begun for this many cuts. */
#define CUTS_LEFT 64

/* How many of a batch's new blocks are remembered as listed. */
#define LISTED_MAX 1024

/* Parts are used only while at least so much of the budget is left, which is more than one may
 * take. So the budget runs out in the lane, at the same instruction whatever the number of threads.
 */
#define PART_BUDGET_MIN (ENGINE_INSNS_MIN / 2)

static_assert(PART_RUNS_MAX * CACHE_BLOCK_INSNS_MAX < PART_BUDGET_MIN, "a part takes less");

/* One batch of a part. */
struct part_batch {
	struct ptd_slice slice;
	int64_t cost; /* what it takes of the budget, less what its packets pay into it */
	uint64_t n_insns, n_insns_early;
	size_t chunk, first_run, n_runs;      /* in this one of the part's chunks */
	size_t first_mark, n_marks;           /* in the part */
	size_t first_new_block, n_new_blocks; /* likewise */
	bool new_slice;
	bool is_first_slice; /* of the thread that ran at the joint */
};

struct part {
	struct task task;
	const struct ahead *ahead;
	size_t span;
	uint64_t from, to;

	/* Made by a thread. */
	struct lane lane;
	bool has_lane, is_plain;
	struct engine_budget budget;     /* its own, since its engine may not take of the lane's */
	uint64_t budget_before;          /* that was left before the batch that is being made */
	uint64_t n_insns, n_insns_early; /* of the batches before that */
	struct lane_joint joint;         /* where it begins */
	VEC(struct runpool_chunk *) chunks;
	size_t n_runs; /* in the last chunk */
	VEC(struct ptd_mark) marks;
	struct cache_blocks new_blocks;
	VEC(struct part_batch) batches;

	size_t n_released; /* chunks whose batches have all been given out */
};

static struct part *part_free(struct part *part)
{
	if (!part)
		return NULL;
	if (part->has_lane)
		lane_deinit(&part->lane);
	vec_deinit(&part->chunks);
	vec_deinit(&part->marks);
	vec_deinit(&part->new_blocks);
	vec_deinit(&part->batches);
	free(part);
	return NULL;
}

/* --- in a thread ------------------------------------------------------------------------------ */

/* Add to @list the blocks of the lane's batch that were not shown, in the order in which they first
 * run. A block may be there several times. */
static int find_new_blocks(const struct lane *lane, struct cache_blocks *list)
{
	const struct ptd_block *listed[LISTED_MAX];

	if (lane->new_runs.n == 0)
		return 0;
	memset(listed, 0, sizeof(listed));
	for (size_t i = 0; i < lane->new_runs.n; i++) {
		const struct ptd_block *block = lane->runs[lane->new_runs.items[i]].block;
		const struct ptd_block **slot =
		    &listed[(uintptr_t)block / sizeof(*block) % LISTED_MAX];
		int r;

		if (*slot == block || cache_has_shown(block))
			continue;
		r = vec_push(list, block);
		if (r < 0)
			return r;
		*slot = block;
	}
	return 0;
}

/* Return: what of the part's budget was taken since the last call. */
static int64_t take_cost(struct part *part)
{
	const int64_t cost = (int64_t)(part->budget_before - part->budget.n_insns);

	part->budget_before = part->budget.n_insns;
	return cost;
}

/* Keep the batch that the part's lane has made. Return: 0; 1 if the part has too many marks; or
 * -ENOMEM. */
static int keep_batch(struct part *part)
{
	const struct lane *lane = &part->lane;
	struct part_batch batch = {
		.slice = lane->slice,
		.cost = take_cost(part),
		.n_insns = lane->stats.n_insns - part->n_insns,
		.n_insns_early = lane->n_insns_early - part->n_insns_early,
		.chunk = part->chunks.n - 1,
		.first_run = part->n_runs,
		.n_runs = lane->n_runs,
		.first_mark = part->marks.n,
		.n_marks = lane->marks.n,
		.first_new_block = part->new_blocks.n,
		.new_slice = lane->new_slice,
		.is_first_slice = lane->n_opened == 1,
	};
	int r;

	if (part->marks.n + lane->marks.n > PART_MARKS_MAX)
		return 1;
	r = find_new_blocks(lane, &part->new_blocks);
	batch.n_new_blocks = part->new_blocks.n - batch.first_new_block;
	if (r == 0)
		r = vec_reserve(&part->marks, lane->marks.n);
	if (r == 0)
		r = vec_reserve(&part->batches, 1);
	if (r < 0)
		return r;
	part->n_runs += lane->n_runs;
	part->batches.items[part->batches.n++] = batch;
	if (lane->marks.n > 0)
		memcpy(part->marks.items + part->marks.n, lane->marks.items,
		       lane->marks.n * sizeof(*lane->marks.items));
	part->n_insns = lane->stats.n_insns;
	part->n_insns_early = lane->n_insns_early;
	part->marks.n += lane->marks.n;
	return 0;
}

static bool is_plain(const struct lane *lane)
{
	return lane->stats.n_gaps == 0 && lane->stats.bytes_lost == 0 && !lane->has_turned_back &&
	       !lane->ended;
}

/* Let the lane put its runs behind those of the part, into another chunk if this one is full.
 * Return: 0; 1 if the part is too large; -ENOMEM. */
static int make_room(struct part *part, size_t thread)
{
	struct runpool_chunk *chunk;
	int r;

	if (part->chunks.n == 0 || RUNPOOL_CHUNK_RUNS - part->n_runs < CHUNK_ROOM_MIN) {
		if (part->chunks.n == PART_CHUNKS_MAX)
			return 1;
		r = vec_reserve(&part->chunks, 1);
		if (r < 0)
			return r;
		chunk = runpool_take(part->ahead->config.runs, thread);
		if (!chunk)
			return -ENOMEM;
		part->chunks.items[part->chunks.n++] = chunk;
		part->n_runs = 0;
	}
	part->lane.runs = part->chunks.items[part->chunks.n - 1]->runs + part->n_runs;
	part->lane.n_runs_max = RUNPOOL_CHUNK_RUNS - part->n_runs;
	return 0;
}

/* Return: 0; positive if the part is not plain; or negative errno. */
static int decode_part(struct part *part, size_t thread)
{
	struct lane_config config = part->ahead->lane.config;
	struct lane *lane = &part->lane;
	int r;

	config.engine_config.views = part->ahead->config.views;
	config.engine_config.budget = &part->budget;
	part->budget.n_insns = part->budget_before = UINT64_MAX / 2;
	lane_init_part(lane, &config);
	part->has_lane = true;
	r = make_room(part, thread);
	if (r == 0)
		r = lane_start_part(lane, part->span, part->from, part->to, &part->joint);
	/* What led to the joint is the lane's. */
	lane->has_turned_back = false;
	(void)take_cost(part);
	while (r == 0 && !lane->at_joint) {
		r = make_room(part, thread);
		if (r == 0)
			r = lane_fill(lane);
		if (r == 0 && lane_ready(lane))
			r = keep_batch(part);
		if (r == 0 && !is_plain(lane))
			return 1;
	}
	return r == 0 && lane->joint == part->to ? 0 : r ?: 1;
}

/* Give back the chunks before the one with the index @end. */
static void release_chunks(struct part *part, size_t end)
{
	while (part->n_released < end)
		hold_unref(&part->chunks.items[part->n_released++]->hold);
}

static void run_part(struct task *task, size_t thread)
{
	struct part *part = (struct part *)task;

	part->is_plain = decode_part(part, thread) == 0;
	if (part->is_plain)
		return;
	/* The views are the thread's. At a joint the engine has none. */
	lane_deinit(&part->lane);
	part->has_lane = false;
	release_chunks(part, part->chunks.n);
}

/* --- parts of a lane -------------------------------------------------------------------------- */

int ahead_init(struct ahead *ahead, const struct ahead_config *config,
	       const struct lane_config *lane_config)
{
	*ahead = (struct ahead){ .config = *config };
	return lane_init(&ahead->lane, lane_config);
}

/* Wait for @part, and keep its memory for another. */
static void drop_part(struct ahead *ahead, struct part *part)
{
	threads_wait(ahead->config.threads, &part->task);
	if (part->has_lane)
		lane_deinit(&part->lane);
	part->has_lane = false;
	release_chunks(part, part->chunks.n);
	if (vec_push(&ahead->spare, part) < 0)
		(void)part_free(part);
}

/* Drop the first @n parts. */
static void drop_parts(struct ahead *ahead, size_t n)
{
	for (size_t i = 0; i < n; i++)
		drop_part(ahead, ahead->parts.items[i]);
	ahead->parts.n -= n;
	if (n > 0)
		memmove(ahead->parts.items, ahead->parts.items + n,
			ahead->parts.n * sizeof(struct part *));
}

void ahead_deinit(struct ahead *ahead)
{
	drop_parts(ahead, ahead->parts.n);
	vec_deinit_each(&ahead->spare, part, part_free(*part));
	vec_deinit(&ahead->parts);
	vec_deinit(&ahead->own_new_blocks);
	sections_deinit(&ahead->sections);
	lane_deinit(&ahead->lane);
}

static int new_part(struct ahead *ahead, struct part **ret_part)
{
	struct part *part;

	if (ahead->spare.n > 0) {
		*ret_part = ahead->spare.items[--ahead->spare.n];
		return 0;
	}
	part = calloc(1, sizeof(*part));
	if (!part)
		return -ENOMEM;
	part->ahead = ahead;
	*ret_part = part;
	return 0;
}

static int add_part(struct ahead *ahead, uint64_t from, uint64_t to)
{
	struct part *part;
	int r;

	r = vec_reserve(&ahead->parts, 1);
	if (r == 0)
		r = new_part(ahead, &part);
	if (r < 0)
		return r;
	part->task.run = run_part;
	part->span = ahead->span;
	part->from = from;
	part->to = to;
	part->is_plain = false;
	part->n_insns = part->n_insns_early = 0;
	part->chunks.n = part->n_runs = part->n_released = 0;
	part->marks.n = part->new_blocks.n = part->batches.n = 0;
	ahead->parts.items[ahead->parts.n++] = part;
	ahead->config.counts->n_begun++;
	threads_add(ahead->config.threads, &part->task);
	return 0;
}

/* The lane has come to another span. */
static void begin_span(struct ahead *ahead)
{
	drop_parts(ahead, ahead->parts.n);
	ahead->has_span = true;
	ahead->span = ahead->lane.next_span - 1;
	ahead->end = ahead->n_left = 0;
	sections_deinit(&ahead->sections);
	sections_init(&ahead->sections, &ahead->lane.sections.config, ahead->span);
}

/* Return: how many parts of the lane may be decoded ahead now. */
static size_t n_parts_max(const struct ahead *ahead)
{
	if (ahead->n_left > 0)
		return 0;
	return ahead->n_unfit < ahead->config.n_parts ? ahead->config.n_parts : 1;
}

/* Note that @n parts did not fit. */
static void note_unfit(struct ahead *ahead, size_t n)
{
	ahead->n_unfit += n;
	if (n > 0 && ahead->n_unfit >= ahead->config.n_parts)
		ahead->n_left = CUTS_LEFT;
}

/* Let threads decode what lies behind the lane. Where nothing can be read, no part begins: only the
 * lane knows whether that is needed. */
static int add_parts(struct ahead *ahead)
{
	struct lane *lane = &ahead->lane;
	const uint64_t first = lane->at_joint ? lane->joint : lane->cut;

	if (threads_n(ahead->config.threads) < 2 || !lane->engine)
		return 0;
	if (!ahead->has_span || ahead->span != lane->next_span - 1)
		begin_span(ahead);
	if (ahead->parts.n == 0 && ahead->end < first)
		ahead->end = first;
	while (ahead->parts.n < n_parts_max(ahead)) {
		const struct stay *slice = lane->has_stay ? &lane->stay : NULL;
		uint64_t to;
		int r;

		ahead->end = sections_needed(&ahead->sections, ahead->end, slice);
		to = sections_next_cut(&ahead->sections, ahead->end);
		/* The end of a span is left to the lane. */
		if (to >= lane->config.queue->spans[ahead->span].pt.size) {
			/* It may be far away, so it is not looked for again. */
			ahead->end = to;
			break;
		}
		r = add_part(ahead, ahead->end, to);
		if (r < 0)
			return r;
		ahead->end = to;
	}
	return 0;
}

/* --- batches ---------------------------------------------------------------------------------- */

static struct engine_budget *budget_of(const struct ahead *ahead)
{
	return ahead->lane.config.engine_config.budget;
}

/* What a part took of its own budget is taken of the lane's. That had enough when the part was
 * found, but other lanes, which share it, may have used it up since. */
static void pay(struct ahead *ahead, int64_t cost)
{
	struct engine_budget *budget = budget_of(ahead);

	if (cost > 0 && (uint64_t)cost > budget->n_insns)
		budget->n_insns = 0;
	else
		budget->n_insns -= (uint64_t)cost;
}

/* Find the part that begins at the joint where the lane stands, if what is known there is known. */
static void find_part(struct ahead *ahead)
{
	struct lane *lane = &ahead->lane;
	struct lane_joint joint;
	struct part *part;
	size_t n = 0;

	if (ahead->n_left > 0)
		ahead->n_left--;
	while (n < ahead->parts.n && ahead->parts.items[n]->from < lane->joint)
		n++;
	drop_parts(ahead, n);
	note_unfit(ahead, n);
	part = ahead->parts.n > 0 ? ahead->parts.items[0] : NULL;
	if (!part || part->from != lane->joint)
		return;
	threads_wait(ahead->config.threads, &part->task);
	lane_get_joint(lane, &joint);
	if (!part->is_plain || budget_of(ahead)->n_insns < PART_BUDGET_MIN ||
	    memcmp(&joint, &part->joint, sizeof(joint)) != 0) {
		drop_parts(ahead, 1);
		note_unfit(ahead, 1);
		return;
	}
	ahead->part = part;
	ahead->n_given = 0;
	ahead->n_unfit = 0;
	ahead->config.counts->n_used++;
}

/* Begin the slice that a batch of the part begins; or go on with that of the lane. */
static void begin_slice(struct ahead *ahead, const struct part_batch *batch)
{
	struct lane *lane = &ahead->lane;
	const uint64_t t0 = lane->slice.t0;

	ahead->new_slice = batch->new_slice;
	if (!batch->new_slice)
		return;
	if (batch->is_first_slice && lane->has_stay && !lane->stay_opens &&
	    lane_is_same_slice(&lane->stay, &ahead->part->lane.first_stay)) {
		/* It may have been opened right before the joint. */
		ahead->new_slice = lane->new_slice && !lane_ready(lane);
		lane->new_slice = false;
		return;
	}
	lane->slice = batch->slice;
	if (lane->slice.t0 < t0)
		lane->slice.t0 = t0;
}

/* All batches of the part have been given out: the lane goes on where the part ended. */
static void end_part(struct ahead *ahead)
{
	struct lane *lane = &ahead->lane;
	struct lane *from = &ahead->part->lane;
	const bool opened = from->new_slice && !lane_ready(from);
	const struct part_batch last = { .slice = from->slice,
					 .new_slice = opened,
					 .is_first_slice = from->n_opened == 1 };

	if (opened)
		begin_slice(ahead, &last);
	else
		ahead->new_slice = false;
	pay(ahead, take_cost(ahead->part));
	lane_take_part(lane, from);
	/* What lane_fill() expects behind a joint. */
	lane->n_runs = lane->marks.n = 0;
	lane->new_slice = opened && ahead->new_slice;
	ahead->part = NULL;
	drop_parts(ahead, 1);
}

static void give_of_part(struct ahead *ahead)
{
	struct part *part = ahead->part;
	const struct part_batch *batch = &part->batches.items[ahead->n_given++];

	release_chunks(part, batch->chunk);
	begin_slice(ahead, batch);
	pay(ahead, batch->cost);
	ahead->lane.stats.n_insns += batch->n_insns;
	ahead->lane.n_insns_early += batch->n_insns_early;
	ahead->hold = &part->chunks.items[batch->chunk]->hold;
	ahead->runs = ahead->hold->runs + batch->first_run;
	ahead->n_runs = batch->n_runs;
	ahead->marks = part->marks.items + batch->first_mark;
	ahead->n_marks = batch->n_marks;
	ahead->new_blocks = part->new_blocks.items + batch->first_new_block;
	ahead->n_new_blocks = batch->n_new_blocks;
}

static int give_of_lane(struct ahead *ahead)
{
	struct lane *lane = &ahead->lane;
	int r;

	ahead->own_new_blocks.n = 0;
	r = find_new_blocks(lane, &ahead->own_new_blocks);
	if (r < 0)
		return r;

	ahead->hold = NULL;
	ahead->runs = lane->runs;
	ahead->n_runs = lane->n_runs;
	ahead->marks = lane->marks.items;
	ahead->n_marks = lane->marks.n;
	ahead->new_slice = lane->new_slice;
	ahead->new_blocks = ahead->own_new_blocks.items;
	ahead->n_new_blocks = ahead->own_new_blocks.n;
	return 0;
}

int ahead_fill(struct ahead *ahead)
{
	struct lane *lane = &ahead->lane;
	int r;

	ahead->n_runs = ahead->n_marks = 0;
	for (;;) {
		if (ahead->part && ahead->n_given < ahead->part->batches.n) {
			give_of_part(ahead);
			return 0;
		}
		if (ahead->part)
			end_part(ahead);
		r = lane->at_joint ? lane_pass_over(lane) : 0;
		if (r == 0)
			r = add_parts(ahead);
		if (r < 0)
			return r;
		if (lane->at_joint && !lane->ended)
			find_part(ahead);
		if (ahead->part)
			continue;
		r = lane_fill(lane);
		if (r == 0)
			r = give_of_lane(ahead);
		if (r < 0)
			return r;
		if (ahead_ready(ahead) || lane->ended)
			return 0;
	}
}
