/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * JITs
 *
 * The code that JIT compilers noted in jitdumps, mapped into the spaces of their processes at the
 * time at which they noted it.
 *
 * A version of code is one LOAD or MOVE. It holds from its time until the next one that overlaps
 * it, however little, or CLOSE. What is left of it then keeps its bytes, but not its name: that is
 * another object over the same file. Code may run before its maker finds the time to note it, so
 * where no version holds yet the first later one does, marked as early. What was changed in a
 * version after it was noted is taken from the snapshot's memory: see jitlive.h.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/image/object.h"
#include "decoder/image/space.h"
#include "decoder/jit/memory.h"
#include "decoder/trace/trace.h"
#include "util/map.h"
#include "util/vec.h"

#define JITS_MAX        1024       /* dumps; one a process; it is said how many more there are */
#define JITS_EVENTS_MAX (1u << 24) /* of all of them; a process may name one again and again */

struct jit;

struct jits {
	const struct trace_facts *facts; /* borrowed, like memory and objects */
	const struct memory *memory;
	struct objects *objects;
	VEC(struct jit *) list;
	size_t n_events;     /* of their dumps */
	struct map left_out; /* spaces whose dumps are too many */
	size_t left_out_at;  /* the complaint about them; how many there are begins at */
	size_t n_left_out_at;
	VEC(char *)
	complaints;         /* for the user: which dump could not be used, or not wholly, and why */
	uint64_t next_time; /* of the first event that was not applied; UINT64_MAX: none */
};

void jits_init(struct jits *jits, const struct trace_facts *facts, const struct memory *memory,
	       struct objects *objects);
void jits_deinit(struct jits *jits);

/*
 * Process @pid mapped the dump @path into @space, at @time. It is taken from the snapshot if there
 * is one, else from the path. One that cannot be used is left out.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int jits_begin(struct jits *jits, struct space *space, uint32_t pid, const char *path,
			    uint64_t time);

/* Map what was noted up to @time. Nothing older may be mapped afterwards. Return: 0 or -ENOMEM. */
_must_check_ int jits_apply(struct jits *jits, uint64_t time);
