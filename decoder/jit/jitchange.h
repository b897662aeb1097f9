/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * JIT changes
 *
 * Code that a snapshot proves to have other bytes than those that its JIT compiler noted in its
 * jitdump, or the same: where a version of code still holds at the end of the jitdump, the bytes of
 * the process's memory in the snapshot count, however many differ.
 *
 * There is no note of when they were written. A branch that now leads into code that was noted
 * later is taken to have done so from that note on, because compilers link code as soon as there is
 * something to link it to. All other changes are taken to have been made before the code ran:
 * compilers fill in addresses, and replace code as a whole. Where that is wrong, the packets
 * contradict the code (see lane.h).
 *
 * Memory that was cleared, all of whose bytes are 00 or cc, proves nothing: the code was there
 * before.
 */

#include <stdbool.h>
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
	uint8_t *proven; /* a bit for each event: memory has all bytes of its version */
};

/*
 * Compare the code in @dump, which was parsed from the jitdump @object of process @pid, with the
 * memory of the process. All of them are borrowed until @ret_changes is deinitialized. Only events
 * for which @is_possible, which is called meanwhile, returns true are those of the process.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int
jitchanges_init(const struct jitdump *dump, const struct object *object,
		const struct anonmem *memory, uint32_t pid, struct objects *objects,
		bool (*is_possible)(void *userdata, const struct jitdump_event *event),
		void *userdata, struct jitchanges *ret_changes);
/* Return: whether memory has all bytes of the version that event @i of the dump began: those that
 * were noted, and the changes in the list. */
bool jitchanges_prove(const struct jitchanges *changes, size_t i);

void jitchanges_deinit(struct jitchanges *changes);
