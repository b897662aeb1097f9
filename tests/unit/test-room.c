/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "daemon/config.h"
#include "daemon/keep.h"
#include "daemon/room.h"
#include "tests/lib/tempdir.h"

struct fixture {
	char dir[TEMPDIR_SIZE];
	struct room room;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	tempdir_make("room", f->dir);
	f->room.limits = (struct spool_limits){ .max_use = UINT64_MAX };
	assert_int_equal(spool_new(f->dir, &f->room.spool), 0);
	assert_int_equal(keep_new(spool_store_fd(f->room.spool), &f->room.limits, &f->room.keep),
			 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	(void)keep_free(f->room.keep);
	(void)spool_free(f->room.spool);
	tempdir_remove(f->dir);
	free(f);
	return 0;
}

static bool exists(const struct fixture *f, const char *path)
{
	char whole[128];

	(void)snprintf(whole, sizeof(whole), "%s/%s", f->dir, path);
	return access(whole, F_OK) == 0;
}

static void limits(void **state)
{
	struct fixture *f = *state;
	struct config config;
	uint64_t capacity;

	assert_int_equal(spool_capacity(f->room.spool, &capacity), 0);
	assert_true(capacity > 0);
	config_init(&config);
	assert_int_equal(room_set_limits(&f->room, &config), 0);
	assert_int_equal(f->room.limits.max_use, capacity / 100 * 10);
	assert_int_equal(f->room.limits.keep_free, capacity / 100 * 15);
	config.max_use = (struct config_limit){ .percent = 100 };
	config.keep_free = (struct config_limit){ .percent = 1 };
	assert_int_equal(room_set_limits(&f->room, &config), 0);
	assert_int_equal(f->room.limits.max_use, capacity / 100 * 100);
	assert_int_equal(f->room.limits.keep_free, capacity / 100);
	config.max_use = (struct config_limit){ .bytes = 7 };
	config.keep_free = (struct config_limit){ .bytes = 0 };
	assert_int_equal(room_set_limits(&f->room, &config), 0);
	assert_int_equal(f->room.limits.max_use, 7);
	assert_int_equal(f->room.limits.keep_free, 0);
}

/* What no snapshot has any more goes with the last that had it. */
static void making_it(void **state)
{
	static const struct {
		uint64_t max_use, needed;
		size_t n_stay, n_removed;
		bool swept;
	} rows[] = {
		{ 400, 100, 1, 0, false }, { 399, 100, 1, 1, true }, { 0, 0, 1, 1, true },
		{ 0, 1, 0, 1, true },      { 0, 1, 0, 0, true },
	};
	struct fixture *f = *state;
	size_t n;

	tempdir_put_text(f->dir, "snapshots/A-1/manifest", "bytes=100\n");
	tempdir_put_text(f->dir, "snapshots/B-2/manifest", "bytes=100\n");
	tempdir_put_text(f->dir, "snapshots/C-3/manifest", "bytes=100\n");
	tempdir_put_text(f->dir, "store/object", "");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		f->room.limits.max_use = rows[i].max_use;
		assert_int_equal(room_make(&f->room, rows[i].needed, rows[i].n_stay, &n), 0);
		assert_int_equal(n, rows[i].n_removed);
		assert_int_equal(exists(f, "store/object"), !rows[i].swept);
	}
	assert_false(exists(f, "snapshots/C-3"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(limits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(making_it, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
