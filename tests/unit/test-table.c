/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Tables, and the spills that they are in: few items and many, several at a time, before and after
 * the temporary files were prepared.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "decoder/util/table.h"
#include "util/fileparts.h"

struct item {
	uint64_t a, b, c;
};

static void fill(struct table *t, size_t n, uint64_t salt)
{
	table_init(t, sizeof(struct item), NULL);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(table_push(t, &(struct item){ i, i * salt, salt }), 0);
	assert_int_equal(table_finish(t), 0);
	assert_int_equal(t->n, n);
}

static void check(struct table *t, uint64_t salt)
{
	struct item *items = t->items, read[3];

	for (size_t i = 0; i < t->n; i++) {
		assert_int_equal(items[i].a, i);
		assert_int_equal(items[i].b, i * salt);
		items[i].c = ~i;
		if (i % 1000 == 0)
			table_evict(t);
	}
	table_unmap(t);
	for (size_t i = t->n; i-- > 0;) {
		const size_t n = t->n - i < ARRAY_LEN(read) ? t->n - i : ARRAY_LEN(read);

		assert_int_equal(table_read(t, i, n, read), 0);
		for (size_t k = 0; k < n; k++)
			assert_true(read[k].a == i + k && read[k].b == (i + k) * salt &&
				    read[k].c == ~(i + k));
	}
}

static void every_size(void **state)
{
	static const size_t sizes[] = { 0, 1, 2730, 2731, 100000 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		struct table tables[12];

		/* More than are prepared. */
		for (size_t k = 0; k < ARRAY_LEN(tables); k++)
			fill(&tables[k], sizes[i], k);
		for (size_t k = 0; k < ARRAY_LEN(tables); k++)
			check(&tables[k], k);
		for (size_t k = 0; k < ARRAY_LEN(tables); k++)
			table_deinit(&tables[k]);
	}
}

static void zeros(void **state)
{
	struct table t;

	(void)state;
	table_init(&t, sizeof(struct item), NULL);
	assert_int_equal(table_push_zeros(&t, 5000), 0);
	assert_int_equal(table_finish(&t), 0);
	assert_int_equal(t.n, 5000);
	assert_int_equal(((struct item *)t.items)[4999].c, 0);
	table_deinit(&t);
}

/* What was written to a spill stays what it is when others are written to the same file. */
static void spills(void **state)
{
	struct spillfile files[20];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		struct spill spill = {};
		uint8_t bytes[5000];

		memset(bytes, (int)i + 1, sizeof(bytes));
		for (size_t k = 0; k < i; k++)
			assert_int_equal(spill_write(&spill, bytes, sizeof(bytes)), 0);
		files[i] = spill_finish(&spill);
	}
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		uint8_t bytes[20 * 5000];

		assert_int_equal(files[i].size, i * 5000);
		assert_int_equal(
		    fileparts_read_fd(files[i].fd, files[i].offset, bytes, files[i].size), 0);
		for (size_t k = 0; k < files[i].size; k++)
			assert_int_equal(bytes[k], i + 1);
		if (files[i].is_owned)
			close(files[i].fd);
	}
}

/* Bytes for which there is not enough room are not there, and what is written later is. */
static void no_room(void **state)
{
	const struct rlimit small = { 3000, RLIM_INFINITY },
			    large = { RLIM_INFINITY, RLIM_INFINITY };
	struct spills all = { .room = 10000 };
	struct spill spill = { .spills = &all };
	struct spillfile file;
	uint8_t bytes[5000] = {};

	(void)state;
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(spill_write(&spill, "abc", 3), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(spill_write(&spill, bytes, sizeof(bytes)), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &large), 0);
	assert_int_equal(all.failure, -EFBIG);
	assert_int_equal(all.room, 10000 - 3);
	assert_int_equal(spill_write(&spill, "def", 3), 0);
	file = spill_finish(&spill);
	assert_int_equal(file.size, 6);
	assert_int_equal(fileparts_read_fd(file.fd, file.offset, bytes, file.size), 0);
	assert_memory_equal(bytes, "abcdef", 6);
	assert_true(file.is_owned);
	(void)close(file.fd);
}

static void prepared(void **state)
{
	spill_prepare();
	spill_prepare();
	spills(state);
	every_size(state);
}

/* What all spills together may have counts, also what was given back. */
static void limit(void **state)
{
	struct spills spills_of_10 = { .room = 10 };
	_cleanup_(spill_deinit) struct spill first = { .spills = &spills_of_10 },
					     second = { .spills = &spills_of_10 };
	struct spillfile file;
	uint8_t bytes[6];

	(void)state;
	assert_int_equal(spill_write(&first, "abcdef", 6), 0);
	assert_int_equal(spills_of_10.failure, 0);
	assert_int_equal(spill_write(&second, "ghijk", 5), -EFBIG);
	assert_int_equal(spills_of_10.failure, -EFBIG);
	assert_int_equal(spill_write(&second, "ghij", 4), 0);
	assert_int_equal(spill_write(&first, "x", 1), -EFBIG);
	file = spill_finish(&first);
	assert_int_equal(file.size, 6);
	assert_int_equal(fileparts_read_fd(file.fd, file.offset, bytes, 6), 0);
	assert_memory_equal(bytes, "abcdef", 6);
	if (file.is_owned)
		close(file.fd);
	assert_int_equal(spill_write(&second, "x", 1), -EFBIG);
	spills_of_10.room = 1;
	assert_int_equal(spill_write(&second, "x", 1), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_size), cmocka_unit_test(zeros),   cmocka_unit_test(limit),
		cmocka_unit_test(spills),     cmocka_unit_test(no_room), cmocka_unit_test(prepared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
