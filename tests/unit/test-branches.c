/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Branches: which way they went, from streams made by hand, and exactly what is written. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "base/base.h"
#include "tests/lib/stream.h"
#include "tests/lib/sunk.h"

/*
 * The code: f at 0x10 is a conditional branch that skips the 2 bytes behind it, g at 0x20 an
 * indirect call; the targets of g follow from 0x100 on, each with one instruction.
 */
#define TARGETS 70
#define BASE    0x400000u

struct fixture {
	struct stream stream;
	struct ptd_object object;
	struct ptd_insn cond, call, other;
	struct ptd_block f, next, skipped, g, targets[TARGETS];
	struct ptd_symbol symbols[3];
	const struct ptd_symbol *by_id[3];
	struct ptd_run runs[400];
	struct ptd_mark marks[4];
	struct sunk sunk;
};

static struct ptd_block block_of(struct fixture *f, uint32_t id, uint64_t address, uint16_t size,
				 const struct ptd_insn *insn)
{
	return (struct ptd_block){ .id = id,
				   .n_insns = 1,
				   .size = size,
				   .mode = 64,
				   .object = &f->object,
				   .address = address,
				   .insns = insn };
}

static int setup(void **state)
{
	static struct fixture fixture;
	struct fixture *f = &fixture;

	*f = (struct fixture){
		.object = { .id = 0, .name = "/bin/demo" },
		.cond = { .size = 2, .iclass = PTD_INSN_JUMP_COND, .symbol = 1 },
		.call = { .size = 3, .iclass = PTD_INSN_CALL_INDIRECT, .symbol = 2 },
		.other = { .size = 2 },
		.symbols = { { .name = "" },
			     { .name = "f", .address = 0x8 },
			     { .name = "g", .address = 0x20 } },
	};
	stream_init(&f->stream);
	for (size_t i = 0; i < ARRAY_LEN(f->by_id); i++)
		f->by_id[i] = &f->symbols[i];
	f->f = block_of(f, 0, 0x10, 2, &f->cond);
	f->f.target = 4;
	f->next = block_of(f, 1, 0x12, 2, &f->other);
	f->skipped = block_of(f, 2, 0x14, 2, &f->other);
	f->g = block_of(f, 3, 0x20, 3, &f->call);
	for (uint32_t i = 0; i < TARGETS; i++)
		f->targets[i] = block_of(f, 4 + i, 0x100 + 0x10 * i, 2, &f->other);
	f->stream.batch.runs = f->runs;
	f->stream.batch.n_runs = 0;
	f->stream.batch.marks = f->marks;
	f->stream.batch.n_marks = 0;
	f->stream.batch.symbols = f->by_id;
	f->stream.batch.n_symbols = ARRAY_LEN(f->by_id);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	sunk_deinit(&((struct fixture *)*state)->sunk);
	return 0;
}

static void run(struct fixture *f, const struct ptd_block *block)
{
	f->runs[f->stream.batch.n_runs++] =
	    (struct ptd_run){ .block = block, .base = BASE + block->address, .n = 1 };
}

static void mark(struct fixture *f, enum ptd_mark_kind kind, uint64_t ip)
{
	f->marks[f->stream.batch.n_marks++] =
	    (struct ptd_mark){ .run = f->stream.batch.n_runs, .kind = kind, .ip = ip };
}

static void put(struct fixture *f)
{
	assert_int_equal(sink_batch(f->sunk.sink, &f->stream.batch), 0);
	f->stream.batch.n_runs = f->stream.batch.n_marks = 0;
}

/* Three times not taken, twice taken, once not known; over batches, and with marks between. */
static void conditional(void **state)
{
	struct fixture *f = *state;

	sunk_begin(&f->sunk, "branches", PTD_CLOCK_NS, NULL);
	run(f, &f->f);
	run(f, &f->next);
	run(f, &f->f);
	put(f);
	run(f, &f->skipped);
	run(f, &f->f);
	mark(f, PTD_MARK_ASYNC, BASE + 0x14);
	run(f, &f->g);
	mark(f, PTD_MARK_OFF, 0);
	run(f, &f->f);
	mark(f, PTD_MARK_CBR, 0);
	run(f, &f->next);
	run(f, &f->f);
	mark(f, PTD_MARK_GAP, 0);
	run(f, &f->f);
	put(f);
	/* A branch of another slice. */
	f->stream.slice.id++;
	run(f, &f->f);
	run(f, &f->next);
	put(f);
	assert_string_equal(
	    sunk_end(&f->sunk, &f->stream.stats),
	    "Branches: 2, conditional or indirect\n"
	    "Executed: 8\n"
	    "\n"
	    "            executed       %  kind  branch, and the ways it went, each with its part\n"
	    "                   7   87.50  cond  f+0x8 (/bin/demo)\n"
	    "                   2   28.57        taken, to 0x14 (/bin/demo)\n"
	    "                   3   42.86        not taken\n"
	    "                   2   28.57        not known\n"
	    "                   1   12.50  call  g+0x0 (/bin/demo)\n"
	    "                   1  100.00        not known\n");
}

/* The last instruction of a block counts only if it was executed. */
static void part_of_a_block(void **state)
{
	struct fixture *f = *state;
	struct ptd_insn insns[] = { { .size = 2 },
				    { .offset = 2, .size = 2, .iclass = PTD_INSN_JUMP_COND } };
	struct ptd_block block = block_of(f, 0, 0x10, 4, insns);

	sunk_begin(&f->sunk, "branches", PTD_CLOCK_NS, NULL);
	block.n_insns = 2;
	run(f, &block);
	put(f);
	assert_string_equal(strchr(sunk_end(&f->sunk, &f->stream.stats), '\n'),
			    "\nExecuted: 0\n\n            executed       %  kind  branch, and the "
			    "ways it went, each with its part\n");
}

/* More targets than are kept or shown; the rest is counted. */
static void indirect(void **state)
{
	static const char *const options[] = { "rows=1", NULL };
	struct fixture *f = *state;
	const char *text;

	sunk_begin(&f->sunk, "branches", PTD_CLOCK_NS, options);
	for (size_t i = 0; i < TARGETS; i++)
		for (size_t k = 0; k < (i < 2 ? 20 - i : 1); k++) {
			run(f, &f->g);
			run(f, &f->targets[i]);
		}
	run(f, &f->f);
	run(f, &f->next);
	put(f);
	text = sunk_end(&f->sunk, &f->stream.stats);
	assert_string_equal(
	    text,
	    "Branches: 2, conditional or indirect\n"
	    "Executed: 108\n"
	    "\n"
	    "            executed       %  kind  branch, and the ways it went, each with its part\n"
	    "                 107   99.07  call  g+0x0 (/bin/demo)\n"
	    "                  20   18.69        to 0x100 (/bin/demo)\n"
	    "                  19   17.76        to 0x110 (/bin/demo)\n"
	    "                   1    0.93        to 0x120 (/bin/demo)\n"
	    "                   1    0.93        to 0x130 (/bin/demo)\n"
	    "                   1    0.93        to 0x140 (/bin/demo)\n"
	    "                   1    0.93        to 0x150 (/bin/demo)\n"
	    "                   1    0.93        to 0x160 (/bin/demo)\n"
	    "                   1    0.93        to 0x170 (/bin/demo)\n"
	    "                  62   57.94        to others\n"
	    "                   1    0.93  (1 other)\n");
}

/* Blocks that end with the same instruction are one branch. */
static void overlapping(void **state)
{
	static const char *const options[] = { "json", NULL };
	struct fixture *f = *state;
	struct ptd_insn insns[] = { { .size = 2 }, f->call };
	struct ptd_block longer = block_of(f, 90, 0x1e, 5, insns);

	insns[1].offset = 2;
	longer.n_insns = 2;
	sunk_begin(&f->sunk, "branches", PTD_CLOCK_NS, options);
	run(f, &f->g);
	run(f, &f->targets[0]);
	run(f, &longer);
	f->runs[2].n = 2;
	run(f, &f->targets[0]);
	run(f, &f->f);
	run(f, &f->skipped);
	put(f);
	assert_string_equal(
	    sunk_end(&f->sunk, &f->stream.stats),
	    "{\n"
	    " \"format\": \"branches\",\n"
	    " \"clock\": \"ns\",\n"
	    " \"branches\": [\n"
	    "  {\"kind\": \"call\", \"object\": \"/bin/demo\", \"address\": \"0x20\", \"symbol\": "
	    "\"g\", \"offset\": 0, \"executed\": 2, \"targets\": [{\"object\": \"/bin/demo\", "
	    "\"address\": \"0x100\", \"symbol\": null, \"executed\": 2}], \"others\": 0, "
	    "\"unknown\": 0},\n"
	    "  {\"kind\": \"cond\", \"object\": \"/bin/demo\", \"address\": \"0x10\", \"symbol\": "
	    "\"f\", \"offset\": 8, \"executed\": 1, \"taken\": 1, \"not_taken\": 0, \"unknown\": "
	    "0}\n"
	    " ]\n"
	    "}\n");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(conditional, setup, teardown),
		cmocka_unit_test_setup_teardown(part_of_a_block, setup, teardown),
		cmocka_unit_test_setup_teardown(indirect, setup, teardown),
		cmocka_unit_test_setup_teardown(overlapping, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
