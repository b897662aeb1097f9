/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/judge.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>

/* The µs between 1601 and 1970; and times past the year 2500, which are ns or another mistake. */
#define TIME_UNIX 11644473600000000u
#define TIME_MAX  (TIME_UNIX + (UINT64_C(1) << 54))

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
	if (flow_in_branch(&judge->flow))
		judge_fault(judge,
			    "a timestamp stands between the branch at %#" PRIx64
			    " and its successor",
			    judge->flow.last.pc);
	if (judge->last_marker == MARKER_WINDOW)
		judge_fault(judge, "a timestamp next to a marker 14 (window) comes before it");
	if (time < TIME_UNIX || time > TIME_MAX)
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
		/* Larger ids are system calls. */
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
		if (judge->last_marker != MARKER_FUNC_RETURN_ADDRESS &&
		    judge->last_marker != MARKER_FUNC_ARGUMENT)
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
	const char *refusal = record_marker_refusal(rec->size);

	if (refusal)
		judge_fault(judge, "marker %u is not allowed here: %s", rec->size, refusal);
	switch (rec->size) {
	case MARKER_SIGNAL:
		if (!flow_signal(&judge->flow, rec->addr))
			judge_fault(judge, "%s", judge->flow.why);
		break;
	case MARKER_TRANSFER:
		if (!flow_transfer(&judge->flow, rec->addr))
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
		break;
	case MARKER_WINDOW:
		if (!flow_window(&judge->flow, rec->addr))
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
	if (judge->expect != EXPECT_FOOTER)
		judge_fault(judge, "the thread's exit (type 23) is missing before the footer");
	if (rec->size != 0 || rec->addr != 0)
		judge_fault(judge, "the footer (type 26) is zero besides its type");
	judge->expect = EXPECT_NOTHING;
}

/* What the record before demands of this one. Return: false if nothing may follow at all. */
static bool check_expected(struct judge *judge, const struct record *rec)
{
	const enum expect expect = judge->expect;

	if (expect == EXPECT_NOTHING) {
		judge_fault(judge, "something follows the footer");
		return false;
	}
	if (expect == EXPECT_FOOTER && rec->type == RECORD_FOOTER)
		return true;
	judge->expect = EXPECT_ANYTHING;
	if (expect == EXPECT_FOOTER)
		judge_fault(judge, "only the footer follows the thread's exit");
	if (expect == EXPECT_CPU && !record_is_marker(rec, MARKER_CPU))
		judge_fault(judge,
			    "a timestamp (marker 2) is directly followed by its cpu (marker 3)");
	return true;
}

/* All that is no instruction, behind the header. */
static void check_other(struct judge *judge, const struct record *rec)
{
	if (rec->type != RECORD_ENCODING && !record_is_marker(rec, MARKER_TARGET))
		drop_pending(judge);
	if (rec->type == RECORD_MARKER) {
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
		judge_fault(judge, "a second thread or pid (type %u), but a file holds one thread",
			    rec->type);
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
		judge_fault(judge, "type %u is not allowed: %s", rec->type,
			    record_type_refusal(rec->type));
		break;
	}
}

static int read_records(struct judge *judge, const uint8_t *bytes, uint64_t n)
{
	for (judge->index = 0; judge->index < n; judge->index++) {
		const struct record rec = record_read(bytes + judge->index * RECORD_SIZE);
		int r;

		/* Something else, a README: one fault is enough. */
		if (judge->index == 0 && rec.type != RECORD_HEADER) {
			judge_fault(judge, "not a trace: the first record is no header (type 25)");
			return 0;
		}
		if (judge_in_header(judge) && judge_header(judge, &rec)) {
			if (rec.type == RECORD_MARKER)
				judge->file->n_markers[rec.size]++;
			continue;
		}
		if (judge->expect != EXPECT_ANYTHING && !check_expected(judge, &rec))
			return 0;
		if (!record_is_insn(&rec)) {
			check_other(judge, &rec);
			continue;
		}
		r = judge_insn(judge, &rec);
		if (r < 0)
			return r;
	}
	judge_header_end(judge);
	if (!judge->is_timed)
		judge_fault(judge, "there is no timestamp with a cpu");
	if (judge->expect != EXPECT_NOTHING)
		judge_fault(judge, "the trace is truncated: no footer (type 26) at its end");
	return 0;
}

int memtrace_check_bytes(struct memtrace *trace, const char *name, const uint8_t *bytes,
			 size_t size, struct memtrace_file *ret_file)
{
	const uint64_t n = size / RECORD_SIZE;
	struct memtrace_file file = { .n_records = n };
	struct judge judge = { .trace = trace, .name = name, .file = &file, .last_marker = -1 };
	int r;

	if (size % RECORD_SIZE) {
		judge.index = n;
		judge_fault(&judge, "%zu bytes are left at the end, but a record has 12",
			    size % RECORD_SIZE);
	}
	if (n == 0) {
		judge_fault(&judge, "not a trace: it is empty");
		*ret_file = file;
		return 0;
	}
	r = codes_init(&judge.codes);
	if (r < 0)
		return r;
	r = read_records(&judge, bytes, n);
	codes_deinit(&judge.codes);
	if (r < 0)
		return r;
	file.n_windows = file.n_insns ? judge.flow.n_gaps + 1 : 0;
	*ret_file = file;
	return 0;
}

void memtrace_peek(const uint8_t *bytes, size_t size, struct memtrace_file *ret_file)
{
	*ret_file = (struct memtrace_file){};
	for (size_t i = 0; i < size / RECORD_SIZE; i++) {
		const struct record rec = record_read(bytes + i * RECORD_SIZE);

		if (record_is_insn(&rec))
			return;
		if (rec.type == RECORD_THREAD)
			ret_file->tid = rec.addr;
		else if (rec.type == RECORD_PID)
			ret_file->pid = rec.addr;
		if (record_is_marker(&rec, MARKER_TIME)) {
			ret_file->first_time = rec.addr;
			return;
		}
	}
}
