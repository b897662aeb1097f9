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
#include <sys/syscall.h>

#include "daemon/spool/spool.h"
#include "tests/lib/failing.h"
#include "tests/lib/tempdir.h"
#include "util/dirs.h"

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

	make_snapshot(f, "20260202-2",
		      "format=x\nbytes=12\ncpus=3\ncreated=then\ncommand=do=\x1b[it\n"
		      "command_pid=4\ncommand_complete=no\nobjects_missing=5\n"
		      "sideband_lost=6\npt_dropped=7\npt_overwritten=8\n");
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
	assert_string_equal(entries[1].command, "do=?[it");
	assert_int_equal(entries[1].pid, 4);
	assert_true(entries[1].command_cut);
	assert_int_equal(entries[1].n_missing, 5);
	assert_int_equal(entries[1].n_records_lost, 6);
	assert_int_equal(entries[1].bytes_dropped, 7);
	assert_int_equal(entries[1].bytes_overwritten, 8);
	/* One of an older recorder does not say. */
	assert_string_equal(entries[0].command, "");
	assert_int_equal(entries[0].pid, 0);
	assert_false(entries[0].command_cut);
}

static bool never(const char *name, void *userdata)
{
	(void)name;
	(void)userdata;
	return false;
}

/* What is measured is what is listed, and the store's own. */
static void measuring(void **state)
{
	struct fixture *f = *state;
	_cleanup_(freep) struct spool_entry *entries = NULL;
	struct diskuse *use = (struct diskuse *)0x1;
	struct diskuse_amount taken;
	size_t n;

	make_snapshot(f, "A-1", "bytes=100\n");
	make_snapshot(f, "B-2", "bytes=100\n");
	assert_int_equal(spool_list(f->spool, &entries, &n), 0);
	assert_int_equal(spool_remove(f->spool, "A-1"), 0);
	assert_int_equal(spool_measure(f->spool, entries, n, never, NULL, &use), -ENOENT);
	assert_ptr_equal(use, (struct diskuse *)0x1);
	assert_int_equal(spool_measure(f->spool, entries + 1, n - 1, never, NULL, &use), 0);
	taken = diskuse_taken(use);
	assert_int_equal(taken.inodes, 3); /* it, its manifest, its objects */
	assert_int_equal(diskuse_remove(use, 0).inodes, 3);
	use = diskuse_free(use);
	assert_null(use);
}

static void removing(void **state)
{
	struct fixture *f = *state;
	char path[128];

	make_snapshot(f, "A-1", "");
	make_snapshot(f, "B-2", "");
	assert_int_equal(spool_remove(f->spool, "../store"), -ENOENT);
	assert_int_equal(spool_remove(f->spool, "C-3"), -ENOENT);
	assert_int_equal(spool_remove(f->spool, "A-1"), 0);
	assert_false(exists(f, "snapshots/A-1"));
	assert_false(exists(f, "snapshots/.new-A-1"));
	assert_int_equal(spool_remove(f->spool, "A-1"), -ENOENT);

	/* What is no snapshot is somebody else's. */
	(void)snprintf(path, sizeof(path), "%s/snapshots/NOT-OURS", f->dir);
	assert_int_equal(mkdir(path, 0750), 0);
	assert_int_equal(spool_remove(f->spool, "NOT-OURS"), -ENOENT);
	assert_true(exists(f, "snapshots/NOT-OURS"));

	/* One that cannot be removed stays whole. */
	(void)snprintf(path, sizeof(path), "%s/snapshots/.new-B-2/in-its-way", f->dir);
	assert_int_equal(dirs_make(AT_FDCWD, path, 0700), 0);
	assert_int_equal(spool_remove(f->spool, "B-2"), -ENOTEMPTY);
	assert_true(exists(f, "snapshots/B-2/manifest"));
}

static bool is_kept(const struct fixture *f, size_t i)
{
	_cleanup_(freep) struct spool_entry *entries = NULL;
	size_t n;

	assert_int_equal(spool_list(f->spool, &entries, &n), 0);
	assert_true(i < n);
	return entries[i].kept;
}

static void keeping(void **state)
{
	struct fixture *f = *state;
	char path[128];

	make_snapshot(f, "A-1", "");
	make_snapshot(f, "B-2", "");
	assert_int_equal(spool_keep(f->spool, "C-3", true), -ENOENT);
	assert_int_equal(spool_keep(f->spool, "../A-1", true), -ENOENT);
	assert_int_equal(spool_keep(f->spool, "A-1", true), 0);
	assert_int_equal(spool_keep(f->spool, "A-1", true), 0);
	assert_true(is_kept(f, 0));
	assert_false(is_kept(f, 1));
	assert_int_equal(spool_count(f->spool), 2);
	assert_int_equal(spool_remove(f->spool, "A-1"), -EPERM);
	assert_true(exists(f, "snapshots/A-1/manifest"));

	/* The next ptd knows it, too, but not of what is gone. */
	assert_int_equal(spool_keep(f->spool, "B-2", true), 0);
	f->spool = spool_free(f->spool);
	assert_int_equal(spool_new(f->dir, &f->spool), 0);
	assert_true(is_kept(f, 0));
	(void)snprintf(path, sizeof(path), "%s/snapshots/B-2", f->dir);
	assert_int_equal(dirs_remove(AT_FDCWD, path), 0);
	f->spool = spool_free(f->spool);
	assert_int_equal(spool_new(f->dir, &f->spool), 0);
	assert_true(exists(f, "snapshots/.keep-A-1"));
	assert_false(exists(f, "snapshots/.keep-B-2"));

	assert_int_equal(spool_keep(f->spool, "A-1", false), 0);
	assert_int_equal(spool_keep(f->spool, "A-1", false), 0);
	assert_false(is_kept(f, 0));
	assert_int_equal(spool_remove(f->spool, "A-1"), 0);
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

struct opening {
	const char *dir;
	struct spool *spool;
	struct spool_entry *entries;
	size_t n;
	unsigned n_tries;
};

/* A spool is opened, a snapshot goes in, and all are listed. */
static int open_and_add(void *userdata)
{
	struct opening *o = userdata;
	char id[32], command[TEMPDIR_SIZE + 16];
	int dir = -1, manifest, r;

	/* Of an earlier try there is nothing, or there would be ever more to fail. */
	(void)snprintf(command, sizeof(command), "rm -rf %s/*", o->dir);
	assert_int_equal(system(command), 0);
	o->spool = (struct spool *)0x1;
	r = spool_new(o->dir, &o->spool);
	if (r < 0) {
		assert_ptr_equal(o->spool, 0x1);
		return r;
	}
	(void)snprintf(id, sizeof(id), "NEW-%u", ++o->n_tries);
	r = spool_begin(o->spool, id, &dir);
	if (r == 0) {
		/* The test's own calls do not fail. */
		manifest = (int)syscall(SYS_openat, dir, "manifest", O_WRONLY | O_CREAT, 0640);
		assert_true(dprintf(manifest, "cpus=1\n") > 0);
		(void)close(manifest);
		r = spool_commit(o->spool, id, dir);
		if (r < 0)
			spool_abort(o->spool, id);
		(void)close(dir);
	}
	if (r == 0)
		r = spool_list(o->spool, &o->entries, &o->n);
	if (r < 0)
		o->spool = spool_free(o->spool);
	return r;
}

static void is_there(void *userdata)
{
	struct opening *o = userdata;
	char id[32];
	bool found = false;

	/* One whose manifest could not be read was left out of the list. */
	free(o->entries);
	assert_int_equal(spool_list(o->spool, &o->entries, &o->n), 0);
	(void)snprintf(id, sizeof(id), "NEW-%u", o->n_tries);
	for (size_t i = 0; i < o->n; i++)
		found = found || strcmp(o->entries[i].id, id) == 0;
	assert_true(found);
	free(o->entries);
	o->spool = spool_free(o->spool);
}

static void calls_that_fail(void **state)
{
	struct fixture *f = *state;
	struct opening o = { .dir = f->dir };

	f->spool = spool_free(f->spool);
	failing_each(open_and_add, is_there, &o);
	assert_int_equal(spool_new(f->dir, &f->spool), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(begin_and_commit, set_up, tear_down),
		cmocka_unit_test_setup_teardown(killed_while_writing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(listing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(measuring, set_up, tear_down),
		cmocka_unit_test_setup_teardown(removing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(keeping, set_up, tear_down),
		cmocka_unit_test(failure_leaves_output_alone),
		cmocka_unit_test_setup_teardown(calls_that_fail, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
