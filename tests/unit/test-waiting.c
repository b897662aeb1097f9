/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What a terminal shows while ptctl works. */

#include "ctl/copyout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Wait for @ms with standard error at @fd. */
static void wait_at(int fd, long ms)
{
	const int before = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	struct waiting waiting;

	assert_true(before >= 0 && dup2(fd, STDERR_FILENO) >= 0);
	waiting_begin(&waiting, "copying");
	(void)nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
	waiting_end(&waiting);
	waiting_end(&waiting); /* which changes nothing */
	assert_true(dup2(before, STDERR_FILENO) >= 0);
	close(before);
}

/* Read what the terminal shows, which comes in pieces, and not at once. */
static void read_until(int master, const char *end, char *text, size_t size)
{
	size_t n = 0;

	for (unsigned int i = 0; i < 1000 && !strstr(text, end); i++) {
		const ssize_t more = read(master, text + n, size - 1 - n);

		n += more > 0 ? (size_t)more : 0;
		text[n] = '\0';
		(void)nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	}
	assert_non_null(strstr(text, end));
}

static void on_a_terminal(void **state)
{
	const int master = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
	char text[256] = "";
	int fd;

	(void)state;
	assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
	fd = open(ptsname(master), O_RDWR | O_NOCTTY);
	assert_true(fd >= 0);

	wait_at(fd, 1300);
	read_until(master, "\r\033[K", text, sizeof(text));
	/* On a busy machine it may have been longer. */
	assert_int_equal(strncmp(text, "\rptctl: copying, 1 s ", 21), 0);
	close(fd);
	close(master);
}

static void without_a_terminal(void **state)
{
	int ends[2];
	char byte;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	wait_at(ends[1], 1100);
	assert_true(read(ends[0], &byte, 1) < 0);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(on_a_terminal),
		cmocka_unit_test(without_a_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
