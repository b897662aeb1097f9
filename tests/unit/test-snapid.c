/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>

#include "tests/lib/tempdir.h"
#include "util/snapid.h"

static void ids(void **state)
{
	static const struct {
		const char *id;
		bool valid;
	} rows[] = {
		{ "20261121T083000.123456Z-1", true },
		{ "", false },
		{ "latest", false },
		{ ".", false },
		{ "..", false },
		{ ".new-1", false },
		{ "a/b", false },
		{ "../etc", false },
		{ "1 2", false },
		{ "1\n", false },
		{ "1111111111111111111111111111111111111111111111111111111111111111", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(snapid_valid(rows[i].id), rows[i].valid);
}

static void printing(void **state)
{
	static const struct {
		struct timespec now;
		uint64_t sequence;
		const char *id;
	} rows[] = {
		{ { 1795249800, 123456789 }, 1, "20261121T083000.123456Z-1" },
		{ { 1, 999 }, 9, "19700101T000001.000000Z-9" },
		{ { 1, 0 }, UINT64_MAX, "19700101T000001.000000Z-18446744073709551615" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char id[SNAPID_SIZE];

		snapid_print(&rows[i].now, rows[i].sequence, id);
		assert_string_equal(id, rows[i].id);
		assert_true(snapid_valid(id));
		assert_int_equal(snapid_time(id), rows[i].now.tv_sec);
		assert_int_equal(snapid_sequence(id), rows[i].sequence);
	}
}

/* The clock may have gone back in between. */
static void ages(void **state)
{
	static const char *const by_age[] = {
		"A", "B", "20300101T000000.000000Z-1", "20200101-2", "20200102-2", "X-9", "1-10"
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(by_age); i++)
		for (size_t k = 0; k < ARRAY_LEN(by_age); k++) {
			const int c = snapid_compare(by_age[i], by_age[k]);

			assert_int_equal((c > 0) - (c < 0), (i > k) - (i < k));
		}
	assert_int_equal(snapid_sequence("1-10"), 10);
	assert_int_equal(snapid_sequence("A"), 0);
}

static void times(void **state)
{
	static const struct {
		const char *id;
		int64_t time;
	} rows[] = {
		{ "20261121T083000.123456Z-1", 1795249800 },
		{ "19700101T000001.000000Z-9", 1 },
		{ "20261121T083000Z-1", -EINVAL },
		{ "20261321T083000.123456Z-1", -EINVAL },
		{ "A-1", -EINVAL },
		{ "", -EINVAL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(snapid_time(rows[i].id), rows[i].time);
}

static void latest(void **state)
{
	char dir[TEMPDIR_SIZE], id[SNAPID_SIZE] = "as it was";
	int fd;

	(void)state;
	tempdir_make("snapid", dir);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(snapid_latest(fd, id), -ENOENT);
	assert_int_equal(snapid_latest(-1, id), -EBADF);
	/* One that is being written, one that was cut short, and what is no snapshot. */
	tempdir_put_text(dir, ".new-2026-9/manifest", "");
	tempdir_put_text(dir, "2026-8/data", "");
	tempdir_put_text(dir, "other-7/manifest", "");
	tempdir_put_text(dir, "2026-6", "");
	assert_int_equal(snapid_latest(fd, id), -ENOENT);
	assert_string_equal(id, "as it was");

	tempdir_put_text(dir, "2026-2/manifest", "");
	tempdir_put_text(dir, "2027-1/manifest", "");
	tempdir_put_text(dir, "2020-3/manifest", "");
	assert_int_equal(snapid_latest(fd, id), 0);
	assert_string_equal(id, "2020-3");
	(void)close(fd);
	tempdir_remove(dir);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids),   cmocka_unit_test(printing), cmocka_unit_test(ages),
		cmocka_unit_test(times), cmocka_unit_test(latest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
