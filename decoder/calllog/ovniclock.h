/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * ovni clock
 *
 * The clocks of several machines differ. The file clock-offsets.txt of a trace, which ovnisync
 * makes, has a line for each host below a line of titles: a number, the name of the host, and the
 * median, mean and deviation of what must be added to its clock, in ns.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "util/vec.h"

#define OVNICLOCK_FILE     "clock-offsets.txt"
#define OVNICLOCK_SIZE_MAX ((size_t)4 << 20) /* a larger file is refused */
#define OVNICLOCK_HOST_MAX 256

struct ovniclock {
	VEC(struct ovniclock_host {
		char name[OVNICLOCK_HOST_MAX];
		int64_t offset_ns; /* the median, without its fraction, as in ovniemu */
	})
	hosts;
};

/*
 * Parse the @size bytes at @text.
 *
 * Return: 0; -EBADMSG and @reterr_line, the number of the line that is wrong, from 1; or -ENOMEM.
 */
_must_check_ int ovniclock_parse(struct ovniclock *clock, const char *text, size_t size,
				 unsigned int *reterr_line);
void ovniclock_deinit(struct ovniclock *clock);

/*
 * Return: the offset of the host that the loom @loom ran on: its name is that of the loom, or of
 *         its directory, up to a dot; NULL if there is none.
 */
const int64_t *ovniclock_find(const struct ovniclock *clock, const char *loom);
