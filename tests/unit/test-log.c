/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"

/* What is on stderr after a warning of @name, with and without a journal. */
static void logged(const char *name, char ret_text[static 256])
{
	const int before = dup(STDERR_FILENO), fd = memfd_create("stderr", MFD_CLOEXEC);
	ssize_t n;

	assert_true(dup2(fd, STDERR_FILENO) >= 0);
	errno = ENOENT;
	log_warning("%s: %m", name);
	assert_int_equal(errno, ENOENT);
	(void)fflush(stderr);
	assert_true(dup2(before, STDERR_FILENO) >= 0);
	(void)close(before);
	n = pread(fd, ret_text, 255, 0);
	assert_true(n > 0);
	ret_text[n] = 0;
	(void)close(fd);
}

static void one_line_each(void **state)
{
	static const struct {
		const char *name, *line;
	} rows[] = {
		{ "/bin/ls", "/bin/ls: No such file or directory\n" },
		{ "a b\xc3\xa4", "a b\xc3\xa4: No such file or directory\n" },
		{ "x\n<0>y", "x?<0>y: No such file or directory\n" },
		{ "\x9b"
		  "2J \xc2\x9b"
		  "2J \xc2\xa0",
		  "?2J ??2J \xc2\xa0: No such file or directory\n" },
		{ "\033[2J\r\t\x7f", "?[2J???: No such file or directory\n" },
	};
	char text[256], expected[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		(void)unsetenv("JOURNAL_STREAM");
		logged(rows[i].name, text);
		(void)snprintf(expected, sizeof(expected), "test-log: %s", rows[i].line);
		assert_string_equal(text, expected);

		(void)setenv("JOURNAL_STREAM", "8:1", 1);
		logged(rows[i].name, text);
		(void)snprintf(expected, sizeof(expected), "<4>%s", rows[i].line);
		assert_string_equal(text, expected);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_line_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
