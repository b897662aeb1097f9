/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * XRay map
 *
 * The ELF file that goes with XRay files: a table of instrumentation (util/fdr.h) and a symbol for
 * each function, by which llvm-xray finds the names of the functions. It has no code. The functions
 * are those of many objects, whose addresses may be the same, so they get others here.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/calls.h"

#define XRAY_MAP_NAME "map.elf"

/* Return: the number of the function in XRay files, from 1. */
static inline uint32_t xray_map_id(const struct ptd_function *function)
{
	return function->id + 1;
}

/*
 * Write the file into the directory @dir_fd (util/outdir.h). @functions are all, by their ids; and
 * @room, which may be NULL, is as in struct ptd_sink_config.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int xray_map_write(int dir_fd, uint64_t *room,
				const struct ptd_function *const *functions, size_t n);
