/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Perfmap
 *
 * The names in a perf map, the text file of a JIT that says no more than names ("7f00a000 1c
 * JS:~fib" in a line), by address. One process has one map and may have thousands of pieces of
 * memory, each an object of its own, so that the text is parsed once for all of them.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "util/mapfile.h"
#include "util/vec.h"

struct perfmap_name {
	uint64_t address;
	uint64_t size;
	const char *name; /* in the file's bytes */
	uint32_t line;
	uint16_t name_size;
};

struct perfmap {
	VEC(struct perfmap_name) names; /* by address; of one address, in the order of the file */
};

/*
 * Parse the file, whose bytes must outlive @ret_perfmap. Lines that make no sense are left out.
 *
 * @n_lines: how many lines to look at; it is counted down
 *
 * Return: 0, and deinit it; -ENOMEM.
 */
_must_check_ int perfmap_parse(const struct mapfile *file, size_t *n_lines,
			       struct perfmap *ret_perfmap);
void perfmap_deinit(struct perfmap *perfmap);
