/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The call layer's interface: which thread a batch belongs to, and how its calls are given out. */

#include "ptd/calls.h"

#include <errno.h>
#include <stdlib.h>

#include "base/base.h"
#include "decoder/calls/callthread.h"
#include "decoder/calls/inlined.h"
#include "decoder/calls/stackpool.h"
#include "ptd/decode.h"
#include "util/map.h"
#include "util/vec.h"

/* Calls of one thread, in the list of those that are given out. */
struct piece {
	struct callthread *thread;
	const struct ptd_batch *batch;
	size_t first, n;
	bool
	    is_plain; /* nothing that was inlined is among them: they are in the layer's own list */
};

struct ptd_calls {
	struct call_world world;
	VEC(const struct ptd_call_thread *) threads; /* each is in a struct callthread; owned */
	struct map by_tid;                           /* what identifies it → id */
	VEC(struct stackpool *) pools;               /* of processes; owned */
	struct map by_process;         /* process and address space → index of its pool */
	struct callthread *thread;     /* of the last batch */
	const struct ptd_batch *batch; /* that, while there are more calls in it; borrowed */
	struct call_position at;       /* so much of it was taken */

	/* The threads that have not ended, from the one that ran longest ago on. */
	struct callthread *oldest, *newest;
	size_t n_alive;

	VEC(struct piece) pieces;
	size_t next_piece;
	bool is_finished;
	size_t next_end; /* id of the next thread to be ended at the end of the stream */

	bool is_inlining;
	struct inliner inliner;

	struct ptd_call_batch given;
	VEC(struct ptd_frame) frames; /* that were asked for */
};

static const char *const how_names[_PTD_CALL_HOWS] = {
	[PTD_CALL_BY_CALL] = "call",
	[PTD_CALL_BY_TAIL] = "tail call",
	[PTD_CALL_BY_SIGNAL] = "signal",
	[PTD_CALL_BY_INTERRUPT] = "interrupt",
	[PTD_CALL_BY_SYSCALL] = "system call",
	[PTD_CALL_BY_INFERENCE] = "inference",
	[PTD_CALL_BY_RESUMPTION] = "resumption",
	[PTD_CALL_BY_START] = "start",
	[PTD_CALL_BY_RETURN] = "return",
	[PTD_CALL_BY_UNWINDING] = "unwinding",
	[PTD_CALL_BY_GAP] = "gap",
	[PTD_CALL_BY_END] = "end",
	[PTD_CALL_BY_REOPENING] = "reopening",
	[PTD_CALL_BY_INLINING] = "inlining",
	[PTD_CALL_BY_REENTRY] = "reentry",
};

const char *ptd_call_how_name(enum ptd_call_how how)
{
	return (unsigned int)how < _PTD_CALL_HOWS ? how_names[how] : "unknown";
}

int ptd_calls_new(const struct ptd_info *info, struct ptd_calls **ret_calls)
{
	struct ptd_calls *calls = calloc(1, sizeof(*calls));

	if (!calls)
		return -ENOMEM;
	*ret_calls = calls;
	return 0;
}

void ptd_calls_inline(struct ptd_calls *calls, struct ptd_decoder *decoder)
{
	calls->is_inlining = true;
	calls->inliner = (struct inliner){ .decoder = decoder,
					   .functions = &calls->world.functions,
					   .stats = &calls->world.list.stats };
}

static struct callthread *thread_at(const struct ptd_calls *calls, size_t id)
{
	return (struct callthread *)(uintptr_t)calls->threads.items[id];
}

struct ptd_calls *ptd_calls_free(struct ptd_calls *calls)
{
	if (!calls)
		return NULL;

	for (size_t i = 0; i < calls->threads.n; i++)
		free(thread_at(calls, i));
	vec_deinit(&calls->threads);
	vec_deinit_each(&calls->pools, pool, {
		stackpool_deinit(*pool);
		free(*pool);
	});
	map_deinit(&calls->by_process);
	map_deinit(&calls->by_tid);
	vec_deinit(&calls->pieces);
	vec_deinit(&calls->frames);
	inliner_deinit(&calls->inliner);
	call_world_deinit(&calls->world);
	free(calls);
	return NULL;
}

/* --- threads ---------------------------------------------------------------------------------- */

/* Each CPU has an idle thread 0, and code of a thread that is not known. */
static uint64_t key_of(const struct ptd_slice *slice)
{
	const bool is_of_cpu = slice->tid == 0 || slice->tid == PTD_ID_UNKNOWN;

	return (uint64_t)(is_of_cpu ? slice->cpu : slice->pid) << 32 | slice->tid;
}

static bool is_same(const struct ptd_call_thread *thread, const struct ptd_slice *slice)
{
	if (thread->tid != slice->tid || thread->ended)
		return false;
	if (slice->tid == 0 || slice->tid == PTD_ID_UNKNOWN)
		return thread->cpu == slice->cpu;
	return thread->pid == slice->pid && thread->space == slice->space;
}

/* The thread is in the list of those that have not ended, and leaves it. */
static void take_out(struct ptd_calls *calls, struct callthread *thread)
{
	*(thread->older ? &thread->older->newer : &calls->oldest) = thread->newer;
	*(thread->newer ? &thread->newer->older : &calls->newest) = thread->older;
	calls->n_alive--;
}

/* The thread is the one that ran last. */
static void put_in(struct ptd_calls *calls, struct callthread *thread)
{
	thread->older = calls->newest;
	thread->newer = NULL;
	*(calls->newest ? &calls->newest->newer : &calls->oldest) = thread;
	calls->newest = thread;
	calls->n_alive++;
}

/* Give out the calls of @thread, of its batch @batch, that were found from @first on. */
static int add_piece(struct ptd_calls *calls, struct callthread *thread,
		     const struct ptd_batch *batch, size_t first)
{
	const size_t n_found = calls->world.list.calls.n - first;
	struct piece piece = {
		.thread = thread, .batch = batch, .first = first, .n = n_found, .is_plain = true
	};
	const size_t n_before = calls->inliner.calls.n;
	int r = 1;

	if (calls->is_inlining)
		r = inliner_take(&calls->inliner, &thread->shown, batch, calls->at.run,
				 calls->world.list.calls.items + first, n_found);
	if (r == 0) {
		piece.first = n_before;
		piece.n = calls->inliner.calls.n - n_before;
		piece.is_plain = false;
	}
	return r < 0 || piece.n == 0 ? r : vec_push(&calls->pieces, piece);
}

static int end_thread(struct ptd_calls *calls, struct callthread *thread)
{
	const size_t first = calls->world.list.calls.n;
	const int r = callthread_end(thread, &calls->world);

	take_out(calls, thread);
	return r < 0 ? r : add_piece(calls, thread, NULL, first);
}

/* End the thread that ran longest ago. */
static int end_oldest(struct ptd_calls *calls)
{
	struct callthread *oldest = calls->oldest;
	const int r = end_thread(calls, oldest);

	callthread_forget(oldest, &calls->world);
	calls->world.list.stats.n_threads_ended++;
	return r;
}

/* Get the stacks that the threads of a process share. */
static int get_pool(struct ptd_calls *calls, const struct ptd_slice *slice,
		    struct stackpool **ret_pool)
{
	const uint64_t key = (uint64_t)slice->pid << 32 | slice->space;
	const uint64_t *known = map_get(&calls->by_process, key);
	struct stackpool *pool;

	if (known) {
		*ret_pool = calls->pools.items[*known];
		return 0;
	}
	pool = calloc(1, sizeof(*pool));
	if (!pool || vec_push(&calls->pools, pool) < 0) {
		free(pool);
		return -ENOMEM;
	}
	*ret_pool = pool;
	return map_put(&calls->by_process, key, calls->pools.n - 1);
}

static int make_thread(struct ptd_calls *calls, const struct ptd_slice *slice,
		       struct callthread **ret_thread)
{
	struct callthread *thread;
	struct stackpool *pool = NULL;
	int r = 0;

	if (calls->n_alive == PTD_CALLS_THREADS_MAX)
		r = end_oldest(calls);
	if (r == 0)
		r = get_pool(calls, slice, &pool);
	if (r < 0)
		return r;
	thread = calloc(1, sizeof(*thread));
	if (!thread || vec_push(&calls->threads, &thread->shown) < 0) {
		free(thread);
		return -ENOMEM;
	}
	thread->shown.id = (uint32_t)(calls->threads.n - 1);
	r = callthread_init(thread, &calls->world, pool, slice);
	put_in(calls, thread);
	*ret_thread = thread;
	return r < 0 ? r : map_put(&calls->by_tid, key_of(slice), thread->shown.id);
}

/* Find the thread of a slice. One that executes a new program is another thread. */
static int find_thread(struct ptd_calls *calls, const struct ptd_slice *slice,
		       struct callthread **ret_thread)
{
	const uint64_t *id = map_get(&calls->by_tid, key_of(slice));
	struct callthread *thread = id ? thread_at(calls, (size_t)*id) : NULL;
	int r;

	if (thread && is_same(&thread->shown, slice)) {
		*ret_thread = thread;
		return 0;
	}
	if (thread && !thread->shown.ended) {
		r = end_thread(calls, thread);
		if (r < 0)
			return r;
		callthread_forget(thread, &calls->world);
	}
	return make_thread(calls, slice, ret_thread);
}

/* --- calls ------------------------------------------------------------------------------------ */

static void forget_given(struct ptd_calls *calls)
{
	calls->world.list.calls.n = 0;
	calls->inliner.calls.n = 0;
	calls->pieces.n = calls->next_piece = 0;
}

/* Find the next calls of the batch. Return: 0 or -ENOMEM. */
static int take_more(struct ptd_calls *calls)
{
	const struct ptd_batch *batch = calls->batch;
	const size_t first = calls->world.list.calls.n;
	const int r = callthread_take(calls->thread, &calls->world, batch, &calls->at);

	if (callthread_has_taken(batch, &calls->at))
		calls->batch = NULL;
	return r < 0 ? r : add_piece(calls, calls->thread, batch, first);
}

/* The last batch is over: calls in it that were not asked for are not given out. */
static int end_batch(struct ptd_calls *calls)
{
	int r = 0;

	forget_given(calls);
	while (calls->batch && r == 0) {
		r = take_more(calls);
		forget_given(calls);
	}
	return r;
}

/* Take the batch @batch, which is of @logged, unless that is NULL. */
static int begin_batch(struct ptd_calls *calls, const struct ptd_batch *batch,
		       const struct ptd_logged *logged)
{
	struct callthread *thread = calls->thread;
	int r;

	r = end_batch(calls);
	if (r < 0)
		return r;
	if (!thread || thread->slice != batch->slice->id ||
	    !is_same(&thread->shown, batch->slice)) {
		r = find_thread(calls, batch->slice, &thread);
		if (r < 0)
			return r;
		calls->thread = thread;
	}
	if (thread != calls->newest) {
		take_out(calls, thread);
		put_in(calls, thread);
	}
	callthread_begin(thread, batch);
	calls->batch = batch;
	calls->at = (struct call_position){ .logged = logged };
	/* A log says itself what was called. */
	calls->is_inlining &= !logged;
	inliner_begin(&calls->inliner);
	return 0;
}

int ptd_calls_batch(struct ptd_calls *calls, const struct ptd_batch *batch)
{
	return begin_batch(calls, batch, NULL);
}

int ptd_calls_logged(struct ptd_calls *calls, const struct ptd_logged *logged)
{
	const int r = begin_batch(calls, &logged->batch, logged);

	if (r == 0 && calls->thread->shown.t_last == 0 && logged->n_calls > 0)
		calls->thread->shown.t_first = logged->calls[0].t;
	return r;
}

int ptd_calls_finish(struct ptd_calls *calls)
{
	const int r = end_batch(calls);

	calls->is_finished = true;
	return r;
}

int ptd_calls_next(struct ptd_calls *calls, const struct ptd_call_batch **ret_batch)
{
	const struct piece *piece;
	int r = 0;

	while (calls->next_piece == calls->pieces.n) {
		forget_given(calls);
		if (calls->batch) {
			r = take_more(calls);
		} else if (calls->is_finished && calls->next_end < calls->threads.n) {
			/* One thread at a time, since all of them may have much to leave. */
			struct callthread *thread = thread_at(calls, calls->next_end++);

			r = thread->shown.ended ? 0 : end_thread(calls, thread);
		} else {
			return PTD_END;
		}
		if (r < 0)
			return r;
	}
	piece = &calls->pieces.items[calls->next_piece++];
	calls->given = (struct ptd_call_batch){
		.batch = piece->batch,
		.thread = &piece->thread->shown,
		.calls =
		    (piece->is_plain ? calls->world.list.calls.items : calls->inliner.calls.items) +
		    piece->first,
		.n_calls = piece->n,
	};
	*ret_batch = &calls->given;
	return 0;
}

/* --- what is known ---------------------------------------------------------------------------- */

const struct ptd_call_thread *const *ptd_calls_threads(const struct ptd_calls *calls, size_t *ret_n)
{
	*ret_n = calls->threads.n;
	return calls->threads.items;
}

const struct ptd_function *const *ptd_calls_functions(const struct ptd_calls *calls, size_t *ret_n)
{
	*ret_n = calls->world.functions.all.n;
	return calls->world.functions.all.items;
}

const struct ptd_calls_stats *ptd_calls_stats(const struct ptd_calls *calls)
{
	return &calls->world.list.stats;
}

/* Add what is to be shown of @frame, which goes on at @ip. */
static int show_frame(struct ptd_calls *calls, const struct frame *frame, uint64_t ip, bool hidden)
{
	return vec_push(&calls->frames,
			{ .function = calls->world.functions.all.items[frame->function],
			  .how = hidden ? PTD_CALL_BY_GAP : frame->how,
			  .ambiguous = frame->ambiguous,
			  .depth = frame->depth,
			  .t = frame->t,
			  .ip = ip });
}

int ptd_calls_stack(struct ptd_calls *calls, uint32_t id, const struct ptd_frame **ret_frames,
		    size_t *ret_n)
{
	const struct callthread *thread = thread_at(calls, id);
	const struct callstack *stack = thread->stack;
	const size_t n = thread->shown.ended ? thread->n_at_end : stack->frames.n;
	const struct ptd_run *last = &thread->last;
	uint64_t ip = n > 0 && last->block ? ptd_run_ip(last, last->n - 1u) : 0;
	int r = 0;

	calls->frames.n = 0;
	*ret_frames = NULL;
	*ret_n = 0;
	if (!stack)
		return 0;
	for (size_t i = n; i-- > 0 && r == 0;) {
		const struct frame *frame = &stack->frames.items[i];

		/* A call within a function does not change where that stands. */
		if (frame->kind == FRAME_LOCAL)
			continue;
		r = show_frame(calls, frame, ip, false);
		ip = frame->ret;
	}
	for (size_t i = stack->hidden.n; i-- > 0 && r == 0; ip = stack->hidden.items[i].ret)
		r = show_frame(calls, &stack->hidden.items[i], ip, true);
	*ret_frames = calls->frames.items;
	*ret_n = calls->frames.n;
	return r;
}
