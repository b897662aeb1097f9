/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Jit map
 *
 * A snapshot's jit.map: which file of DIR/jit is the jitdump that a process mapped by some path. A
 * process may map several, and a program that it executed later may map another one by the same
 * path.
 */

#include <stdint.h>

#include "base/base.h"
#include "util/arena.h"
#include "util/vec.h"

#define JITMAP_LINES_MAX (1u << 16) /* more are left out */

struct jitmap_line {
	uint32_t pid;
	uint64_t since;   /* time of its first mapping that is known, in ns */
	const char *name; /* of the file in DIR/jit; NULL: it is missing */
	const char *why;  /* it is missing; "": not known */
	const char *path; /* by which it was mapped */
};

struct jitmap {
	VEC(struct jitmap_line) lines;
	struct arena arena; /* of the texts */
};

/*
 * Read jit.map in @snapshot_dir; NULL, or without such a file, the map is empty. Malformed lines
 * are left out.
 *
 * Return: 0 or -ENOMEM; in both cases the caller deinitializes @ret_map.
 */
_must_check_ int jitmap_init(struct jitmap *ret_map, const char *snapshot_dir);
void jitmap_deinit(struct jitmap *map);

/*
 * Return: the line of the jitdump that process @pid mapped by @path at @time (ns), or had mapped
 *         then; NULL if there is none.
 */
const struct jitmap_line *jitmap_find(const struct jitmap *map, uint32_t pid, const char *path,
				      uint64_t time);
