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

/*
 * A difference between two versions of the same code: the bytes that a JIT compiler noted, and
 * those that were in memory later. A direct branch whose target alone changed (a link) is marked:
 * compilers link code that was made, and may have run, long before.
 */

struct patch {
	size_t offset; /* in the code */
	size_t size;
	bool is_link;    /* the patch is one whole direct branch, and only its target changed */
	uint64_t target; /* of a link: the later target */
};

struct patches {
	VEC(struct patch) list; /* by offset; they do not overlap */
	size_t n_bytes;         /* bytes that differ */
};

/*
 * Compare two versions, @noted and @now, of @size bytes of 64-bit code at @address.
 *
 * Return: 0 or -ENOMEM; in both cases the caller deinitializes @ret_patches.
 */
_must_check_ int patches_find(const uint8_t *noted, const uint8_t *now, size_t size,
			      uint64_t address, struct patches *ret_patches);
void patches_deinit(struct patches *patches);

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
