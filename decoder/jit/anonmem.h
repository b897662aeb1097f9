/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Anonymous memory
 *
 * The anonymous executable memory of processes, as it was when the snapshot was taken: pieces, by
 * process and address. Each piece is an object, with the names that perf maps have for the code in
 * it.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/image/object.h"
#include "decoder/jit/memfile.h"
#include "decoder/symbol/perfmap.h"
#include "util/vec.h"

struct anonmem_piece {
	uint32_t pid;
	uint64_t start;
	uint64_t last;               /* inclusive */
	const struct object *object; /* borrowed */
	struct perfmap_source names; /* which the object points to */
};

struct anonmem {
	VEC(struct anonmem_piece) pieces; /* by pid, then start; they do not overlap */
};

/*
 * Load the pieces among @files; files that cannot be used are left out. The objects of @files and
 * @perfmaps, which name the code, must outlive @memory.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int anonmem_init(struct anonmem *memory, const struct memfiles *files,
			      struct perfmaps *perfmaps);
void anonmem_deinit(struct anonmem *memory);

/* Return: the first piece of process @pid that ends at or above @address; NULL if there is none. */
const struct anonmem_piece *anonmem_find(const struct anonmem *memory, uint32_t pid,
					 uint64_t address);
