/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The ground truth: what the source logs is what the reader gives, and a damaged log is refused.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/plugin/block.h"
#include "daemon/plugin/truthlog.h"
#include "tests/lib/emufree.h"
#include "tests/lib/emulog.h"
#include "tests/lib/tempdir.h"

static char dir[TEMPDIR_SIZE];

static int make_dir(void **state)
{
	(void)state;
	tempdir_make("emulog", dir);
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	tempdir_remove(dir);
	return 0;
}

/* nop; nop; int3 at 0x1000, and ret at 0x2000. */
static void add_blocks(struct blocks *blocks, const struct block **ret_a,
		       const struct block **ret_b)
{
	static const uint8_t nop = 0x90, int3 = 0xcc, ret = 0xc3;
	const struct block_insn a[] = { { 0x1000, &nop, 1 },
					{ 0x1001, &nop, 1 },
					{ 0x1002, &int3, 1 } };
	const struct block_insn b[] = { { 0x2000, &ret, 1 } };
	struct block *block;

	assert_int_equal(blocks_get(blocks, 0x1000, a, 3, &block), BLOCKS_NEW);
	*ret_a = block;
	assert_int_equal(blocks_get(blocks, 0x2000, b, 1, &block), BLOCKS_NEW);
	*ret_b = block;
}

static void round_trip(void **state)
{
	static const struct emulog_insn expected[] = {
		{ 0x2000, false }, { 0x1000, false }, { 0x1001, false },
		{ 0x1000, false }, { 0x1001, false }, { 0x1002, true },
		{ 0x1000, false }, { 0x1001, false }, { 0x1002, false },
	};
	const struct block *a, *b;
	struct blocks blocks = { .mode = 64 };
	struct truthlog *file;
	struct emulog_insn insn;
	struct emulog log;

	(void)state;
	add_blocks(&blocks, &a, &b);
	assert_int_equal(truthlog_new(dir, "7.0.blocks", O_TRUNC, &file), 0);
	truthlog_describe(file, a);
	truthlog_describe(file, b);
	file = truthlog_free(file);
	assert_int_equal(truthlog_new(dir, "7.8.0.log", O_TRUNC, &file), 0);
	truthlog_whole(file, b->id);
	truthlog_partial(file, a->id, 2);
	truthlog_partial(file, a->id, 0);
	truthlog_unreported(file, a->id);
	truthlog_whole(file, a->id);
	truthlog_end(file);
	file = truthlog_free(file);

	assert_int_equal(emulog_init(&log, dir, "7.8"), 0);
	for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
		assert_int_equal(emulog_next(&log, &insn), 0);
		assert_int_equal(insn.ip, expected[i].ip);
		assert_int_equal(insn.unreported, expected[i].unreported);
	}
	assert_int_equal(emulog_next(&log, &insn), EMULOG_END);
	assert_false(log.cut);
	emulog_deinit(&log);
	blocks_deinit(&blocks);
}

/* More than the buffer holds. */
static void long_log(void **state)
{
	const uint32_t n = 3 * TRUTHLOG_BUFFER_SIZE + 5;
	struct truthlog *file;
	struct emulog_insn insn;
	struct emulog log;
	uint32_t count = 0;

	(void)state;
	tempdir_put(dir, "7.0.blocks", (const uint32_t[]){ 1, 0, 0x1000, 0 }, 16);
	assert_int_equal(truthlog_new(dir, "7.8.0.log", O_TRUNC, &file), 0);
	for (uint32_t i = 0; i < n; i++)
		truthlog_whole(file, 0);
	file = truthlog_free(file);
	assert_int_equal(emulog_init(&log, dir, "7.8"), 0);
	while (emulog_next(&log, &insn) == 0)
		count++;
	assert_int_equal(count, n);
	assert_true(log.cut);
	emulog_deinit(&log);
}

/* A forked child has its parent's blocks; a thread goes on in the next program. */
static void processes(void **state)
{
	static const uint32_t parent[] = { 1, 0, 0x1000, 0, 1, 0, 0x1001, 0, 1, 0, 0x1002, 0 };
	static const uint32_t child[] = { TRUTHLOG_INHERITED, 2, 6, 0, 1, 0, 0x2002, 0 };
	static const uint32_t words[] = { 0, 1, 2, TRUTHLOG_END };
	static const uint64_t expected[] = { 0x1000, 0x1001, 0x2002, 0x1000, 0x1001, 0x1002 };
	struct emulog_names names;
	struct emulog_insn insn;
	struct emulog log;

	(void)state;
	tempdir_put(dir, "6.0.blocks", parent, sizeof(parent));
	tempdir_put(dir, "7.0.blocks", child, sizeof(child));
	tempdir_put(dir, "7.10.blocks", parent, sizeof(parent));
	tempdir_put(dir, "7.8.0.log", words, sizeof(words));
	tempdir_put(dir, "7.8.10.log", words, sizeof(words) - sizeof(words[0]));

	assert_int_equal(emulog_list(dir, &names), 0);
	assert_int_equal(names.list.n, 1);
	assert_string_equal(names.list.items[0], "7.8");
	emulog_names_deinit(&names);

	assert_int_equal(emulog_init(&log, dir, "7.8"), 0);
	for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
		assert_int_equal(emulog_next(&log, &insn), 0);
		assert_int_equal(insn.ip, expected[i]);
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(emulog_next(&log, &insn), EMULOG_END);
	assert_true(log.cut);
	emulog_deinit(&log);

	for (size_t i = 0; i < 3; i++) {
		static const char *const extra[] = { "6.0.blocks", "7.10.blocks", "7.8.10.log" };
		char path[128];

		(void)snprintf(path, sizeof(path), "%s/%s", dir, extra[i]);
		assert_int_equal(unlink(path), 0);
	}
}

static void damaged(void **state)
{
	static const struct {
		const char *name;
		uint32_t blocks[8];
		size_t blocks_size;
		uint32_t words[8];
		size_t words_size;
		int init, next;
	} rows[] = {
		{ "good", { 1, 0, 0x1000, 0 }, 16, { 0 }, 4, 0, 0 },
		{ "empty", {}, 0, {}, 0, 0, EMULOG_END },
		{ "dictionary cut in a head",
		  { 1, 0, 0x1000, 0 },
		  4,
		  { 0, TRUTHLOG_END },
		  8,
		  0,
		  -EBADMSG },
		{ "dictionary cut in a block",
		  { 2, 0, 0x1000, 0 },
		  16,
		  { 0, TRUTHLOG_END },
		  8,
		  0,
		  -EBADMSG },
		{ "huge block",
		  { UINT32_MAX - 1, 0, 0x1000, 0 },
		  16,
		  { 0, TRUTHLOG_END },
		  8,
		  0,
		  -EBADMSG },
		{ "parent without a log",
		  { TRUTHLOG_INHERITED, 1, 6, 0 },
		  16,
		  { 0 },
		  4,
		  -ENOENT,
		  0 },
		{ "its own parent", { TRUTHLOG_INHERITED, 1, 7, 0 }, 16, { 0 }, 4, -EBADMSG, 0 },
		{ "unknown block", { 1, 0, 0x1000, 0 }, 16, { 1, TRUTHLOG_END }, 8, 0, -EBADMSG },
		{ "unknown block of a killed process",
		  { 1, 0, 0x1000, 0 },
		  16,
		  { 1 },
		  4,
		  0,
		  EMULOG_END },
		{ "word cut", { 1, 0, 0x1000, 0 }, 16, { 0 }, 3, 0, EMULOG_END },
		{ "partial cut",
		  { 1, 0, 0x1000, 0 },
		  16,
		  { TRUTHLOG_PARTIAL, 0 },
		  8,
		  0,
		  EMULOG_END },
		{ "partial of too many",
		  { 1, 0, 0x1000, 0 },
		  16,
		  { TRUTHLOG_PARTIAL, 0, 2 },
		  12,
		  0,
		  -EBADMSG },
		{ "unreported cut",
		  { 1, 0, 0x1000, 0 },
		  16,
		  { TRUTHLOG_UNREPORTED },
		  4,
		  0,
		  EMULOG_END },
		{ "empty block", { 0, 0 }, 8, { 0 }, 4, 0, EMULOG_END },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct emulog_insn insn = { .ip = 0xdead };
		struct emulog log;

		print_message("  %s\n", rows[i].name);
		tempdir_put(dir, "7.0.blocks", rows[i].blocks, rows[i].blocks_size);
		tempdir_put(dir, "7.8.0.log", rows[i].words, rows[i].words_size);
		assert_int_equal(emulog_init(&log, dir, "7.8"), rows[i].init);
		if (rows[i].init < 0)
			continue;
		assert_int_equal(emulog_next(&log, &insn), rows[i].next);
		assert_int_equal(insn.ip, rows[i].next == 0 ? 0x1000 : 0xdead);
		emulog_deinit(&log);
	}
}

static void missing(void **state)
{
	struct emulog log;

	(void)state;
	assert_int_equal(emulog_init(&log, dir, "9.9"), -ENOENT);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip), cmocka_unit_test(long_log),
		cmocka_unit_test(processes),  cmocka_unit_test(damaged),
		cmocka_unit_test(missing),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
