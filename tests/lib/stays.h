/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Stays
 *
 * Who runs on which CPU from when to when, read plainly from the switch records of a snapshot: the
 * judge of the times that are decoded.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "util/vec.h"

struct stay_begin {
	uint64_t time;
	uint32_t cpu;
	uint32_t pid;
	uint32_t tid;
};

struct stays {
	VEC(struct stay_begin) list; /* by cpu, then time */
};

/* Return: 0; or negative errno if the snapshot at @path cannot be read. @force is
 *         input_open()'s. */
_must_check_ int stays_init(struct stays *stays, const char *path, bool force);
void stays_deinit(struct stays *stays);

/*
 * Return: when the stay of @tid on @cpu ends in which it is at @time, UINT64_MAX if nothing says
 * so; 0 if another thread is there.
 */
uint64_t stays_end(const struct stays *stays, uint32_t cpu, uint32_t pid, uint32_t tid,
		   uint64_t time);

/* Return: how many stays of @tid, on whichever CPU, began after @from and not after @to. */
size_t stays_begun(const struct stays *stays, uint32_t pid, uint32_t tid, uint64_t from,
		   uint64_t to);
