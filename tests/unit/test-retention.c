/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <time.h>

#include "daemon/config/config.h"
#include "daemon/objects/objectstore.h"
#include "daemon/retention/retention.h"
#include "tests/lib/failing.h"
#include "tests/lib/tempdir.h"

#define MIB ((uint64_t)1 << 20)

/* MaxUse= of which snapshots may take so many MiB. */
#define MAX_USE(n_mib) ((n_mib)*MIB / (RETENTION_COPIES_PART - 1) * RETENTION_COPIES_PART)

struct fixture {
	char dir[TEMPDIR_SIZE]; /* a file system of its own, of 16 MiB and 100 inodes, if it may */
	bool mounted;
	struct retention retention;
	_Atomic uint64_t n_removed;
	_Atomic uint64_t taken;
	uint64_t to_evict, evict_least; /* what was asked for last */
	uint64_t evict;                 /* what is answered */
};

/* In a namespace of our own, which ends with us. */
static bool mount_small(const char *dir)
{
	static int r = 1;

	if (r > 0)
		r = unshare(CLONE_NEWNS) == 0 &&
			    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0
			? 0
			: -errno;
	return r == 0 && mount("room", dir, "tmpfs", 0, "size=16m,nr_inodes=100") == 0;
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	tempdir_make("room", f->dir);
	f->mounted = mount_small(f->dir);
	f->retention.limits = (struct spool_limits){ .max_use = UINT64_MAX };
	f->retention.n_removed = &f->n_removed;
	f->retention.taken = &f->taken;
	assert_int_equal(spool_new(f->dir, &f->retention.spool), 0);
	assert_int_equal(objectstore_new(spool_store_fd(f->retention.spool), &f->retention.limits,
					 "/dev/null", &f->retention.store),
			 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	(void)objectstore_free(f->retention.store);
	(void)spool_free(f->retention.spool);
	if (f->mounted)
		(void)umount(f->dir);
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
	struct diskuse_amount capacity;

	assert_int_equal(spool_capacity(f->retention.spool, &capacity), 0);
	assert_true(capacity.bytes > 0);
	config_init(&config);
	assert_int_equal(retention_set_limits(&f->retention, &config), 0);
	assert_int_equal(f->retention.limits.max_use, capacity.bytes / 100 * 10);
	assert_true(f->retention.limits.keep_free <= UINT64_C(4) << 30);
	config.keep_free.bytes = 5; /* less than the share */
	assert_int_equal(retention_set_limits(&f->retention, &config), 0);
	assert_int_equal(f->retention.limits.keep_free, 5);
	config.max_use = (struct config_limit){ .percent = 100 };
	config.keep_free = (struct config_limit){ .percent = 1 };
	assert_int_equal(retention_set_limits(&f->retention, &config), 0);
	assert_int_equal(f->retention.limits.max_use, capacity.bytes / 100 * 100);
	assert_int_equal(f->retention.limits.keep_free, capacity.bytes / 100);
	config.max_use = (struct config_limit){ .bytes = 7 };
	config.keep_free = (struct config_limit){ .bytes = 0 };
	assert_int_equal(retention_set_limits(&f->retention, &config), 0);
	assert_int_equal(f->retention.limits.max_use, 7);
	assert_int_equal(f->retention.limits.keep_free, 0);
}

/* Inodes are left free in the same proportion as bytes. */
static void limits_of_inodes(void **state)
{
	struct fixture *f = *state;
	struct config config;

	if (!f->mounted)
		skip();
	config_init(&config);
	config.keep_free = (struct config_limit){ .percent = 50 };
	assert_int_equal(retention_set_limits(&f->retention, &config), 0);
	assert_in_range(f->retention.limits.keep_free_inodes, 48, 50);
	config.keep_free = (struct config_limit){ .bytes = 4 * MIB };
	assert_int_equal(retention_set_limits(&f->retention, &config), 0);
	assert_int_equal(f->retention.limits.keep_free_inodes, 25);
	config.keep_free = (struct config_limit){ .bytes = 1000 * MIB };
	assert_int_equal(retention_set_limits(&f->retention, &config), 0);
	assert_int_equal(f->retention.limits.keep_free_inodes, 100);
}

static uint64_t evict(uint64_t bytes, uint64_t least, void *userdata)
{
	struct fixture *f = userdata;

	f->to_evict = bytes;
	f->evict_least = least;
	return f->evict;
}

/* A snapshot with a file of so many MiB, or a link to another one's. */
static void put_snapshot(const struct fixture *f, const char *id, size_t n_mib, const char *link_to)
{
	char path[64], whole[192], other[192];
	uint8_t *bytes = calloc(n_mib + 1, MIB);

	(void)snprintf(path, sizeof(path), "snapshots/%s/manifest", id);
	tempdir_put_text(f->dir, path, "x=y\n");
	(void)snprintf(path, sizeof(path), "snapshots/%s/data", id);
	(void)snprintf(whole, sizeof(whole), "%s/%s", f->dir, path);
	(void)snprintf(other, sizeof(other), "%s/%s", f->dir, link_to ? link_to : "");
	if (link_to)
		assert_int_equal(link(other, whole), 0);
	else
		tempdir_put(f->dir, path, bytes, n_mib * MIB);
	free(bytes);
}

/* Which of A-1, B-2, C-3 and D-4 are there, as a string of their letters. */
static const char *there(const struct fixture *f)
{
	static const char *const ids[] = { "A-1", "B-2", "C-3", "D-4" };
	static char letters[5];
	size_t n = 0;
	char path[64];

	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		(void)snprintf(path, sizeof(path), "snapshots/%s/manifest", ids[i]);
		if (exists(f, path))
			letters[n++] = ids[i][0];
	}
	letters[n] = 0;
	return letters;
}

static void put_snapshots(const struct fixture *f)
{
	put_snapshot(f, "A-1", 3, NULL);
	put_snapshot(f, "B-2", 3, NULL);
	put_snapshot(f, "C-3", 0, "snapshots/B-2/data");
	put_snapshot(f, "D-4", 3, NULL);
}

static void remove_all(const struct fixture *f)
{
	static const char *const ids[] = { "A-1", "B-2", "C-3", "D-4" };

	for (size_t i = 0; i < ARRAY_LEN(ids); i++)
		(void)!spool_remove(f->retention.spool, ids[i]);
	assert_string_equal(there(f), "");
}

/* Of 16 MiB some 7 are free, and 3 more without A, 3 more only without B and C. */
static void room_for_another(void **state)
{
	static const struct {
		uint64_t n_mib, inodes, evict;
		int error;
		const char *left;
		const char *kept;
		uint64_t to_evict, evict_least; /* in MiB, rounded up */
	} rows[] = {
		{ 6, 1, 0, 0, "ABCD", NULL, 0, 0 },
		{ 20, 1, 0, -ENOSPC, "ABCD", NULL, 14, 8 },
		{ 9, 1, 0, 0, "BCD", NULL, 3, 0 },
		{ 9, 1, 0, 0, "AD", "A-1", 3, 0 },
		{ 12, 1, 0, 0, "D", NULL, 6, 0 },
		{ 12, 1, 0, -ENOSPC, "ABCD", "A-1", 6, 3 },
		{ 12, 1, 0, -ENOSPC, "ABCD", "C-3", 6, 3 },
		/* The newest always stays. */
		{ 14, 1, 0, -ENOSPC, "ABCD", NULL, 8, 2 },
		{ 14, 1, 2 * MIB, 0, "D", NULL, 8, 2 },
		/* A and its two files. */
		{ 1, 83, 0, 0, "ABCD", NULL, 0, 0 },
		{ 1, 86, 0, 0, "BCD", NULL, 0, 0 },
		{ 1, 99, 0, -ENOSPC, "ABCD", NULL, 0, 0 },
	};
	struct fixture *f = *state;

	if (!f->mounted)
		skip();
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct diskuse_amount needed = { rows[i].n_mib * MIB, rows[i].inodes };

		print_message("  row %zu\n", i);
		put_snapshots(f);
		f->to_evict = f->evict_least = 0;
		f->evict = rows[i].evict;
		if (rows[i].kept)
			assert_int_equal(spool_keep(f->retention.spool, rows[i].kept, true), 0);
		f->n_removed = 0;
		assert_int_equal(retention_make_room(&f->retention, &needed, evict, f),
				 rows[i].error);
		assert_string_equal(there(f), rows[i].left);
		assert_int_equal(f->n_removed, 4 - strlen(rows[i].left));
		assert_int_equal((f->to_evict + MIB - 1) / MIB, rows[i].to_evict);
		assert_int_equal((f->evict_least + MIB - 1) / MIB, rows[i].evict_least);
		if (rows[i].kept)
			assert_int_equal(spool_keep(f->retention.spool, rows[i].kept, false), 0);
		remove_all(f);
	}
}

static void what_snapshots_may_take(void **state)
{
	const struct diskuse_amount needed = { 9 * MIB, 1 };
	struct fixture *f = *state;
	uint64_t max;

	if (!f->mounted)
		skip();
	assert_int_equal(retention_set_room(&f->retention), 0);
	assert_int_equal(retention_get_max(&f->retention, &max), 0);
	assert_int_equal(max / MIB, 16); /* the disk */
	assert_int_equal(f->taken, 0);
	put_snapshots(f);
	assert_int_equal(retention_set_room(&f->retention), 0);
	f->retention.limits.max_use = MAX_USE(7);
	assert_int_equal(retention_get_max(&f->retention, &max), 0);
	assert_int_equal(max, 7 * MIB);
	assert_int_equal(f->taken / MIB, 9);
	f->retention.limits.max_use = UINT64_MAX;
	assert_int_equal(retention_make_room(&f->retention, &needed, evict, f), 0);
	assert_int_equal(retention_get_max(&f->retention, &max), 0);
	assert_int_equal(max / MIB, 16);
	assert_int_equal(f->taken / MIB, 6);
	remove_all(f);
}

/* What is too much goes, the oldest first; what is shared is counted once. */
static void limits_are_kept(void **state)
{
	static const struct {
		struct spool_limits limits;
		uint64_t evict;
		const char *left;
		const char *kept;
	} rows[] = {
		{ { .max_use = UINT64_MAX }, 0, "ABCD", NULL },
		{ { .max_use = MAX_USE(10) }, 0, "ABCD", NULL },
		{ { .max_use = MAX_USE(9) }, 0, "BCD", NULL },
		{ { .max_use = MAX_USE(7) }, 0, "BCD", NULL },
		{ { .max_use = MAX_USE(5) }, 0, "D", NULL },
		{ { .max_use = MAX_USE(5) }, 0, "BD", "B-2" },
		{ { .max_use = 0 }, 0, "D", NULL },
		{ { .max_use = 0 }, 0, "AD", "A-1" },
		/* Copies that no snapshot has go first. */
		{ { .max_use = MAX_USE(9) }, 1, "BCD", NULL },
		{ { .max_use = UINT64_MAX, .keep_free = 6 * MIB }, 0, "ABCD", NULL },
		{ { .max_use = UINT64_MAX, .keep_free = 8 * MIB }, 0, "BCD", NULL },
		{ { .max_use = UINT64_MAX, .keep_free_inodes = 83 }, 0, "ABCD", NULL },
		{ { .max_use = UINT64_MAX, .keep_free_inodes = 86 }, 0, "BCD", NULL },
		/* D has 3 MiB and 3 inodes: no more goes, however little others leave. */
		{ { .max_use = UINT64_MAX, .keep_free = 11 * MIB }, 0, "BCD", NULL },
		{ { .max_use = UINT64_MAX, .keep_free = 100 * MIB }, 0, "BCD", NULL },
		{ { .max_use = UINT64_MAX, .keep_free = 100 * MIB }, 0, "AD", "A-1" },
		{ { .max_use = UINT64_MAX, .keep_free_inodes = 89 }, 0, "BCD", NULL },
		{ { .max_use = UINT64_MAX, .keep_free_inodes = 100 }, 0, "BCD", NULL },
	};
	struct fixture *f = *state;

	if (!f->mounted)
		skip();
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		print_message("  row %zu\n", i);
		put_snapshots(f);
		f->to_evict = 0;
		f->evict = rows[i].evict;
		f->retention.limits = rows[i].limits;
		if (rows[i].kept)
			assert_int_equal(spool_keep(f->retention.spool, rows[i].kept, true), 0);
		f->n_removed = 0;
		assert_int_equal(retention_enforce(&f->retention, true, evict, f), 0);
		assert_string_equal(there(f), rows[i].left);
		assert_int_equal(f->n_removed, 4 - strlen(rows[i].left));
		if (rows[i].kept)
			assert_int_equal(spool_keep(f->retention.spool, rows[i].kept, false), 0);
		remove_all(f);
	}
}

/* Filling the disk, or having the settings read again, removes nothing. */
static void full_disk(void **state)
{
	struct fixture *f = *state;

	if (!f->mounted)
		skip();
	put_snapshots(f);
	f->evict = 0;
	f->retention.limits = (struct spool_limits){ .max_use = UINT64_MAX,
						     .keep_free = 100 * MIB,
						     .keep_free_inodes = 100 };
	assert_int_equal(retention_enforce(&f->retention, false, evict, f), 0);
	assert_int_equal(retention_expire(&f->retention), 0);
	assert_string_equal(there(f), "ABCD");
	remove_all(f);
}

static void newest_is_there(void *userdata)
{
	(void)userdata;
}

/* What the store has and nobody needs goes before all else, and with the last that had it. */
static void the_store_is_swept(void **state)
{
	struct fixture *f = *state;

	tempdir_put_text(f->dir, "store/nobody's", "");
	tempdir_put_text(f->dir, "store/shared", "");
	put_snapshot(f, "A-1", 0, "store/shared");
	put_snapshot(f, "B-2", 0, NULL);
	assert_int_equal(retention_enforce(&f->retention, false, evict, f), 0);
	assert_false(exists(f, "store/nobody's"));
	assert_true(exists(f, "store/shared"));
	f->retention.limits.max_use = 0;
	assert_int_equal(retention_enforce(&f->retention, false, evict, f), 0);
	assert_string_equal(there(f), "B");
	assert_false(exists(f, "store/shared"));
}

/* Those that are too old go, the newest too, but for what is kept and what has no age. */
static void age(void **state)
{
	static const struct {
		uint64_t max_age_days;
		const char *kept;
		const char *left;
	} rows[] = {
		{ 0, NULL, "ABCD" }, { 40, NULL, "ABCD" }, { 20, NULL, "BCD" },
		{ 5, NULL, "CD" },   { 5, "20", "ACD" },   { 1, NULL, "D" },
	};
	static const int days[] = { 30, 10, 2 };
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char ids[4][SNAPID_SIZE] = { "", "", "", "D-4" }, left[5] = "";

		for (size_t k = 0; k < ARRAY_LEN(ids); k++) {
			const time_t taken = time(NULL) - (k < 3 ? days[k] : 0) * 86400;
			struct tm tm;

			if (k < 3)
				assert_true(strftime(ids[k], sizeof(ids[k]),
						     "%Y%m%dT%H%M%S.000000Z-1",
						     gmtime_r(&taken, &tm)) > 0);
			put_snapshot(f, ids[k], 0, NULL);
		}
		if (rows[i].kept)
			assert_int_equal(spool_keep(f->retention.spool, ids[0], true), 0);
		f->retention.max_age_ns = rows[i].max_age_days * 86400 * 1000000000;
		assert_int_equal(retention_has_expired(&f->retention), strlen(rows[i].left) < 4);
		assert_int_equal(retention_enforce(&f->retention, false, evict, f), 0);
		assert_int_equal(retention_has_expired(&f->retention), false);
		(void)!spool_keep(f->retention.spool, ids[0], false);
		for (size_t k = 0; k < ARRAY_LEN(ids); k++)
			if (spool_remove(f->retention.spool, ids[k]) == 0)
				left[strlen(left)] = (char)('A' + (int)k);
		assert_string_equal(left, rows[i].left);
	}
}

static int keep_to_limits(void *userdata)
{
	struct fixture *f = userdata;

	return retention_enforce(&f->retention, false, evict, f);
}

static int make_room(void *userdata)
{
	struct fixture *f = userdata;
	const struct diskuse_amount needed = { 9 * MIB, 1 };

	return retention_make_room(&f->retention, &needed, evict, f);
}

/* No more goes because something fails. */
static void failing(void **state)
{
	struct fixture *f = *state;

	if (!f->mounted)
		skip();
	put_snapshots(f);
	f->retention.limits.max_use = 9 * MIB;
	failing_each(keep_to_limits, newest_is_there, f);
	assert_string_equal(there(f), "BCD");
	remove_all(f);
	put_snapshots(f);
	failing_each(make_room, newest_is_there, f);
	assert_string_equal(there(f), "BCD");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(limits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(limits_of_inodes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(room_for_another, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_snapshots_may_take, set_up, tear_down),
		cmocka_unit_test_setup_teardown(limits_are_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(full_disk, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_store_is_swept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(age, set_up, tear_down),
		cmocka_unit_test_setup_teardown(failing, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
