/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memory
 *
 * The anonymous executable memory that a snapshot holds (DIR/mem), by process and address, as
 * objects; with the names that a perf map (DIR/jit/perf-PID.map) gives to what is in it.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/image/object.h"
#include "decoder/symbol/perfmap.h"
#include "util/vec.h"

#define MEMORY_PIECES_MAX (1u << 16)

struct memory_piece {
	uint32_t pid;
	uint64_t start;
	uint64_t last; /* inclusive */
	const struct object *object;
	struct perfmap_source names; /* its source, if the process has a perf map */
};

struct memory {
	VEC(struct memory_piece) pieces; /* by pid, then start */
};

/*
 * Collect what the snapshot of @objects holds; nothing if there is none. Files that cannot be used
 * are left out.
 *
 * @perfmaps: those of the snapshot, which name the code; they must outlive @memory
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int memory_init(struct memory *memory, struct objects *objects,
			     struct perfmaps *perfmaps);
void memory_deinit(struct memory *memory);

/* Return: the first piece of @pid that ends at or above @address; NULL if there is none. */
const struct memory_piece *memory_find(const struct memory *memory, uint32_t pid, uint64_t address);
