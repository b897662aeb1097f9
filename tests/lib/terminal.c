/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/terminal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "base/base.h"

#define TEXT_MAX ((size_t)64 << 10)

void terminal_open(struct terminal *terminal, unsigned short columns)
{
	const struct winsize size = { .ws_col = columns, .ws_row = 24 };
	struct termios raw;

	terminal->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	assert_true(terminal->master >= 0);
	assert_int_equal(grantpt(terminal->master), 0);
	assert_int_equal(unlockpt(terminal->master), 0);
	assert_int_equal(ioctl(terminal->master, TIOCSWINSZ, &size), 0);
	terminal->fd = open(ptsname(terminal->master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(terminal->fd >= 0);
	assert_int_equal(tcgetattr(terminal->fd, &raw), 0);
	cfmakeraw(&raw);
	assert_int_equal(tcsetattr(terminal->fd, TCSANOW, &raw), 0);
}

char *terminal_read(const struct terminal *terminal)
{
	char *text = calloc(TEXT_MAX + 1, 1);
	size_t size = 0;
	ssize_t n;

	assert_non_null(text);
	while ((n = read(terminal->master, text + size, TEXT_MAX - size)) > 0)
		size += (size_t)n;
	return text;
}

void terminal_close(struct terminal *terminal)
{
	terminal->fd = fd_close(terminal->fd);
	terminal->master = fd_close(terminal->master);
}
