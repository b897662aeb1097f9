/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Terminal
 *
 * A terminal of some width, for tests of what is written to one.
 */

struct terminal {
	int master; /* what was written is read from here, as it was written */
	int fd;     /* the terminal */
};

void terminal_open(struct terminal *terminal, unsigned short columns);

/* Return: what was written since the last call, at most 64 KiB; the caller frees it. */
char *terminal_read(const struct terminal *terminal);

void terminal_close(struct terminal *terminal);
