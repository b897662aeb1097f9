/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/dlfilter/branchsource.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/util/batchsource.h"
#include "util/arena.h"
#include "util/map.h"
#include "util/vec.h"

/* Most runs of a batch, but for those of one more branch. */
#define BATCH_RUNS 4096

/* Where a CPU is; or a thread, where the CPU is not known. */
struct track {
	bool has_begun;
	uint64_t ip; /* where the last branch led to; 0: tracing has ended, or has not begun */
	uint64_t t;  /* of that */
};

struct known_thread {
	uint32_t pid;
	uint32_t space;
	const char *comm; /* NULL: not known */
	uint64_t left_at; /* address behind the instruction by which tracing ended; or 0 */
};

struct branchsource {
	struct batchsource source; /* the first field */
	struct branchcode *code;
	struct map track_of; /* see track_key() → index */
	VEC(struct track) tracks;
	struct map thread_of; /* tid → index */
	VEC(struct known_thread) threads;
	struct map space_of; /* pid → the id of its space */
	uint32_t n_spaces;
	struct map comms; /* hash → string in the arena */
	struct arena arena;

	/* The batch that is being made, or that was given out. */
	struct ptd_slice slice;
	bool has_slice, is_new, is_given;
	VEC(struct ptd_run) runs;
	VEC(struct ptd_mark) marks;
	struct batchsource_count count;
};

static struct branchsource *of(struct batchsource *source)
{
	return (struct branchsource *)source;
}

/* --- batches ---------------------------------------------------------------------------------- */

static int start_stream(struct batchsource *batches, char **reterr_message)
{
	batchsource_reset(batches);
	return 0;
}

static bool is_empty(const struct branchsource *source)
{
	return source->runs.n == 0 && source->marks.n == 0;
}

static int next_batch(struct batchsource *batches, struct ptd_batch *ret_batch,
		      struct ptd_slice **ret_slice, bool *ret_new, char **reterr_message)
{
	struct branchsource *source = of(batches);
	int r;

	if (source->is_given) {
		source->runs.n = source->marks.n = 0;
		source->is_given = false;
	}
	if (is_empty(source))
		return 1;
	r = batchsource_count(batches, &source->count);
	if (r < 0)
		return r;
	*ret_batch = (struct ptd_batch){ .slice = &source->slice,
					 .runs = source->runs.items,
					 .n_runs = source->runs.n,
					 .marks = source->marks.items,
					 .n_marks = source->marks.n };
	ret_batch->symbols = branchcode_symbols(source->code, &ret_batch->n_symbols);
	*ret_slice = &source->slice;
	*ret_new = source->is_new;
	source->is_new = false;
	source->is_given = true;
	return 0;
}

static int add_mark(struct branchsource *source, enum ptd_mark_kind kind, uint64_t t, uint64_t ip,
		    uint64_t value)
{
	return vec_push(&source->marks,
			{ .run = source->runs.n, .kind = kind, .t = t, .ip = ip, .value = value });
}

static int add_gap(struct branchsource *source, enum ptd_gap_reason reason, uint64_t t, uint64_t ip)
{
	source->count.n_gaps[reason]++;
	return vec_push(
	    &source->marks,
	    { .run = source->runs.n, .kind = PTD_MARK_GAP, .reason = reason, .t = t, .ip = ip });
}

static int add_runs(struct branchsource *source, const struct branch_way *way, uint64_t start,
		    uint64_t t)
{
	const int r = vec_reserve(&source->runs, way->n_runs);

	if (r < 0)
		return r;
	for (size_t i = 0; i < way->n_runs; i++) {
		struct ptd_run *run = &source->runs.items[source->runs.n++];

		*run = way->runs[i];
		run->base += start;
		run->t = t;
	}
	source->count.n_insns += way->n_insns;
	return 0;
}

/* --- threads ---------------------------------------------------------------------------------- */

static int keep_comm(struct branchsource *source, const char *comm, const char **ret_kept)
{
	const uint64_t hash = map_hash(comm, strlen(comm));
	const uint64_t *known = map_get(&source->comms, hash);
	const char *kept = known ? (const char *)(uintptr_t)*known : NULL;

	if (!kept || strcmp(kept, comm) != 0) {
		kept = arena_strdup(&source->arena, comm);
		if (!kept || map_put(&source->comms, hash, (uintptr_t)kept) < 0)
			return -ENOMEM;
	}
	*ret_kept = kept;
	return 0;
}

static int find_thread(struct branchsource *source, const struct branch *branch,
		       struct known_thread **ret_thread)
{
	const uint64_t *known = map_get(&source->thread_of, branch->tid);
	int r;

	if (!known) {
		r = vec_push(&source->threads, { .pid = PTD_ID_UNKNOWN });
		if (r == 0)
			r = map_put(&source->thread_of, branch->tid, source->threads.n - 1);
		if (r < 0)
			return r;
	}
	*ret_thread = &source->threads.items[known ? *known : source->threads.n - 1];
	return 0;
}

/* Return: whether the thread executes another program now, as far as that can be seen. */
static bool has_executed(const struct known_thread *thread, const struct branch *branch)
{
	return branch->from == 0 && branch->to != thread->left_at && branch->comm && thread->comm &&
	       strcmp(thread->comm, branch->comm) != 0;
}

/* Bring what is known of the thread up to date. */
static int follow_thread(struct branchsource *source, struct known_thread *thread,
			 const struct branch *branch)
{
	const bool is_other = has_executed(thread, branch) && thread->pid == branch->pid;
	const uint64_t *space = map_get(&source->space_of, branch->pid);
	int r = 0;

	if (!space || is_other)
		r = map_put(&source->space_of, branch->pid, source->n_spaces++);
	if (r < 0)
		return r;
	thread->pid = branch->pid;
	thread->space = (uint32_t)*map_get(&source->space_of, branch->pid);
	if (branch->comm && (!thread->comm || strcmp(thread->comm, branch->comm) != 0))
		r = keep_comm(source, branch->comm, &thread->comm);
	return r;
}

static bool is_of_slice(const struct branchsource *source, const struct known_thread *thread,
			const struct branch *branch)
{
	const struct ptd_slice *slice = &source->slice;

	return source->has_slice && slice->cpu == branch->cpu && slice->tid == branch->tid &&
	       slice->pid == branch->pid && slice->space == thread->space &&
	       slice->comm == thread->comm;
}

static void begin_slice(struct branchsource *source, const struct known_thread *thread,
			const struct branch *branch)
{
	source->slice = (struct ptd_slice){ .cpu = branch->cpu,
					    .pid = branch->pid,
					    .tid = branch->tid,
					    .space = thread->space,
					    .t0 = branch->t,
					    .comm = thread->comm };
	source->has_slice = source->is_new = true;
}

/* --- branches --------------------------------------------------------------------------------- */

static uint64_t track_key(const struct branch *branch)
{
	return branch->cpu != UINT32_MAX ? branch->cpu : UINT64_C(1) << 32 | branch->tid;
}

static int find_track(struct branchsource *source, const struct branch *branch,
		      struct track **ret_track)
{
	const uint64_t key = track_key(branch), *known = map_get(&source->track_of, key);
	int r;

	if (!known) {
		r = vec_push(&source->tracks, {});
		if (r == 0)
			r = map_put(&source->track_of, key, source->tracks.n - 1);
		if (r < 0)
			return r;
	}
	*ret_track = &source->tracks.items[known ? *known : source->tracks.n - 1];
	return 0;
}

/* Add what executed from @start up to the branch. Return: 0, or -ENOMEM. */
static int add_code(struct branchsource *source, const struct branch *branch,
		    const struct branch_memory *memory, uint64_t start, uint64_t t,
		    uint8_t *ret_last_size)
{
	const bool with_end = !branch->is_async;
	const struct branch_way *way;
	int r;

	*ret_last_size = 0;
	if (start == branch->from && !with_end)
		return 0;
	r = branchcode_find(source->code, memory, start, branch->from, with_end, &branch->at, &way);
	if (r > 0) {
		r = add_gap(source, r == BRANCHCODE_UNKNOWN ? PTD_GAP_NO_CODE : PTD_GAP_BAD_FLOW, t,
			    start);
		/* The branch itself did execute. */
		if (r == 0 && with_end && start != branch->from)
			r = branchcode_find(source->code, memory, branch->from, branch->from, true,
					    &branch->at, &way);
		else if (r == 0)
			return 0;
		if (r > 0)
			return 0;
		start = branch->from;
		t = branch->t;
	}
	if (r == 0)
		r = add_runs(source, way, start, t);
	if (r == 0)
		*ret_last_size = way->last_size;
	return r;
}

static int add_end(struct branchsource *source, const struct branch *branch)
{
	if (branch->aborts)
		return add_mark(source, PTD_MARK_TSX, branch->t, branch->from, PTD_TSX_ABORT);
	if (branch->is_async)
		return add_mark(source, PTD_MARK_ASYNC, branch->t, branch->from, 0);
	return branch->to ? 0 : add_mark(source, PTD_MARK_OFF, branch->t, 0, 0);
}

static int take_branch(struct branchsource *source, struct track *track,
		       struct known_thread *thread, const struct branch *branch,
		       const struct branch_memory *memory)
{
	const uint64_t t = branch->t > track->t ? branch->t : track->t;
	uint8_t last_size = 0;
	int r = 0;

	if (branch->from == 0 && track->ip)
		r = add_gap(source, PTD_GAP_LOST, t, 0);
	else if (branch->from && !track->ip && track->has_begun)
		r = add_gap(source, PTD_GAP_LOST, t, 0);
	if (r == 0 && branch->from)
		r = add_code(source, branch, memory, track->ip ?: branch->from,
			     track->ip ? track->t : t, &last_size);
	if (r == 0 && branch->from)
		r = add_end(source, branch);
	thread->left_at = branch->to ? 0 : branch->from + last_size;
	*track = (struct track){ .has_begun = true, .ip = branch->to, .t = t };
	source->count.t_last = t;
	return r;
}

int branchsource_add(struct batchsource *batches, const struct branch *branch,
		     const struct branch_memory *memory)
{
	struct branchsource *source = of(batches);
	struct known_thread *thread;
	struct track *track;
	int r;

	r = find_thread(source, branch, &thread);
	if (r == 0)
		r = follow_thread(source, thread, branch);
	if (r < 0)
		return r;
	if (!is_of_slice(source, thread, branch)) {
		if (!is_empty(source))
			return BRANCHSOURCE_FULL;
		begin_slice(source, thread, branch);
	}
	if (source->runs.n >= BATCH_RUNS || source->marks.n >= BATCH_RUNS)
		return BRANCHSOURCE_FULL;
	if (is_empty(source))
		source->count =
		    (struct batchsource_count){ .cpu = branch->cpu, .t_first = branch->t };
	r = find_track(source, branch, &track);
	return r < 0 ? r : take_branch(source, track, thread, branch, memory);
}

/* --- its end and beginning -------------------------------------------------------------------- */

static void free_source(struct batchsource *batches)
{
	struct branchsource *source = of(batches);

	branchcode_free(source->code);
	map_deinit(&source->track_of);
	map_deinit(&source->thread_of);
	map_deinit(&source->space_of);
	map_deinit(&source->comms);
	arena_deinit(&source->arena);
	vec_deinit(&source->tracks);
	vec_deinit(&source->threads);
	vec_deinit(&source->runs);
	vec_deinit(&source->marks);
	free(source);
}

static const struct batchsource_ops source_ops = {
	.start = start_stream,
	.next = next_batch,
	.free = free_source,
};

int branchsource_new(struct objects *objects, struct resolver *resolver,
		     struct batchsource **ret_source)
{
	struct branchsource *source = calloc(1, sizeof(*source));
	int r;

	if (!source)
		return -ENOMEM;
	source->source.ops = &source_ops;
	source->source.clock = PTD_CLOCK_NS;
	r = branchcode_new(objects, resolver, &source->code);
	if (r < 0) {
		free(source);
		return r;
	}
	*ret_source = &source->source;
	return 0;
}
