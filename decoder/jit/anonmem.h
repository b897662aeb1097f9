/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Anonymous memory
 *
 * The anonymous executable memory of processes, as it was when the snapshot was taken: pieces, by
 * process and address. The pieces of a process are parts of one object, with the names that perf
 * maps have for the code in them.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/image/object.h"
#include "decoder/jit/memfile.h"
#include "decoder/symbol/perfmap.h"
#include "util/vec.h"

#define ANONMEM_PIECES_MAX (1u << 16) /* more are left out */

struct anonmem_piece {
	uint32_t pid;
	uint64_t start;
	uint64_t last;               /* inclusive */
	uint64_t offset;             /* of its first byte in the object */
	const struct object *object; /* of the process; borrowed */
};

struct anonmem {
	VEC(struct anonmem_piece) pieces;   /* by pid, then start; they do not overlap */
	VEC(struct perfmap_source *) names; /* of each process, to which its object points */
	size_t n_left_out;                  /* pieces beyond ANONMEM_PIECES_MAX */
};

/*
 * Load the pieces of the file of memory; what makes no sense, and all behind it, is left out. The
 * objects of @files and @perfmaps, which name the code, must outlive @memory.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int anonmem_init(struct anonmem *memory, const struct memfiles *files,
			      struct perfmaps *perfmaps);
void anonmem_deinit(struct anonmem *memory);

/* Return: the first piece of process @pid that ends at or above @address; NULL if there is none. */
const struct anonmem_piece *anonmem_find(const struct anonmem *memory, uint32_t pid,
					 uint64_t address);
