/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Endings
 *
 * When programs end because another one begins in their process, by an exec or under the same
 * number. The records are looked through when the first ending is asked for.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/trace/trace.h"
#include "util/vec.h"

struct ending {
	uint32_t pid;
	uint64_t time; /* ns */
};

struct endings {
	const struct trace *trace; /* borrowed */
	bool is_read;
	VEC(struct ending) list; /* by pid, then time */
};

void endings_init(struct endings *endings, const struct trace *trace);
void endings_deinit(struct endings *endings);

/*
 * Find when the program ends that process @pid runs at @time (ns). @ret_end is UINT64_MAX if no
 * record says that.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int endings_find(struct endings *endings, uint32_t pid, uint64_t time,
			      uint64_t *ret_end);
