/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Trace source: drmemtrace directories that are put together here, read by the library, and what
 * comes out as text: a line for each slice, instruction and mark.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "ptd/decode.h"
#include "tests/lib/tempdir.h"
#include "tests/lib/traceparts.h"

#define RECORDS_MAX 64

static const char heading[] =
    "id\tname\tobject\tbuild_id\taddress\tsize\tkind\tpid\tjit_index\tvalid_from\n";

/* A directory, and what it is read as. */
struct row {
	const char *name;
	struct {
		const char *name;
		struct record records[RECORDS_MAX];
	} files[3];
	const char *symbols; /* aux/symbols.tsv without its first line; NULL: there is none */
	struct ptd_part part;
	const char *text;
	const char *mappings; /* aux/mappings.tsv, likewise */
};

static char dir[TEMPDIR_SIZE];

static size_t n_records(const struct record *records)
{
	size_t n = RECORDS_MAX;

	while (n > 0 && records[n - 1].type == 0 && records[n - 1].addr == 0)
		n--;
	return n;
}

static void make_dir(const struct row *row)
{
	tempdir_make("tracesource", dir);
	for (size_t i = 0; i < ARRAY_LEN(row->files) && row->files[i].name; i++) {
		const size_t n = n_records(row->files[i].records);
		uint8_t bytes[RECORDS_MAX * RECORD_SIZE];
		char path[128];

		trace_put(row->files[i].records, n, bytes);
		(void)snprintf(path, sizeof(path), "trace/%s", row->files[i].name);
		tempdir_put(dir, path, bytes, n * RECORD_SIZE);
	}
	if (row->symbols) {
		char *text;

		assert_true(asprintf(&text, "%s%s", heading, row->symbols) > 0);
		tempdir_put_text(dir, "aux/symbols.tsv", text);
		free(text);
	}
	if (row->mappings) {
		char *text;

		assert_true(asprintf(&text, "pid\tobject\tbuild_id\tbase\tvalid_from\n%s",
				     row->mappings) > 0);
		tempdir_put_text(dir, "aux/mappings.tsv", text);
		free(text);
	}
}

static void print_mark(FILE *f, const struct ptd_mark *mark)
{
	fprintf(f, "[%s%s%s", ptd_mark_kind_name(mark->kind), mark->kind == PTD_MARK_GAP ? " " : "",
		mark->kind == PTD_MARK_GAP ? ptd_gap_reason_name(mark->reason) : "");
	if (mark->ip)
		fprintf(f, " %" PRIx64, mark->ip);
	fprintf(f, "]\n");
}

static void print_run(FILE *f, const struct ptd_batch *batch, const struct ptd_run *run)
{
	assert_true((size_t)run->first + run->n <= run->block->n_insns && run->n > 0);
	for (size_t i = 0; i < run->n; i++) {
		const struct ptd_insn *insn = &run->block->insns[run->first + i];

		assert_true(insn->symbol < batch->n_symbols);
		fprintf(f, "%" PRIx64, ptd_run_ip(run, i));
		if (insn->symbol != PTD_NO_SYMBOL)
			fprintf(f, " %s+%" PRIx64, batch->symbols[insn->symbol]->name,
				run->block->address + insn->offset -
				    batch->symbols[insn->symbol]->address);
		if (run->block->object->name[0] != '[')
			fprintf(f, " %s", run->block->object->name);
		fprintf(f, "\n");
	}
}

/* Read the directory. Return: the text, which the caller frees. */
static char *read_dir(const struct ptd_part *part, int *ret_r)
{
	struct ptd_options options = { .size = sizeof(options), .input = dir, .part = *part };
	const struct ptd_batch *batch;
	struct ptd_decoder *d = NULL;
	uint64_t slice = UINT64_MAX;
	char *text = NULL, *message = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	int r;

	assert_non_null(f);
	r = ptd_decoder_new(&options, &d, &message);
	if (r < 0)
		fprintf(f, "%s",
			message ? message + (strstr(message, dir) ? strlen(dir) + 1 : 0)
				: "no message");
	while (r == 0 && (r = ptd_decoder_next(d, &batch)) == 0) {
		size_t m = 0;

		if (batch->slice->id != slice)
			fprintf(f, "cpu %" PRIu32 " %" PRIu32 "/%" PRIu32 " %s %" PRIu64 "\n",
				batch->slice->cpu, batch->slice->pid, batch->slice->tid,
				batch->slice->comm, batch->slice->t0 / 1000 % 1000000);
		slice = batch->slice->id;
		for (size_t i = 0; i <= batch->n_runs; i++) {
			while (m < batch->n_marks && batch->marks[m].run == i)
				print_mark(f, &batch->marks[m++]);
			if (i < batch->n_runs)
				print_run(f, batch, &batch->runs[i]);
		}
		assert_int_equal(m, batch->n_marks);
	}
	if (d)
		(void)ptd_decoder_stats(d);
	ptd_decoder_free(d);
	free(message);
	assert_int_equal(fclose(f), 0);
	*ret_r = r;
	return text;
}

static void run_rows(const struct row *rows, size_t n, int expected)
{
	for (size_t i = 0; i < n; i++) {
		char *text;
		int r;

		print_message("  %s\n", rows[i].name);
		make_dir(&rows[i]);
		text = read_dir(&rows[i].part, &r);
		tempdir_remove(dir);
		assert_string_equal(text, rows[i].text);
		assert_int_equal(r, expected ?: PTD_END);
		free(text);
	}
}

#define NOP(pc)      TRACE_CODE(1, 0x90), TRACE_REC(10, 1, pc)
#define SYSCALL(pc)  TRACE_CODE(2, 0x050f), TRACE_REC(10, 2, pc)
#define A            "drmemtrace.a.1001.0000.trace"
#define B            "drmemtrace.b.c.1002.0000.trace"
#define BEGIN_A      TRACE_HEADER(0x344, 1001, 1000, 5, 0)
#define FIRST_LINE_A "cpu 0 1000/1001 a 5\n"

static void instructions(void **state)
{
	static const struct row rows[] = {
		{ .name = "straight code, a loop, and out of it",
		  { { A,
		      { BEGIN_A, NOP(0x401000), NOP(0x401001), TRACE_CODE(2, 0xfd75),
			TRACE_REC(48, 2, 0x401002), TRACE_REC(10, 1, 0x401001),
			TRACE_REC(49, 2, 0x401002), NOP(0x401004), TRACE_END(1001) } } },
		  .text = FIRST_LINE_A "401000\n401001\n401002\n401001\n401002\n401004\n" },
		{ .name = "a conditional jump as old traces have it, which say only where it goes",
		  { { A,
		      { BEGIN_A, NOP(0x401000), TRACE_CODE(2, 0xfd75), TRACE_REC(13, 2, 0x401001),
			TRACE_REC(10, 1, 0x401000), TRACE_REC(13, 2, 0x401001), NOP(0x401003),
			TRACE_END(1001) } } },
		  .text = FIRST_LINE_A "401000\n401001\n401000\n401001\n401003\n" },
		{ .name = "a conditional jump to neither place, and a direct one elsewhere",
		  { { A,
		      { BEGIN_A, TRACE_CODE(2, 0x1075), TRACE_REC(48, 2, 0x401000), NOP(0x401013),
			TRACE_CODE(2, 0x10eb), TRACE_REC(11, 2, 0x401014), NOP(0x401016),
			TRACE_END(1001) } } },
		  .text = FIRST_LINE_A "401000\n[gap packets contradict the code 401013]\n401013\n"
				       "401014\n[gap packets contradict the code 401016]\n"
				       "401016\n" },
		{ .name = "call and return",
		  { { A,
		      { BEGIN_A, TRACE_CODE(5, 0x10e8), TRACE_REC(14, 5, 0x401000),
			TRACE_CODE(1, 0xc3), TRACE_MARKER(29, 0x401005), TRACE_REC(16, 1, 0x401015),
			NOP(0x401005), TRACE_END(1001) } } },
		  .text = FIRST_LINE_A "401000\n401015\n401005\n" },
		{ .name = "a return that goes elsewhere than its marker",
		  { { A,
		      { BEGIN_A, TRACE_CODE(1, 0xc3), TRACE_MARKER(29, 0x401005),
			TRACE_REC(16, 1, 0x401015), NOP(0x401006), TRACE_END(1001) } } },
		  .text =
		      FIRST_LINE_A "401015\n[gap packets contradict the code 401006]\n401006\n" },
		{ .name = "an instruction is left out",
		  { { A, { BEGIN_A, NOP(0x401000), NOP(0x401002), TRACE_END(1001) } } },
		  .text =
		      FIRST_LINE_A "401000\n[gap packets contradict the code 401002]\n401002\n" },
		{ .name = "no bytes",
		  { { A, { BEGIN_A, TRACE_REC(10, 1, 0x401000), TRACE_END(1001) } } },
		  .text = FIRST_LINE_A "[gap code not mapped 401000]\n" },
		{ .name = "bytes that are no instruction, too few and too many",
		  { { A,
		      { BEGIN_A, TRACE_CODE(1, 0x06), TRACE_REC(10, 1, 0x401000),
			TRACE_CODE(1, 0x90), TRACE_REC(10, 2, 0x401001), TRACE_CODE(2, 0x9090),
			TRACE_REC(10, 2, 0x401003), TRACE_END(1001) } } },
		  .text = FIRST_LINE_A "[gap packets contradict the code 401000]\n"
				       "[gap packets contradict the code 401001]\n"
				       "[gap packets contradict the code 401003]\n" },
		{ .name = "code that changed in its middle",
		  { { A,
		      { BEGIN_A, NOP(0x401000), NOP(0x401001), TRACE_CODE(2, 0xfceb),
			TRACE_REC(11, 2, 0x401002), TRACE_REC(10, 1, 0x401000),
			TRACE_CODE(2, 0xfdeb), TRACE_REC(11, 2, 0x401001),
			TRACE_REC(10, 1, 0x401000), TRACE_REC(11, 2, 0x401001),
			TRACE_END(1001) } } },
		  .text = FIRST_LINE_A "401000\n401001\n401002\n401000\n401001\n401000\n401001\n" },
		{ .name = "code that changed to an instruction of the same size",
		  { { A,
		      { BEGIN_A, TRACE_CODE(2, 0x00eb), TRACE_REC(11, 2, 0x401000),
			TRACE_CODE(2, 0xfceb), TRACE_REC(11, 2, 0x401002), TRACE_CODE(2, 0x10eb),
			TRACE_REC(11, 2, 0x401000), NOP(0x401012), TRACE_END(1001) } } },
		  .text = FIRST_LINE_A "401000\n401002\n401000\n401012\n" },
		{ .name = "the end is missing",
		  { { A, { BEGIN_A, NOP(0x401000) } } },
		  .text = FIRST_LINE_A "401000\n[gap cut off inside a packet]\n" },
		{ .name = "data accesses and other markers are passed over",
		  { { A,
		      { TRACE_HEADER(0x240, 1001, 1000, 5, 0), NOP(0x401000),
			TRACE_REC(1, 8, 0x7fff0000), TRACE_MARKER(18, 4096), TRACE_MARKER(4, 7),
			TRACE_REC(29, 1, 0x401000), NOP(0x401001), TRACE_END(1001) } } },
		  .text = FIRST_LINE_A "401000\n401001\n" },
	};

	(void)state;
	run_rows(rows, ARRAY_LEN(rows), 0);
}

/* Return: whether the reader takes a record of @type, and a marker of @kind, for something. */
static bool is_taken(uint16_t type, uint16_t kind)
{
	static const uint16_t kinds[] = {
		MARKER_SIGNAL,
		MARKER_TRANSFER,
		MARKER_TIME,
		MARKER_CPU,
		MARKER_WINDOW,
		MARKER_TARGET,
		MARKER_SYSCALL_START,
		MARKER_SYSCALL_END,
		MARKER_USER,
		MARKER_HARDWARE_EVENT,
		MARKER_HARDWARE_RETURN,
	};
	const struct record rec = { .type = type };

	if (type != RECORD_MARKER)
		return record_is_insn(&rec) || type == RECORD_ENCODING || type == RECORD_THREAD ||
		       type == RECORD_PID || type == RECORD_FOOTER;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (kinds[i] == kind)
			return true;
	return false;
}

/*
 * Data that is read and written, prefetched and flushed; the calls of functions with their
 * arguments and values; cores that idle or wait; lengths of vectors: whatever else there is between
 * two instructions, these follow each other.
 */
static void passed_over(void **state)
{
	(void)state;
	for (uint16_t i = 0; i < 160; i++) {
		const uint16_t type = i < 50 ? i : RECORD_MARKER, kind = i < 50 ? 1 : i - 50;
		struct row row = { .name = "",
				   .files = { { A,
						{ TRACE_HEADER(0x240, 1001, 1000, 5, 0),
						  NOP(0x401000), TRACE_REC(0, 0, 7), NOP(0x401001),
						  TRACE_END(1001) } } } };
		struct record *between = row.files[0].records;
		char *text;
		int r;

		if (is_taken(type, kind))
			continue;
		while (between->type != 0)
			between++;
		*between = (struct record){ .type = type, .size = kind, .addr = 0x7fff0000 };
		make_dir(&row);
		text = read_dir(&row.part, &r);
		tempdir_remove(dir);
		if (strcmp(text, FIRST_LINE_A "401000\n401001\n") != 0)
			print_error("type %u, kind %u\n", type, kind);
		assert_string_equal(text, FIRST_LINE_A "401000\n401001\n");
		assert_int_equal(r, PTD_END);
		free(text);
	}
}

static void events(void **state)
{
	static const struct row rows[] = {
		{ .name = "a window",
		  { { A,
		      { BEGIN_A, TRACE_MARKER(14, 0), NOP(0x401000), TRACE_MARKER(14, 1),
			NOP(0x402000), TRACE_MARKER(14, 1), NOP(0x402001), TRACE_END(1001) } } },
		  .text = FIRST_LINE_A "401000\n[gap lost by the recorder]\n402000\n402001\n" },
		{ .name = "a signal, and the return from it",
		  { { A,
		      { BEGIN_A, NOP(0x401000), TRACE_MARKER(0, 0x401001), TRACE_PAIR(6, 0),
			SYSCALL(0x403000), TRACE_MARKER(1, 0x403002), NOP(0x401001),
			TRACE_END(1001) } } },
		  .text = FIRST_LINE_A "401000\n[async 401001]\n403000\n[off]\n401001\n" },
		{ .name = "system calls",
		  { { A,
		      { BEGIN_A, SYSCALL(0x401000), NOP(0x401002), SYSCALL(0x401003), NOP(0x401006),
			SYSCALL(0x401007), TRACE_END(1001) } } },
		  .text = FIRST_LINE_A "401000\n[off]\n401002\n401003\n[off]\n"
				       "[gap packets contradict the code 401006]\n401006\n401007\n"
				       "[off]\n" },
		{ .name = "a system call with its kernel part",
		  { { A,
		      { TRACE_HEADER(0x8744, 1001, 1000, 5, 0), SYSCALL(0x401000), TRACE_PAIR(6, 0),
			TRACE_MARKER(25, 39), TRACE_MARKER(27, 39), NOP(0xffffffff81000000),
			TRACE_MARKER(28, 39), TRACE_PAIR(7, 0), NOP(0x401002),
			TRACE_END(1001) } } },
		  .text = FIRST_LINE_A "401000\nffffffff81000000\n401002\n" },
		{ .name = "an interrupt, and a system call as an event",
		  { { A,
		      { TRACE_HEADER(0x40344, 1001, 1000, 5, 0), NOP(0x401000),
			TRACE_MARKER(43, 0x401001), TRACE_CODE(2, 0xcf48),
			TRACE_MARKER(29, 0x401001), TRACE_REC(16, 2, 0xffffffff81000000),
			TRACE_MARKER(44, 1), SYSCALL(0x401001), TRACE_MARKER(43, 0x401003),
			NOP(0xffffffff81000010), TRACE_MARKER(44, 1), NOP(0x401003),
			TRACE_END(1001) } } },
		  .text = FIRST_LINE_A
		  "401000\n[async 401001]\nffffffff81000000\n401001\nffffffff81000010\n401003\n" },
		{ .name = "filtered instructions",
		  { { A,
		      { TRACE_HEADER(0x3c4, 1001, 1000, 5, 0), NOP(0x401000), NOP(0x402000),
			TRACE_END(1001) } } },
		  .text = FIRST_LINE_A "401000\n[out of scope 402000]\n402000\n" },
	};

	(void)state;
	run_rows(rows, ARRAY_LEN(rows), 0);
}

static void order(void **state)
{
	static const uint32_t tid = 1002;
	static const struct row rows[] = {
		{ .name = "two threads in turn on one CPU",
		  { { A,
		      { BEGIN_A, NOP(0x401000), TRACE_PAIR(20, 0), NOP(0x401001),
			TRACE_END(1001) } },
		    { B,
		      { TRACE_HEADER(0x344, 1002, 1000, 10, 0), NOP(0x401000), TRACE_PAIR(30, 0),
			NOP(0x401001), TRACE_END(1002) } } },
		  .text = FIRST_LINE_A "401000\ncpu 0 1000/1002 b.c 10\n401000\ncpu 0 1000/1001 a "
				       "20\n401001\ncpu 0 1000/1002 b.c 30\n401001\n" },
		{ .name = "one thread on two CPUs",
		  { { A,
		      { BEGIN_A, NOP(0x401000), TRACE_PAIR(20, 0), NOP(0x401001), TRACE_PAIR(20, 1),
			NOP(0x401002), TRACE_END(1001) } } },
		  .text = FIRST_LINE_A "401000\n401001\ncpu 1 1000/1001 a 20\n401002\n" },
		{ .name = "a file for each core",
		  { { "drmemtrace.core.000000.trace",
		      { TRACE_HEADER(0x10344, 1001, 1000, 5, 0), NOP(0x401000),
			TRACE_REC(22, 4, 1002), TRACE_REC(24, 4, 1002), TRACE_PAIR(7, 0),
			TRACE_CODE(2, 0xfeeb), TRACE_REC(11, 2, 0x401000), TRACE_REC(22, 4, 1001),
			TRACE_REC(24, 4, 1000), TRACE_PAIR(9, 0), TRACE_REC(10, 1, 0x401000),
			TRACE_REC(26, 0, 0) } } },
		  .text = "cpu 0 1000/1001  5\n401000\ncpu 0 1002/1002  7\n401000\n"
			  "cpu 0 1000/1001  9\n401000\n" },
		{ .name = "a file for each core, in which threads begin and end",
		  { { "drmemtrace.core.000000.trace",
		      { TRACE_HEADER(0x10344, 1001, 1000, 5, 0), NOP(0x401000), TRACE_END(1001),
			TRACE_HEADER(0x10344, 1002, 1000, 7, 0), NOP(0x402000), TRACE_END(1002),
			TRACE_REC(22, 0, 1003), TRACE_REC(24, 0, 1000), TRACE_PAIR(9, 0),
			TRACE_MARKER(33, 0), TRACE_REC(10, 1, 0x401000), TRACE_REC(26, 0, 0) } } },
		  .text = "cpu 0 1000/1001  5\n401000\ncpu 0 1000/1002  7\n402000\n"
			  "cpu 0 1000/1003  9\n401000\n" },
		{ .name = "one of the threads",
		  { { A,
		      { BEGIN_A, NOP(0x401000), TRACE_PAIR(20, 0), NOP(0x401001),
			TRACE_END(1001) } },
		    { B,
		      { TRACE_HEADER(0x344, 1002, 1000, 10, 0), NOP(0x401000),
			TRACE_END(1002) } } },
		  .part = { .tids = &tid, .n_tids = 1 },
		  .text = "cpu 0 1000/1002 b.c 10\n401000\n" },
		{ .name = "the last instruction of each thread",
		  { { A,
		      { BEGIN_A, NOP(0x401000), TRACE_PAIR(20, 0), NOP(0x401001),
			TRACE_END(1001) } },
		    { B,
		      { TRACE_HEADER(0x344, 1002, 1000, 10, 0), NOP(0x401000), NOP(0x401001),
			TRACE_END(1002) } } },
		  .part = { .last = 1 },
		  .text = "cpu 0 1000/1002 b.c 10\n401001\ncpu 0 1000/1001 a 20\n401001\n" },
		{ .name = "files without a time",
		  { { A,
		      { TRACE_REC(25, 0, 7), TRACE_MARKER(9, 0x344), TRACE_REC(22, 4, 1001),
			TRACE_REC(24, 4, 1000), NOP(0x401000), TRACE_END(1001) } } },
		  .text = "cpu 0 1000/1001 a 0\n401000\n" },
	};

	(void)state;
	run_rows(rows, ARRAY_LEN(rows), 0);
}

static void symbols(void **state)
{
	static const struct row rows[] = {
		{ .name = "symbols of a file that is mapped at 0x400000",
		  { { A,
		      { BEGIN_A, TRACE_MARKER(101, 7), NOP(0x401000), NOP(0x401001),
			TRACE_MARKER(101, 2), NOP(0x401002), TRACE_MARKER(101, 0), NOP(0x401003),
			TRACE_END(1001) } } },
		  "7\tmain(int, \\)\t/no/such/file\tabcd\tff0\t32\telf\t-\t-\t-\n"
		  "2\tf@plt\t/no/such/file\tabcd\t1002\t1\tplt\t-\t-\t-\n",
		  .text = FIRST_LINE_A "401000 main(int, \\)+10 /no/such/file\n"
				       "401001 main(int, \\)+11 /no/such/file\n"
				       "401002 f@plt+0 /no/such/file\n401003\n" },
		{ .name =
		      "a function of many pages whose file was mapped twice, and another process",
		  { { A,
		      { BEGIN_A, TRACE_MARKER(101, 1), NOP(0x405678), NOP(0x405679),
			TRACE_MARKER(14, 1), NOP(0x7f005678), TRACE_END(1001) } } },
		  "1\tf\t/no/such/file\t-\t1000\t32768\telf\t-\t-\t-\n",
		  .text = FIRST_LINE_A
		  "405678 f+4678 /no/such/file\n"
		  "405679 f+4679 /no/such/file\n[gap packets contradict the code 7f005678]\n"
		  "7f005678 f+4678 /no/such/file\n",
		  .mappings = "1000\t/no/such/file\t-\t400000\t5\n"
			      "1001\t/no/such/file\t-\t402000\t6\n"
			      "1000\t/no/such/other\t-\t402000\t6\n"
			      "1000\t/no/such/file\tabcd\t402000\t6\n"
			      "1000\t/no/such/file\t-\t7f000000\t7\n" },
		{ .name = "a function of many pages, after a short one",
		  { { A,
		      { BEGIN_A, TRACE_MARKER(101, 1), TRACE_CODE(5, 0x1ffbe9),
			TRACE_REC(11, 5, 0x401000), TRACE_MARKER(101, 2), NOP(0x403000),
			TRACE_END(1001) } } },
		  "1\tf\t/no/such/file\t-\t1000\t5\telf\t-\t-\t-\n"
		  "2\tlong\t/no/such/file\t-\t1800\t65536\telf\t-\t-\t-\n",
		  .text =
		      FIRST_LINE_A "401000 f+0 /no/such/file\n403000 long+1800 /no/such/file\n" },
		{ .name = "an address that is used again by another function of the same bytes",
		  { { A,
		      { BEGIN_A, TRACE_MARKER(101, 1), TRACE_CODE(2, 0xfeeb),
			TRACE_REC(11, 2, 0x401000), TRACE_MARKER(101, 2),
			TRACE_REC(11, 2, 0x401000), TRACE_MARKER(101, 1),
			TRACE_REC(11, 2, 0x401000), TRACE_END(1001) } } },
		  "1\tf\t[jit]\t-\t401000\t2\tjit\t1000\t1\t0\n"
		  "2\tg\t[jit]\t-\t401000\t2\tjit\t1000\t2\t5\n",
		  .text = FIRST_LINE_A "401000 f+0\n401000 g+0\n401000 f+0\n" },
		{ .name = "an id that is not in the table",
		  { { A, { BEGIN_A, TRACE_MARKER(101, 7), NOP(0x401000), TRACE_END(1001) } } },
		  "",
		  .text = FIRST_LINE_A "401000\n" },
	};

	(void)state;
	run_rows(rows, ARRAY_LEN(rows), 0);
}

static void refused(void **state)
{
	static const struct row rows[] = {
		{ .name = "no trace file",
		  { { "funclist.log", {} } },
		  .text = "trace: there is no trace file" },
	};
	static const struct row bad[] = {
		{ .name = "a README",
		  { { "README", { NOP(0x401000) } } },
		  .text = "trace/README: is no drmemtrace file: it does not begin with a header" },
		{ .name = "an empty file",
		  { { A, {} } },
		  .text = "trace/" A ": is no drmemtrace file: it does not begin with a header" },
		{ .name = "a newer version",
		  { { A, { TRACE_REC(25, 0, 8), TRACE_END(1) } } },
		  .text = "trace/" A ": has version 8 of drmemtrace; 2 to 7 are known" },
		{ .name = "not a zip file",
		  { { A ".zip", { BEGIN_A, TRACE_END(1001) } } },
		  .text = "trace/" A ".zip: is damaged" },
		{ .name = "a column is missing",
		  { { A, { BEGIN_A, TRACE_END(1001) } } },
		  "1\tf\t[jit]\t-\t401000\t2\tjit\t1000\t1\n",
		  .text = "aux/symbols.tsv: line 2: expected an id of its own and nine columns "
			  "behind it, separated by tabs" },
		{ .name = "an id twice",
		  { { A, { BEGIN_A, TRACE_END(1001) } } },
		  "2\tf\t[jit]\t-\t401000\t2\tjit\t1000\t1\t0\n"
		  "2\tf\t[jit]\t-\t401000\t2\tjit\t1000\t1\t0\n",
		  .text = "aux/symbols.tsv: line 3: expected an id of its own and nine columns "
			  "behind it, separated by tabs" },
		{ .name = "a mapping without a base",
		  { { A, { BEGIN_A, TRACE_END(1001) } } },
		  "2\tf\t[jit]\t-\t401000\t2\tjit\t1000\t1\t0\n",
		  .text = "aux/mappings.tsv: line 3: expected a pid and four columns behind it, "
			  "separated by tabs",
		  .mappings = "1000\t/no/such/file\t-\t400000\t5\n1000\t/x\t-\t5\n" },
	};
	static const struct row others[] = {
		{ .name = "of another machine",
		  { { A, { TRACE_HEADER(0x308, 1001, 1000, 5, 0), TRACE_END(1001) } } },
		  .text = "trace/" A ": is no trace of an x86-64 program (file type 0x308)" },
	};

	(void)state;
	run_rows(rows, ARRAY_LEN(rows), -ENOENT);
	run_rows(bad, ARRAY_LEN(bad), -EBADMSG);
	run_rows(others, ARRAY_LEN(others), -EOPNOTSUPP);
}

/* DynamoRIO's modules.log gives the code objects, and bytes where the trace has none. */
static void modules(void **state)
{
	static const struct row row = {
		.files = { { A,
			     { TRACE_HEADER(0x144, 1001, 1000, 5, 0), TRACE_REC(10, 1, 0x401001),
			       TRACE_REC(10, 1, 0x401002), NOP(0x500000), TRACE_END(1001) } } },
	};
	static const uint8_t code[] = { 0xcc, 0xcc, 0xcc, 0x90, 0x90 };
	char *log, *text, *expected;
	int r;

	(void)state;
	make_dir(&row);
	tempdir_put(dir, "code", code, sizeof(code));
	assert_true(
	    asprintf(&log,
		     "Module Table: version 5, count 3\n"
		     "Columns: id, containing_id, start, end, entry, offset, "
		     "preferred_base, path\n"
		     "  0, 0, 0x401000, 0x402000, 0x0, 0000000000000002, 0x0, v#1,0, %s/code\n"
		     "  1, 1, 0x402000, 0x403000, 0x0, 0, 0x0, v#1,7,a,b\n,cd, [vdso]\n"
		     "  2, 2, no number\n",
		     dir) > 0);
	tempdir_put_text(dir, "raw/modules.log", log);
	text = read_dir(&row.part, &r);
	assert_true(asprintf(&expected,
			     FIRST_LINE_A "401001 %s/code\n401002 %s/code\n"
					  "[gap packets contradict the code 500000]\n500000\n",
			     dir, dir) > 0);
	assert_string_equal(text, expected);
	assert_int_equal(r, PTD_END);
	tempdir_remove(dir);
	free(log);
	free(text);
	free(expected);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(instructions), cmocka_unit_test(events),
		cmocka_unit_test(passed_over),  cmocka_unit_test(order),
		cmocka_unit_test(symbols),      cmocka_unit_test(refused),
		cmocka_unit_test(modules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
