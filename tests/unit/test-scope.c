/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which processes a process's snapshot is of: by records, and by a /proc made by hand. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "daemon/sideband/scope.h"
#include "daemon/sideband/sideband.h"
#include "tests/lib/tempdir.h"
#include "tests/unit/records.h"
#include "util/dirs.h"

struct fixture {
	char dir[TEMPDIR_SIZE];
	struct records records;
	uint64_t time;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	tempdir_make("scope", f->dir);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	tempdir_remove(f->dir);
	records_deinit(&f->records);
	free(f);
	return 0;
}

static void put_fork(struct fixture *f, uint32_t pid, uint32_t ppid)
{
	records_fork(&f->records, pid, ppid, ++f->time);
}

/* It looks the same. */
static void put_exit(struct fixture *f, uint32_t pid, uint32_t ppid)
{
	const size_t at = f->records.size;
	struct perf_event_header header;

	put_fork(f, pid, ppid);
	memcpy(&header, f->records.bytes + at, sizeof(header));
	header.type = PERF_RECORD_EXIT;
	memcpy(f->records.bytes + at, &header, sizeof(header));
}

static void put_living(const struct fixture *f, uint32_t pid, uint32_t ppid, const char *name)
{
	char path[32], text[128];

	(void)snprintf(path, sizeof(path), "%u/stat", pid);
	(void)snprintf(text, sizeof(text), "%u (%s) S %u %u %u 0 -1\n", pid, name, ppid, pid, pid);
	tempdir_put_text(f->dir, path, text);
}

static int find(const struct fixture *f, uint32_t pid, struct map *ret_pids)
{
	struct cursor span = cursor_from(f->records.bytes, f->records.size);
	const struct sideband_view view = { .spans = &span, .n_spans = 1 };
	const struct scope scope = { .pid = pid };
	_cleanup_(fd_closep) int proc_fd = dirs_open(AT_FDCWD, f->dir);

	assert_true(proc_fd >= 0);
	return scope_pids(&scope, &view, proc_fd, ret_pids);
}

/* @pids: those that are to be found, in all */
static void assert_found(const struct fixture *f, uint32_t pid, const uint32_t *pids, size_t n)
{
	struct map found = {};

	assert_int_equal(find(f, pid, &found), 0);
	for (size_t i = 0; i < n; i++)
		if (!map_get(&found, pids[i]))
			fail_msg("%u is not found from %u", pids[i], pid);
	assert_int_equal(found.n_used, n);
	map_deinit(&found);
}

#define ASSERT_FOUND(f, pid, ...)                                      \
	assert_found(f, pid, (const uint32_t[]){ pid, ##__VA_ARGS__ }, \
		     sizeof((const uint32_t[]){ pid, ##__VA_ARGS__ }) / sizeof(uint32_t))

static void told_by_records(void **state)
{
	struct fixture *f = *state;

	put_fork(f, 20, 10);
	put_fork(f, 20, 20); /* a thread */
	put_fork(f, 30, 20);
	put_fork(f, 50, 40);
	ASSERT_FOUND(f, 10, 20, 30);
	ASSERT_FOUND(f, 20, 30);
	ASSERT_FOUND(f, 40, 50);
	ASSERT_FOUND(f, 60);
}

/* Forked before the records begin, by whatever name; what is no process is left alone. */
static void told_by_proc(void **state)
{
	struct fixture *f = *state;

	put_living(f, 1, 0, "init");
	put_living(f, 10, 1, "server");
	put_living(f, 20, 10, ") S 1 (");
	put_living(f, 9, 20, "worker of a worker");
	put_living(f, 30, 1, "other");
	tempdir_put_text(f->dir, "40/comm", "has just ended\n");
	tempdir_put_text(f->dir, "50/stat", "50 (cut");
	tempdir_put_text(f->dir, "self/stat", "10 (x) S 30 ");
	ASSERT_FOUND(f, 10, 20, 9);
	ASSERT_FOUND(f, 30);
	ASSERT_FOUND(f, 1, 10, 20, 9, 30);
}

/* Of a family some live, some ended lately, some were forked lately. */
static void told_by_both(void **state)
{
	struct fixture *f = *state;

	put_living(f, 10, 1, "server");
	put_living(f, 20, 10, "worker");
	put_fork(f, 21, 20); /* by one who was there before */
	put_exit(f, 32, 31); /* before its parent, */
	put_exit(f, 31, 10); /* which nobody saw begin */
	put_exit(f, 20, 20); /* a thread, by an old kernel */
	put_living(f, 22, 21, "worker's");
	ASSERT_FOUND(f, 10, 20, 21, 22, 31, 32);
}

/* Numbers that are given anew can make a circle. */
static void a_circle(void **state)
{
	struct fixture *f = *state;

	put_fork(f, 20, 10);
	put_fork(f, 30, 20);
	put_exit(f, 10, 30);
	ASSERT_FOUND(f, 10, 20, 30);
}

/* Return: what the manifest says of a scope. */
static char *print(const struct scope *scope, const struct map *ran)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	scope_write_manifest(scope, ran, 0, f);
	fclose(f);
	return text;
}

/* Of those asked for the ones that a switch record names, whether they come or go. */
static void who_ran(void **state)
{
	const struct scope scope = { .pid = 10 };
	struct map pids = {}, ran = {};
	struct fixture *f = *state;
	_cleanup_(freep) char *text = NULL;

	for (uint32_t pid = 10; pid < 15; pid++)
		assert_int_equal(map_put(&pids, pid, 1), 0);
	records_switch(&f->records, 20, false, 1, 0);
	assert_int_equal(scope_add_ran(&pids, cursor_from(f->records.bytes, f->records.size), &ran),
			 0);
	assert_int_equal(ran.n_used, 0);
	records_switch(&f->records, 13, false, 2, 0);
	records_switch(&f->records, 10, true, 3, 0);
	assert_int_equal(scope_add_ran(&pids, cursor_from(f->records.bytes, f->records.size), &ran),
			 0);
	text = print(&scope, &ran);
	assert_string_equal(text, "scope_pid=10\nscope_pids=10,13\n");
	map_deinit(&pids);
	map_deinit(&ran);
}

/* No line is longer than a reader takes, and none begins or ends with a comma. */
static void many_pids(void **state)
{
	const struct scope scope = { .pid = 4000000 };
	_cleanup_(freep) char *text = NULL;
	uint32_t expected = 4000000;
	struct map ran = {};

	(void)state;
	for (uint32_t i = 0; i < 600; i++)
		assert_int_equal(map_put(&ran, expected + (i * 7) % 600, 1), 0);
	text = print(&scope, &ran);
	for (char *rest, *line = strtok_r(text, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		int n = 0;

		assert_true(strlen(line) < 4096);
		if (strcmp(line, "scope_pid=4000000") == 0)
			continue;
		assert_memory_equal(line, "scope_pids=", strlen("scope_pids="));
		for (line += strlen("scope_pids="); *line; line += n, expected++) {
			unsigned pid;

			assert_int_equal(sscanf(line, "%u%n", &pid, &n), 1);
			assert_int_equal(pid, expected);
			assert_true(line[n] == ',' ? line[n + 1] : !line[n]);
			n += line[n] == ',';
		}
	}
	assert_int_equal(expected, 4000600);
	map_deinit(&ran);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(told_by_records, set_up, tear_down),
		cmocka_unit_test_setup_teardown(told_by_proc, set_up, tear_down),
		cmocka_unit_test_setup_teardown(told_by_both, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_circle, set_up, tear_down),
		cmocka_unit_test_setup_teardown(who_ran, set_up, tear_down),
		cmocka_unit_test(many_pids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
