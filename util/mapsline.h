/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Maps line
 *
 * One line of /proc/PID/maps. The kernel writes all fields; but the name is one that others chose,
 * and may have any bytes except NUL and newline.
 *
 * Source: Linux, fs/proc/task_mmu.c; proc(5).
 */

#include <stdint.h>

#include "base/base.h"

struct mapsline {
	uint64_t start, end;
	uint64_t offset; /* in the file */
	uint32_t prot;
	uint32_t flags; /* MAP_SHARED or MAP_PRIVATE */
	uint32_t maj, min;
	uint64_t ino;
	char *name; /* points into the line; "" if there is none */
};

/* Parse a line without its newline. Return: 0, or -EBADMSG. */
_must_check_ int mapsline_parse(char *line, struct mapsline *ret_line);

/* Replace each "\012" of a name, by which the kernel writes a newline, by a newline. A name that
 * really has these four characters cannot be told from one with a newline. */
void mapsline_unescape(char *name);
