/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/perfusers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_MANY 9 /* one more than are listed */

static int open_event(void)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.size = sizeof(attr),
					.config = PERF_COUNT_SW_DUMMY,
					.exclude_kernel = 1 };

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* A child called @name that has an event, or none, and waits to be killed. */
static pid_t start(const char *name, bool has_event)
{
	int ends[2];
	char ready;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_NAME, name);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (has_event && open_event() < 0)
			_exit(1);
		(void)!write(ends[1], "r", 1);
		for (;;)
			(void)pause();
	}
	(void)close(ends[1]);
	assert_int_equal(read(ends[0], &ready, 1), 1);
	(void)close(ends[0]);
	return pid;
}

static void end(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

static unsigned count(const char *text, const char *part)
{
	unsigned n = 0;

	for (; (text = strstr(text, part)); text++)
		n++;
	return n;
}

static void listed(void **state)
{
	pid_t with, without, many[N_MANY];
	char text[600], part[64];
	int own = open_event();

	(void)state;
	if (own < 0) {
		print_message("  no perf event can be opened: nobody has one\n");
		skip();
	}
	(void)close(own);
	with = start("has one", true);
	without = start("has none", false);
	own = open_event();
	assert_true(perfusers_list("", getpid(), text, sizeof(text)) >= 1);
	(void)snprintf(part, sizeof(part), "has one[%d]", with);
	assert_int_equal(count(text, part), 1);
	assert_null(strstr(text, "has none"));
	/* That we have some ourselves is no news. */
	(void)snprintf(part, sizeof(part), "[%d]", getpid());
	assert_null(strstr(text, part));
	/* A short text is cut, and ended. */
	memset(part, 'x', sizeof(part));
	assert_int_equal(perfusers_list("", getpid(), part, 5), 1);
	assert_int_equal(strlen(part), 4);
	assert_int_equal(part[5], 'x');

	(void)close(own);
	for (size_t i = 0; i < N_MANY; i++)
		many[i] = start("many", true);
	assert_int_equal(perfusers_list("", getpid(), text, sizeof(text)), 8);
	assert_int_equal(count(text, ", "), 7);
	assert_true(count(text, "many[") >= 1);
	for (size_t i = 0; i < N_MANY; i++)
		end(many[i]);
	end(with);
	end(without);
}

static void no_one(void **state)
{
	char text[200] = "";
	int n;

	(void)state;
	n = perfusers_list("", getpid(), text, sizeof(text));
	/* Others may have some just now. */
	if (n > 0)
		skip();
	assert_int_equal(n, geteuid() == 0 ? 0 : -EACCES);
	assert_string_equal(text, "");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(listed),
		cmocka_unit_test(no_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
