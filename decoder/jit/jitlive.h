/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Jitlive
 *
 * What a JIT compiler changed in its code after it had noted it, as far as a snapshot proves: where
 * a version of code still holds at the end of the jitdump, and the memory that was kept has other
 * bytes, these count, not those in the dump.
 *
 * When they were written nobody noted. A branch that now leads into code that was noted later did
 * so from then on: compilers link code as soon as there is something to link it to. Everything else
 * is taken to have been changed before it ran, as is what they fill in and what they replace as a
 * whole. Where that is not so, the packets contradict the code (see lane.h).
 *
 * Memory that has hardly anything in common with a version is of something else, that was not noted
 * any more: it proves nothing.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/image/object.h"
#include "decoder/jit/jitdump.h"
#include "decoder/jit/memory.h"
#include "util/vec.h"

/* Bytes that were changed; they are at @offset of @object. */
struct jitlive_change {
	size_t event; /* with which the change takes effect: index in the dump's */
	uint64_t address;
	uint64_t size;
	uint64_t offset;
	const struct object *object;
};

/* A piece of memory with the names that the dump gives to code in it. */
struct jitlive_piece;

struct jitlive {
	VEC(struct jitlive_change) changes; /* by event, then address */
	VEC(struct jitlive_piece *) pieces;
};

/*
 * Compare the code in @dump, the jitdump of process @pid whose bytes are at @bytes, with the memory
 * of the process. All of them must outlive @ret_live.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int jitlive_init(const struct jitdump *dump, const uint8_t *bytes,
			      const struct memory *memory, uint32_t pid, struct objects *objects,
			      struct jitlive *ret_live);
void jitlive_deinit(struct jitlive *live);
