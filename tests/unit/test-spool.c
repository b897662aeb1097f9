/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/spool.h"
#include "decoder/util/dirs.h"
#include "tests/lib/tempdir.h"

struct fixture {
	char dir[TEMPDIR_SIZE];
	struct spool *spool;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	tempdir_make("spool", f->dir);
	assert_int_equal(spool_new(f->dir, &f->spool), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	(void)spool_free(f->spool);
	tempdir_remove(f->dir);
	free(f);
	return 0;
}

static bool exists(const struct fixture *f, const char *path)
{
	char full[256];

	(void)snprintf(full, sizeof(full), "%s/%s", f->dir, path);
	return access(full, F_OK) == 0;
}

static void make_snapshot(struct fixture *f, const char *id, const char *manifest)
{
	int dir, file;

	assert_int_equal(spool_begin(f->spool, id, &dir), 0);
	file = openat(dir, "manifest", O_WRONLY | O_CREAT | O_CLOEXEC, 0640);
	assert_true(file >= 0);
	assert_int_equal(write(file, manifest, strlen(manifest)), strlen(manifest));
	(void)close(file);
	assert_int_equal(mkdirat(dir, "objects", 0750), 0);
	assert_int_equal(spool_commit(f->spool, id, dir), 0);
	(void)close(dir);
}

static void ids(void **state)
{
	static const struct {
		const char *id;
		bool valid;
	} rows[] = {
		{ "20261121T083000.123456Z-1", true },
		{ "", false },
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
		assert_int_equal(spool_id_valid(rows[i].id), rows[i].valid);
}

/* Hidden while it is written, then there. */
static void begin_and_commit(void **state)
{
	struct fixture *f = *state;
	int dir, again = -7;

	assert_int_equal(spool_begin(f->spool, "../X", &again), -EINVAL);
	assert_int_equal(spool_begin(f->spool, "A", &dir), 0);
	assert_true(exists(f, "snapshots/.new-A"));
	assert_int_equal(spool_open(f->spool, "A", &again), -ENOENT);
	assert_int_equal(spool_begin(f->spool, "A", &again), -EEXIST);
	assert_int_equal(again, -7);

	assert_int_equal(spool_commit(f->spool, "A", dir), 0);
	(void)close(dir);
	assert_false(exists(f, "snapshots/.new-A"));
	assert_int_equal(spool_open(f->spool, "A", &again), 0);
	(void)close(again);
	assert_int_equal(spool_open(f->spool, "../snapshots", &again), -ENOENT);
	assert_int_equal(spool_open(f->spool, "B", &again), -ENOENT);

	/* An id is never used twice. */
	assert_int_equal(spool_begin(f->spool, "A", &dir), 0);
	assert_int_equal(spool_commit(f->spool, "A", dir), -EEXIST);
	(void)close(dir);
	spool_abort(f->spool, "A");
	assert_false(exists(f, "snapshots/.new-A"));
	assert_true(exists(f, "snapshots/A"));
}

static void killed_while_writing(void **state)
{
	struct fixture *f = *state;
	struct spool *second;
	int dir;

	make_snapshot(f, "A", "");
	assert_int_equal(spool_begin(f->spool, "B", &dir), 0);
	assert_int_equal(mkdirat(dir, "objects", 0750), 0);
	(void)close(dir);

	/* Only one ptd uses a spool, and the next one cleans up. */
	assert_int_equal(spool_new(f->dir, &second), -EBUSY);
	f->spool = spool_free(f->spool);
	assert_true(exists(f, "snapshots/.new-B/objects"));
	assert_int_equal(spool_new(f->dir, &f->spool), 0);
	assert_false(exists(f, "snapshots/.new-B"));
	assert_true(exists(f, "snapshots/A"));
}

static void listing(void **state)
{
	struct fixture *f = *state;
	_cleanup_(freep) struct spool_entry *entries = NULL;
	char path[128];
	size_t n;

	make_snapshot(f, "20260202-2", "format=x\nbytes=12\ncpus=3\ncreated=then\n");
	make_snapshot(f, "20260101-1", "nonsense\n=\nbytesx=1\nbytes=99");
	(void)snprintf(path, sizeof(path), "%s/snapshots/NOT-OURS", f->dir);
	assert_int_equal(mkdir(path, 0750), 0);

	assert_int_equal(spool_list(f->spool, &entries, &n), 0);
	assert_int_equal(spool_count(f->spool), n);
	assert_int_equal(n, 2);
	assert_string_equal(entries[0].id, "20260101-1");
	assert_int_equal(entries[0].bytes, 99);
	assert_int_equal(entries[0].n_cpus, 0);
	assert_string_equal(entries[1].id, "20260202-2");
	assert_int_equal(entries[1].bytes, 12);
	assert_int_equal(entries[1].n_cpus, 3);
	assert_string_equal(entries[1].created, "then");
}

static void vacuum(void **state)
{
	static const struct {
		uint64_t max_use;
		uint64_t keep_free;
		uint64_t needed;
		size_t removed;
	} rows[] = {
		{ UINT64_MAX, 0, 0, 0 },
		{ 400, 0, 0, 0 },
		{ 500, 0, 100, 0 },
		{ 499, 0, 100, 1 },
		{ 299, 0, 0, 1 },
		{ 0, 0, 0, 1 }, /* of the two that are left; the newest stays */
		{ UINT64_MAX, UINT64_MAX, 0, 0 },
		{ UINT64_MAX, 0, UINT64_MAX, 0 },
	};
	struct fixture *f = *state;
	size_t n;

	/* The clock was set back before the newest. */
	make_snapshot(f, "2026-9", "bytes=100\n");
	make_snapshot(f, "2027-10", "bytes=100\n");
	make_snapshot(f, "2028-11", "bytes=100\n");
	make_snapshot(f, "2020-12", "bytes=100\n");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct spool_limits limits = { rows[i].max_use, rows[i].keep_free };

		assert_int_equal(spool_vacuum(f->spool, &limits, rows[i].needed, 1, &n), 0);
		assert_int_equal(n, rows[i].removed);
	}
	assert_false(exists(f, "snapshots/2026-9"));
	assert_false(exists(f, "snapshots/2027-10"));
	assert_false(exists(f, "snapshots/2028-11"));
	assert_true(exists(f, "snapshots/2020-12"));
	/* To write another one even that may go. */
	assert_int_equal(spool_vacuum(f->spool, &(struct spool_limits){ 199, 0 }, 100, 0, &n), 0);
	assert_int_equal(n, 1);
}

/* What was removed before one that cannot be is told all the same. */
static void vacuum_in_vain(void **state)
{
	struct fixture *f = *state;
	char path[128];
	size_t n = 7;

	make_snapshot(f, "A-1", "bytes=100\n");
	make_snapshot(f, "B-2", "bytes=100\n");
	make_snapshot(f, "C-3", "bytes=100\n");
	(void)snprintf(path, sizeof(path), "%s/snapshots/.new-B-2/in-its-way", f->dir);
	assert_int_equal(dirs_make(AT_FDCWD, path, 0700), 0);
	assert_int_equal(spool_vacuum(f->spool, &(struct spool_limits){ 0, 0 }, 0, 1, &n),
			 -ENOTEMPTY);
	assert_int_equal(n, 1);
	assert_false(exists(f, "snapshots/A-1"));
	assert_true(exists(f, "snapshots/B-2"));
}

/* What the store has and no snapshot counts too. */
static void the_store_is_counted(void **state)
{
	struct fixture *f = *state;
	char path[128];
	size_t n;

	make_snapshot(f, "A-1", "bytes=100\n");
	make_snapshot(f, "B-2", "bytes=100\n");
	(void)snprintf(path, sizeof(path), "%s/store/object", f->dir);
	assert_int_equal(close(creat(path, 0600)), 0);
	assert_int_equal(truncate(path, 100), 0);
	assert_int_equal(spool_vacuum(f->spool, &(struct spool_limits){ 300, 0 }, 0, 1, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(spool_vacuum(f->spool, &(struct spool_limits){ 299, 0 }, 0, 1, &n), 0);
	assert_int_equal(n, 1);
}

static void failure_leaves_output_alone(void **state)
{
	struct spool *s = (struct spool *)0x1;

	(void)state;
	assert_int_equal(spool_new("/proc/no/such/place", &s), -ENOENT);
	assert_int_equal(spool_new("/etc/passwd", &s), -ENOTDIR);
	assert_int_equal(spool_new("", &s), -EINVAL);
	assert_ptr_equal(s, (struct spool *)0x1);
	assert_null(spool_free(NULL));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids),
		cmocka_unit_test_setup_teardown(begin_and_commit, set_up, tear_down),
		cmocka_unit_test_setup_teardown(killed_while_writing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(listing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(vacuum, set_up, tear_down),
		cmocka_unit_test_setup_teardown(vacuum_in_vain, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_store_is_counted, set_up, tear_down),
		cmocka_unit_test(failure_leaves_output_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
