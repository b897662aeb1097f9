/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * JIT changes
 *
 * Code that a JIT compiler changed after it had noted it in its jitdump, as far as a snapshot
 * proves it: where a version of code still holds at the end of the jitdump, and the process's
 * memory in the snapshot has other bytes, the bytes of the memory count.
 *
 * Nobody noted when they were written. A branch that now leads into code that was noted later is
 * taken to have done so from that note on, because compilers link code as soon as there is
 * something to link it to. All other changes are taken to have been made before the code ran:
 * compilers fill in addresses, and replace code as a whole. Where that is wrong, the packets
 * contradict the code (see lane.h).
 *
 * Memory that has hardly any byte in common with a version proves nothing: the compiler has used
 * the memory again without noting it.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/image/objects.h"
#include "decoder/jit/anonmem.h"
#include "decoder/jit/jitdump.h"
#include "util/vec.h"

struct jitchange {
	size_t event; /* the change holds from this event of the dump on (an index) */
	uint64_t address;
	uint64_t size;
	uint64_t offset; /* of the later bytes in @object */
	const struct object *object;
};

/* A piece of memory, as an object whose code has the names in the dump. */
struct jitchange_piece;

struct jitchanges {
	VEC(struct jitchange) list; /* by event, then address */
	VEC(struct jitchange_piece *) pieces;
};

/*
 * Compare the code in @dump, which was parsed from the jitdump @object of process @pid, with the
 * memory of the process. All of them are borrowed until @ret_changes is deinitialized.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int jitchanges_init(const struct jitdump *dump, const struct object *object,
				 const struct anonmem *memory, uint32_t pid,
				 struct objects *objects, struct jitchanges *ret_changes);
void jitchanges_deinit(struct jitchanges *changes);
