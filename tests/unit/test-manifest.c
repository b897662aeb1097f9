/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "decoder/file/manifest.h"
#include "tests/lib/tempdir.h"

#define FORMAT "format=ptd-snapshot-1\n"

/* Read a manifest of @text, without regard to hashes. */
static int read_text(const char *text, struct manifest *ret_manifest)
{
	char dir[TEMPDIR_SIZE];
	char *message = NULL;
	int fd, r;

	tempdir_make("manifest", dir);
	tempdir_put_text(dir, "manifest", text);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = manifest_read(fd, dir, true, NULL, ret_manifest, &message);
	assert_true((r < 0) == (message != NULL));
	free(message);
	(void)close(fd);
	tempdir_remove(dir);
	return r;
}

/* Since when it is known who ran on CPU 1. */
static void since(void **state)
{
	static const struct {
		const char *text;
		uint64_t since;
	} rows[] = {
		{ FORMAT, 0 },
		{ FORMAT "sideband_since_ns=70\n", 70 },
		{ FORMAT "cpu.1.switch_oldest_ns=90\ncpu.1.switch_complete=yes\n", 0 },
		{ FORMAT "cpu.1.switch_oldest_ns=90\ncpu.1.switch_complete=no\n", 90 },
		{ FORMAT "cpu.2.switch_oldest_ns=90\ncpu.2.switch_complete=no\n", 0 },
		{ FORMAT "cpu.1.switch_oldest_ns=0\ncpu.1.switch_complete=no\n", UINT64_MAX },
		{ FORMAT "sideband_since_ns=95\ncpu.1.switch_oldest_ns=90\n"
			 "cpu.1.switch_complete=no\n",
		  95 },
		{ FORMAT "cpu.1.switch_oldest_ns=90\ncpu.1.switch_complete=no\n"
			 "sideband_since_ns=80\n",
		  90 },
		{ FORMAT "cpu.x.switch_complete=no\ncpu.1=no\ncpu.1.=no\n", 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct manifest m;

		assert_int_equal(read_text(rows[i].text, &m), 0);
		assert_int_equal(manifest_since(&m, 1), rows[i].since);
		assert_int_equal(m.dropped_until_ns, 0);
		/* What is not regarded is told. */
		assert_string_equal(m.complaint,
				    "SHA256SUMS is missing: the snapshot is not whole");
		manifest_deinit(&m);
	}
}

/* The latest time from which on records of some user are complete. */
static void dropped(void **state)
{
	static const struct {
		const char *text;
		uint64_t until;
	} rows[] = {
		{ FORMAT "sideband_since_ns=70\nsideband_dropped.1000=7\n", 0 },
		{ FORMAT "sideband_since_ns=0\nsideband_since_ns.1000=70\n", 70 },
		{ FORMAT "sideband_since_ns.1=80\nsideband_since_ns.4294967295=90\n"
			 "sideband_since_ns.1000=70\n",
		  90 },
		{ FORMAT "sideband_since_nsx=70\n", 0 },
		{ FORMAT "sideband_lost=0\n", 0 },
		{ FORMAT "sideband_lost=1\nsideband_since_ns.1000=70\n", UINT64_MAX },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct manifest m;

		assert_int_equal(read_text(rows[i].text, &m), 0);
		assert_int_equal(m.dropped_until_ns, rows[i].until);
		assert_int_equal(manifest_since(&m, 1), i == 0 ? 70 : 0);
		manifest_deinit(&m);
	}
}

/* What of it is gone. */
static void overwritten(void **state)
{
	static const struct {
		const char *text;
		int r;
		uint64_t bytes, since;
	} rows[] = {
		{ FORMAT, 0, 0, 0 },
		{ FORMAT "pt_overwritten=0\n", 0, 0, 0 },
		{ FORMAT "pt_overwritten=18446744073709551615\ncomplete_since_ns=70\n", 0,
		  UINT64_MAX, 70 },
		{ FORMAT "pt_overwritten=\n", -EBADMSG, 0, 0 },
		{ FORMAT "pt_overwritten=-1\n", -EBADMSG, 0, 0 },
		{ FORMAT "pt_overwritten=1x\n", -EBADMSG, 0, 0 },
		{ FORMAT "pt_overwritten=18446744073709551616\n", -EBADMSG, 0, 0 },
		{ FORMAT "complete_since_ns=soon\n", -EBADMSG, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct manifest m = {};

		print_message("  row %zu\n", i);
		assert_int_equal(read_text(rows[i].text, &m), rows[i].r);
		assert_int_equal(m.bytes_overwritten, rows[i].bytes);
		assert_int_equal(m.complete_since_ns, rows[i].since);
		manifest_deinit(&m);
	}
}

/* Until when it is whole. */
static void whole_until(void **state)
{
	struct manifest m = {};

	(void)state;
	assert_int_equal(read_text(FORMAT, &m), 0);
	manifest_deinit(&m);
	assert_int_equal(m.complete_until_ns, 0);
	assert_int_equal(read_text(FORMAT "complete_until_ns=70\n", &m), 0);
	assert_int_equal(m.complete_until_ns, 70);
	manifest_deinit(&m);
}

/* Of which processes it is. */
static void scope(void **state)
{
	static const struct {
		const char *text;
		bool has_scope;
		size_t n;
		uint32_t pids[4];
	} rows[] = {
		{ FORMAT, false, 0, {} },
		{ FORMAT "scope_pid=10\n", false, 0, {} }, /* by an older recorder */
		{ FORMAT "scope_pid=10\nscope_pids=10\n", true, 1, { 10 } },
		{ FORMAT "scope_pids=10,20,4194304\n", true, 3, { 10, 20, 4194304 } },
		{ FORMAT "scope_pids=10,20\nscope_pids=30,20\n", true, 3, { 10, 20, 30 } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct manifest m;

		assert_int_equal(read_text(rows[i].text, &m), 0);
		assert_int_equal(m.has_scope, rows[i].has_scope);
		assert_int_equal(m.scope.n_used, rows[i].n);
		for (size_t k = 0; k < rows[i].n; k++)
			assert_non_null(map_get(&m.scope, rows[i].pids[k]));
		manifest_deinit(&m);
	}
}

static void numbers_that_are_none(void **state)
{
	static const char *const rows[] = {
		FORMAT "sideband_since_ns=x\n",
		FORMAT "sideband_since_ns=\n",
		FORMAT "sideband_since_ns.1000=x\n",
		FORMAT "complete_until_ns=soon\n",
		FORMAT "cpu.1.switch_oldest_ns=1x\n",
		FORMAT "scope_pids=\n",
		FORMAT "scope_pids=10,\n",
		FORMAT "scope_pids=,10\n",
		FORMAT "scope_pids=10 20\n",
		FORMAT "scope_pids=-1\n",
		FORMAT "scope_pids=+1\n",
		FORMAT "scope_pids=4294967295\n",
		FORMAT "scope_pids=99999999999999999999999\n",
		FORMAT "cpu.1.switch_oldest_ns=99999999999999999999999\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct manifest m = { .sideband_since_ns = 5 };

		assert_int_equal(read_text(rows[i], &m), -EBADMSG);
		assert_int_equal(m.sideband_since_ns, 5);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(since),       cmocka_unit_test(dropped),
		cmocka_unit_test(overwritten), cmocka_unit_test(whole_until),
		cmocka_unit_test(scope),       cmocka_unit_test(numbers_that_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
