/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/answer/rankexec.h"

#include <errno.h>
#include <stdlib.h>

#include "decoder/sink/answer/executions.h"
#include "decoder/sink/answer/profile.h"
#include "decoder/sink/answer/rank.h"
#include "ptd/calls.h"
#include "ptd/decode.h"
#include "util/map.h"
#include "util/vec.h"

#define PART_SLOW 10  /* one of so many executions is slow if no step tells which ones are */
#define STEP_MIN  1.5 /* as large is a step in what they took */

/* What an execution took; 0 and 0: it was not seen as a whole. */
struct execution_cost {
	uint64_t t, n_insns;
};

/* The execution that is open of a thread. */
struct open_execution {
	bool is_open;
	uint32_t stack;
	int32_t depth;
	uint64_t number; /* index */
	uint8_t how;
	struct rank_run *run; /* owned; NULL: it does not count */
	size_t from;          /* run of the batch from which on it has not been taken yet */
};

struct rankexec {
	struct rank *rank; /* borrowed */
	const char *function;
	struct ptd_calls *calls;
	unsigned int n_passes; /* that have begun */
	uint64_t n;            /* executions that have begun in this pass */
	VEC(struct execution_cost) costs;
	struct execution_cost least; /* what takes as long is bad; 0: that does not count */

	struct map by_thread; /* pid and tid → index */
	VEC(struct open_execution) open;
	VEC(struct ptd_mark) marks; /* of a part of a batch */
};

/* --- its life --------------------------------------------------------------------------------- */

int rankexec_new(struct rank *rank, const char *function, struct rankexec **ret_rankexec)
{
	struct rankexec *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	e->rank = rank;
	e->function = function;
	*ret_rankexec = e;
	return 0;
}

static void forget_pass(struct rankexec *e)
{
	ptd_calls_free(e->calls);
	e->calls = NULL;
	vec_deinit_each(&e->open, open, rank_run_free(open->run));
	map_deinit(&e->by_thread);
	e->by_thread = (struct map){};
	e->n = 0;
}

struct rankexec *rankexec_free(struct rankexec *rankexec)
{
	if (!rankexec)
		return NULL;
	forget_pass(rankexec);
	vec_deinit(&rankexec->costs);
	vec_deinit(&rankexec->marks);
	free(rankexec);
	return NULL;
}

int rankexec_begin(struct rankexec *rankexec, struct ptd_decoder *decoder)
{
	forget_pass(rankexec);
	rankexec->n_passes++;
	rank_use(rankexec->rank, decoder);
	return ptd_calls_new(ptd_decoder_info(decoder), &rankexec->calls);
}

/* --- executions ------------------------------------------------------------------------------- */

/* Return: whether the execution took so long that it is bad. */
static bool is_bad(const struct rankexec *e, const struct execution_cost *cost)
{
	return e->least.t > 0 ? cost->t >= e->least.t : cost->n_insns >= e->least.n_insns;
}

/* Take the runs of the batch that the open execution has not taken, before @end. */
static int take_part(struct rankexec *e, struct open_execution *open, const struct ptd_batch *batch,
		     size_t end)
{
	struct ptd_batch part = *batch;
	const size_t from = open->from;
	int r = 0;

	open->from = end;
	if (!open->run || end <= from)
		return 0;
	e->marks.n = 0;
	for (size_t i = 0; i < batch->n_marks && r == 0; i++) {
		struct ptd_mark mark = batch->marks[i];

		/* A mark at the beginning belongs to what was before. */
		if (mark.run <= from || mark.run > end)
			continue;
		mark.run -= from;
		r = vec_push(&e->marks, mark);
	}
	part.runs += from;
	part.n_runs = end - from;
	part.marks = e->marks.items;
	part.n_marks = e->marks.n;
	part.hold = NULL;
	return r < 0 ? r : rank_run_batch(open->run, &part);
}

static int begin_execution(struct rankexec *e, struct open_execution *open,
			   const struct ptd_call *call)
{
	const uint64_t number = e->n++;
	const struct execution_cost *cost = number < e->costs.n ? &e->costs.items[number] : NULL;

	*open = (struct open_execution){ .is_open = true,
					 .stack = call->stack,
					 .depth = call->depth,
					 .number = number,
					 .how = call->how,
					 .from = call->run };
	if (e->n_passes == 1)
		return vec_push(&e->costs, {});
	if (!cost || (cost->t == 0 && cost->n_insns == 0))
		return 0;
	return rank_run_new(e->rank, is_bad(e, cost) ? RANK_BAD : RANK_GOOD, NULL, &open->run);
}

static int end_execution(struct rankexec *e, struct open_execution *open,
			 const struct ptd_batch *batch, const struct ptd_call *call)
{
	const struct open_frame frame = { .how = open->how };
	int r = 0;

	open->is_open = false;
	if (e->n_passes == 1 && profile_is_whole(&frame, call))
		e->costs.items[open->number] =
		    (struct execution_cost){ .t = call->t_total, .n_insns = call->n_insns_total };
	if (open->run) {
		r = take_part(e, open, batch, call->run);
		if (r == 0)
			r = rank_run_end(open->run);
		open->run = rank_run_free(open->run);
	}
	return r;
}

static int take_call(struct rankexec *e, struct open_execution *open, const struct ptd_batch *batch,
		     const struct ptd_call *call)
{
	if (call->kind == PTD_CALL_SWITCH || !executions_name_is(call->function->name, e->function))
		return 0;
	if (call->kind == PTD_CALL_ENTER)
		return open->is_open ? 0 : begin_execution(e, open, call);
	if (!open->is_open || open->stack != call->stack || open->depth != call->depth)
		return 0;
	return end_execution(e, open, batch, call);
}

/* --- the stream ------------------------------------------------------------------------------- */

/* Return: what is open of the thread of the slice, valid until the next call; NULL: no memory. */
static struct open_execution *open_of(struct rankexec *e, const struct ptd_slice *slice)
{
	return map_item(&e->by_thread, (uint64_t)slice->pid << 32 | slice->tid, &e->open, {});
}

int rankexec_batch(struct rankexec *rankexec, const struct ptd_batch *batch)
{
	struct open_execution *open = open_of(rankexec, batch->slice);
	const struct ptd_call_batch *found;
	int r;

	if (!open)
		return -ENOMEM;
	open->from = 0;
	r = ptd_calls_batch(rankexec->calls, batch);
	while (r == 0 && (r = ptd_calls_next(rankexec->calls, &found)) == 0) {
		/* Of other threads, whose layer ends them. */
		if (!found->batch)
			continue;
		for (size_t i = 0; i < found->n_calls && r == 0; i++)
			r = take_call(rankexec, open, batch, &found->calls[i]);
	}
	if (r != PTD_END)
		return r;
	return open->is_open ? take_part(rankexec, open, batch, batch->n_runs) : 0;
}

static int by_size(const void *pa, const void *pb)
{
	const uint64_t *a = pa, *b = pb;

	return COMPARE(*a, *b);
}

/*
 * Find what is slow among @n > 0 costs, which are sorted: in the upper half, what lies behind the
 * largest step, if that is one; or else the last tenth.
 *
 * Return: the least cost that is slow; UINT64_MAX if all are alike; 0 if half of them are 0, so
 *         that these costs do not tell.
 */
static uint64_t find_slow(const uint64_t *costs, size_t n)
{
	size_t best = n - 1 - (n - 1) / PART_SLOW;
	double step = STEP_MIN;

	if (costs[n / 2] == 0)
		return 0;
	for (size_t i = n / 2 + 1; i < n; i++) {
		if ((double)costs[i] > step * (double)costs[i - 1]) {
			step = (double)costs[i] / (double)costs[i - 1];
			best = i;
		}
	}
	return costs[best] > costs[0] ? costs[best] : UINT64_MAX;
}

/* Find out what is slow, by time if that tells. */
static int find_least(struct rankexec *e)
{
	VEC(uint64_t) times = {}, insns = {};
	int r = 0;

	for (size_t i = 0; i < e->costs.n && r == 0; i++) {
		if (e->costs.items[i].n_insns == 0)
			continue;
		r = vec_push(&times, e->costs.items[i].t);
		if (r == 0)
			r = vec_push(&insns, e->costs.items[i].n_insns);
	}
	if (r == 0 && times.n > 0) {
		vec_sort(&times, by_size);
		vec_sort(&insns, by_size);
		e->least.t = find_slow(times.items, times.n);
		e->least.n_insns = find_slow(insns.items, insns.n);
	}
	vec_deinit(&times);
	vec_deinit(&insns);
	return r;
}

int rankexec_end(struct rankexec *rankexec)
{
	const int r = rankexec->n_passes == 1 ? find_least(rankexec) : 0;

	forget_pass(rankexec);
	return r;
}
