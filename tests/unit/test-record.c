/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Records as a source gives them: good ones, then the same spoiled one field at a time. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>

#include "tests/unit/records.h"

static void spoiled_records_are_refused(void **state)
{
	static const struct {
		const char *name;
		size_t offset;
		uint8_t value;
		size_t cut;
		int expected;
	} rows[] = {
		{ "good", 0, PERF_RECORD_MMAP2, 0, 0 },
		{ "unknown type", 0, 99, 0, -EBADMSG },
		{ "perf's own type", 0, 68, 0, -EBADMSG },
		{ "type that is not for snapshots", 0, PERF_RECORD_SAMPLE, 0, -EBADMSG },
		{ "size not a multiple of 8", 6, 0x7f, 0, -EBADMSG },
		{ "size below the minimum", 6, 72, 0, -EBADMSG },
		{ "size zero", 6, 0, 0, -EBADMSG },
		{ "size beyond the end", 7, 0xff, 0, -EBADMSG },
		{ "name without an end", 8 + 64 + 7, 'x', 0, -EBADMSG },
		{ "id that no attr has", 8 + 72 + 24, 3, 0, -EBADMSG },
		{ "cut by one byte", 0, PERF_RECORD_MMAP2, 1, -EBADMSG },
		{ "header cut", 0, PERF_RECORD_MMAP2, 105, -EBADMSG },
		{ "nothing", 0, PERF_RECORD_MMAP2, 112, RECORD_END },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct records good = {};
		struct record record = { .header.type = 0xdead };
		struct cursor c, before;

		records_mmap2(&good, 7, "/bin/ls", NULL, 1);
		assert_int_equal(good.size, 112);
		good.bytes[rows[i].offset] = rows[i].value;
		c = before = cursor_from(good.bytes, good.size - rows[i].cut);

		print_message("  %s\n", rows[i].name);
		assert_int_equal(record_next(&c, &record), rows[i].expected);
		if (rows[i].expected == 0) {
			assert_int_equal(cursor_left(&c), 0);
			assert_int_equal(record.trailer.pid, 7);
		} else {
			assert_ptr_equal(c.pos, before.pos);
			assert_int_equal(record.header.type, 0xdead);
		}
		records_deinit(&good);
	}
}

static void mmap2_bodies(void **state)
{
	const struct buildid id = { .bytes = { 0xab, 0xcd }, .size = 20 };
	struct records r = {};
	struct record_mmap2 m;
	struct record record;
	struct cursor c;

	(void)state;
	records_mmap2(&r, 5, "/lib/a.so", &id, 9);
	records_mmap2(&r, 6, "/lib/b.so", NULL, 9);
	c = cursor_from(r.bytes, r.size);
	assert_int_equal(record_next(&c, &record), 0);
	assert_int_equal(record_get_mmap2(&record, &m), 0);
	assert_int_equal(m.pid, 5);
	assert_string_equal(m.name, "/lib/a.so");
	assert_int_equal(m.addr, 0x400000);
	assert_true(m.prot & PROT_EXEC);
	assert_true(buildid_equal(&m.build_id, &id));

	assert_int_equal(record_next(&c, &record), 0);
	assert_int_equal(record_get_mmap2(&record, &m), 0);
	assert_int_equal(m.build_id.size, 0);

	/* A build-id longer than there can be. */
	r.bytes[8 + 32] = 21;
	c = cursor_from(r.bytes, r.size);
	assert_int_equal(record_next(&c, &record), 0);
	assert_int_equal(record_get_mmap2(&record, &m), -EBADMSG);
	records_deinit(&r);
}

static void add_switches(struct records *r, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		records_switch(r, 100 + i, false, 1000 + i, 3);
}

/* However many bytes were cut off the front, it begins at the first whole record. */
static void resync_after_a_cut(void **state)
{
	struct records r = {};
	size_t start;

	(void)state;
	add_switches(&r, 5);
	for (size_t cut = 0; cut <= r.size; cut++) {
		uint8_t *bytes = malloc(r.size - cut + 1);

		memcpy(bytes, r.bytes + cut, r.size - cut);
		assert_int_equal(record_resync(bytes, r.size - cut, 3, &start), 0);
		assert_int_equal(cut + start, (cut + 47) / 48 * 48);
		free(bytes);
	}
	records_deinit(&r);
}

static void resync_keeps_only_what_holds_to_the_end(void **state)
{
	static const struct {
		const char *name;
		size_t offset; /* in the third of five records */
		uint8_t value;
		size_t expected; /* records kept */
	} rows[] = {
		{ "all good", 0, PERF_RECORD_SWITCH_CPU_WIDE, 5 },
		{ "a task record among them", 0, PERF_RECORD_COMM, 2 },
		{ "another cpu's", 16 + 16, 4, 2 },
		{ "another size", 6, 56, 2 },
		{ "an unknown id", 16 + 24, 9, 2 },
		{ "a time that is later than the next", 16 + 8 + 7, 1, 2 },
	};
	size_t start;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct records r = {};

		print_message("  %s\n", rows[i].name);
		add_switches(&r, 5);
		r.bytes[2 * 48 + rows[i].offset] = rows[i].value;
		assert_int_equal(record_resync(r.bytes, r.size, 3, &start), 0);
		assert_int_equal((r.size - start) / 48, rows[i].expected);

		/* Garbage at the end: nothing can be trusted. */
		assert_int_equal(record_resync(r.bytes, r.size - 4, 3, &start), 0);
		assert_int_equal(start, r.size - 4);
		records_deinit(&r);
	}
	assert_int_equal(record_resync(NULL, 0, 0, &start), 0);
	assert_int_equal(start, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(spoiled_records_are_refused),
		cmocka_unit_test(mmap2_bodies),
		cmocka_unit_test(resync_after_a_cut),
		cmocka_unit_test(resync_keeps_only_what_holds_to_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
