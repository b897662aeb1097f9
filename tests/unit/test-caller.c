/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "daemon/proc/caller.h"

/* A process may call itself anything. */
static void names(void **state)
{
	static const struct {
		const char *name, *comm;
	} rows[] = {
		{ "ptctl", "ptctl" },
		{ "a b\xc3\xa4", "a b\xc3\xa4" },
		{ "x\ny=1", "x?y=1" },
		{ "x\n", "x?" },
		{ "\033[2J\x9b", "?[2J?" },
		{ "fifteen-letters", "fifteen-letters" },
		{ "", "?" },
	};
	struct caller caller;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(prctl(PR_SET_NAME, rows[i].name), 0);
		caller_init(&caller, 77, 78, getpid());
		assert_int_equal(caller.uid, 77);
		assert_int_equal(caller.pid, getpid());
		assert_string_equal(caller.comm, rows[i].comm);
	}
}

static void of_no_process(void **state)
{
	const pid_t child = fork();
	struct caller caller;

	(void)state;
	if (child == 0)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	caller_init(&caller, 0, 0, child);
	assert_int_equal(caller.pid, child);
	assert_string_equal(caller.comm, "?");
	caller_init(&caller, 0, 0, 0);
	assert_string_equal(caller.comm, "?");
}

/* What is on standard error, which is no journal. */
static void said(const struct caller *caller, enum caller_action action, const char *snapshot,
		 char ret_text[static 256])
{
	const int before = dup(STDERR_FILENO), fd = memfd_create("stderr", MFD_CLOEXEC);
	ssize_t n;

	assert_true(dup2(fd, STDERR_FILENO) >= 0);
	caller_log(caller, action, snapshot);
	(void)fflush(stderr);
	assert_true(dup2(before, STDERR_FILENO) >= 0);
	(void)close(before);
	n = pread(fd, ret_text, 255, 0);
	assert_true(n >= 0);
	ret_text[n] = 0;
	(void)close(fd);
}

static void on_standard_error(void **state)
{
	static const struct caller caller = { .uid = 1000, .pid = 42, .comm = "ptctl" };
	static const struct {
		enum caller_action action;
		const char *snapshot, *text;
	} rows[] = {
		{ CALLER_TOOK, "ID-1", "asked for snapshot ID-1" },
		{ CALLER_READ, "ID-1", "opened for reading snapshot ID-1" },
		{ CALLER_RECORDED, NULL, "opened the software source to record a program" },
		{ CALLER_PAUSED, NULL, "paused recording" },
		{ CALLER_RESUMED, NULL, "resumed recording" },
		{ CALLER_REMOVED, "ID-1", "removed snapshot ID-1" },
		{ CALLER_KEPT, "ID-1", "asked to keep snapshot ID-1" },
		{ CALLER_RELEASED, "ID-1", "asked to keep no longer snapshot ID-1" },
		{ CALLER_RELOADED, NULL, "asked to have the settings read again" },
	};
	char text[256], expected[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		(void)unsetenv("JOURNAL_STREAM");
		said(&caller, rows[i].action, rows[i].snapshot, text);
		(void)snprintf(expected, sizeof(expected),
			       "test-caller: ptctl (process 42, user 1000) %s\n", rows[i].text);
		assert_string_equal(text, expected);
		/* The journal of an ancestor. */
		(void)setenv("JOURNAL_STREAM", "8:1", 1);
		said(&caller, rows[i].action, rows[i].snapshot, text);
		assert_non_null(strstr(text, rows[i].text));
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(on_standard_error),
		cmocka_unit_test(of_no_process),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
