/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * ovni: the calls as streams of ovni, one for each thread (ovni_stream.h), and the metadata of
 * these, for ovniemu and Paraver.
 *
 * A stream has one stack. When a thread goes on on another one, all that is open on the old one is
 * left, and all that is open on the new one is entered.
 *
 * The emulator lets one thread run on a CPU at a time, and takes the times at their word: a thread
 * comes to a CPU 1 ns after the one before it has left, at least. A thread that is off the CPU does
 * nothing. So it is said to have left only when it comes back: until then it may still end.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "decoder/sink/export/ovni_stream.h"
#include "decoder/sink/json.h"
#include "decoder/sink/openstacks.h"
#include "decoder/sink/output.h"
#include "decoder/sink/sink.h"
#include "decoder/sink/sinks.h"
#include "decoder/util/outdir.h"
#include "decoder/util/ovni.h"
#include "util/map.h"
#include "util/message.h"

#define IN_MEMORY   ((size_t)64 << 20) /* bytes that all streams may have in memory together */
#define LOOM        OVNI_DIR "/" OVNI_LOOM_PREFIX "ptd"
#define EVENT_LEAST 24 /* bytes of a call, for IN_MEMORY */

/* Threads and processes that have no number of their own have one that none has. */
#define ID_UNKNOWN (UINT32_C(1) << 23)

struct ovni_thread {
	struct ovni_stream stream;
	uint32_t pid, tid; /* as they are shown */
	const char *comm;  /* borrowed; NULL: not known */

	const struct ptd_call_thread *shown; /* whose stack it is on: */
	uint32_t stack;
	bool is_switched;  /* it was on several stacks since the section began */
	bool is_sectioned; /* the section has begun */

	bool is_out;    /* it left its CPU: */
	uint64_t t_out; /* then */
	int32_t cpu;    /* which is this one, by index */
};

struct ovni_cpu {
	uint32_t number;
	bool was_used;
	uint64_t t_out; /* when a thread left it last */
};

struct ovni {
	struct ovni_streams streams;
	enum ptd_clock clock;
	struct ptd_calls *layer; /* the sink's */
	struct open_stacks stacks;
	VEC(struct ovni_thread *) threads; /* owned */
	struct map by_slice;               /* what identifies the thread of a slice → index */
	VEC(struct ovni_thread *) by_id;   /* of the call stream's threads; borrowed */
	VEC(struct ovni_cpu) cpus;         /* by index */
	struct map by_number;              /* number of a CPU → index */
	struct map processes;              /* pid → number of the application, from 1 */
	size_t n_in_memory;                /* bytes, or a few more */

	bool has_coming; /* a batch has come, and nothing in it yet: */
	struct ptd_slice coming;
	uint64_t t_coming; /* its end */

	struct ovni_thread *running; /* the thread of the slice; NULL: none yet */
	uint64_t slice;              /* id of that */
	uint64_t t_last;             /* of what happened in it last */
	uint64_t n_left_out;         /* values that cannot be shown */
	char omission[160];
};

/* --- threads ---------------------------------------------------------------------------------- */

static struct ovni_thread *thread_free(struct ovni_thread *thread)
{
	if (thread)
		ovni_stream_deinit(&thread->stream);
	free(thread);
	return NULL;
}

DEFINE_CLEANUP(struct ovni_thread *, thread_free);

/* Each CPU has an idle thread 0, and code of a thread that is not known. */
static bool is_of_cpu(const struct ptd_slice *slice)
{
	return slice->tid == 0 || slice->tid == PTD_ID_UNKNOWN;
}

static uint64_t key_of(const struct ptd_slice *slice)
{
	return (uint64_t)(is_of_cpu(slice) ? slice->cpu : slice->pid) << 32 | slice->tid;
}

static int name_stream(const struct ovni *ovni, const struct ovni_thread *thread, char **ret_name)
{
	const char *end = ovni->streams.version == OVNI_VERSION_OLD ? "" : "/" OVNI_STREAM;

	*ret_name = message_text(LOOM "/" OVNI_PROC_PREFIX "%" PRIu32 "/" OVNI_THREAD_PREFIX
				      "%" PRIu32 "%s",
				 thread->pid, thread->tid, end);
	return *ret_name ? 0 : -ENOMEM;
}

static int add_thread(struct ovni *ovni, const struct ptd_slice *slice,
		      struct ovni_thread **ret_thread)
{
	_cleanup_(thread_freep) struct ovni_thread *thread = calloc(1, sizeof(*thread));
	char *name;
	int r;

	if (!thread)
		return -ENOMEM;
	thread->comm = slice->comm;
	thread->tid = is_of_cpu(slice) ? ID_UNKNOWN + (uint32_t)ovni->threads.n : slice->tid;
	thread->pid = slice->pid == 0 || slice->pid == PTD_ID_UNKNOWN ? ID_UNKNOWN : slice->pid;
	r = name_stream(ovni, thread, &name);
	if (r == 0)
		r = ovni_stream_begin(&thread->stream, &ovni->streams, name);
	if (r == 0 && !map_get(&ovni->processes, thread->pid))
		r = map_put(&ovni->processes, thread->pid, ovni->processes.n_used + 1);
	if (r == 0)
		r = map_put(&ovni->by_slice, key_of(slice), ovni->threads.n);
	if (r == 0)
		r = vec_push(&ovni->threads, thread);
	if (r < 0)
		return r;
	*ret_thread = TAKE(thread);
	return 0;
}

/* Of many threads that have little to write, each has a little in memory. */
static int bound_memory(struct ovni *ovni)
{
	int r = 0;

	if (ovni->n_in_memory < IN_MEMORY)
		return 0;
	ovni->n_in_memory = 0;
	for (size_t i = 0; i < ovni->threads.n && r == 0; i++)
		r = threadfile_leave_memory(&ovni->threads.items[i]->stream.out);
	return r;
}

/* --- CPUs ------------------------------------------------------------------------------------- */

static int find_cpu(struct ovni *ovni, uint32_t number, int32_t *ret_cpu)
{
	uint64_t index;
	int r;

	*ret_cpu = OVNI_CPU_NONE;
	if (number == PTD_ID_UNKNOWN)
		return 0;
	r = map_number(&ovni->by_number, number, ovni->cpus.n, &index);
	*ret_cpu = (int32_t)index;
	return r > 0 ? vec_push(&ovni->cpus, { .number = number }) : r;
}

/* The thread that runs leaves its CPU. */
static void leave_cpu(struct ovni *ovni)
{
	struct ovni_thread *thread = ovni->running;

	thread->is_out = true;
	thread->t_out = thread->stream.t > ovni->t_last ? thread->stream.t : ovni->t_last;
	if (thread->cpu == OVNI_CPU_NONE)
		return;
	ovni->cpus.items[thread->cpu].was_used = true;
	ovni->cpus.items[thread->cpu].t_out = thread->t_out;
}

/* The thread comes to the CPU. */
static int come_to_cpu(struct ovni *ovni, struct ovni_thread *thread, uint64_t t, int32_t cpu)
{
	const struct ovni_cpu *c = cpu == OVNI_CPU_NONE ? NULL : &ovni->cpus.items[cpu];
	const bool is_first = !thread->is_out, is_same = thread->cpu == cpu;
	int r = 0;

	if (c && c->was_used && t <= c->t_out)
		t = c->t_out + 1;
	thread->is_out = false;
	thread->cpu = cpu;
	if (is_first)
		return ovni_stream_execute(&thread->stream, t, cpu);
	r = ovni_stream_pause(&thread->stream, thread->t_out);
	if (r < 0)
		return r;
	return is_same ? ovni_stream_resume(&thread->stream, t)
		       : ovni_stream_resume_at(&thread->stream, t, cpu);
}

static int begin_slice(struct ovni *ovni, const struct ptd_slice *slice)
{
	const uint64_t *known = map_get(&ovni->by_slice, key_of(slice));
	struct ovni_thread *thread = known ? ovni->threads.items[*known] : NULL;
	int32_t cpu = OVNI_CPU_NONE;
	int r = 0;

	if (ovni->running)
		leave_cpu(ovni);
	if (!thread)
		r = add_thread(ovni, slice, &thread);
	if (r == 0)
		r = find_cpu(ovni, slice->cpu, &cpu);
	if (r < 0)
		return r;
	if (slice->comm)
		thread->comm = slice->comm;
	ovni->running = thread;
	ovni->slice = slice->id;
	ovni->t_last = slice->t0;
	return come_to_cpu(ovni, thread, slice->t0, cpu);
}

/* Take what the batch says of its CPU, which its thread is on until t_coming or longer. */
static int come(struct ovni *ovni)
{
	int r = 0;

	if (!ovni->has_coming)
		return 0;
	ovni->has_coming = false;
	if (!ovni->running || ovni->slice != ovni->coming.id)
		r = begin_slice(ovni, &ovni->coming);
	if (ovni->t_coming > ovni->t_last)
		ovni->t_last = ovni->t_coming;
	return r;
}

/* --- calls ------------------------------------------------------------------------------------ */

/* A call of a thread that has a stream. */
struct step {
	struct ovni *ovni;
	struct ovni_thread *thread;
	const struct ptd_call *call;
	uint64_t t;
};

/* Leave all that is open on the stack that the thread was on. */
static int leave_stack(struct step *s)
{
	const struct open_stack *stack = open_stacks_get(&s->ovni->stacks, s->thread->stack);
	int r = stack ? 0 : -ENOMEM;

	for (size_t i = stack ? stack->frames.n : 0; i-- > 0 && r == 0;)
		r = ovni_stream_leave(&s->thread->stream, s->t, stack->frames.items[i].function,
				      stack->frames.items[i].task);
	return r;
}

/* Enter all that is open on the stack that the thread is on now. */
static int enter_stack(struct step *s)
{
	struct open_stack *stack = open_stacks_get(&s->ovni->stacks, s->thread->stack);
	int r = stack ? 0 : -ENOMEM;

	for (size_t i = 0; stack && i < stack->frames.n && r == 0; i++)
		r = ovni_stream_enter(&s->thread->stream, s->t, stack->frames.items[i].function,
				      &stack->frames.items[i].task);
	return r;
}

static int take_switch(struct step *s)
{
	int r = leave_stack(s);

	if (r == 0)
		r = open_stacks_move(&s->ovni->stacks, s->call);
	if (r < 0)
		return r;
	s->thread->stack = s->call->stack;
	s->thread->is_switched = true;
	return enter_stack(s);
}

static bool is_outer(const struct ptd_call *call)
{
	return call->how == PTD_CALL_BY_INFERENCE || call->how == PTD_CALL_BY_RESUMPTION;
}

static int take_enter(struct step *s)
{
	struct open_stack *stack = open_stacks_get(&s->ovni->stacks, s->call->stack);
	struct ovni_thread *thread = s->thread;
	struct ovni_stream *stream = &thread->stream;
	uint32_t *task;
	int r = stack ? open_stack_push(stack, s->call) : -ENOMEM;

	if (r < 0)
		return r;
	task = &open_stack_top(stack)->task;
	if (!thread->is_sectioned) {
		thread->is_sectioned = true;
		thread->is_switched = false;
		r = ovni_stream_end_gap(stream, s->t);
		if (r == 0)
			r = ovni_stream_section(stream, s->t);
	}
	if (r < 0)
		return r;
	return is_outer(s->call) && !thread->is_switched
		   ? ovni_stream_outer(stream, s->call->function, task)
		   : ovni_stream_enter(stream, s->t, s->call->function, task);
}

static int take_leave(struct step *s)
{
	struct open_stack *stack = open_stacks_get(&s->ovni->stacks, s->call->stack);
	const struct open_frame *top = stack ? open_stack_top(stack) : NULL;
	int r = 0;

	if (!top)
		return stack ? 0 : -ENOMEM;
	if (s->call->how == PTD_CALL_BY_GAP)
		s->thread->is_sectioned = false;
	/* What is open on a stack that the thread is not on was left in the stream before. */
	if (s->call->stack == s->thread->stack)
		r = ovni_stream_leave(&s->thread->stream, s->t, top->function, top->task);
	open_stack_pop(stack);
	return r;
}

/* Get the stream of the thread of the call, on whose stack it is. */
static int find_thread(struct ovni *ovni, const struct ptd_call_thread *shown,
		       const struct ptd_call *call, struct ovni_thread **ret_thread)
{
	struct ovni_thread **known = vec_at(&ovni->by_id, shown->id, NULL), *thread;

	if (!known)
		return -ENOMEM;
	if (!*known)
		*known = ovni->running;
	thread = *known;
	if (thread->shown != shown) {
		thread->shown = shown;
		thread->stack = call->stack;
		thread->is_sectioned = false;
	}
	*ret_thread = thread;
	return 0;
}

/* Return: the time of the call, which is not later than when the thread left its CPU. */
static uint64_t time_of(const struct ovni *ovni, const struct ovni_thread *thread,
			const struct ptd_call *call)
{
	const uint64_t t = ovni->clock == PTD_CLOCK_NONE ? call->n_insns : call->t;

	return thread->is_out && t > thread->t_out ? thread->t_out : t;
}

static int take_call(struct ovni *ovni, const struct ptd_call_thread *shown,
		     const struct ptd_call *call)
{
	struct step s = { .ovni = ovni, .call = call };
	const int r = find_thread(ovni, shown, call, &s.thread);

	if (r < 0)
		return r;
	s.t = time_of(ovni, s.thread, call);
	ovni->n_in_memory += EVENT_LEAST;
	switch (call->kind) {
	case PTD_CALL_ENTER:
		return take_enter(&s);
	case PTD_CALL_LEAVE:
		return take_leave(&s);
	default:
		return take_switch(&s);
	}
}

/* A mark of the slice of the thread that runs. */
static int ovni_mark(void *state, const struct ptd_slice *slice, const struct ptd_mark *mark)
{
	struct ovni *ovni = state;
	const bool is_old = ovni->streams.version == OVNI_VERSION_OLD;
	struct ovni_thread *thread;
	const int r = come(ovni);

	if (r < 0)
		return r;
	thread = ovni->running;
	switch (mark->kind) {
	case PTD_MARK_GAP:
	case PTD_MARK_OUT_OF_SCOPE:
		thread->is_sectioned = false;
		return ovni_stream_gap(&thread->stream, mark->t,
				       mark->kind == PTD_MARK_GAP ? (uint32_t)mark->reason
								  : OVNI_GAP_SCOPE);
	case PTD_MARK_PTWRITE:
		if (!is_old && mark->value != 0)
			return ovni_stream_value(&thread->stream, mark->t, mark->value);
		ovni->n_left_out++;
		return 0;
	default:
		return 0;
	}
}

/* --- metadata --------------------------------------------------------------------------------- */

static void put_cpus(const struct ovni *ovni, struct json *json, const char *key)
{
	json_array(json, key);
	for (size_t i = 0; i < ovni->cpus.n; i++) {
		json_object(json, NULL);
		json_number(json, "index", i);
		json_number(json, "phyid", ovni->cpus.items[i].number);
		json_close(json);
	}
	json_close(json);
}

static void put_label(struct json *json, uint64_t value, const char *name)
{
	char key[24], text[OVNI_LABEL_MAX + 1];
	const size_t size = output_printable(text, name, OVNI_LABEL_MAX);

	text[size] = '\0';
	(void)snprintf(key, sizeof(key), "%" PRIu64, value);
	json_text(json, key, text);
}

static void begin_mark(struct json *json, enum ovni_mark type, const char *title, const char *chan)
{
	char key[4];

	(void)snprintf(key, sizeof(key), "%d", type);
	json_object(json, key);
	json_text(json, "title", title);
	json_text(json, "chan_type", chan);
	json_object(json, "labels");
}

/* The types of marks, which one stream defines for all. */
static void put_marks(const struct ovni *ovni, struct json *json)
{
	const struct ptd_function *const *functions;
	char name[64];
	size_t n;

	functions = ptd_calls_functions(ovni->layer, &n);
	json_object(json, "mark");
	begin_mark(json, OVNI_MARK_FUNCTION, "Function", "stack");
	for (size_t i = 0; i < n; i++)
		put_label(json, (uint64_t)functions[i]->id + 1, functions[i]->name);
	json_close(json);
	json_close(json);
	begin_mark(json, OVNI_MARK_GAP, "Gap", "stack");
	for (uint32_t i = 0; i < OVNI_GAPS; i++) {
		ovni_gap_name(i, name, sizeof(name));
		put_label(json, i + 1, name);
	}
	json_close(json);
	json_close(json);
	begin_mark(json, OVNI_MARK_PTWRITE, "ptwrite", "single");
	json_close(json);
	json_close(json);
	json_close(json);
}

/* The metadata of a thread's stream. That of the first has what all share. */
static void put_thread(const struct ovni *ovni, struct json *json, const struct ovni_thread *thread)
{
	const bool is_first = thread == ovni->threads.items[0];

	json_object(json, NULL);
	json_number(json, "version", OVNI_VERSION);
	json_object(json, "ovni");
	json_object(json, "lib");
	json_text(json, "version", "1.11.0");
	json_text(json, "commit", "ptdecode");
	json_close(json);
	json_text(json, "part", "thread");
	json_number(json, "tid", thread->tid);
	json_number(json, "pid", thread->pid);
	json_text(json, "loom", "ptd");
	json_number(json, "app_id", *map_get(&ovni->processes, thread->pid));
	json_object(json, "require");
	json_text(json, "ovni", "1.1.0");
	json_close(json);
	if (is_first) {
		put_cpus(ovni, json, "loom_cpus");
		put_marks(ovni, json);
	}
	json_number(json, "finished", 1);
	json_close(json);
	json_object(json, "ptd");
	json_text(json, "name", thread->comm);
	json_close(json);
	json_close(json);
}

/* Version 1: the metadata of a process. That of the first has the CPUs. */
static void put_process(const struct ovni *ovni, struct json *json, uint64_t app)
{
	json_object(json, NULL);
	json_number(json, "version", OVNI_VERSION_OLD);
	json_number(json, "app_id", app);
	if (app == 1)
		put_cpus(ovni, json, "cpus");
	json_close(json);
}

/* Write the metadata beside the stream of the thread. */
static int write_metadata(struct ovni *ovni, const struct ovni_thread *thread)
{
	const bool is_old = ovni->streams.version == OVNI_VERSION_OLD;
	struct output output = output_none();
	struct json json = json_begin(&output);
	char name[OUTDIR_NAME_MAX + 1];
	int r;

	if (is_old)
		(void)snprintf(name, sizeof(name),
			       LOOM "/" OVNI_PROC_PREFIX "%" PRIu32 "/" OVNI_PROC_METADATA,
			       thread->pid);
	else
		(void)snprintf(name, sizeof(name),
			       LOOM "/" OVNI_PROC_PREFIX "%" PRIu32 "/" OVNI_THREAD_PREFIX
				    "%" PRIu32 "/" OVNI_METADATA,
			       thread->pid, thread->tid);
	r = output_create(&output, ovni->streams.out.dir_fd, name, ovni->streams.out.room);
	if (r < 0)
		return r;
	if (is_old)
		put_process(ovni, &json, *map_get(&ovni->processes, thread->pid));
	else
		put_thread(ovni, &json, thread);
	r = output_finish(&output);
	output_deinit(&output);
	return r;
}

static int finish_thread(struct ovni *ovni, struct ovni_thread *thread, struct map *written)
{
	const bool is_old = ovni->streams.version == OVNI_VERSION_OLD;
	int r = ovni_stream_end_gap(&thread->stream, thread->t_out);

	if (r == 0)
		r = ovni_stream_end(&thread->stream, thread->t_out);
	if (r == 0)
		r = ovni_stream_finish(&thread->stream);
	if (r < 0 || (is_old && map_get(written, thread->pid)))
		return r;
	r = write_metadata(ovni, thread);
	return r < 0 || !is_old ? r : map_put(written, thread->pid, 1);
}

/* --- its life --------------------------------------------------------------------------------- */

static int ovni_open(void *state, const struct sink_config *config, struct output *output)
{
	uint64_t version = OVNI_VERSION;
	struct ovni *ovni = state;
	int r = option_number(config, "format-version", &version);

	ovni->clock = config->info->clock;
	ovni->layer = config->calls;
	ovni->streams = (struct ovni_streams){
		.out = { .dir_fd = config->fd, .room = config->room, .fd = -1 },
		.version = (unsigned int)version,
	};
	return r < 0 || (version != OVNI_VERSION && version != OVNI_VERSION_OLD) ? -EINVAL : 0;
}

/*
 * What a program leaves that the thread no longer executes comes before the first call of the
 * batch, and before the thread comes to the CPU.
 */
static int ovni_batch(void *state, const struct ptd_batch *batch, uint64_t t_end)
{
	struct ovni *ovni = state;
	int r = come(ovni);

	if (r == 0)
		r = bound_memory(ovni);
	if (batch) {
		ovni->has_coming = true;
		ovni->coming = *batch->slice;
		ovni->t_coming = t_end;
	} else if (ovni->running) {
		leave_cpu(ovni);
	}
	return r;
}

static int ovni_calls(void *state, const struct ptd_call_batch *calls)
{
	int r = calls->batch ? come(state) : 0;

	for (size_t i = 0; r == 0 && i < calls->n_calls; i++)
		r = take_call(state, calls->thread, &calls->calls[i]);
	return r;
}

static int ovni_finish(void *state, const struct ptd_stats *stats, struct output *output)
{
	struct ovni *ovni = state;
	struct map written = {};
	int r = 0;

	for (size_t i = 0; i < ovni->threads.n && r == 0; i++)
		r = finish_thread(ovni, ovni->threads.items[i], &written);
	map_deinit(&written);
	return r;
}

static void ovni_close(void *state)
{
	struct ovni *ovni = state;

	vec_deinit_each(&ovni->threads, thread, thread_free(*thread));
	vec_deinit(&ovni->by_id);
	vec_deinit(&ovni->cpus);
	threadfiles_deinit(&ovni->streams.out);
	map_deinit(&ovni->by_slice);
	map_deinit(&ovni->by_number);
	map_deinit(&ovni->processes);
	open_stacks_deinit(&ovni->stacks);
}

static const char *ovni_omission(void *state)
{
	struct ovni *ovni = state;

	if (ovni->streams.n_too_deep == 0 && ovni->n_left_out == 0)
		return NULL;
	(void)snprintf(ovni->omission, sizeof(ovni->omission),
		       "functions within %d others: %" PRIu64
		       "; values of ptwrite that are 0, or that version 1 cannot have: %" PRIu64,
		       OVNI_DEPTH_MAX, ovni->streams.n_too_deep, ovni->n_left_out);
	return ovni->omission;
}

static const char *const directories[] = { OVNI_DIR, NULL };

static const struct sink_option options[] = {
	{ .name = "format-version", .value = "N", .help = "version of the format: 1 or 3 (3)" },
	SINK_SIEVE_OPTIONS,
	{},
};

const struct sink_ops sink_ovni = {
	.name = "ovni",
	.help = "a directory of ovni's streams, for ovniemu and Paraver",
	.directories = directories,
	.options = options,
	.is_sieved = true,
	.state_size = sizeof(struct ovni),
	.open = ovni_open,
	.batch = ovni_batch,
	.calls = ovni_calls,
	.mark = ovni_mark,
	.finish = ovni_finish,
	.omission = ovni_omission,
	.close = ovni_close,
};
