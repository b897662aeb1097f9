/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Maps line
 *
 * One line of /proc/PID/maps. All in it but the name is the kernel's; the name is as others chose
 * it, and may hold anything but NUL and newline.
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
	char *name; /* in the line; "" if it has none */
};

/* Take a line without its newline apart. Return: 0, or -EBADMSG. */
_must_check_ int mapsline_parse(char *line, struct mapsline *ret_line);

/* Turn each "\012" of a name, which is how a newline is written there, into a newline. A name that
 * has these four characters looks the same. */
void mapsline_unescape(char *name);
