/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/judge/judge.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/drmemtrace/container.h"
#include "tests/judge/judge_record.h"
#include "util/suffix.h"

/* Times past the year 2500 are ns or another mistake. */
#define TIME_MAX (TRACE_TIME_UNIX + (UINT64_C(1) << 54))

#define READ_SIZE (RECORD_SIZE * (UINT32_C(1) << 13))

#define SIGNAL_MAX 64

void judge_fault(struct judge *judge, const char *format, ...)
{
	va_list ap;

	judge->trace->n_faults++;
	if (++judge->n_faults > MEMTRACE_FAULTS_MAX)
		return;
	fprintf(judge->trace->faults, "%s: record %" PRIu64 " (byte %" PRIu64 "): ", judge->name,
		judge->index, judge->index * RECORD_SIZE);
	va_start(ap, format);
	(void)vfprintf(judge->trace->faults, format, ap);
	va_end(ap);
	fputc('\n', judge->trace->faults);
	if (judge->n_faults == MEMTRACE_FAULTS_MAX)
		fprintf(judge->trace->faults, "%s: further faults are only counted\n", judge->name);
}

/* The record is not what the encoding or marker 29 before it was for. */
static void drop_pending(struct judge *judge)
{
	if (judge->n_pieces || judge->has_target)
		judge_fault(judge, "an %s is directly followed by its instruction",
			    judge->has_target ? "indirect branch's marker 29" : "encoding");
	judge->n_pieces = judge->n_piece_bytes = 0;
	judge->has_target = false;
}

static void check_timestamp(struct judge *judge, uint64_t time)
{
	if (judge_flow_in_branch(&judge->flow))
		judge_fault(judge,
			    "a timestamp stands between the branch at %#" PRIx64
			    " and its successor",
			    judge->flow.last.pc);
	if (judge->last_marker == MARKER_WINDOW)
		judge_fault(judge, "a timestamp next to a marker 14 (window) comes before it");
	if (time < TRACE_TIME_UNIX || time > TIME_MAX)
		judge_fault(judge, "%" PRIu64 " is no time in microseconds since 1601", time);
	else if (time < judge->time)
		judge_fault(judge, "time goes back: %" PRIu64 " follows %" PRIu64, time,
			    judge->time);
	if (!judge->file->first_time)
		judge->file->first_time = time;
	judge->time = time;
	judge->expect = EXPECT_CPU;
}

/* Markers 4 to 7 and 30, which tell of functions and come in an order. */
static void check_function(struct judge *judge, uint16_t kind, uint64_t value)
{
	const struct code *last = &judge->flow.last;
	const bool in_flow = judge->flow.state == FLOW_INSN;

	switch (kind) {
	case MARKER_FUNC_ID:
		judge->function = value;
		/* Larger ids are system calls. */
		if (value >> 32 == 0 && !names_have(&judge->trace->functions, value))
			judge_fault(judge,
				    "marker 4 names function %" PRIu64
				    ", which funclist.log does not have",
				    value);
		if (value >> 32 == 0 && in_flow && !code_is_branch(last))
			judge_fault(
			    judge,
			    "marker 4 (function) comes right after the branch that enters or "
			    "leaves");
		break;
	case MARKER_FUNC_RETURN_ADDRESS:
		if (judge->last_marker != MARKER_FUNC_ID)
			judge_fault(judge, "marker 5 (return address) comes right after marker 4");
		if (in_flow && (last->class == CODE_CALL || last->class == CODE_CALL_INDIRECT) &&
		    value != code_end(last))
			judge_fault(judge,
				    "marker 5 says that the call at %#" PRIx64
				    " returns to %#" PRIx64,
				    last->pc, value);
		break;
	case MARKER_FUNC_ARGUMENT:
		/* A system call returns to where it was made. */
		if (judge->last_marker != MARKER_FUNC_RETURN_ADDRESS &&
		    judge->last_marker != MARKER_FUNC_ARGUMENT &&
		    !(judge->last_marker == MARKER_FUNC_ID && judge->function >> 32))
			judge_fault(
			    judge,
			    "marker 6 (argument) comes right after marker 5 or another argument");
		break;
	case MARKER_FUNC_VALUE:
		if (judge->last_marker != MARKER_FUNC_ID)
			judge_fault(judge, "marker 7 (return value) comes right after marker 4");
		break;
	default:
		if (judge->last_marker != MARKER_FUNC_VALUE)
			judge_fault(judge,
				    "marker 30 (system call failed) comes right after marker 7");
		break;
	}
}

static void check_marker(struct judge *judge, const struct record *rec)
{
	const char *refusal =
	    record_marker_refusal(rec->size, judge->file->file_type, judge->is_zip);

	if (refusal)
		judge_fault(judge, "marker %u is not allowed here: %s", rec->size, refusal);
	switch (rec->size) {
	case MARKER_SIGNAL:
		if (judge_has(judge, FILE_TYPE_WHOLE))
			judge_fault(judge,
				    "marker 0 (signal) has no place in a whole-system trace");
		if (!judge_flow_signal(&judge->flow, rec->addr))
			judge_fault(judge, "%s", judge->flow.why);
		break;
	case MARKER_TRANSFER:
		if (!judge_flow_transfer(&judge->flow, rec->addr))
			judge_fault(judge, "%s", judge->flow.why);
		break;
	case MARKER_TIME:
		check_timestamp(judge, rec->addr);
		break;
	case MARKER_CPU:
		if (judge->last_marker != MARKER_TIME)
			judge_fault(judge,
				    "a cpu (marker 3) comes right after a timestamp (marker 2)");
		else
			judge->is_timed = true;
		judge->cpu = rec->addr;
		break;
	case MARKER_SYSCALL ... MARKER_SYSCALL_END:
	case MARKER_HARDWARE_EVENT ... MARKER_HARDWARE_RETURN:
		if (!refusal)
			judge_kernel_marker(judge, rec);
		break;
	case MARKER_WINDOW:
		if (!judge_flow_window(&judge->flow, rec->addr))
			judge_fault(judge, "%s", judge->flow.why);
		break;
	case MARKER_TARGET:
		if (judge->has_target)
			judge_fault(judge, "an indirect branch has one marker 29");
		judge->has_target = true;
		judge->target = rec->addr;
		break;
	case MARKER_SIGNAL_NUMBER:
		if (judge->last_marker != MARKER_SIGNAL)
			judge_fault(judge, "marker 40 (signal number) comes right after marker 0");
		if (rec->addr < 1 || rec->addr > SIGNAL_MAX)
			judge_fault(judge, "%" PRIu64 " is no signal", rec->addr);
		break;
	case MARKER_USER:
		if (rec->addr != 0 && !names_have(&judge->trace->symbols, rec->addr))
			judge_fault(judge,
				    "marker 101 names symbol %" PRIu64
				    ", which symbols.tsv does not have",
				    rec->addr);
		break;
	case MARKER_FUNC_ID ... MARKER_FUNC_VALUE:
	case MARKER_SYSCALL_FAILED:
		check_function(judge, rec->size, rec->addr);
		break;
	default:
		break;
	}
	judge->last_marker = rec->size;
	judge->file->n_markers[rec->size < MARKER_USER ? rec->size : MARKER_USER]++;
}

static void check_footer(struct judge *judge, const struct record *rec)
{
	if (judge->expect != EXPECT_FOOTER && !judge_has(judge, FILE_TYPE_CORES))
		judge_fault(judge, "the thread's exit (type 23) is missing before the footer");
	if (rec->size != 0 || rec->addr != 0)
		judge_fault(judge, "the footer (type 26) is zero besides its type");
	judge->expect = EXPECT_NOTHING;
}

/* What the record before demands of this one. Return: false if nothing may follow at all. */
static bool check_expected(struct judge *judge, const struct record *rec)
{
	const enum expect expect = judge->expect;

	/* In the file of a core each thread has a footer. */
	if (expect == EXPECT_NOTHING && !judge_has(judge, FILE_TYPE_CORES)) {
		judge_fault(judge, "something follows the footer");
		return false;
	}
	if (expect == EXPECT_FOOTER && rec->type == RECORD_FOOTER)
		return true;
	judge->expect = EXPECT_ANYTHING;
	judge->is_pid_due = expect == EXPECT_PID && rec->type == RECORD_PID;
	if (expect == EXPECT_PID && rec->type != RECORD_PID)
		judge_fault(judge, "a thread (type 22) is directly followed by its pid (type 24)");
	if (expect == EXPECT_FOOTER)
		judge_fault(judge, "only the footer follows the thread's exit");
	if (expect == EXPECT_CPU && !record_is_marker(rec, MARKER_CPU))
		judge_fault(judge,
			    "a timestamp (marker 2) is directly followed by its cpu (marker 3)");
	return true;
}

/* Another thread comes to the core. */
static void check_switch(struct judge *judge, const struct record *rec)
{
	if (!judge_has(judge, FILE_TYPE_CORES)) {
		judge_fault(judge, "a second thread or pid (type %u), but a file holds one thread",
			    rec->type);
		return;
	}
	if (rec->type == RECORD_PID) {
		if (!judge->is_pid_due)
			judge_fault(judge,
				    "a pid (type 24) comes right after its thread (type 22)");
		judge->is_pid_due = false;
		judge->file->pid = rec->addr;
		return;
	}
	judge->file->tid = rec->addr;
	judge->expect = EXPECT_PID;
	judge->call_step = CALL_NONE;
	judge->n_events = 0;
	judge_flow_switch(&judge->flow);
}

/* In the file of a core, a thread that comes to it for the first time has a header of its own. */
static void check_next_header(struct judge *judge)
{
	drop_pending(judge);
	judge_header_again(judge);
	judge->expect = EXPECT_ANYTHING;
	judge->call_step = CALL_NONE;
	judge->n_events = 0;
	judge->after_insn = false;
	judge->last_marker = -1;
	judge_flow_switch(&judge->flow);
}

static void check_data(struct judge *judge, const struct record *rec)
{
	const struct code *last = &judge->flow.last;
	const char *refusal = record_type_refusal(rec->type, judge->file->file_type);

	if (refusal)
		judge_fault(judge, "type %u is not allowed: %s", rec->type, refusal);
	else if (!judge->after_insn)
		judge_fault(judge, "type %u does not follow the instruction that it belongs to",
			    rec->type);
	else if (rec->type <= RECORD_WRITE && last->has_data && rec->addr != code_target(last))
		judge_fault(judge,
			    "type %u is at %#" PRIx64
			    ", but the data of the instruction at %#" PRIx64 " are at %#" PRIx64,
			    rec->type, rec->addr, last->pc, code_target(last));
}

/* All that is no instruction, behind the header. */
static void check_other(struct judge *judge, const struct record *rec)
{
	if (rec->type != RECORD_ENCODING && !record_is_marker(rec, MARKER_TARGET))
		drop_pending(judge);
	judge_kernel_other(judge, rec);
	if (rec->type == RECORD_MARKER) {
		judge->after_insn = false;
		check_marker(judge, rec);
		return;
	}

	judge->last_marker = -1;
	switch (rec->type) {
	case RECORD_ENCODING:
		judge_encoding(judge, rec);
		break;
	case RECORD_HEADER:
		judge_fault(judge, "a second header (type 25)");
		break;
	case RECORD_THREAD:
	case RECORD_PID:
		check_switch(judge, rec);
		break;
	case RECORD_EXIT:
		if (rec->addr != judge->file->tid)
			judge_fault(judge,
				    "thread %" PRIu64 " exits in the file of thread %" PRIu64,
				    rec->addr, judge->file->tid);
		judge->expect = EXPECT_FOOTER;
		break;
	case RECORD_FOOTER:
		check_footer(judge, rec);
		break;
	default:
		check_data(judge, rec);
		return;
	}
	judge->after_insn = false;
}

/* The cpu is known: note what schedule files must have. */
static int add_to_schedule(struct judge *judge)
{
	struct memtrace *trace = judge->trace;

	if (!trace->serial_schedule && !trace->cpu_schedule)
		return 0;
	return schedule_add(&trace->schedule, (struct schedule_entry){
						  .tid = judge->file->tid,
						  .time = judge->time,
						  .cpu = judge->cpu,
						  .n_insns = judge->file->n_insns,
					      });
}

/* Check the next record. Return: 0, or negative errno. */
static int judge_record(struct judge *judge, const struct record *rec)
{
	/* Something else, a README: one fault is enough. */
	if (judge->index == 0 && rec->type != RECORD_HEADER) {
		judge_fault(judge, "not a trace: the first record is no header (type 25)");
		judge->is_over = true;
		return 0;
	}
	if (rec->type == RECORD_HEADER && judge_has(judge, FILE_TYPE_CORES))
		check_next_header(judge);
	if (judge_in_header(judge) && judge_header(judge, rec)) {
		if (rec->type == RECORD_MARKER) {
			judge->file->n_markers[rec->size]++;
			judge->n_visible++;
		}
		return 0;
	}
	if (judge_chunk(judge, rec))
		return 0;
	if (judge->expect != EXPECT_ANYTHING && !check_expected(judge, rec)) {
		judge->is_over = true;
		return 0;
	}
	if (record_is_insn(rec))
		return judge_insn(judge, rec);
	check_other(judge, rec);
	return record_is_marker(rec, MARKER_CPU) ? add_to_schedule(judge) : 0;
}

/* Check the next @size bytes of the file. Return: 0, or negative errno. */
static int judge_bytes(struct judge *judge, const uint8_t *bytes, size_t size)
{
	int r = 0;

	while (size > 0 && r == 0 && !judge->is_over) {
		const size_t n =
		    judge->n_cut || size < RECORD_SIZE ? RECORD_SIZE - judge->n_cut : RECORD_SIZE;
		const size_t taken = n < size ? n : size;
		const uint8_t *at = bytes;
		struct record rec;

		bytes += taken;
		size -= taken;
		if (judge->n_cut || taken < RECORD_SIZE) {
			memcpy(judge->cut + judge->n_cut, at, taken);
			judge->n_cut += taken;
			if (judge->n_cut < RECORD_SIZE)
				break;
			judge->n_cut = 0;
			at = judge->cut;
		}
		rec = record_read(at);
		r = judge_record(judge, &rec);
		judge->index++;
		judge->file->n_records++;
	}
	return r;
}

/* Begin to check @file, which is all zero. Return: 0 or -ENOMEM. */
static int judge_begin(struct judge *judge, struct memtrace *trace, const char *name,
		       struct memtrace_file *file)
{
	*judge = (struct judge){ .trace = trace, .name = name, .file = file, .last_marker = -1 };
	schedule_begin_file(&trace->schedule);
	return codes_init(&judge->codes);
}

/* The file, or a component of it, is over. */
static void end_bytes(struct judge *judge)
{
	if (judge->n_cut)
		judge_fault(judge, "%zu bytes are left at the end, but a record has 12",
			    judge->n_cut);
	judge->n_cut = 0;
}

static void judge_finish(struct judge *judge)
{
	end_bytes(judge);
	if (judge->is_over)
		return;
	if (judge->index == 0) {
		judge_fault(judge, "not a trace: it is empty");
		return;
	}
	judge_header_end(judge);
	if (!judge->is_timed)
		judge_fault(judge, "there is no timestamp with a cpu");
	if (judge->expect != EXPECT_NOTHING)
		judge_fault(judge, "the trace is truncated: no footer (type 26) at its end");
	judge->file->n_windows = judge->file->n_insns ? judge->flow.n_gaps + 1 : 0;
}

/* Return: 0, or negative errno. */
static int judge_container(struct judge *judge, struct container *container)
{
	_cleanup_(freep) uint8_t *bytes = malloc(READ_SIZE);
	uint64_t component = 0;
	size_t n;
	int r;

	if (!bytes)
		return -ENOMEM;
	do {
		r = container_read(container, bytes, READ_SIZE, &n);
		if (r == -EBADMSG) {
			judge_fault(judge, "the compressed bytes are damaged, or end too early");
			return 0;
		}
		if (r == 0 && n > 0 && container_component(container) != component) {
			component = container_component(container);
			end_bytes(judge);
			r = judge_component(judge);
		}
		if (r == 0)
			r = judge_bytes(judge, bytes, n);
	} while (r == 0 && n > 0 && !judge->is_over);
	return r;
}

int memtrace_check_file(struct memtrace *trace, const char *path, struct memtrace_file *ret_file)
{
	_cleanup_(container_freep) struct container *container = NULL;
	struct memtrace_file file = {};
	struct judge judge;
	int r;

	r = judge_begin(&judge, trace, path, &file);
	if (r < 0)
		return r;
	judge.is_zip = suffix_is(path, ".zip");
	r = container_open(path, &container);
	if (r == 0)
		r = judge_container(&judge, container);
	else if (r == -EBADMSG)
		judge_fault(&judge, "it is not compressed as its suffix states");
	if (r == 0 && container)
		judge_finish(&judge);
	codes_deinit(&judge.codes);
	if (r < 0 && r != -EBADMSG)
		return r;
	*ret_file = file;
	return 0;
}

int memtrace_check_bytes(struct memtrace *trace, const char *name, const uint8_t *bytes,
			 size_t size, struct memtrace_file *ret_file)
{
	struct memtrace_file file = {};
	struct judge judge;
	int r;

	r = judge_begin(&judge, trace, name, &file);
	if (r < 0)
		return r;
	r = judge_bytes(&judge, bytes, size);
	if (r == 0)
		judge_finish(&judge);
	codes_deinit(&judge.codes);
	if (r < 0)
		return r;
	*ret_file = file;
	return 0;
}

int memtrace_peek(const char *path, struct memtrace_file *ret_file)
{
	_cleanup_(container_freep) struct container *container = NULL;
	struct memtrace_file file = {};
	uint8_t bytes[RECORD_SIZE];
	struct record rec;
	size_t n;
	int r;

	r = container_open(path, &container);
	while (r == 0) {
		r = container_read(container, bytes, sizeof(bytes), &n);
		if (r < 0 || n < sizeof(bytes))
			break;
		rec = record_read(bytes);
		if (record_is_insn(&rec) || file.first_time)
			break;
		if (rec.type == RECORD_THREAD)
			file.tid = rec.addr;
		else if (rec.type == RECORD_PID)
			file.pid = rec.addr;
		else if (record_is_marker(&rec, MARKER_TIME))
			file.first_time = rec.addr;
	}
	if (r < 0 && r != -EBADMSG)
		return r;
	*ret_file = file;
	return 0;
}
