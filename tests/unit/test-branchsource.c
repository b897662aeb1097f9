/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Branch source: branches as perf hands them over, and what comes out as text. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "decoder/dlfilter/branchsource.h"
#include "decoder/image/objects.h"
#include "decoder/symbol/resolver.h"
#include "decoder/util/batchsource.h"

#define BRANCHES_MAX 8

/* At 0x1000, in a file that only perf can read. */
static const uint8_t code[] = {
	0x90,                /* 1000 f: nop */
	0x74, 0x01,          /* 1001 je 1004 */
	0x90,                /* 1003 nop */
	0x0f, 0x05,          /* 1004 syscall */
	0x90,                /* 1006 nop */
	0xe8, 1,    0, 0, 0, /* 1007 call 100d */
	0x90,                /* 100c nop */
	0x90,                /* 100d g: nop */
	0xc3,                /* 100e ret */
};

#define START  UINT64_C(0x1000)
#define OFFSET UINT64_C(0x200) /* of the code in the file */

static bool find_place(void *userdata, uint64_t ip, struct branch_place *ret_place)
{
	const uint64_t g = 0x100d - START + OFFSET;
	const bool in_g = ip >= 0x100d;

	(void)userdata;
	if (ip < START || ip >= START + sizeof(code))
		return false;
	*ret_place = (struct branch_place){
		.object = "/nonexistent/program",
		.buildid = { .bytes = { 1, 2 }, .size = 20 },
		.address = ip - START + OFFSET,
		.symbol = in_g ? "g" : "f",
		.symbol_start = in_g ? g : OFFSET,
		.symbol_end = in_g ? OFFSET + sizeof(code) : g,
		.mode = 64,
	};
	return true;
}

static size_t read_code(void *userdata, uint64_t ip, void *ret_bytes, size_t size)
{
	size_t n;

	(void)userdata;
	if (ip < START || ip >= START + sizeof(code))
		return 0;
	n = sizeof(code) - (ip - START);
	n = n < size ? n : size;
	memcpy(ret_bytes, code + (ip - START), n);
	return n;
}

static const struct branch_memory memory = { find_place, read_code, NULL };

static void print_mark(FILE *f, const struct ptd_mark *mark)
{
	fprintf(f, "%s", ptd_mark_kind_name(mark->kind));
	if (mark->kind == PTD_MARK_GAP)
		fprintf(f, " (%s)", ptd_gap_reason_name(mark->reason));
	if (mark->ip)
		fprintf(f, " at %lx", mark->ip);
	fprintf(f, "\n");
}

static void print_run(FILE *f, const struct ptd_run *run, const struct ptd_batch *batch)
{
	fprintf(f, "%lu:", run->t);
	for (size_t i = 0; i < run->n; i++)
		fprintf(f, " %lx%s", ptd_run_ip(run, i),
			batch->symbols[run->block->insns[run->first + i].symbol]->name);
	fprintf(f, "\n");
}

/* Print the batches that there are. */
static void print_batches(FILE *f, struct batchsource *source)
{
	struct ptd_slice *slice;
	struct ptd_batch batch;
	bool is_new;
	int r;

	while ((r = source->ops->next(source, &batch, &slice, &is_new, NULL)) == 0) {
		size_t mark = 0;

		if (is_new)
			fprintf(f, "cpu %d %u/%u %s, space %u\n", (int)slice->cpu, slice->pid,
				slice->tid, slice->comm, slice->space);
		for (size_t i = 0; i <= batch.n_runs; i++) {
			for (; mark < batch.n_marks && batch.marks[mark].run == i; mark++)
				print_mark(f, &batch.marks[mark]);
			if (i < batch.n_runs)
				print_run(f, &batch.runs[i], &batch);
		}
		assert_int_equal(mark, batch.n_marks);
	}
	assert_int_equal(r, 1);
}

/* A branch of a thread on a CPU; and of thread 1/1 on CPU 0. */
#define OF(cpu_, pid_, tid_, comm_, time_, from_, to_, ...)                                 \
	{                                                                                   \
		.cpu = (cpu_), .pid = (pid_), .tid = (tid_), .comm = (comm_), .t = (time_), \
		.from = (from_), .to = (to_), __VA_ARGS__                                   \
	}
#define BRANCH(time_, ...) OF(0, 1, 1, "a", time_, __VA_ARGS__)

static const struct {
	const char *name;
	struct branch branches[BRANCHES_MAX];
	const char *text;
} rows[] = {
	{ "code between branches, a system call, and what follows it",
	  { BRANCH(1, 0, 0x1000), BRANCH(2, 0x1004, 0), BRANCH(3, 0, 0x1006),
	    BRANCH(4, 0x1007, 0x100d), BRANCH(5, 0x100e, 0x100c) },
	  "cpu 0 1/1 a, space 0\n1: 1000f 1001f\n1: 1003f 1004f\noff\n"
	  "3: 1006f 1007f\n4: 100dg 100eg\n" },
	{ "a branch that is taken",
	  { BRANCH(1, 0, 0x1000), BRANCH(2, 0x1001, 0x1004), BRANCH(2, 0x1004, 0) },
	  "cpu 0 1/1 a, space 0\n1: 1000f 1001f\n2: 1004f\noff\n" },
	{ "an interruption: the instruction did not execute",
	  { BRANCH(1, 0, 0x1006), BRANCH(2, 0x1007, 0, .is_async = true), BRANCH(3, 0, 0x1007),
	    BRANCH(3, 0x1007, 0, .is_async = true) },
	  "cpu 0 1/1 a, space 0\n1: 1006f\nasync at 1007\nasync at 1007\n" },
	{ "an abort",
	  { BRANCH(1, 0, 0x1006), BRANCH(2, 0x1007, 0x1004, .is_async = true, .aborts = true),
	    BRANCH(3, 0x1004, 0) },
	  "cpu 0 1/1 a, space 0\n1: 1006f\ntsx at 1007\n2: 1004f\noff\n" },
	{ "it begins twice, or ends twice",
	  { BRANCH(1, 0, 0x1000), BRANCH(2, 0, 0x1003), BRANCH(3, 0x1004, 0),
	    BRANCH(4, 0x100e, 0) },
	  "cpu 0 1/1 a, space 0\ngap (lost by the recorder)\n2: 1003f 1004f\noff\n"
	  "gap (lost by the recorder)\n4: 100eg\noff\n" },
	{ "a branch that lies before, beyond another one, or within an instruction, where others "
	  "begin",
	  { BRANCH(1, 0, 0x1006), BRANCH(2, 0x1004, 0x1003), BRANCH(3, 0x100e, 0x1003),
	    BRANCH(4, 0x1005, 0) },
	  "cpu 0 1/1 a, space 0\n"
	  "gap (packets contradict the code) at 1006\n2: 1004f\n"
	  "gap (packets contradict the code) at 1003\n3: 100eg\n"
	  "gap (packets contradict the code) at 1003\n4: 1005f\noff\n" },
	{ "no code",
	  { BRANCH(1, 0, 0x3000), BRANCH(2, 0x3001, 0x1000), BRANCH(3, 0x1001, 0x1004) },
	  "cpu 0 1/1 a, space 0\ngap (code not mapped) at 3000\n2: 1000f 1001f\n" },
	{ "time does not go back",
	  { BRANCH(9, 0, 0x1000), BRANCH(7, 0x1001, 0x1004), BRANCH(8, 0x1004, 0) },
	  "cpu 0 1/1 a, space 0\n9: 1000f 1001f\n9: 1004f\noff\n" },
	{ "threads of CPUs, each with its own flow",
	  { BRANCH(1, 0, 0x1000), OF(1, 2, 3, "a", 2, 0, 0x1006), BRANCH(3, 0x1001, 0x1004),
	    OF(1, 2, 3, "a", 4, 0x1007, 0x100d) },
	  "cpu 0 1/1 a, space 0\n1: 1000f 1001f\ncpu 1 2/3 a, space 1\n2: 1006f 1007f\n" },
	{ "threads whose CPU is not known",
	  { OF(UINT32_MAX, 1, 1, "a", 1, 0, 0x1000), OF(UINT32_MAX, 1, 2, "a", 2, 0, 0x1006),
	    OF(UINT32_MAX, 1, 1, "a", 3, 0x1001, 0), OF(UINT32_MAX, 1, 2, "a", 4, 0x1007, 0) },
	  "cpu -1 1/1 a, space 0\n1: 1000f 1001f\noff\n"
	  "cpu -1 1/2 a, space 0\n2: 1006f 1007f\noff\n" },
	{ "a thread that gives itself a name, and one that executes a program",
	  { BRANCH(1, 0, 0x1000), BRANCH(2, 0x1004, 0), OF(0, 1, 1, "b", 3, 0, 0x1006),
	    OF(0, 1, 1, "b", 4, 0x1007, 0), OF(0, 1, 1, "c", 5, 0, 0x100d),
	    OF(0, 1, 1, "c", 6, 0x100e, 0) },
	  "cpu 0 1/1 a, space 0\n1: 1000f 1001f\n1: 1003f 1004f\noff\n"
	  "cpu 0 1/1 b, space 0\n3: 1006f 1007f\noff\n"
	  "cpu 0 1/1 c, space 1\n5: 100dg 100eg\noff\n" },
};

static void add(FILE *f, struct batchsource *source, const struct branch *given)
{
	struct branch branch = *given;
	int r;

	if (branch.from && !find_place(NULL, branch.from, &branch.at))
		branch.at = (struct branch_place){};
	r = branchsource_add(source, &branch, &memory);
	if (r == BRANCHSOURCE_FULL) {
		print_batches(f, source);
		r = branchsource_add(source, &branch, &memory);
	}
	assert_int_equal(r, 0);
}

static void as_text(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct objects *objects = NULL;
		struct resolver *resolver = NULL;
		struct batchsource *source = NULL;
		char *text = NULL;
		size_t size;
		FILE *f = open_memstream(&text, &size);

		assert_non_null(f);
		assert_int_equal(objects_new(NULL, &objects), 0);
		assert_int_equal(resolver_new(&resolver), 0);
		assert_int_equal(branchsource_new(objects, resolver, &source), 0);
		assert_int_equal(source->ops->start(source, NULL), 0);
		for (size_t k = 0; k < BRANCHES_MAX && rows[i].branches[k].comm; k++)
			add(f, source, &rows[i].branches[k]);
		print_batches(f, source);
		fclose(f);
		if (strcmp(text, rows[i].text) != 0)
			print_message("%s:\n", rows[i].name);
		assert_string_equal(text, rows[i].text);
		free(text);
		batchsource_free(source);
		resolver_free(resolver);
		objects_free(objects);
	}
}

/* A loop is found once, however often it runs; a batch has so many runs at most. */
static void full(void **state)
{
	struct branch branch = BRANCH(1, 0, 0x1000);
	struct objects *objects = NULL;
	struct resolver *resolver = NULL;
	struct batchsource *source = NULL;
	uint64_t n_runs = 0, n_insns = 0;
	struct ptd_slice *slice;
	struct ptd_batch batch;
	bool is_new;

	(void)state;
	assert_int_equal(objects_new(NULL, &objects), 0);
	assert_int_equal(resolver_new(&resolver), 0);
	assert_int_equal(branchsource_new(objects, resolver, &source), 0);
	for (size_t i = 0; i < 10000; i++) {
		while (branchsource_add(source, &branch, &memory) == BRANCHSOURCE_FULL) {
			assert_int_equal(source->ops->next(source, &batch, &slice, &is_new, NULL),
					 0);
			assert_int_equal(is_new, n_runs == 0);
			assert_in_range(batch.n_runs, 1, 4097);
			n_runs += batch.n_runs;
			assert_int_equal(source->ops->next(source, &batch, &slice, &is_new, NULL),
					 1);
		}
		branch = (struct branch)BRANCH(2 + i, 0x1001, 0x1000);
		assert_true(find_place(NULL, 0x1001, &branch.at));
	}
	assert_int_equal(source->ops->next(source, &batch, &slice, &is_new, NULL), 0);
	n_runs += batch.n_runs;
	assert_int_equal(n_runs, 9999);
	n_insns = source->cpus.items[0].n_insns;
	assert_int_equal(n_insns, 2 * 9999);
	batchsource_free(source);
	resolver_free(resolver);
	objects_free(objects);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_text),
		cmocka_unit_test(full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
