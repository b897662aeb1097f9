/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Crash
 *
 * Of each thread that took a signal which killed its process: the signal, the instruction at which
 * it was, the functions that were open, and the branches that it took last. If there is a core
 * file, the same of each thread of its process.
 *
 * The sideband, which comes before the first batch, and the core file say which threads these are.
 * Of other processes nothing is kept. Functions are followed in all threads of such a process,
 * because a stack may go from one to another.
 *
 * A fault is taken before its instruction has executed, so no run has that instruction. Its bytes
 * are those of the block in which the thread was, or of a run that began at the same address
 * earlier. Behind a branch to code that never ran before, they are those of the file.
 */

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "decoder/sink/answer/backtrace.h"
#include "decoder/sink/column.h"
#include "decoder/sink/json.h"
#include "decoder/sink/output.h"
#include "decoder/sink/sinks.h"
#include "decoder/sink/srcline.h"
#include "decoder/x86/text.h"
#include "ptd/calls.h"
#include "ptd/decode.h"
#include "util/map.h"
#include "util/vec.h"

#define CRASHES_MAX   64u    /* further threads are only counted */
#define HANDLED_MAX   65536u /* threads whose handled signals are kept */
#define IGNORED       1      /* the address of the handler of a signal that is ignored */
#define BRANCHES_MAX  30u    /* of each thread */
#define INSN_SIZE_MAX 15
#define RECENT_BITS   12 /* of the hash of an address: 1 << this number of runs are found again */

/* An instruction at an address. */
struct place {
	const struct ptd_block *block; /* borrowed from the stream; NULL: none is known */
	size_t insn;
	uint64_t ip;

	/* Without a block: what was mapped there, which may be nothing that is known, and as which
	 * code it would be executed. */
	struct ptd_place mapped;
	uint8_t mode;
};

struct branch {
	struct place from, to;
	uint64_t t; /* of what it led to */
	bool is_interruption;
};

/* The last signal of a thread that the program handled; t is 0: there is none. */
struct handled {
	uint64_t t, handler;
	uint32_t signal;
};

/* A thread that took a deadly signal, or is in the core file. */
struct crash {
	uint32_t pid, tid, signal;
	bool is_other;                      /* another thread took the signal */
	bool has_ended;                     /* another thread may have its number from now on */
	uint64_t t;                         /* of its end; UINT64_MAX: not known */
	const struct ptd_core_thread *core; /* borrowed from the decoder; NULL: not in the file */
	struct handled handled;             /* before that */
	const char *comm;                   /* its last name; borrowed; NULL: it did not run */
	uint32_t space;                     /* the last address space that it ran in */

	struct branch branches[BRANCHES_MAX]; /* the last ones; @n_branches modulo their number */
	uint64_t n_branches;
	struct ptd_run last;     /* its last run; .n is 0: there is none */
	uint64_t next_ip;        /* behind it */
	enum ptd_mark_kind mark; /* the last one behind that run that says why it stopped */
	uint64_t mark_ip;        /* of an interruption: of what did not execute; 0: no mark */
	struct ptd_run recent[1 << RECENT_BITS]; /* the last one at each hash of its address */
};

struct crashes {
	const struct ptd_info *info; /* borrowed */
	struct ptd_decoder *decoder; /* borrowed; NULL: source lines are not known */
	VEC(struct crash *) list;    /* owned */
	uint64_t n_unkept;           /* beyond CRASHES_MAX */
	struct ptd_calls *calls;     /* NULL: there is no crash */
	struct map threads; /* pid and tid → index in @handled, of those that handled a signal */
	VEC(struct handled) handled;
	const struct ptd_symbol *const *symbols; /* by id; borrowed from the stream */
	size_t n_symbols;
};

/* --- following the threads -------------------------------------------------------------------- */

static struct ptd_run *recent_at(struct crash *crash, uint64_t ip)
{
	return &crash->recent[ip * UINT64_C(0x9e3779b97f4a7c15) >> (64 - RECENT_BITS)];
}

static struct place last_place(const struct ptd_run *run)
{
	return (struct place){ .block = run->block,
			       .insn = run->first + (size_t)run->n - 1,
			       .ip = ptd_run_ip(run, run->n - 1u) };
}

static void note_mark(struct crash *crash, const struct ptd_mark *mark)
{
	if (mark->kind != PTD_MARK_ASYNC && mark->kind != PTD_MARK_OFF &&
	    mark->kind != PTD_MARK_GAP)
		return;
	crash->mark = mark->kind;
	crash->mark_ip = mark->ip;
}

static void note_run(struct crash *crash, const struct ptd_run *run)
{
	const uint64_t ip = ptd_run_ip(run, 0);
	const struct ptd_insn *last = &run->block->insns[run->first + run->n - 1u];

	if (crash->last.n > 0 && ip != crash->next_ip)
		crash->branches[crash->n_branches++ % BRANCHES_MAX] = (struct branch){
			.from = last_place(&crash->last),
			.to = { .block = run->block, .insn = run->first, .ip = ip },
			.t = run->t,
			.is_interruption = crash->mark == PTD_MARK_ASYNC && crash->mark_ip,
		};
	crash->last = *run;
	crash->next_ip = run->base + last->offset + last->size;
	crash->mark = PTD_MARK_OFF;
	crash->mark_ip = 0;
	*recent_at(crash, ip) = *run;
}

static void note_batch(struct crash *crash, const struct ptd_batch *batch)
{
	size_t m = 0;

	crash->comm = batch->slice->comm ?: crash->comm;
	crash->space = batch->slice->space;
	for (size_t i = 0; i <= batch->n_runs; i++) {
		while (m < batch->n_marks && batch->marks[m].run == i)
			note_mark(crash, &batch->marks[m++]);
		if (i < batch->n_runs)
			note_run(crash, &batch->runs[i]);
	}
}

/* Have the call layer take the batch. Only what is open at the end matters. */
static int follow_calls(struct crashes *crashes, const struct ptd_batch *batch)
{
	const struct ptd_call_batch *found;
	int r;

	r = ptd_calls_batch(crashes->calls, batch);
	while (r == 0)
		r = ptd_calls_next(crashes->calls, &found);
	return r == PTD_END ? 0 : r;
}

static int crash_batch(void *state, const struct ptd_batch *batch, uint64_t t_end)
{
	const struct ptd_slice *slice = batch->slice;
	struct crashes *crashes = state;
	bool is_of_process = false;

	crashes->symbols = batch->symbols;
	crashes->n_symbols = batch->n_symbols;
	for (size_t i = 0; i < crashes->list.n; i++) {
		struct crash *crash = crashes->list.items[i];

		/* A later process may have the same number. */
		if (slice->pid != crash->pid || slice->t0 > crash->t)
			continue;
		is_of_process = true;
		if (slice->tid == crash->tid)
			note_batch(crash, batch);
	}
	return is_of_process ? follow_calls(crashes, batch) : 0;
}

/* Add a thread. @ret_crash is NULL if there are too many. Return: 0 or -ENOMEM. */
static int add_crash(struct crashes *crashes, uint32_t pid, uint32_t tid, struct crash **ret_crash)
{
	struct crash *crash;
	int r;

	*ret_crash = NULL;
	if (crashes->list.n == CRASHES_MAX) {
		crashes->n_unkept++;
		return 0;
	}
	if (!crashes->calls) {
		r = ptd_calls_new(crashes->info, &crashes->calls);
		if (r < 0)
			return r;
	}
	crash = calloc(1, sizeof(*crash));
	if (!crash)
		return -ENOMEM;
	crash->pid = pid;
	crash->tid = tid;
	r = vec_push(&crashes->list, crash);
	if (r < 0)
		free(crash);
	else
		*ret_crash = crash;
	return r;
}

/* Add the threads of the core file. */
static int add_core(struct crashes *crashes)
{
	const struct ptd_core_thread *threads = NULL;
	struct crash *crash;
	size_t n = 0;
	int r = 0;

	if (crashes->decoder)
		threads = ptd_decoder_core(crashes->decoder, &n);
	for (size_t i = 0; i < n && r == 0; i++) {
		r = add_crash(crashes, threads[i].pid, threads[i].tid, &crash);
		if (r < 0 || !crash)
			continue;
		crash->core = &threads[i];
		crash->signal = threads[i].signal;
		crash->is_other = !threads[i].is_first;
		crash->t = UINT64_MAX;
		crash->space = threads[i].space;
	}
	return r;
}

/* Return: whether the default action of the signal ends the process. */
static bool is_deadly(uint32_t signal)
{
	switch (signal) {
	case SIGCHLD:
	case SIGCONT:
	case SIGSTOP:
	case SIGTSTP:
	case SIGTTIN:
	case SIGTTOU:
	case SIGURG:
	case SIGWINCH:
		return false;
	default:
		return true;
	}
}

/* Return: the thread @tid of process @pid, if it is known already and has not ended yet. */
static struct crash *find_crash(const struct crashes *crashes, uint32_t pid, uint32_t tid)
{
	for (size_t i = 0; i < crashes->list.n; i++) {
		struct crash *crash = crashes->list.items[i];

		if (crash->pid == pid && crash->tid == tid && !crash->has_ended)
			return crash;
	}
	return NULL;
}

/* Return: the signal that the thread handled last; NULL: none is known. */
static struct handled *find_handled(const struct crashes *crashes, uint32_t pid, uint32_t tid)
{
	const uint64_t *i = map_get(&crashes->threads, (uint64_t)pid << 32 | tid);

	return i ? &crashes->handled.items[*i] : NULL;
}

/* Keep that the thread handles a signal. Return: 0 or -ENOMEM. */
static int note_handled(struct crashes *crashes, const struct ptd_sideband *record)
{
	struct handled *handled = find_handled(crashes, record->pid, record->tid);
	int r;

	if (!handled) {
		if (crashes->handled.n == HANDLED_MAX)
			return 0;
		r = vec_push(&crashes->handled, {});
		if (r == 0)
			r = map_put(&crashes->threads, (uint64_t)record->pid << 32 | record->tid,
				    crashes->handled.n - 1);
		if (r < 0)
			return r;
		handled = &crashes->handled.items[crashes->handled.n - 1];
	}
	*handled = (struct handled){ .t = record->t,
				     .handler = record->address,
				     .signal = record->signal };
	return 0;
}

static int crash_sideband(void *state, const struct ptd_sideband *record)
{
	const bool is_exit = record->kind == PTD_SIDEBAND_EXIT;
	const bool is_death = record->kind == PTD_SIDEBAND_SIGNAL && record->address == 0 &&
			      is_deadly(record->signal);
	struct crashes *crashes = state;
	struct handled *handled;
	struct crash *crash;
	int r;

	if (record->kind == PTD_SIDEBAND_SIGNAL && record->address > IGNORED)
		return note_handled(crashes, record);
	if (!is_exit && !is_death)
		return 0;
	handled = find_handled(crashes, record->pid, record->tid);
	crash = find_crash(crashes, record->pid, record->tid);
	if (!crash && record->signal) {
		r = add_crash(crashes, record->pid, record->tid, &crash);
		if (r < 0)
			return r;
	}
	if (crash && handled && handled->t > 0)
		crash->handled = *handled;
	/* Another thread may have its number from now on. */
	if (is_exit && handled)
		*handled = (struct handled){};
	if (!crash)
		return 0;
	crash->t = record->t;
	/* A number in the core file may have been another thread's before. */
	crash->has_ended = is_exit && !crash->core;
	if (record->signal)
		crash->signal = record->signal;
	return 0;
}

/* --- the end of a thread ---------------------------------------------------------------------- */

/*
 * Find the instruction at which the signal was taken: the next one, if the thread was interrupted,
 * or the last one that executed.
 */
static struct place find_end(struct crash *crash)
{
	const struct ptd_run *last = &crash->last, *recent;
	const size_t next = (size_t)last->first + last->n;

	if (crash->mark != PTD_MARK_ASYNC || !crash->mark_ip)
		return last_place(last);
	if (crash->mark_ip == crash->next_ip && next < last->block->n_insns)
		return (struct place){ .block = last->block, .insn = next, .ip = crash->mark_ip };
	recent = recent_at(crash, crash->mark_ip);
	if (recent->n > 0 && ptd_run_ip(recent, 0) == crash->mark_ip)
		return (struct place){ .block = recent->block,
				       .insn = recent->first,
				       .ip = crash->mark_ip };
	return (struct place){ .ip = crash->mark_ip };
}

static const struct ptd_symbol *symbol_of(const struct crashes *crashes, const struct place *place)
{
	uint32_t id;

	if (!place->block)
		return place->mapped.symbol;
	id = place->block->insns[place->insn].symbol;
	return id != PTD_NO_SYMBOL && id < crashes->n_symbols ? crashes->symbols[id] : NULL;
}

/* Return: the object that the place is in; NULL: it is not known. */
static const struct ptd_object *object_of(const struct place *place)
{
	return place->block ? place->block->object : place->mapped.object;
}

/* Return: the address as linked. */
static uint64_t address_of(const struct place *place)
{
	return place->block ? place->block->address + place->block->insns[place->insn].offset
			    : place->mapped.address;
}

/* Disassemble the instruction. Return: whether its bytes are known. */
static bool disassemble(const struct crashes *crashes, const struct place *place,
			char ret_text[static TEXT_MAX])
{
	const struct ptd_object *object = object_of(place);
	const struct ptd_insn *insn;
	uint8_t bytes[INSN_SIZE_MAX];
	size_t n;

	if (place->block) {
		insn = &place->block->insns[place->insn];
		(void)text_format(place->block->mode, place->ip, place->block->bytes + insn->offset,
				  insn->size, ret_text);
		return true;
	}
	/* Not what ran, but what would have run next. */
	if (!crashes->decoder || !object)
		return false;
	n = ptd_decoder_code(crashes->decoder, object, address_of(place), bytes, sizeof(bytes));
	return n > 0 && text_format(place->mode, place->ip, bytes, n, ret_text) > 0;
}

/* Find the number of the thread in the call layer: the latest that ran before the signal. */
static const struct ptd_call_thread *find_thread(const struct crashes *crashes,
						 const struct crash *crash)
{
	const struct ptd_call_thread *found = NULL;
	size_t n;
	const struct ptd_call_thread *const *threads = ptd_calls_threads(crashes->calls, &n);

	for (size_t i = 0; i < n; i++)
		if (threads[i]->pid == crash->pid && threads[i]->tid == crash->tid &&
		    threads[i]->t_first <= crash->t &&
		    (!found || threads[i]->t_first >= found->t_first))
			found = threads[i];
	return found;
}

/* Return: whether a branch led to the instruction that did not execute. */
static bool is_behind_branch(const struct crash *crash)
{
	return crash->mark == PTD_MARK_ASYNC && crash->mark_ip && crash->mark_ip != crash->next_ip;
}

/* Return: the class of the last instruction that executed. */
static uint8_t last_class(const struct crash *crash)
{
	const struct place last = last_place(&crash->last);

	return last.block->insns[last.insn].iclass;
}

/* Get the functions that were open. The innermost one is where the signal was taken. */
static int find_frames(const struct crashes *crashes, const struct crash *crash,
		       const struct place *end, struct ptd_frame **ret_frames, size_t *ret_n)
{
	const struct ptd_call_thread *thread = find_thread(crashes, crash);
	const struct ptd_frame *frames = NULL;
	size_t n = 0, n_left;
	struct ptd_frame *own;
	int r = 0;

	if (thread)
		r = ptd_calls_stack(crashes->calls, thread->id, &frames, &n);
	if (r < 0)
		return r;
	own = calloc(n + 1, sizeof(*own));
	if (!own)
		return -ENOMEM;
	/* The last branch may have been a return, which the layer knows by what executes next. */
	if (n == 1)
		n_left = is_behind_branch(crash) && last_class(crash) == PTD_INSN_RETURN;
	else
		n_left = n > 1 && is_behind_branch(crash) && frames[1].ip == end->ip;
	if (n > 0)
		memcpy(own, frames + n_left, (n - n_left) * sizeof(*own));
	/* Where a call or jump led to something else, the function is still that of the branch. */
	if (n > n_left && !is_behind_branch(crash))
		own[0].ip = end->ip;
	*ret_frames = own;
	*ret_n = n - n_left;
	return 0;
}

/* Return: @frames as they were at the end of the thread. */
static struct backtrace backtrace_of(const struct crashes *crashes, const struct crash *crash,
				     const struct ptd_frame *frames, size_t n)
{
	return (struct backtrace){ .frames = frames,
				   .n = n,
				   .decoder = crashes->decoder,
				   .space = crash->space,
				   .t = crash->t };
}

/* Find out what is at an instruction without a known run. Return: 0 or -ENOMEM. */
static int locate(const struct crashes *crashes, const struct crash *crash, struct place *place)
{
	if (place->block || !crashes->decoder)
		return 0;
	place->mode = crash->last.block->mode;
	return ptd_decoder_place(crashes->decoder, crash->space, crash->t, place->ip,
				 &place->mapped);
}

/* Find out where the thread ended, and which functions were open. @ret_frames is the caller's. */
static int look_at_end(const struct crashes *crashes, struct crash *crash, struct place *ret_end,
		       struct ptd_frame **ret_frames, size_t *ret_n)
{
	struct place end = find_end(crash);
	int r;

	r = locate(crashes, crash, &end);
	if (r == 0)
		r = find_frames(crashes, crash, &end, ret_frames, ret_n);
	if (r < 0)
		return r;
	if (is_behind_branch(crash))
		crash->branches[crash->n_branches++ % BRANCHES_MAX] = (struct branch){
			.from = last_place(&crash->last), .to = end, .t = crash->last.t
		};
	*ret_end = end;
	return 0;
}

static const char *signal_name(uint32_t signal)
{
	const char *name = signal < NSIG ? sigabbrev_np((int)signal) : NULL;

	return name ?: "?";
}

/* Return: whether it is known which address the thread could not access. */
static bool has_fault(const struct crash *crash)
{
	/* The code is greater than 0 if the kernel sent the signal. */
	return crash->core && !crash->is_other && crash->core->signal_code > 0 &&
	       (crash->signal == SIGSEGV || crash->signal == SIGBUS);
}

/* --- as text ---------------------------------------------------------------------------------- */

static void put_place(struct output *output, const struct crashes *crashes,
		      const struct place *place)
{
	const struct ptd_symbol *symbol = symbol_of(crashes, place);
	const struct ptd_object *object = object_of(place);

	output_printf(output, "%" PRIx64 " ", place->ip);
	output_name(output, symbol ? symbol->name : "[unknown]");
	if (symbol)
		output_printf(output, "+0x%" PRIx64, address_of(place) - symbol->address);
	if (!object)
		return;
	output_object(output, object->name);
}

/* Write the source line, if it is known, and the functions that are inlined there. */
static int put_line(struct output *output, const struct crashes *crashes, const struct place *place)
{
	const struct ptd_object *object = object_of(place);
	struct ptd_position positions[PTD_POSITIONS_MAX];
	char text[SRCLINE_MAX];
	size_t size;
	int n;

	if (!crashes->decoder || !object)
		return 0;
	n = ptd_decoder_positions(crashes->decoder, object, address_of(place), positions);
	if (n <= 0)
		return n;
	size = srcline_format(positions, (size_t)n, SINK_INLINES, text);
	output_printf(output, "Source: ");
	(void)output_write(output, text, size);
	output_printf(output, "\n");
	return 0;
}

static void put_branches(struct output *output, const struct crashes *crashes,
			 const struct crash *crash)
{
	const uint64_t n = crash->n_branches < BRANCHES_MAX ? crash->n_branches : BRANCHES_MAX;

	output_printf(output, "Last branches taken: %" PRIu64 "\n", n);
	for (uint64_t i = crash->n_branches - n; i < crash->n_branches; i++) {
		const struct branch *b = &crash->branches[i % BRANCHES_MAX];
		char text[TEXT_MAX] = "", time[COLUMN_MAX];

		*column_time(time, crashes->info->clock, b->t) = '\0';
		(void)disassemble(crashes, &b->from, text);
		output_printf(output, "  %s  ", time);
		put_place(output, crashes, &b->from);
		output_printf(output, "  %s  -> ", b->is_interruption ? "interrupted" : text);
		put_place(output, crashes, &b->to);
		output_printf(output, "\n");
	}
}

/* Say which thread it is, and which signal it took. */
static void put_head(struct output *output, const struct crashes *crashes,
		     const struct crash *crash)
{
	char time[COLUMN_MAX];

	output_printf(output, "\nThread %" PRId32 "/%" PRId32 " ", (int32_t)crash->pid,
		      (int32_t)crash->tid);
	output_name(output, crash->comm ?: "?");
	output_printf(output, ": %skilled by signal %" PRIu32 " (SIG%s)",
		      crash->is_other ? "its process was " : "", crash->signal,
		      signal_name(crash->signal));
	if (crash->t != UINT64_MAX) {
		*column_time(time, crashes->info->clock, crash->t) = '\0';
		output_printf(output, " at %s", time + strspn(time, " "));
	}
	if (has_fault(crash))
		output_printf(output, ", which could not access 0x%" PRIx64,
			      crash->core->signal_address);
	output_printf(output, "\n");
}

/* Say which signal the thread handled before. Return: 0 or -ENOMEM. */
static int put_handled(struct output *output, const struct crashes *crashes,
		       const struct crash *crash)
{
	const struct handled *handled = &crash->handled;
	struct place handler = { .ip = handled->handler };
	char time[COLUMN_MAX];
	int r = 0;

	if (handled->t == 0)
		return 0;
	if (crashes->decoder)
		r = ptd_decoder_place(crashes->decoder, crash->space, handled->t, handled->handler,
				      &handler.mapped);
	*column_time(time, crashes->info->clock, handled->t) = '\0';
	output_printf(output, "Signal handled last: %" PRIu32 " (SIG%s) at %s, by ",
		      handled->signal, signal_name(handled->signal), time + strspn(time, " "));
	put_place(output, crashes, &handler);
	output_printf(output, "\n");
	return r;
}

/* Write the functions that were open, as the trace and then the core file know them. */
static int put_backtraces(struct output *output, const struct crashes *crashes,
			  const struct crash *crash, const struct ptd_frame *frames, size_t n)
{
	struct backtrace backtrace = backtrace_of(crashes, crash, frames, n), core;
	const int added = backtrace_add_core(&backtrace, crash->pid, crash->tid);
	int r = added < 0 ? added : 0;

	if (r == 0) {
		output_printf(output, "Backtrace:\n");
		r = backtrace_put(output, &backtrace);
	}
	if (added != BACKTRACE_DIFFERS || r < 0)
		return r;
	core = backtrace_of(crashes, crash, NULL, 0);
	r = backtrace_add_core(&core, crash->pid, crash->tid);
	if (r < 0)
		return r;
	output_printf(output, "Backtrace of the core file, which is another one:\n");
	return backtrace_put(output, &core);
}

static int put_crash(struct output *output, const struct crashes *crashes, struct crash *crash)
{
	struct ptd_frame *frames = NULL;
	char text[TEXT_MAX];
	struct place end;
	size_t n;
	int r;

	put_head(output, crashes, crash);
	r = put_handled(output, crashes, crash);
	if (r < 0)
		return r;
	if (crash->last.n == 0) {
		output_printf(output, "None of its instructions is in the trace.\n");
		return crash->core ? put_backtraces(output, crashes, crash, NULL, 0) : 0;
	}
	r = look_at_end(crashes, crash, &end, &frames, &n);
	if (r < 0)
		return r;
	output_printf(output, "%s: ",
		      crash->mark == PTD_MARK_ASYNC && crash->mark_ip ? "Not executed any more"
								      : "Executed last");
	put_place(output, crashes, &end);
	output_printf(output, ": %s\n",
		      disassemble(crashes, &end, text) ? text : "its bytes are not in the trace");
	r = put_line(output, crashes, &end);
	if (r == 0)
		r = put_backtraces(output, crashes, crash, frames, n);
	free(frames);
	put_branches(output, crashes, crash);
	return r;
}

static int put_text(void *state, const struct ptd_stats *stats, struct output *output)
{
	struct crashes *crashes = state;
	size_t n_others = 0;
	int r = 0;

	for (size_t i = 0; i < crashes->list.n; i++)
		n_others += crashes->list.items[i]->is_other;
	output_printf(output, "Threads killed by a signal: %" PRIu64 "\n",
		      crashes->list.n - n_others + crashes->n_unkept);
	if (n_others > 0)
		output_printf(output, "Other threads in the core file: %zu\n", n_others);
	if (crashes->list.n == 0)
		output_printf(output, "Signals are known of programs that the software source "
				      "recorded, by samples of signal:signal_deliver, and of "
				      "core files (--core).\n");
	for (size_t i = 0; r == 0 && i < crashes->list.n; i++)
		r = put_crash(output, crashes, crashes->list.items[i]);
	if (crashes->n_unkept > 0)
		output_printf(output, "\n%" PRIu64 " more\n", crashes->n_unkept);
	return r;
}

/* --- as JSON ---------------------------------------------------------------------------------- */

static void put_json_line(struct json *json, const struct crashes *crashes,
			  const struct place *place)
{
	const struct ptd_object *object = object_of(place);
	struct ptd_position positions[PTD_POSITIONS_MAX];
	int n = 0;

	if (crashes->decoder && object)
		n = ptd_decoder_positions(crashes->decoder, object, address_of(place), positions);
	if (n <= 0)
		return;
	json_text(json, "file", positions[0].file);
	json_number(json, "line", positions[0].line);
}

static void put_json_place(struct json *json, const char *key, const struct crashes *crashes,
			   const struct place *place)
{
	const struct ptd_symbol *symbol = symbol_of(crashes, place);
	const struct ptd_object *object = object_of(place);
	char text[TEXT_MAX];
	const bool is_known = disassemble(crashes, place, text);

	json_object(json, key);
	json_address(json, "ip", place->ip);
	json_text(json, "instruction", is_known ? text : NULL);
	json_text(json, "symbol", symbol ? symbol->name : NULL);
	json_text(json, "object", object ? object->name : NULL);
	if (object)
		json_address(json, "address", address_of(place));
	put_json_line(json, crashes, place);
	json_close(json);
}

static void put_json_branches(struct json *json, const struct crashes *crashes,
			      const struct crash *crash)
{
	const uint64_t n = crash->n_branches < BRANCHES_MAX ? crash->n_branches : BRANCHES_MAX;

	json_array(json, "branches");
	for (uint64_t i = crash->n_branches - n; i < crash->n_branches; i++) {
		const struct branch *b = &crash->branches[i % BRANCHES_MAX];

		json_object(json, NULL);
		json_number(json, "t", b->t);
		json_bool(json, "interrupted", b->is_interruption);
		put_json_place(json, "from", crashes, &b->from);
		put_json_place(json, "to", crashes, &b->to);
		json_close(json);
	}
	json_close(json);
}

static int put_json_crash(struct json *json, const struct crashes *crashes, struct crash *crash)
{
	struct ptd_frame *frames = NULL;
	struct backtrace backtrace;
	struct place end;
	size_t n = 0;
	int r = 0;

	json_object(json, NULL);
	json_number(json, "pid", crash->pid);
	json_number(json, "tid", crash->tid);
	json_text(json, "comm", crash->comm);
	json_number(json, "signal", crash->signal);
	json_bool(json, "took_signal", !crash->is_other);
	if (has_fault(crash))
		json_address(json, "fault_address", crash->core->signal_address);
	if (crash->handled.t > 0) {
		json_object(json, "handled");
		json_number(json, "signal", crash->handled.signal);
		json_number(json, "t", crash->handled.t);
		json_address(json, "handler", crash->handled.handler);
		json_close(json);
	}
	if (crash->t == UINT64_MAX)
		json_null(json, "t");
	else
		json_number(json, "t", crash->t);
	if (crash->last.n > 0) {
		r = look_at_end(crashes, crash, &end, &frames, &n);
		if (r < 0)
			return r;
		json_bool(json, "executed", crash->mark != PTD_MARK_ASYNC || !crash->mark_ip);
		put_json_place(json, "at", crashes, &end);
	}
	backtrace = backtrace_of(crashes, crash, frames, n);
	if (crash->core) {
		r = backtrace_add_core(&backtrace, crash->pid, crash->tid);
		json_bool(json, "core_differs", r == BACKTRACE_DIFFERS);
	}
	if (r >= 0 && (n > 0 || crash->core))
		r = backtrace_json(json, &backtrace);
	if (crash->last.n > 0)
		put_json_branches(json, crashes, crash);
	free(frames);
	json_close(json);
	return r;
}

static int put_json(void *state, const struct ptd_stats *stats, struct json *json)
{
	struct crashes *crashes = state;
	int r = 0;

	json_number(json, "n_unkept", crashes->n_unkept);
	json_array(json, "threads");
	for (size_t i = 0; r == 0 && i < crashes->list.n; i++)
		r = put_json_crash(json, crashes, crashes->list.items[i]);
	json_close(json);
	return r;
}

/* --- its life --------------------------------------------------------------------------------- */

static int crash_finish(void *state, const struct ptd_stats *stats, struct output *output)
{
	struct crashes *crashes = state;

	return crashes->calls ? ptd_calls_finish(crashes->calls) : 0;
}

static void crash_close(void *state)
{
	struct crashes *crashes = state;

	vec_deinit_each(&crashes->list, crash, free(*crash));
	vec_deinit(&crashes->handled);
	map_deinit(&crashes->threads);
	ptd_calls_free(crashes->calls);
}

static int crash_open(void *state, const struct sink_config *config, struct output *output)
{
	struct crashes *crashes = state;

	crashes->info = config->info;
	crashes->decoder = config->decoder;
	return add_core(crashes);
}

static const struct sink_option options[] = {
	{ .name = "json", .help = "as JSON" },
	{},
};

const struct sink_ops sink_crash = {
	.name = "crash",
	.help = "of each thread that a signal killed: where, its backtrace and last branches",
	.options = options,
	.state_size = sizeof(struct crashes),
	.open = crash_open,
	.sideband = crash_sideband,
	.batch = crash_batch,
	.finish = crash_finish,
	.text = put_text,
	.json = put_json,
	.close = crash_close,
	.writes_last = true,
};
