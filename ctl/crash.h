/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Crash
 *
 * Links a core dump in the journal to the snapshot that has the last moments of its process, and
 * shows both with the last instructions of the thread that crashed.
 */

#include <stdint.h>

#include "base/base.h"

struct context;

/* What is asked for. The strings are borrowed. */
struct crash_wish {
	const char *journal; /* directory of journal files; NULL: those of this machine */
	const char *match;   /* as of coredump_init() */
	uint32_t n_last;     /* instructions to show */
};

/* Return: an exit status; EXIT_NO_SNAPSHOT if no snapshot has the process. */
_must_check_ int crash_show(const struct context *context, const struct crash_wish *wish);
