/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Memtrace expansion: a long random stream, of code that runs again and again, in batches of
 * different sizes. The first run of a batch is never copied, so batches of one run show what the
 * files must be.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/drmemtrace/file.h"
#include "decoder/sink/sinks.h"
#include "tests/lib/kinds.h"
#include "tests/lib/tempdir.h"
#include "util/mapfile.h"

#define PLACES       48   /* addresses at which blocks begin; a block ends where the next begins */
#define INSNS        6    /* at most, of most blocks */
#define INSNS_LONG   1000 /* of the block at place 1 */
#define INSNS_TOLONG 1100 /* of the block at place 2, which no expansion has */
#define BASE         UINT64_C(0x400000)
#define RUNS         60000
#define RUNS_LONG    11000 /* of the long block, at the end: more instructions than a chunk */
#define BATCH_MAX    5000

#define SYMBOLS 9

static const struct ptd_object object = { .name = "/bin/demo" };

struct code {
	struct ptd_symbol symbols[SYMBOLS];
	const struct ptd_symbol *by_id[SYMBOLS];
	struct ptd_block blocks[2 * PLACES]; /* the second half: other bytes at the same places */
	struct ptd_insn insns[2 * PLACES][INSNS];
	struct ptd_insn long_insns[2 * PLACES][INSNS_TOLONG]; /* of places 1 and 2 */
	uint8_t bytes[2][INSNS_TOLONG * 4 + 1];
	uint64_t base[PLACES + 1];
};

struct step {
	struct ptd_run run;
	struct ptd_mark mark; /* before the run, if has_mark */
	bool has_mark;
	bool opens_slice;
};

struct fixture {
	struct code code;
	struct step steps[RUNS + RUNS_LONG];
	uint32_t random;
};

static uint32_t any(struct fixture *f, uint32_t n)
{
	f->random = f->random * 1103515245u + 12345u;
	return (f->random >> 8) % n;
}

/*
 * What the last instructions of blocks are, by their places. Every sixth block has one instruction,
 * and the block before that ends with one that loads the number of rt_sigreturn.
 */
static const uint8_t classes[] = {
	PTD_INSN_SYSCALL, PTD_INSN_JUMP,   PTD_INSN_JUMP_COND, PTD_INSN_JUMP_INDIRECT,
	PTD_INSN_CALL,    PTD_INSN_OTHER,  PTD_INSN_JUMP_COND, PTD_INSN_CALL_INDIRECT,
	PTD_INSN_RETURN,  PTD_INSN_RETURN, PTD_INSN_JUMP_COND, PTD_INSN_OTHER,
};
static const uint8_t load_number[] = { 0xb8, 0x0f, 0, 0, 0 };

static void make_block(struct fixture *f, size_t i)
{
	const size_t place = i % PLACES;
	const uint16_t n = place == 1   ? INSNS_LONG
			   : place == 2 ? INSNS_TOLONG
					: (uint16_t)(1 + place % INSNS);
	struct ptd_insn *insns = n > INSNS ? f->code.long_insns[i] : f->code.insns[i];
	const bool loads = n == INSNS;

	/* Some blocks have two symbols, and some have none. */
	for (size_t k = 0; k < n; k++)
		insns[k] =
		    (struct ptd_insn){ .offset = (uint16_t)(4 * k),
				       .size = 4,
				       .symbol = place % 5 * (1 + (place % 7 == 0 && k > n / 2)) };
	insns[n - 1].iclass = classes[place % ARRAY_LEN(classes)];
	insns[n - 1].size = loads ? sizeof(load_number) : 4;
	f->code.blocks[i] = (struct ptd_block){
		.id = (uint32_t)i,
		.n_insns = n,
		.size = (uint16_t)(4 * n + loads),
		.mode = place == 3 ? 32 : 64,
		.bytes = f->code.bytes[i / PLACES],
		.insns = insns,
		.object = &object,
		.address = f->code.base[place],
	};
	f->code.base[place + 1] = f->code.base[place] + f->code.blocks[i].size;
}

static void make_code(struct fixture *f)
{
	memset(f->code.bytes[1], 0x90, sizeof(f->code.bytes[1]));
	for (size_t i = 0; i < 2; i++)
		memcpy(f->code.bytes[i] + 4 * (INSNS - 1), load_number, sizeof(load_number));
	f->code.base[0] = BASE;
	for (size_t i = 0; i < SYMBOLS; i++) {
		f->code.symbols[i] = (struct ptd_symbol){ .name = i ? "f" : "", .address = BASE };
		f->code.by_id[i] = &f->code.symbols[i];
	}
	for (size_t i = 0; i < 2 * PLACES; i++)
		make_block(f, i);
	/* Targets near by, so that blocks also lead to themselves and to what follows them. */
	for (size_t i = 0; i < 2 * PLACES; i++) {
		const size_t place = i % PLACES;
		const size_t to = place == 1 ? 1 : (place + any(f, 5) + PLACES - 2) % PLACES;

		f->code.blocks[i].target = (int64_t)(f->code.base[to] - f->code.base[place]);
	}
}

static size_t place_of(const struct fixture *f, uint64_t address)
{
	size_t place = 0;

	while (place + 1 < PLACES && f->code.base[place] != address)
		place++;
	return place;
}

/* Return: where control probably goes behind @run. */
static size_t next_place(struct fixture *f, const struct ptd_run *run)
{
	const struct ptd_insn *last = &run->block->insns[run->first + run->n - 1];
	const uint64_t next = run->base + last->offset + last->size;
	const uint64_t target = run->base + (uint64_t)run->block->target;

	if (!any(f, last->iclass == PTD_INSN_SYSCALL ? 4 : 60))
		return any(f, PLACES);
	switch (last->iclass) {
	case PTD_INSN_OTHER:
	case PTD_INSN_SYSCALL:
		return place_of(f, next);
	case PTD_INSN_JUMP:
	case PTD_INSN_CALL:
		return place_of(f, target);
	case PTD_INSN_JUMP_COND:
		return place_of(f, any(f, 2) ? next : target);
	default:
		return any(f, PLACES);
	}
}

static bool ends_with_syscall(const struct ptd_run *run)
{
	return run->block->insns[run->first + run->n - 1].iclass == PTD_INSN_SYSCALL;
}

/* Make the run that follows the one before @step, which may go on inside the same block. */
static void make_run(struct fixture *f, struct step *step, size_t variant)
{
	const struct ptd_run *before = step > f->steps ? &step[-1].run : NULL;
	struct ptd_run *run = &step->run;

	if (before && before->first + before->n < before->block->n_insns && any(f, 30)) {
		*run = *before;
		run->first = (uint16_t)(before->first + before->n);
	} else {
		const size_t place = before ? next_place(f, before) : 0;

		*run =
		    (struct ptd_run){ .block = &f->code.blocks[place + variant * PLACES],
				      .base = place == 4 && !any(f, 4) ? 0 : f->code.base[place] };
	}
	run->n = (uint16_t)(run->block->n_insns - run->first);
	if (!any(f, 10))
		run->n = (uint16_t)(1 + any(f, run->n));
}

static void make_steps(struct fixture *f)
{
	uint64_t t = 1000;

	for (size_t i = 0; i < RUNS + RUNS_LONG; i++) {
		struct step *step = &f->steps[i];

		/* For some time, all code is other code. */
		make_run(f, step, i % 20000 > 17000);
		if (i >= RUNS)
			step->run = (struct ptd_run){ .block = &f->code.blocks[1],
						      .base = f->code.base[1],
						      .n = INSNS_LONG };
		t += any(f, 9) ? any(f, 100) : any(f, 30000);
		step->run.t = t;
		step->opens_slice = i == 0 || (i < RUNS && !any(f, 2000));
		step->has_mark = !any(f, 300) || (i > 0 && ends_with_syscall(&step[-1].run));
		step->mark = (struct ptd_mark){
			.kind = any(f, 10)  ? PTD_MARK_OFF
				: any(f, 2) ? PTD_MARK_ASYNC
					    : PTD_MARK_GAP,
			.reason = PTD_GAP_OVERFLOW,
			.t = t,
			.ip = any(f, 3) ? ptd_run_ip(&step->run, 0) : BASE,
		};
	}
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	if (!f)
		return -1;
	f->random = 7;
	make_code(f);
	make_steps(f);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

/* Threads 7 and 8 are of one process, thread 9 of another. */
static struct ptd_slice slice_of(uint64_t id, uint64_t t)
{
	static const uint32_t tids[] = { 7, 8, 7, 9, 8 };
	const uint32_t tid = tids[id % ARRAY_LEN(tids)];

	return (struct ptd_slice){ .id = id,
				   .cpu = (uint32_t)(id % 3),
				   .pid = tid == 9 ? 9 : 7,
				   .tid = tid,
				   .space = tid == 9,
				   .t0 = t,
				   .comm = "a.out" };
}

/* Write the stream to @dir, in batches of up to @n_max runs. */
static void write_files(struct fixture *f, size_t n_max, const char *dir)
{
	const struct ptd_info info = { .clock = PTD_CLOCK_NS };
	static struct ptd_run runs[BATCH_MAX];
	static struct ptd_mark marks[BATCH_MAX];
	struct ptd_batch batch = {
		.runs = runs, .marks = marks, .symbols = f->code.by_id, .n_symbols = SYMBOLS
	};
	struct ptd_slice slice = {};
	struct sink *sink;

	assert_int_equal(sink_open(&sink_drmemtrace, dir, &info, NULL, &sink), 0);
	batch.slice = &slice;
	for (size_t i = 0, id = 0; i <= ARRAY_LEN(f->steps); i++) {
		const struct step *step = i < ARRAY_LEN(f->steps) ? &f->steps[i] : NULL;

		if (!step || step->opens_slice || batch.n_runs == n_max) {
			if (batch.n_runs > 0)
				assert_int_equal(sink_batch(sink, &batch), 0);
			batch.n_runs = batch.n_marks = 0;
		}
		if (!step)
			break;
		if (step->opens_slice)
			slice = slice_of(id++, step->run.t);
		if (step->has_mark) {
			marks[batch.n_marks] = step->mark;
			marks[batch.n_marks++].run = batch.n_runs;
		}
		runs[batch.n_runs++] = step->run;
	}
	assert_int_equal(sink_finish(sink, &(struct ptd_stats){}), 0);
	assert_null(sink_free(sink));
}

/* Return: how many files both directories have, which must be the same. */
static size_t compare_files(const char *expected, const char *dir)
{
	char paths[2][TEMPDIR_SIZE + 300];
	size_t n = 0;
	struct dirent *entry;
	DIR *list;

	(void)snprintf(paths[0], sizeof(paths[0]), "%s/trace", expected);
	list = opendir(paths[0]);
	assert_non_null(list);
	while ((entry = readdir(list))) {
		struct mapfile files[2] = {};

		if (entry->d_name[0] == '.')
			continue;
		for (size_t i = 0; i < 2; i++) {
			(void)snprintf(paths[i], sizeof(paths[i]), "%s/trace/%s",
				       i ? dir : expected, entry->d_name);
			assert_int_equal(mapfile_read(&files[i], AT_FDCWD, paths[i]), 0);
		}
		assert_int_equal(files[0].size, files[1].size);
		if (memcmp(files[0].bytes, files[1].bytes, files[0].size) != 0)
			fail_msg("%s: differs", entry->d_name);
		mapfile_deinit(&files[0]);
		mapfile_deinit(&files[1]);
		n++;
	}
	(void)closedir(list);
	return n;
}

static void batches_of_any_size(void **state)
{
	static const size_t sizes[] = { 2, 37, BATCH_MAX };
	struct fixture *f = *state;
	char expected[TEMPDIR_SIZE], dir[TEMPDIR_SIZE];

	tempdir_make("expansion", expected);
	write_files(f, 1, expected);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		tempdir_make("expansion", dir);
		write_files(f, sizes[i], dir);
		/* Of three threads, and the schedules. */
		assert_int_equal(compare_files(expected, dir), 3 + 2);
		tempdir_remove(dir);
	}
	tempdir_remove(expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(batches_of_any_size, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
