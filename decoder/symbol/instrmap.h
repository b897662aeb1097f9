/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Instrumentation map
 *
 * The table of an ELF file that says which function is instrumented where (decoder/util/fdr.h).
 * XRay numbers the functions in the order in which they first stand in it, from 1.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "util/vec.h"

struct filebytes;

/* More functions than this are not read. */
#define INSTRMAP_MAX (1u << 24)

struct instrmap {
	VEC(uint64_t) addresses; /* of function 1, 2, …, as the file is linked */
	bool is_library;         /* the file is one, not a program */
};

/*
 * Read the table of @file.
 *
 * Return: 0; -ENOENT if it is no ELF file, or has no table that is not empty; or -ENOMEM.
 */
_must_check_ int instrmap_read(struct filebytes *file, struct instrmap *ret_map);
void instrmap_deinit(struct instrmap *map);
