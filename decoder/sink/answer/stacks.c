/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Stacks
 *
 * Where each thread was when the trace ended, and how it had come there: for a program that hangs,
 * what each of its threads waits for.
 */

#include <string.h>

#include "decoder/sink/answer/backtrace.h"
#include "decoder/sink/column.h"
#include "decoder/sink/json.h"
#include "decoder/sink/output.h"
#include "decoder/sink/sinks.h"
#include "ptd/calls.h"
#include "ptd/decode.h"
#include "util/map.h"

struct stacks {
	enum ptd_clock clock;
	struct ptd_decoder *decoder; /* borrowed; NULL: source lines are not known */
	struct ptd_calls *calls;
	struct map marks; /* pid and tid → kind of the mark behind its last instruction, plus 1 */
};

static uint64_t key_of(uint32_t pid, uint32_t tid)
{
	return (uint64_t)pid << 32 | tid;
}

/* Return: what the thread was doing when it was seen last, in words. */
static const char *state_of(const struct stacks *stacks, const struct ptd_call_thread *thread)
{
	const uint64_t *mark = map_get(&stacks->marks, key_of(thread->pid, thread->tid));

	if (!mark || *mark == 0)
		return "running";
	switch (*mark - 1) {
	case PTD_MARK_OFF:
		return "in a system call";
	case PTD_MARK_ASYNC:
		return "interrupted";
	case PTD_MARK_GAP:
		return "lost in a gap";
	default: /* PTD_MARK_STOP: it runs on where an address filter leaves it out */
		return "running";
	}
}

/* Get the functions that are open in the thread. Return: 0 or -ENOMEM. */
static int get_backtrace(const struct stacks *stacks, const struct ptd_call_thread *thread,
			 struct backtrace *ret_backtrace)
{
	struct backtrace backtrace = { .decoder = stacks->decoder,
				       .space = thread->space,
				       .t = thread->t_last };
	int r;

	r = ptd_calls_stack(stacks->calls, thread->id, &backtrace.frames, &backtrace.n);
	/* A core file that was made at another time has another stack. */
	if (r == 0)
		r = backtrace_add_core(&backtrace, thread->pid, thread->tid);
	if (r < 0)
		return r;
	*ret_backtrace = backtrace;
	return 0;
}

/* Return: the time at which the trace ends. */
static uint64_t end_of(const struct ptd_stats *stats)
{
	uint64_t t = 0;

	for (size_t i = 0; i < stats->n_cpus; i++)
		if (stats->cpus[i].t_last > t)
			t = stats->cpus[i].t_last;
	return t;
}

/* Write a thread as text. The duration is that from its last instruction to the end. */
static void put_thread(const struct stacks *stacks, const struct ptd_call_thread *thread,
		       uint64_t end, struct output *output)
{
	const char *state = state_of(stacks, thread);
	char last[COLUMN_MAX], ago[COLUMN_MAX];

	*column_time(last, stacks->clock, thread->t_last) = '\0';
	*column_duration(ago, stacks->clock, end > thread->t_last ? end - thread->t_last : 0) =
	    '\0';
	output_printf(output, "\nThread ");
	output_thread(output, thread->pid, thread->tid, thread->comm);
	output_printf(output, ": %s", state);
	if (stacks->clock != PTD_CLOCK_NONE)
		output_printf(output, " at %s, %s before the end", last + strspn(last, " "),
			      ago + strspn(ago, " "));
	output_printf(output, "\n");
}

static void put_json_thread(const struct stacks *stacks, struct json *json,
			    const struct ptd_call_thread *thread)
{
	json_id(json, "pid", thread->pid);
	json_id(json, "tid", thread->tid);
	json_text(json, "comm", thread->comm);
	json_text(json, "state", state_of(stacks, thread));
	json_number(json, "t_last", thread->t_last);
	json_number(json, "instructions", thread->n_insns);
}

static int put_json(void *state, const struct ptd_stats *stats, struct json *json)
{
	const struct stacks *stacks = state;
	const struct ptd_call_thread *const *threads;
	size_t n_threads;
	int r = 0;

	threads = ptd_calls_threads(stacks->calls, &n_threads);
	json_number(json, "t_end", end_of(stats));
	json_array(json, "threads");
	for (size_t i = 0; i < n_threads && r == 0; i++) {
		struct backtrace backtrace;

		if (threads[i]->ended)
			continue;
		r = get_backtrace(stacks, threads[i], &backtrace);
		if (r < 0)
			break;
		json_object(json, NULL);
		put_json_thread(stacks, json, threads[i]);
		r = backtrace_json(json, &backtrace);
		json_close(json);
	}
	json_close(json);
	return r;
}

static int put_text(void *state, const struct ptd_stats *stats, struct output *output)
{
	const struct stacks *stacks = state;
	const struct ptd_call_thread *const *threads;
	size_t n_threads, n_ended = 0;
	int r;

	threads = ptd_calls_threads(stacks->calls, &n_threads);
	for (size_t i = 0; i < n_threads; i++)
		n_ended += threads[i]->ended;
	output_printf(output, "Threads: %zu", n_threads - n_ended);
	if (n_ended > 0)
		output_printf(output, "; %zu had ended", n_ended);
	output_printf(output, "\n");
	for (size_t i = 0; i < n_threads; i++) {
		struct backtrace backtrace;

		if (threads[i]->ended)
			continue;
		r = get_backtrace(stacks, threads[i], &backtrace);
		if (r < 0)
			return r;
		put_thread(stacks, threads[i], end_of(stats), output);
		r = backtrace_put(output, &backtrace);
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- its life --------------------------------------------------------------------------------- */

static int stacks_open(void *state, const struct sink_config *config, struct output *output)
{
	struct stacks *stacks = state;

	stacks->clock = config->info->clock;
	stacks->decoder = config->decoder;
	return ptd_calls_new(config->info, &stacks->calls);
}

static void stacks_close(void *state)
{
	struct stacks *stacks = state;

	map_deinit(&stacks->marks);
	ptd_calls_free(stacks->calls);
}

/* Of the calls, only those that are open at the end matter. */
static int drop_calls(struct stacks *stacks)
{
	const struct ptd_call_batch *found;
	int r;

	do
		r = ptd_calls_next(stacks->calls, &found);
	while (r == 0);
	return r == PTD_END ? 0 : r;
}

/* Return: the mark behind the last instruction that says why there is no next one; NULL: none. */
static const struct ptd_mark *last_mark(const struct ptd_batch *batch)
{
	for (size_t i = batch->n_marks; i > 0 && batch->marks[i - 1].run == batch->n_runs; i--) {
		const struct ptd_mark *mark = &batch->marks[i - 1];

		if (mark->kind == PTD_MARK_OFF || mark->kind == PTD_MARK_ASYNC ||
		    mark->kind == PTD_MARK_GAP || mark->kind == PTD_MARK_STOP)
			return mark;
	}
	return NULL;
}

static int stacks_batch(void *state, const struct ptd_batch *batch, uint64_t t_end)
{
	struct stacks *stacks = state;
	const struct ptd_mark *mark = last_mark(batch);
	int r = 0;

	/* Marks of the CPU's clock and power, without an instruction, do not say that it ran on. */
	if (mark || batch->n_runs > 0)
		r = map_put(&stacks->marks, key_of(batch->slice->pid, batch->slice->tid),
			    mark ? mark->kind + (uint64_t)1 : 0);
	if (r == 0)
		r = ptd_calls_batch(stacks->calls, batch);
	return r < 0 ? r : drop_calls(stacks);
}

static const struct sink_option options[] = {
	{ .name = "json", .help = "as JSON" },
	{},
};

const struct sink_ops sink_stacks = {
	.name = "stacks",
	.help = "where each thread was at the end, with its backtrace",
	.options = options,
	.state_size = sizeof(struct stacks),
	.open = stacks_open,
	.batch = stacks_batch,
	.text = put_text,
	.json = put_json,
	.close = stacks_close,
	.writes_last = true,
};
