/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Bolt: the edges of one object, from streams made by hand, and exactly what is written. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "base/base.h"
#include "decoder/sink/export/edges.h"
#include "tests/lib/failing.h"
#include "tests/lib/stream.h"
#include "tests/lib/sunk.h"

#define BASE 0x400000u

/* Blocks of one instruction; 0x10 is followed by 0x12, and so on. */
enum { COND, NEXT, CALL, JUMP, SYSCALL, OUTSIDE, TWIN, _BLOCKS };

struct fixture {
	struct stream stream;
	struct ptd_object demo, libc, twin;
	struct ptd_insn insns[_BLOCKS];
	struct ptd_block blocks[_BLOCKS];
	struct ptd_run runs[64];
	struct ptd_mark marks[8];
	struct sunk sunk;
};

static int setup(void **state)
{
	static struct fixture fixture;
	static const uint8_t classes[_BLOCKS] = {
		[COND] = PTD_INSN_JUMP_COND,  [NEXT] = PTD_INSN_OTHER,
		[CALL] = PTD_INSN_CALL,       [JUMP] = PTD_INSN_JUMP_INDIRECT,
		[SYSCALL] = PTD_INSN_SYSCALL, [OUTSIDE] = PTD_INSN_RETURN,
		[TWIN] = PTD_INSN_RETURN,
	};
	struct fixture *f = &fixture;

	*f = (struct fixture){
		.demo = { .id = 0, .name = "/bin/demo" },
		.libc = { .id = 1, .name = "/lib/libc.so.6" },
		.twin = { .id = 2, .name = "/opt/demo" },
	};
	stream_init(&f->stream);
	for (uint32_t i = 0; i < _BLOCKS; i++) {
		f->insns[i] = (struct ptd_insn){ .size = 2, .iclass = classes[i] };
		f->blocks[i] = (struct ptd_block){ .id = i,
						   .n_insns = 1,
						   .size = 2,
						   .mode = 64,
						   .object = i == OUTSIDE ? &f->libc
							     : i == TWIN  ? &f->twin
									  : &f->demo,
						   .address = 0x10 + 2 * i,
						   .insns = &f->insns[i] };
	}
	f->stream.batch.runs = f->runs;
	f->stream.batch.marks = f->marks;
	f->stream.batch.n_runs = f->stream.batch.n_marks = 0;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	sunk_deinit(&((struct fixture *)*state)->sunk);
	return 0;
}

static void run(struct fixture *f, unsigned block)
{
	/* The other objects lie far away. */
	const uint64_t base = block == OUTSIDE ? 0x7f0000000000u : block == TWIN ? 0x500000u : BASE;

	f->runs[f->stream.batch.n_runs++] = (struct ptd_run){
		.block = &f->blocks[block], .base = base + f->blocks[block].address, .n = 1
	};
}

static void mark(struct fixture *f, enum ptd_mark_kind kind)
{
	f->marks[f->stream.batch.n_marks++] =
	    (struct ptd_mark){ .run = f->stream.batch.n_runs, .kind = kind };
}

static void put(struct fixture *f)
{
	assert_int_equal(sink_batch(f->sunk.sink, &f->stream.batch), 0);
	f->stream.batch.n_runs = f->stream.batch.n_marks = 0;
}

static void begin(struct fixture *f)
{
	static const char *const options[] = { "binary=demo", NULL };

	sunk_begin(&f->sunk, "bolt", PTD_CLOCK_NS, options);
}

/* A conditional branch that is not taken is on no edge; one over batches and to itself is. */
static void inside(void **state)
{
	struct fixture *f = *state;

	begin(f);
	run(f, JUMP); /* where the stretch begins is not known */
	run(f, COND);
	run(f, NEXT);
	run(f, CALL);
	put(f);
	run(f, COND);
	run(f, COND);
	run(f, NEXT);
	run(f, CALL);
	run(f, JUMP); /* right behind the call, and yet taken */
	run(f, SYSCALL);
	mark(f, PTD_MARK_OFF);
	run(f, COND);
	put(f);
	assert_string_equal(sunk_end(&f->sunk, &f->stream.stats), "B 10 10 1 0\n"
								  "B 14 10 1 0\n"
								  "B 14 16 1 0\n"
								  "B 16 10 1 0\n"
								  "B 16 18 1 0\n"
								  "F 10 10 1\n"
								  "F 10 14 2\n"
								  "F 16 16 1\n");
}

/* Other objects are one place, 0; a twin of the name is another object. */
static void outside(void **state)
{
	struct fixture *f = *state;

	begin(f);
	run(f, OUTSIDE);
	run(f, NEXT);
	run(f, CALL);
	run(f, OUTSIDE);
	run(f, OUTSIDE);
	run(f, JUMP);
	run(f, TWIN);
	run(f, COND);
	run(f, TWIN);
	put(f);
	assert_string_equal(sunk_end(&f->sunk, &f->stream.stats), "B 0 10 1 0\n"
								  "B 0 12 1 0\n"
								  "B 0 16 1 0\n"
								  "B 10 0 1 0\n"
								  "B 14 0 1 0\n"
								  "B 16 0 1 0\n"
								  "f 10 10 1\n"
								  "f 12 14 1\n"
								  "f 16 16 1\n");
}

/* Nothing is known over a gap or an interruption. What another thread does is not between. */
static void broken(void **state)
{
	static const enum ptd_mark_kind kinds[] = { PTD_MARK_GAP, PTD_MARK_ASYNC, PTD_MARK_STOP,
						    PTD_MARK_OUT_OF_SCOPE, PTD_MARK_TSX };
	struct fixture *f = *state;

	begin(f);
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		run(f, CALL);
		mark(f, kinds[i]);
		run(f, JUMP);
	}
	put(f);
	run(f, COND);
	put(f);
	f->stream.slice.id++;
	f->stream.slice.tid++;
	run(f, JUMP);
	put(f);
	f->stream.slice.id++;
	f->stream.slice.tid--;
	run(f, CALL);
	run(f, NEXT);
	put(f);
	assert_string_equal(sunk_end(&f->sunk, &f->stream.stats), "B 10 14 1 0\n"
								  "B 14 12 1 0\n"
								  "B 16 10 1 0\n"
								  "B 16 14 4 0\n"
								  "F 10 10 1\n"
								  "F 14 14 1\n");
}

static int count(void *userdata)
{
	struct fixture *f = userdata;
	struct edges edges;
	struct edge *list;
	size_t n;
	int r;

	r = edges_init(&edges, "/bin/demo");
	if (r == 0)
		r = edges_add(&edges, &f->stream.batch);
	if (r == 0)
		r = edges_list(&edges, EDGE_BRANCH, &list, &n);
	if (r == 0) {
		assert_int_equal(n, 2);
		free(list);
	}
	edges_deinit(&edges);
	return r;
}

static void is_counted(void *userdata)
{
	(void)userdata;
}

static void calls_that_fail(void **state)
{
	struct fixture *f = *state;

	run(f, CALL);
	run(f, COND);
	run(f, NEXT);
	run(f, CALL);
	run(f, OUTSIDE);
	failing_each(count, is_counted, f);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(inside, setup, teardown),
		cmocka_unit_test_setup_teardown(outside, setup, teardown),
		cmocka_unit_test_setup_teardown(broken, setup, teardown),
		cmocka_unit_test_setup_teardown(calls_that_fail, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
