/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Jitted code
 *
 * A compiler of functions that add a number, each at an address of its own, which notes them in a
 * jitdump in $TMPDIR (tools/perf/Documentation/jitdump-specification.txt of Linux). Ends the
 * process if it cannot.
 */

#include <stdint.h>

struct jitted {
	uint8_t *code; /* always at the same address */
	int dump_fd;
};

typedef uint64_t jitted_fn(uint64_t x);

void jitted_init(struct jitted *jitted);

/* Return: function number @n, at most 25, which returns @x + @n. */
jitted_fn *jitted_make(struct jitted *jitted, uint32_t n);
