/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tally: runs of many blocks, of which some are parts, against a count of each instruction. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "decoder/sink/tally.h"

#define BLOCKS     6000 /* more than an index can tell apart */
#define INSNS      4
#define SYMBOLS    5
#define OBJECTS    3
#define RUNS       20000
#define BATCH_RUNS 100

struct fixture {
	struct ptd_object objects[OBJECTS];
	struct ptd_symbol symbols[SYMBOLS];
	const struct ptd_symbol *by_id[SYMBOLS];
	struct ptd_insn insns[SYMBOLS][INSNS];
	struct ptd_block blocks[BLOCKS];
	struct ptd_run runs[RUNS];
	struct tally_index index;
	struct tally tally;
};

static int setup(void **state)
{
	static const char *const names[] = { "", "a", "b", "c", "d" };
	static const char *const objects[] = { "/x", "/y", "/z" };
	struct fixture *f = calloc(1, sizeof(*f));

	if (!f)
		return -1;
	for (uint32_t i = 0; i < OBJECTS; i++)
		f->objects[i] = (struct ptd_object){ .id = i, .name = objects[i] };
	for (uint32_t i = 0; i < SYMBOLS; i++) {
		f->symbols[i].name = names[i];
		f->by_id[i] = &f->symbols[i];
		/* The last two instructions of a block are of another symbol. */
		for (uint32_t k = 0; k < INSNS; k++)
			f->insns[i][k].symbol = (i + k / 2) % SYMBOLS;
	}
	for (uint32_t i = 0; i < BLOCKS; i++)
		f->blocks[i] = (struct ptd_block){ .id = i,
						   .n_insns = INSNS,
						   .object = &f->objects[i % OBJECTS],
						   .insns = f->insns[i % SYMBOLS] };
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	tally_deinit(&f->tally);
	free(f);
	return 0;
}

/* Runs of some hot blocks and of all others, whole or in part. */
static void make_runs(struct fixture *f)
{
	uint32_t random = 1;

	for (size_t i = 0; i < RUNS; i++) {
		const uint32_t x = (random = random * 1103515245u + 12345u) >> 8;
		const uint16_t first = x % 7 ? 0 : x / 7 % INSNS;

		f->runs[i] = (struct ptd_run){
			.block = &f->blocks[x & 64 ? x / 128 % 10 : x / 128 % BLOCKS],
			.first = first,
			.n = (uint16_t)(x % 5 ? INSNS - first : 1),
		};
	}
}

static void add(struct fixture *f, const struct ptd_run *runs, size_t n_runs)
{
	const struct ptd_slice slice = { .pid = 1, .tid = 2, .comm = "demo" };
	const struct ptd_batch batch = {
		.slice = &slice,
		.runs = runs,
		.n_runs = n_runs,
		.symbols = f->by_id,
		.n_symbols = SYMBOLS,
	};
	struct tally_sum sums[BATCH_RUNS];
	uint8_t bytes[sizeof(sums) + 1];
	size_t n;

	assert_true(n_runs <= BATCH_RUNS);
	n = tally_sum(runs, n_runs, &f->index, sums);
	assert_true(n <= n_runs);
	memcpy(bytes + 1, sums, n * sizeof(*sums));
	assert_int_equal(tally_add(&f->tally, &batch, bytes + 1, n), 0);
}

/* Return: what the runs executed of the object, or of the symbol in the object. */
static uint64_t count(const struct fixture *f, const char *object, const char *symbol)
{
	uint64_t n = 0;

	for (size_t i = 0; i < RUNS; i++) {
		const struct ptd_run *run = &f->runs[i];

		if (strcmp(run->block->object->name, object) != 0)
			continue;
		for (size_t k = run->first; k < (size_t)run->first + run->n; k++)
			n += !symbol ||
			     strcmp(f->symbols[run->block->insns[k].symbol].name, symbol) == 0;
	}
	return n;
}

static void counts_each_instruction(void **state)
{
	struct fixture *f = *state;
	struct tally_rows rows = {};
	uint64_t n = 0;

	make_runs(f);
	for (size_t i = 0; i < RUNS; i += BATCH_RUNS)
		add(f, f->runs + i, BATCH_RUNS);

	assert_int_equal(tally_list(&f->tally, TALLY_OBJECTS, &rows), 0);
	assert_int_equal(rows.n, OBJECTS);
	for (size_t i = 0; i < rows.n; i++) {
		assert_true(rows.items[i].n_insns == count(f, rows.items[i].name, NULL));
		n += rows.items[i].n_insns;
	}
	assert_true(n == f->tally.n_insns);
	vec_deinit(&rows);

	assert_int_equal(tally_list(&f->tally, TALLY_SYMBOLS, &rows), 0);
	assert_int_equal(rows.n, OBJECTS * SYMBOLS);
	for (size_t i = 0; i < rows.n; i++)
		assert_true(rows.items[i].n_insns ==
			    count(f, rows.items[i].object, rows.items[i].name ?: ""));
	vec_deinit(&rows);

	assert_int_equal(tally_list(&f->tally, TALLY_THREADS, &rows), 0);
	assert_int_equal(rows.n, 1);
	assert_true(rows.items[0].n_insns == n);
	assert_string_equal(rows.items[0].name, "demo");
	vec_deinit(&rows);
}

/* What the index holds of other runs does not matter, and equal runs become one sum. */
static void sums_depend_on_the_runs_only(void **state)
{
	struct fixture *f = *state;
	struct tally_sum first[3], again[3];
	const struct ptd_run runs[] = {
		{ .block = &f->blocks[1], .n = INSNS },
		{ .block = &f->blocks[2], .n = INSNS },
		{ .block = &f->blocks[1], .n = INSNS },
		{ .block = &f->blocks[1], .first = 1, .n = 2 },
		{ .block = &f->blocks[1], .first = 1, .n = 2 },
	};

	assert_int_equal(tally_sum(runs, 2, &f->index, first), 2);
	memset(&f->index, 0, sizeof(f->index));
	assert_int_equal(tally_sum(runs, ARRAY_LEN(runs), &f->index, first), 3);
	assert_int_equal(first[0].count, 2);
	assert_int_equal(first[1].count, 1);
	assert_int_equal(first[2].count, 2);
	assert_int_equal(first[2].first, 1);
	assert_int_equal(first[2].n, 2);
	make_runs(f);
	add(f, f->runs, BATCH_RUNS);
	assert_int_equal(tally_sum(runs, ARRAY_LEN(runs), &f->index, again), 3);
	assert_memory_equal(again, first, sizeof(first));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(counts_each_instruction, setup, teardown),
		cmocka_unit_test_setup_teardown(sums_depend_on_the_runs_only, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
