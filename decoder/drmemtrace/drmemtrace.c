/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The sink "drmemtrace": a directory that DynamoRIO's trace analysis tools read (-indir), with a
 * file for each thread, named after its last name, or for each core; the schedule of all; and
 * tables of the symbols, of the mappings and of the functions.
 *
 * Timestamps are real time if the recorder's clock is known. Otherwise (a bare PT stream) they
 * count ticks of the stream's clock since the first slice, or are all the same if the stream has no
 * clock.
 *
 * Only the form for x86-64 is written. Its readers take all code for 64-bit code, so 16-bit and
 * 32-bit code is left out, like a hole. The kernel's code is left out, too, unless it is asked for,
 * but makes no hole: several of DynamoRIO's tools do not take traces with it.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "decoder/drmemtrace/calls.h"
#include "decoder/drmemtrace/code.h"
#include "decoder/drmemtrace/expansion.h"
#include "decoder/drmemtrace/file.h"
#include "decoder/drmemtrace/markers.h"
#include "decoder/drmemtrace/out.h"
#include "decoder/drmemtrace/record.h"
#include "decoder/drmemtrace/schedule.h"
#include "decoder/drmemtrace/tables.h"
#include "decoder/drmemtrace/thread.h"
#include "decoder/drmemtrace/transition.h"
#include "decoder/sink/sink.h"
#include "decoder/sink/sinks.h"
#include "util/map.h"
#include "util/vec.h"

/* --- memtrace copy ---------------------------------------------------------------------------- */

/* Writes runs by copying the records of their expansion, where nothing else has to be written. */

/* Return: whether the records of a run that follows are all that has to be written before it. */
static bool can_copy(const struct memtrace_thread *thread)
{
	return thread->started && !thread->gap && !thread->xfer_due &&
	       thread->after == MEMTRACE_AFTER_INSN && !(thread->pending && thread->pending_bytes);
}

/* The records of run @i and of those before it were copied. */
static void set_copied(struct memtrace_thread *thread, const struct ptd_batch *batch,
		       const struct memtrace_expansion *expansion, size_t i)
{
	const struct ptd_run *run = &batch->runs[i], *before = &batch->runs[i - 1];
	const size_t n_own = run->n - expansion->runs[i].waits;
	/* Its last record is of this instruction. */
	const struct ptd_insn *insn = n_own ? &run->block->insns[run->first + n_own - 1]
					    : &before->block->insns[before->first + before->n - 1];

	memtrace_thread_set_now(thread, run->t);
	memtrace_thread_set_last(thread, before);
	memtrace_thread_set_last(thread, run);
	thread->after_branch = memtrace_insn_branches(insn->iclass);
	thread->pending = expansion->runs[i].waits;
	thread->pending_bytes = false;
}

/* What is copied next. */
struct copying {
	const struct ptd_batch *batch;
	const struct memtrace_expansion *expansion;
	struct memtrace_known *known;
	uint32_t start;   /* offset of the first record */
	uint64_t n_insns; /* in the file and in the records up to here */
	bool waits;       /* the branch before run @i comes with its records */
};

/* Return: whether run @i, which follows the one before, can be copied, too. */
static bool can_copy_run(struct memtrace_thread *thread, const struct copying *c, size_t i)
{
	const struct ptd_run *run = &c->batch->runs[i];
	const struct memtrace_expansion_run *e = &c->expansion->runs[i];

	memtrace_thread_set_now(thread, run->t);
	return !memtrace_thread_is_pair_due(thread) &&
	       c->n_insns + c->waits + run->n <= thread->file.chunk_end &&
	       e->end - c->start <= MEMTRACE_OUT_BUFFER &&
	       memtrace_file_is_announced(&thread->file, c->known, e->site, run);
}

/*
 * Copy only the branch before run @i, if that comes with its records, and write the markers of
 * calls behind it.
 */
static int copy_branch(struct memtrace_thread *thread, struct copying *c)
{
	const bool is_cond = memtrace_insn_class(&thread->last) == PTD_INSN_JUMP_COND;
	const uint32_t size = (is_cond ? 1 : 2) * sizeof(struct memtrace_record);
	int r;

	if (c->waits) {
		r = memtrace_file_records(&thread->file, c->expansion->records + c->start, size, 1,
					  thread->last.block->insns[thread->last.index].symbol);
		if (r == 0)
			r = memtrace_thread_note_return(thread, &thread->last);
		if (r < 0)
			return r;
		c->start += size;
		c->n_insns++;
		c->waits = false;
		thread->pending = false;
		thread->after_branch = true;
	}
	return memtrace_thread_write_calls(thread);
}

/* Note the calls and returns among the records of run @i, and of the branch before it. */
static int note_returns(struct memtrace_thread *thread, const struct copying *c, size_t i)
{
	const struct memtrace_expansion_run *e = &c->expansion->runs[i];
	const struct ptd_run *run = &c->batch->runs[i];
	int r = 0;

	if (c->waits && e[-1].turns)
		r = memtrace_thread_note_return(
		    thread, &(struct memtrace_insn){ run[-1].block, run[-1].base,
						     run[-1].first + run[-1].n - 1u });
	if (r == 0 && e->turns && !e->waits)
		r = memtrace_thread_note_return(
		    thread,
		    &(struct memtrace_insn){ run->block, run->base, run->first + run->n - 1u });
	return r;
}

/*
 * Write runs of @batch, from run @i on and before run @end, by copying their records from
 * @expansion: those that follow the run before, for as long as nothing else has to be written but
 * the calls that stand before run @i. @known is of this batch and of thread->file. @ret_n is their
 * number, which may be 0.
 */
static int memtrace_thread_copy(struct memtrace_thread *thread, const struct ptd_batch *batch,
				const struct memtrace_expansion *expansion,
				struct memtrace_known *known, size_t i, size_t end, size_t *ret_n)
{
	struct copying c = {
		.batch = batch,
		.expansion = expansion,
		.known = known,
		.start = i > 0 ? expansion->runs[i - 1].end : 0,
		.n_insns = thread->file.n_insns,
		.waits = thread->pending,
	};
	const struct ptd_run *last;
	size_t at = i;
	int r;

	*ret_n = 0;
	if (!can_copy(thread))
		return 0;
	if (end > batch->n_runs)
		end = batch->n_runs;
	if (thread->calls.items.n > 0) {
		/* Those that are not written now stand before the next run, too. */
		end = i + 1;
		if (!expansion->runs[i].follows || !can_copy_run(thread, &c, i))
			return 0;
		r = copy_branch(thread, &c);
		if (r < 0)
			return r;
	}
	for (; at < end && expansion->runs[at].follows; at++) {
		const struct memtrace_expansion_run *e = &expansion->runs[at];

		if (!can_copy_run(thread, &c, at))
			break;
		r = note_returns(thread, &c, at);
		if (r < 0)
			return r;
		c.n_insns += c.waits;
		c.waits = e->waits;
		c.n_insns += (uint64_t)batch->runs[at].n - c.waits;
	}
	if (at == i)
		return 0;
	last = &batch->runs[at - 1];
	r = memtrace_file_records(
	    &thread->file, expansion->records + c.start, expansion->runs[at - 1].end - c.start,
	    c.n_insns - thread->file.n_insns, last->block->insns[last->first + last->n - 1].symbol);
	if (r < 0)
		return r;
	set_copied(thread, batch, expansion, at - 1);
	*ret_n = at - i;
	return 0;
}

/* --- drmemtrace ------------------------------------------------------------------------------- */

/*
 * How many instructions of code are remembered, at some 60 bytes each. Beyond that number all code
 * is forgotten, and its bytes are announced again when it runs.
 */
#define CODE_INSNS_MAX 4000000u

/* The end of a thread. */
struct ending {
	uint64_t t; /* UINT64_MAX: it went on after all */
	uint32_t pid, tid;
};

struct drmemtrace {
	struct sink_config config; /* its descriptor is the directory */
	struct memtrace_directory directory;
	struct memtrace_calls calls;
	bool begun; /* directory.clock.t_first is set */
	int error;  /* of a write: what is unfinished stays so */

	VEC(struct ending) endings; /* in the order of time */
	size_t n_ended;             /* those that are over */
	struct map endings_by_id;   /* pid << 32 | tid → index of the last one */

	struct map comms; /* pid << 32 | tid → the last name of the thread, the decoder's */
	VEC(struct memtrace_thread *) threads;
	struct map threads_by_id;  /* pid << 32 | tid → index */
	struct map threads_by_cpu; /* tid << 32 | cpu → index; for ids that threads share */
	struct map cores;          /* pid << 32 | tid → CPU of its last stay; if by cores */

	VEC(struct memtrace_code *) codes;
	struct map codes_by_space; /* space → index */
	size_t n_code_insns;       /* in all of them */
	uint64_t n_codes_made;

	struct memtrace_known known; /* of the batch that is written */
	uint64_t n_kernel, n_32;     /* instructions that were left out: the kernel's, and 32-bit */
	char omission[512];
};

static void free_codes(struct drmemtrace *sink)
{
	vec_deinit_each(&sink->codes, code, memtrace_code_free(*code));
	map_deinit(&sink->codes_by_space);
	sink->n_code_insns = 0;
}

static void drmemtrace_close(void *state)
{
	struct drmemtrace *sink = state;

	vec_deinit_each(&sink->threads, thread, memtrace_thread_free(*thread));
	vec_deinit(&sink->endings);
	map_deinit(&sink->endings_by_id);
	map_deinit(&sink->threads_by_id);
	map_deinit(&sink->threads_by_cpu);
	map_deinit(&sink->cores);
	free_codes(sink);
	free(sink->directory.operands);
	vec_deinit(&sink->known.n);
	map_deinit(&sink->comms);
	memtrace_calls_deinit(&sink->calls);
	memtrace_kernel_deinit(&sink->directory.kernel);
	memtrace_tables_deinit(&sink->directory.tables);
	memtrace_out_pool_deinit(&sink->directory.pool);
	memtrace_schedule_deinit(&sink->directory.schedule);
}

static int drmemtrace_open(void *state, const struct sink_config *config, struct output *output)
{
	struct drmemtrace *sink = state;
	struct memtrace_directory *directory = &sink->directory;
	const char *compress = sink_option(config, "compress");
	int r;

	sink->config = *config;
	directory->decoder = config->decoder;
	directory->clock.clock = config->info->clock;
	directory->clock.realtime_offset_ns = config->info->realtime_offset_ns;
	memtrace_tables_init(&directory->tables, &sink->config, &directory->clock);
	directory->whole_system = sink_option(config, "whole-system");
	directory->by_cores = sink_option(config, "core-sharded");
	if (directory->by_cores && directory->whole_system)
		return -EINVAL;
	if (sink_option(config, "addresses")) {
		directory->operands = calloc(1, sizeof(*directory->operands));
		if (!directory->operands)
			return -ENOMEM;
	}
	/* A stay begins anywhere, so that the markers of functions would lack what they state. */
	r = memtrace_calls_init(&sink->calls, config->info,
				directory->by_cores ? "none" : sink_option(config, "func-markers"),
				directory->whole_system);
	if (r == 0)
		r = memtrace_out_pool_init(&directory->pool, config->fd, config->room,
					   compress && strcmp(compress, "none") == 0,
					   config->threads);
	directory->marks_calls = sink->calls.layer;
	return r;
}

/*
 * Note when threads end, so that what is kept for them is freed then. A thread that has
 * later records was not at its end: the leader's number passes to the thread that executes a
 * program, and numbers are used again.
 */
static int note_ending(struct drmemtrace *sink, const struct ptd_sideband *record)
{
	const uint64_t id = (uint64_t)record->pid << 32 | record->tid;
	const uint64_t *known;
	int r;

	if (record->kind == PTD_SIDEBAND_COMM || record->kind == PTD_SIDEBAND_FORK) {
		known = map_get(&sink->endings_by_id, id);
		if (known)
			sink->endings.items[*known].t = UINT64_MAX;
		return 0;
	}
	/* With the kernel's code, a thread goes on until another one takes its place. */
	if (record->kind != PTD_SIDEBAND_EXIT || sink->directory.whole_system ||
	    sink->directory.by_cores)
		return 0;
	r = map_put(&sink->endings_by_id, id, sink->endings.n);
	return r < 0 ? r
		     : vec_push(&sink->endings,
				{ .t = record->t, .pid = record->pid, .tid = record->tid });
}

/* All records come before the first file is made, so that the last names are known by then, and
 * whether there are numbers of system calls. */
static int take_sideband(void *state, const struct ptd_sideband *record)
{
	struct drmemtrace *sink = state;
	const int r = note_ending(sink, record);

	if (r < 0)
		return r;
	if (record->kind != PTD_SIDEBAND_COMM || !record->name)
		return memtrace_kernel_take(&sink->directory.kernel, record);
	return map_put(&sink->comms, (uint64_t)record->pid << 32 | record->tid,
		       (uintptr_t)record->name);
}

/* Return: the name of the thread for its file; or NULL. */
static const char *comm_of(const struct drmemtrace *sink, const struct ptd_slice *slice)
{
	const uint64_t *known = map_get(&sink->comms, (uint64_t)slice->pid << 32 | slice->tid);

	return known ? (const char *)(uintptr_t)*known : slice->comm;
}

static int find_thread(struct drmemtrace *sink, const struct ptd_slice *slice,
		       struct memtrace_thread **ret_thread)
{
	/*
	 * Each CPU has an idle thread, and those that the records do not name run on several CPUs
	 * at once: their stays on one CPU are as much of a thread as can be known.
	 */
	const bool by_cores = sink->directory.by_cores;
	const bool shared = by_cores || slice->tid == 0 || slice->tid == PTD_ID_UNKNOWN;
	struct map *map = shared ? &sink->threads_by_cpu : &sink->threads_by_id;
	const uint64_t key = by_cores ? slice->cpu
			     : shared ? (uint64_t)slice->tid << 32 | slice->cpu
				      : (uint64_t)slice->pid << 32 | slice->tid;
	const uint64_t *index = map_get(map, key);
	_cleanup_(memtrace_thread_freep) struct memtrace_thread *thread = NULL;

	if (index && !sink->threads.items[*index]->ended) {
		*ret_thread = sink->threads.items[*index];
		return 0;
	}

	thread = memtrace_thread_new(slice, comm_of(sink, slice), &sink->directory);
	if (!thread || vec_push(&sink->threads, thread) < 0)
		return -ENOMEM;
	*ret_thread = TAKE(thread);
	return map_put(map, key, sink->threads.n - 1);
}

static int find_code(struct drmemtrace *sink, const struct ptd_slice *slice,
		     struct memtrace_code **ret_code)
{
	_cleanup_(memtrace_code_freep) struct memtrace_code *code = NULL;
	const uint64_t *index;

	if (sink->n_code_insns > CODE_INSNS_MAX)
		free_codes(sink);

	index = map_get(&sink->codes_by_space, slice->space);
	if (index && sink->codes.items[*index]) {
		*ret_code = sink->codes.items[*index];
		return 0;
	}

	code = memtrace_code_new(++sink->n_codes_made);
	if (!code || vec_push(&sink->codes, code) < 0)
		return -ENOMEM;
	code->pid = slice->pid;
	*ret_code = TAKE(code);
	return map_put(&sink->codes_by_space, slice->space, sink->codes.n - 1);
}

/* Write run @i, or some runs before run @end that can be copied. @ret_n is how many. */
static int write_runs(struct drmemtrace *sink, struct memtrace_thread *thread,
		      const struct ptd_batch *batch, const struct memtrace_expansion *expansion,
		      size_t i, size_t end, size_t *ret_n)
{
	const struct ptd_run *run = &batch->runs[i];
	int r;

	*ret_n = 1;
	if (run->block->mode != 64) {
		sink->n_32 += run->n;
		memtrace_thread_skip(thread);
		return 0;
	}
	if (memtrace_is_kernel(run->base) && !sink->directory.whole_system) {
		sink->n_kernel += run->n;
		memtrace_thread_leave_by_insn(thread);
		return 0;
	}
	r = memtrace_thread_copy(thread, batch, expansion, &sink->known, i, end, ret_n);
	if (r < 0 || *ret_n > 0)
		return r;
	*ret_n = 1;
	return memtrace_thread_run(thread, batch, run);
}

static int write_batch(struct drmemtrace *sink, struct memtrace_thread *thread,
		       const struct ptd_batch *batch, const struct memtrace_expansion *expansion)
{
	size_t mark = 0, next_call, n;
	int r;

	r = memtrace_file_begin_batch(&thread->file, expansion->n_sites, &sink->known);
	for (size_t run = 0; r == 0; run += n) {
		r = memtrace_calls_take(&sink->calls, run, &thread->calls, &next_call);
		if (r < 0)
			return r;
		for (; mark < batch->n_marks && batch->marks[mark].run <= run; mark++) {
			r = memtrace_thread_mark(thread, &batch->marks[mark]);
			if (r < 0)
				return r;
		}
		if (run == batch->n_runs)
			break;
		r = write_runs(sink, thread, batch, expansion, run, next_call, &n);
	}
	return r;
}

static int drmemtrace_remember(const void *state, void **ret_memory)
{
	const struct drmemtrace *sink = state;

	*ret_memory = memtrace_memory_new(sink->directory.operands);
	return *ret_memory ? 0 : -ENOMEM;
}

static void drmemtrace_forget(void *memory)
{
	(void)memtrace_memory_free(memory);
}

static int drmemtrace_expand(const void *state, void *memory, const struct ptd_batch *batch,
			     struct output *output)
{
	return memtrace_expand(memory, batch, output);
}

/* The process has ended: forget its code. */
static void free_codes_of(struct drmemtrace *sink, uint32_t pid)
{
	for (size_t i = 0; i < sink->codes.n; i++) {
		struct memtrace_code *code = sink->codes.items[i];

		if (!code || code->pid != pid)
			continue;
		sink->n_code_insns -= code->n_insns;
		sink->codes.items[i] = memtrace_code_free(code);
	}
}

/* End the files of threads that ended before @t. Stays come in the order in which they began, so no
 * more is to come of these threads. */
static int end_threads(struct drmemtrace *sink, uint64_t t)
{
	int r = 0;

	for (; r == 0 && sink->n_ended < sink->endings.n; sink->n_ended++) {
		const struct ending *e = &sink->endings.items[sink->n_ended];
		const uint64_t *index =
		    map_get(&sink->threads_by_id, (uint64_t)e->pid << 32 | e->tid);

		if (e->t == UINT64_MAX)
			continue;
		if (e->t >= t)
			break;
		if (index)
			r = memtrace_thread_finish(sink->threads.items[*index]);
		if (e->pid == e->tid)
			free_codes_of(sink, e->pid);
	}
	return r;
}

/*
 * In the file of a core: unless @slice goes on where the thread was, it begins anew. It does not if
 * another thread was there, or this one was on another core meanwhile.
 */
static int begin_stay(struct drmemtrace *sink, struct memtrace_thread *thread,
		      const struct ptd_slice *slice)
{
	const uint64_t id = (uint64_t)slice->pid << 32 | slice->tid;
	const uint64_t *core = map_get(&sink->cores, id);
	const bool goes_on =
	    core && *core == slice->cpu && thread->pid == slice->pid && thread->tid == slice->tid;
	int r;

	r = map_put(&sink->cores, id, slice->cpu);
	if (r < 0 || thread->slice == slice->id || goes_on)
		return r;
	return memtrace_thread_switch(thread, slice);
}

static int write_expanded(struct drmemtrace *sink, const struct ptd_batch *batch, const void *bytes)
{
	const struct memtrace_expansion expansion = memtrace_expansion_at(bytes, batch->n_runs);
	struct memtrace_thread *thread;
	struct memtrace_code *code;
	size_t n_before;
	int r;

	if (!sink->begun)
		sink->directory.clock.t_first = batch->slice->t0;
	sink->begun = true;
	/* Stays come in the order in which they began. */
	memtrace_schedule_settle(&sink->directory.schedule,
				 memtrace_stamp(&sink->directory.clock, batch->slice->t0));

	r = end_threads(sink, batch->slice->t0);
	if (r < 0)
		return r;
	r = find_thread(sink, batch->slice, &thread);
	if (r < 0)
		return r;
	r = sink->directory.by_cores ? begin_stay(sink, thread, batch->slice) : 0;
	if (r < 0)
		return r;
	r = find_code(sink, batch->slice, &code);
	if (r < 0)
		return r;
	r = memtrace_thread_begin(thread, batch->slice, code);
	if (r == 0)
		r = memtrace_calls_begin(&sink->calls, batch);
	if (r < 0)
		return r;

	n_before = code->n_insns;
	r = write_batch(sink, thread, batch, &expansion);
	sink->n_code_insns += code->n_insns - n_before;
	return r;
}

static int drmemtrace_write(void *state, const struct ptd_batch *batch, const void *bytes,
			    size_t n_bytes)
{
	struct drmemtrace *sink = state;

	if (sink->error == 0)
		sink->error = write_expanded(sink, batch, bytes);
	return sink->error;
}

static int drmemtrace_finish(void *state, const struct ptd_stats *stats, struct output *output)
{
	struct drmemtrace *sink = state;
	int r = sink->error;

	for (size_t i = 0; i < sink->threads.n && r == 0; i++)
		r = memtrace_thread_finish(sink->threads.items[i]);
	if (r == 0)
		r = memtrace_out_pool_flush(&sink->directory.pool);
	if (r == 0)
		r = memtrace_schedule_write(&sink->directory.schedule, &sink->directory.pool);
	if (r == 0)
		r = memtrace_tables_finish(&sink->directory.tables);
	return r < 0 ? r : memtrace_calls_finish(&sink->calls, &sink->config);
}

static const char *drmemtrace_omission(void *state)
{
	struct drmemtrace *sink = state;
	int n = 0;

	if (sink->n_32 > 0)
		n = snprintf(sink->omission, sizeof(sink->omission),
			     "%" PRIu64
			     " instructions of 32-bit or 16-bit code are not in it: the format is "
			     "that of 64-bit programs",
			     sink->n_32);
	if (sink->n_kernel > 0)
		n += snprintf(sink->omission + n, sizeof(sink->omission) - (size_t)n,
			      "%s%" PRIu64 " instructions of the kernel are not in it: see the "
			      "option whole-system",
			      n > 0 ? "; " : "", sink->n_kernel);
	if (sink->directory.schedule.is_too_long)
		n +=
		    snprintf(sink->omission + n, sizeof(sink->omission) - (size_t)n,
			     "%sthe schedules are not in it: they are too long", n > 0 ? "; " : "");
	if (sink->directory.kernel.n_left_out > 0)
		n += snprintf(sink->omission + n, sizeof(sink->omission) - (size_t)n,
			      "%sof %" PRIu64
			      " samples of system calls and signals nothing is in it: they are too "
			      "many",
			      n > 0 ? "; " : "", sink->directory.kernel.n_left_out);
	return n > 0 ? sink->omission : NULL;
}

static const char *const directories[] = { "trace", "aux", NULL };

static const struct sink_option options[] = {
	{ .name = "compress", .value = "zip|none", .help = "how the files are compressed (zip)" },
	{ .name = "addresses", .help = "with data addresses relative to rip" },
	{ .name = "core-sharded", .help = "a file for each core" },
	{ .name = "whole-system", .help = "with the kernel's code" },
	{ .name = "func-markers",
	  .value = "PATTERN",
	  .help = "mark calls of these functions only, as 'png_*'; none: of no function" },
	{},
};

const struct sink_ops sink_drmemtrace = {
	.name = "drmemtrace",
	.help = "directory of traces for DynamoRIO's drmemtrace tools, a file for each thread",
	.directories = directories,
	.options = options,
	.state_size = sizeof(struct drmemtrace),
	.open = drmemtrace_open,
	.sideband = take_sideband,
	.remember = drmemtrace_remember,
	.forget = drmemtrace_forget,
	.expand = drmemtrace_expand,
	.write = drmemtrace_write,
	.finish = drmemtrace_finish,
	.omission = drmemtrace_omission,
	.close = drmemtrace_close,
};
