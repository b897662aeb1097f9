/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Quiet thread: it has every signal blocked that can be, and its caller none more than before,
 * whether it was started or not.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>

#include "tests/lib/failing.h"
#include "util/quietthread.h"

struct seen {
	sigset_t blocked;
	void *userdata;
};

static void *look(void *userdata)
{
	struct seen *seen = userdata;

	(void)pthread_sigmask(SIG_SETMASK, NULL, &seen->blocked);
	seen->userdata = userdata;
	return NULL;
}

static int start(void *userdata)
{
	struct seen *seen = userdata;
	sigset_t before, after;
	pthread_t thread;
	int r;

	*seen = (struct seen){};
	sigemptyset(&before);
	sigaddset(&before, SIGUSR1);
	assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
	r = quietthread_start(&thread, NULL, look, seen);
	assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &after), 0);
	for (int i = 1; i < SIGRTMIN; i++)
		assert_int_equal(sigismember(&after, i), i == SIGUSR1);
	if (r == 0)
		assert_int_equal(pthread_join(thread, NULL), 0);
	return r;
}

static void check(void *userdata)
{
	const struct seen *seen = userdata;

	assert_ptr_equal(seen->userdata, userdata);
	for (int i = 1; i < SIGRTMIN; i++) {
		if (i == SIGKILL || i == SIGSTOP)
			continue;
		/* Two of glibc's own, below SIGRTMIN, can never be blocked. */
		assert_true(sigismember(&seen->blocked, i) || i >= 32);
	}
}

static void signals_are_blocked(void **state)
{
	struct seen seen;

	(void)state;
	assert_int_equal(start(&seen), 0);
	check(&seen);
	failing_each(start, check, &seen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signals_are_blocked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
