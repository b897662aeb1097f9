/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "tests/lib/memtrace.h"
#include "tests/lib/memtrace_code.h"
#include "tests/lib/memtrace_flow.h"
#include "tests/lib/memtrace_record.h"

/* The µs between 1601 and 1970; and times past the year 2500, which are ns or another mistake. */
#define TIME_UNIX 11644473600000000u
#define TIME_MAX  (TIME_UNIX + (UINT64_C(1) << 54))

#define ID_MAX        ((UINT64_C(1) << 48) - 1)
#define INSN_SIZE_MAX 15
#define SIGNAL_MAX    64

/* The only page above the middle of the address space where user code can run. */
#define VSYSCALL_PAGE 0xffffffffff600000u
#define PAGE_SIZE     4096

enum expect {
	EXPECT_ANYTHING,
	EXPECT_CPU,     /* after a timestamp */
	EXPECT_FOOTER,  /* after the thread's exit */
	EXPECT_NOTHING, /* after the footer */
};

struct reader {
	struct memtrace *trace;
	const char *name;           /* borrowed */
	struct memtrace_file *file; /* borrowed */
	uint64_t index;             /* of the record */
	unsigned n_faults;

	unsigned step; /* of the header */
	enum expect expect;
	int last_marker; /* its kind, if the last record was a marker; else -1 */
	bool is_timed;   /* a timestamp and a cpu were seen, or their absence was reported */
	uint64_t time;

	uint8_t pieces[16]; /* of an encoding that waits for its instruction */
	unsigned n_pieces;
	unsigned n_piece_bytes;
	bool has_target; /* a marker 29 waits for its branch */
	uint64_t target;

	struct codes codes;
	struct flow flow;
};

_printf_(2, 3) static void fault(struct reader *r, const char *format, ...)
{
	va_list ap;

	r->trace->n_faults++;
	if (++r->n_faults > MEMTRACE_FAULTS_MAX)
		return;
	fprintf(r->trace->faults, "%s: record %" PRIu64 " (byte %" PRIu64 "): ", r->name, r->index,
		r->index * RECORD_SIZE);
	va_start(ap, format);
	(void)vfprintf(r->trace->faults, format, ap);
	va_end(ap);
	fputc('\n', r->trace->faults);
	if (r->n_faults == MEMTRACE_FAULTS_MAX)
		fprintf(r->trace->faults, "%s: further faults are only counted\n", r->name);
}

/* The records a file begins with. The timestamp and cpu that follow are the body's. */
static const struct header_step {
	uint16_t type;
	uint16_t size;
	bool is_optional;
	uint64_t value; /* 0 if any will do */
	const char *name;
} header_steps[] = {
	{ RECORD_HEADER, 0, false, MEMTRACE_VERSION, "header (type 25)" },
	{ RECORD_MARKER, MARKER_VERSION, false, MEMTRACE_VERSION, "version (marker 12)" },
	{ RECORD_MARKER, MARKER_FILE_TYPE, false, MEMTRACE_FILE_TYPE, "file type (marker 9)" },
	{ RECORD_THREAD, 0, false, 0, "thread (type 22)" },
	{ RECORD_PID, 0, false, 0, "pid (type 24)" },
	{ RECORD_MARKER, MARKER_CACHE_LINE, false, 64, "cache line size (marker 10)" },
	{ RECORD_MARKER, MARKER_CHUNK_INSNS, true, 0, "chunk instruction count (marker 20)" },
	{ RECORD_MARKER, MARKER_PAGE_SIZE, false, PAGE_SIZE, "page size (marker 18)" },
};

static void header_value(struct reader *r, const struct header_step *step, const struct record *rec)
{
	if (step->type == RECORD_HEADER && rec->size != 0)
		fault(r, "the header's size field is 0, not %u", rec->size);
	if (step->type == RECORD_THREAD)
		r->file->tid = rec->addr;
	if (step->type == RECORD_PID)
		r->file->pid = rec->addr;
	if (step->type == RECORD_MARKER && step->size == MARKER_FILE_TYPE)
		r->file->file_type = rec->addr;

	if (step->value && rec->addr != step->value)
		fault(r, "the %s is %" PRIu64 " (%#" PRIx64 "), not %" PRIu64 " (%#" PRIx64 ")",
		      step->name, rec->addr, rec->addr, step->value, step->value);
	else if (rec->addr == 0)
		fault(r, "the %s is 0, which means none", step->name);
	else if (step->type != RECORD_MARKER && rec->addr > ID_MAX)
		fault(r, "the %s is %#" PRIx64 ", not below 2^48", step->name, rec->addr);
}

static void header_missing(struct reader *r, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++) {
		if (!header_steps[i].is_optional)
			fault(r, "the %s is missing here", header_steps[i].name);
	}
}

static bool is_step(const struct header_step *step, const struct record *rec)
{
	return step->type == rec->type && (rec->type != RECORD_MARKER || step->size == rec->size);
}

/* Return: whether the record was one of the header. */
static bool header(struct reader *r, const struct record *rec)
{
	unsigned i = 0;

	while (i < ARRAY_LEN(header_steps) && !is_step(&header_steps[i], rec))
		i++;
	if (i < r->step) {
		fault(r, "the %s comes too late or twice", header_steps[i].name);
	} else {
		header_missing(r, r->step, i);
		r->step = i + 1;
	}
	if (i >= ARRAY_LEN(header_steps))
		return false;
	header_value(r, &header_steps[i], rec);
	return true;
}

/* The record is not what the encoding or marker 29 before it was for. */
static void drop_pending(struct reader *r)
{
	if (r->n_pieces || r->has_target)
		fault(r, "an %s is directly followed by its instruction",
		      r->has_target ? "indirect branch's marker 29" : "encoding");
	r->n_pieces = r->n_piece_bytes = 0;
	r->has_target = false;
}

static void encoding(struct reader *r, const struct record *rec)
{
	if (r->has_target) {
		fault(r, "marker 29 stands between the encoding and the branch, not before the "
			 "encoding");
		r->has_target = false;
	}
	if (rec->size < 1 || rec->size > 8) {
		fault(r, "a piece of an encoding has 1 to 8 bytes, not %u", rec->size);
		return;
	}
	if (r->n_piece_bytes % 8) {
		fault(r, "every piece of an encoding but the last has 8 bytes");
		r->n_pieces = r->n_piece_bytes = 0;
	}
	if (r->n_piece_bytes + rec->size > INSN_SIZE_MAX) {
		fault(r, "an encoding has at most 15 bytes, not %u", r->n_piece_bytes + rec->size);
		r->n_pieces = r->n_piece_bytes = 0;
		return;
	}
	memcpy(r->pieces + r->n_piece_bytes, &rec->addr, rec->size);
	r->n_piece_bytes += rec->size;
	r->n_pieces++;
}

/* The instruction has come that an encoding waits for. */
static int announce(struct reader *r, const struct record *rec, struct code *ret_code)
{
	const unsigned n_bytes = r->n_piece_bytes;

	codes_decode(&r->codes, rec->addr, r->pieces, n_bytes, ret_code);
	if (n_bytes != rec->size)
		fault(r, "an encoding of %u bytes is given for an instruction of size %u", n_bytes,
		      rec->size);
	if (ret_code->class == CODE_UNKNOWN)
		fault(r, "the encoding is no instruction");
	else if (ret_code->size != n_bytes)
		fault(r, "the encoding has %u bytes, but its instruction only %u", n_bytes,
		      ret_code->size);
	r->n_pieces = r->n_piece_bytes = 0;
	return codes_put(&r->codes, *ret_code);
}

static const struct {
	const char *name;
	uint16_t type;
} class_records[CODE_N_CLASSES] = {
	[CODE_PLAIN] = { "an instruction that is no branch", RECORD_INSN },
	[CODE_LOAD_EAX] = { "an instruction that is no branch", RECORD_INSN },
	[CODE_REP] = { "an instruction that is no branch", RECORD_INSN },
	[CODE_SYSCALL] = { "a syscall", RECORD_INSN },
	[CODE_INT80] = { "an int 0x80", RECORD_INSN },
	[CODE_SYSENTER] = { "a sysenter", RECORD_SYSENTER },
	[CODE_JUMP] = { "a direct jump", RECORD_JUMP },
	[CODE_JUMP_COND] = { "a conditional jump", RECORD_TAKEN },
	[CODE_CALL] = { "a direct call", RECORD_CALL },
	[CODE_JUMP_INDIRECT] = { "an indirect jump", RECORD_JUMP_INDIRECT },
	[CODE_CALL_INDIRECT] = { "an indirect call", RECORD_CALL_INDIRECT },
	[CODE_RETURN] = { "a return", RECORD_RETURN },
};

static void check_type(struct reader *r, const struct record *rec, const struct code *code)
{
	const uint16_t type = class_records[code->class].type;

	if (rec->type == RECORD_JUMP_COND)
		fault(r, "type 13 is the old form of conditional jumps; version 7 has 48 and 49");
	else if (type != 0 && rec->type != type &&
		 !(type == RECORD_TAKEN && rec->type == RECORD_UNTAKEN))
		fault(r, "%s at %#" PRIx64 " has type %u%s, not %u",
		      class_records[code->class].name, rec->addr, type,
		      type == RECORD_TAKEN ? " or 49" : "", rec->type);
}

static void check_target(struct reader *r, const struct record *rec, const struct code *code)
{
	if (code->class == CODE_UNKNOWN)
		return;
	if (!code_is_indirect(code)) {
		if (r->has_target)
			fault(
			    r,
			    "a marker 29 stands before an instruction that is no indirect branch");
	} else if (!r->has_target) {
		fault(r, "the indirect branch at %#" PRIx64 " has no marker 29", rec->addr);
	} else if (r->target == 0) {
		fault(r, "marker 29 is 0: an indirect branch's target is what really followed");
	}
}

static bool is_user_pc(uint64_t pc)
{
	return (pc != 0 && pc >> 63 == 0) || pc - VSYSCALL_PAGE < PAGE_SIZE;
}

/* Checks of what is rare, kept out of the way of the rest. */
static void check_insn(struct reader *r, const struct record *rec, const struct code *code)
{
	if (rec->size < 1 || rec->size > INSN_SIZE_MAX)
		fault(r, "an instruction has 1 to 15 bytes, not %u", rec->size);
	if (!is_user_pc(rec->addr))
		fault(r, "%#" PRIx64 " is no address of user code", rec->addr);
	if (!r->is_timed)
		fault(r, "the first timestamp and cpu come before the first instruction");
	r->is_timed = true;
	check_type(r, rec, code);
	check_target(r, rec, code);
}

static int insn(struct reader *r, const struct record *rec)
{
	struct code announced;
	const struct code *code;
	int ret;

	if (r->n_pieces) {
		ret = announce(r, rec, &announced);
		if (ret < 0)
			return ret;
		code = &announced;
	} else {
		code = codes_get(&r->codes, rec->addr);
		if (!code) {
			fault(r,
			      "the first instruction at %#" PRIx64 " in this file has no encoding",
			      rec->addr);
			announced = (struct code){ .pc = rec->addr,
						   .size = (uint8_t)rec->size,
						   .class = CODE_UNKNOWN };
			code = &announced;
		} else if (code->size != rec->size) {
			fault(r,
			      "the instruction at %#" PRIx64 " has size %u, but its last encoding "
			      "%u bytes",
			      rec->addr, rec->size, code->size);
		}
	}
	if (rec->type != RECORD_INSN || class_records[code->class].type != RECORD_INSN ||
	    rec->size - 1u >= INSN_SIZE_MAX || rec->addr - 1 >= INT64_MAX || r->has_target ||
	    !r->is_timed)
		check_insn(r, rec, code);

	if (!flow_insn(&r->flow, code, rec->type, r->has_target ? r->target : 0))
		fault(r, "%s", r->flow.why);
	r->has_target = false;
	r->last_marker = -1;
	r->file->n_insns++;
	if (r->trace->addresses && fwrite(&rec->addr, 8, 1, r->trace->addresses) != 1)
		return -EIO;
	return 0;
}

static void timestamp(struct reader *r, uint64_t time)
{
	if (flow_in_branch(&r->flow))
		fault(r, "a timestamp stands between the branch at %#" PRIx64 " and its successor",
		      r->flow.last.pc);
	if (r->last_marker == MARKER_WINDOW)
		fault(r, "a timestamp next to a marker 14 (window) comes before it");
	if (time < TIME_UNIX || time > TIME_MAX)
		fault(r, "%" PRIu64 " is no time in microseconds since 1601", time);
	else if (time < r->time)
		fault(r, "time goes back: %" PRIu64 " follows %" PRIu64, time, r->time);
	if (!r->file->first_time)
		r->file->first_time = time;
	r->time = time;
	r->expect = EXPECT_CPU;
}

/* Markers 4 to 7 and 30, which tell of functions and come in an order. */
static void function(struct reader *r, uint16_t kind, uint64_t value)
{
	const struct code *last = &r->flow.last;
	const bool in_flow = r->flow.state == FLOW_INSN;

	switch (kind) {
	case MARKER_FUNC_ID:
		/* Larger ids are system calls. */
		if (value >> 32 == 0 && in_flow && !code_is_branch(last))
			fault(r, "marker 4 (function) comes right after the branch that enters or "
				 "leaves");
		break;
	case MARKER_FUNC_RETURN_ADDRESS:
		if (r->last_marker != MARKER_FUNC_ID)
			fault(r, "marker 5 (return address) comes right after marker 4");
		if (in_flow && (last->class == CODE_CALL || last->class == CODE_CALL_INDIRECT) &&
		    value != code_end(last))
			fault(r, "marker 5 says that the call at %#" PRIx64 " returns to %#" PRIx64,
			      last->pc, value);
		break;
	case MARKER_FUNC_ARGUMENT:
		if (r->last_marker != MARKER_FUNC_RETURN_ADDRESS &&
		    r->last_marker != MARKER_FUNC_ARGUMENT)
			fault(r,
			      "marker 6 (argument) comes right after marker 5 or another argument");
		break;
	case MARKER_FUNC_VALUE:
		if (r->last_marker != MARKER_FUNC_ID)
			fault(r, "marker 7 (return value) comes right after marker 4");
		else if (in_flow && code_is_branch(last) && last->class != CODE_RETURN)
			fault(r, "marker 7 (return value) does not follow a return");
		break;
	default:
		if (r->last_marker != MARKER_FUNC_VALUE)
			fault(r, "marker 30 (system call failed) comes right after marker 7");
		break;
	}
}

static void marker(struct reader *r, const struct record *rec)
{
	const char *refusal = record_marker_refusal(rec->size);

	if (refusal)
		fault(r, "marker %u is not allowed here: %s", rec->size, refusal);
	switch (rec->size) {
	case MARKER_SIGNAL:
		if (!flow_signal(&r->flow, rec->addr))
			fault(r, "%s", r->flow.why);
		break;
	case MARKER_TRANSFER:
		if (!flow_transfer(&r->flow, rec->addr))
			fault(r, "%s", r->flow.why);
		break;
	case MARKER_TIME:
		timestamp(r, rec->addr);
		break;
	case MARKER_CPU:
		if (r->last_marker != MARKER_TIME)
			fault(r, "a cpu (marker 3) comes right after a timestamp (marker 2)");
		else
			r->is_timed = true;
		break;
	case MARKER_WINDOW:
		if (!flow_window(&r->flow, rec->addr))
			fault(r, "%s", r->flow.why);
		break;
	case MARKER_TARGET:
		if (r->has_target)
			fault(r, "an indirect branch has one marker 29");
		r->has_target = true;
		r->target = rec->addr;
		break;
	case MARKER_SIGNAL_NUMBER:
		if (r->last_marker != MARKER_SIGNAL)
			fault(r, "marker 40 (signal number) comes right after marker 0");
		if (rec->addr < 1 || rec->addr > SIGNAL_MAX)
			fault(r, "%" PRIu64 " is no signal", rec->addr);
		break;
	case MARKER_FUNC_ID ... MARKER_FUNC_VALUE:
	case MARKER_SYSCALL_FAILED:
		function(r, rec->size, rec->addr);
		break;
	default:
		break;
	}
	r->last_marker = rec->size;
	r->file->n_markers[rec->size < MARKER_USER ? rec->size : MARKER_USER]++;
}

static void footer(struct reader *r, const struct record *rec)
{
	if (r->expect != EXPECT_FOOTER)
		fault(r, "the thread's exit (type 23) is missing before the footer");
	if (rec->size != 0 || rec->addr != 0)
		fault(r, "the footer (type 26) is zero besides its type");
	r->expect = EXPECT_NOTHING;
}

/* What the record before demands of this one. Return: false if nothing may follow at all. */
static bool check_expected(struct reader *r, const struct record *rec)
{
	const enum expect expect = r->expect;

	if (expect == EXPECT_NOTHING) {
		fault(r, "something follows the footer");
		return false;
	}
	if (expect == EXPECT_FOOTER && rec->type == RECORD_FOOTER)
		return true;
	r->expect = EXPECT_ANYTHING;
	if (expect == EXPECT_FOOTER)
		fault(r, "only the footer follows the thread's exit");
	if (expect == EXPECT_CPU && !record_is_marker(rec, MARKER_CPU))
		fault(r, "a timestamp (marker 2) is directly followed by its cpu (marker 3)");
	return true;
}

/* All that is no instruction, behind the header. */
static void other(struct reader *r, const struct record *rec)
{
	if (rec->type != RECORD_ENCODING && !record_is_marker(rec, MARKER_TARGET))
		drop_pending(r);
	if (rec->type == RECORD_MARKER) {
		marker(r, rec);
		return;
	}

	r->last_marker = -1;
	switch (rec->type) {
	case RECORD_ENCODING:
		encoding(r, rec);
		break;
	case RECORD_HEADER:
		fault(r, "a second header (type 25)");
		break;
	case RECORD_THREAD:
	case RECORD_PID:
		fault(r, "a second thread or pid (type %u), but a file holds one thread",
		      rec->type);
		break;
	case RECORD_EXIT:
		if (rec->addr != r->file->tid)
			fault(r, "thread %" PRIu64 " exits in the file of thread %" PRIu64,
			      rec->addr, r->file->tid);
		r->expect = EXPECT_FOOTER;
		break;
	case RECORD_FOOTER:
		footer(r, rec);
		break;
	default:
		fault(r, "type %u is not allowed: %s", rec->type, record_type_refusal(rec->type));
		break;
	}
}

static int read_records(struct reader *r, const uint8_t *bytes, uint64_t n)
{
	for (r->index = 0; r->index < n; r->index++) {
		const struct record rec = record_read(bytes + r->index * RECORD_SIZE);
		int ret;

		/* Something else, a README: one fault is enough. */
		if (r->index == 0 && rec.type != RECORD_HEADER) {
			fault(r, "not a trace: the first record is no header (type 25)");
			return 0;
		}
		if (r->step < ARRAY_LEN(header_steps) && header(r, &rec)) {
			if (rec.type == RECORD_MARKER)
				r->file->n_markers[rec.size]++;
			continue;
		}
		if (r->expect != EXPECT_ANYTHING && !check_expected(r, &rec))
			return 0;
		if (!record_is_insn(&rec)) {
			other(r, &rec);
			continue;
		}
		ret = insn(r, &rec);
		if (ret < 0)
			return ret;
	}
	header_missing(r, r->step, ARRAY_LEN(header_steps));
	if (!r->is_timed)
		fault(r, "there is no timestamp with a cpu");
	if (r->expect != EXPECT_NOTHING)
		fault(r, "the trace is truncated: no footer (type 26) at its end");
	return 0;
}

int memtrace_check_bytes(struct memtrace *trace, const char *name, const uint8_t *bytes,
			 size_t size, struct memtrace_file *ret_file)
{
	const uint64_t n = size / RECORD_SIZE;
	struct memtrace_file file = { .n_records = n };
	struct reader r = { .trace = trace, .name = name, .file = &file, .last_marker = -1 };
	int ret;

	if (size % RECORD_SIZE) {
		r.index = n;
		fault(&r, "%zu bytes are left at the end, but a record has 12", size % RECORD_SIZE);
	}
	if (n == 0) {
		fault(&r, "not a trace: it is empty");
		*ret_file = file;
		return 0;
	}
	ret = codes_init(&r.codes);
	if (ret < 0)
		return ret;
	ret = read_records(&r, bytes, n);
	codes_deinit(&r.codes);
	if (ret < 0)
		return ret;
	file.n_windows = file.n_insns ? r.flow.n_gaps + 1 : 0;
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
