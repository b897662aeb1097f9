/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Perf map files
 *
 * The perf maps of a snapshot (DIR/jit/perf-PID.map), in which JIT compilers name their code:
 * mapped, for as long as objects point to them.
 */

#include <stdint.h>

#include "base/base.h"
#include "util/mapfile.h"
#include "util/vec.h"

struct objects;

struct perfmapfiles {
	VEC(struct mapfile *) files;
};

void perfmapfiles_deinit(struct perfmapfiles *files);

/*
 * Map the names of process @pid in the snapshot of @objects, which has a directory.
 *
 * Return: 0, and @ret_file, which stays the list's, or NULL if the process has none; or -ENOMEM.
 */
_must_check_ int perfmapfiles_open(struct perfmapfiles *files, const struct objects *objects,
				   uint32_t pid, const struct mapfile **ret_file);
