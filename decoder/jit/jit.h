/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * JITs
 *
 * Maps the code that JIT compilers noted in jitdumps into the spaces of their processes, at the
 * times at which they noted it.
 *
 * Each load or move of a function begins a version of code. The version holds until the dump is
 * closed, or a later version overlaps it, however little. The part that is not overlapped keeps its
 * bytes then, but loses its name: it becomes part of another object over the same file. Code may
 * run before its compiler finds the time to note it. Therefore, where no version holds yet, the
 * first later version is mapped, marked as early. Where the snapshot's memory proves that code was
 * changed after it was noted, the changed bytes are mapped (see jitchange.h).
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/image/objects.h"
#include "decoder/image/space.h"
#include "decoder/jit/anonmem.h"
#include "decoder/trace/trace.h"
#include "util/map.h"
#include "util/vec.h"

#define JITS_MAX        1024       /* dumps; a complaint says how many more there are */
#define JITS_EVENTS_MAX (1u << 24) /* of all dumps: a process may map one dump many times */

struct jit;

struct jits {
	const struct trace_facts *facts; /* borrowed, like memory and objects */
	const struct anonmem *memory;
	struct objects *objects;
	VEC(struct jit *) list;
	size_t n_events; /* of all dumps */

	/* Spaces whose dumps are more than JITS_MAX; one complaint is about all of them. */
	struct map left_out;
	size_t left_out_at;   /* index of the complaint */
	size_t n_left_out_at; /* size of the part of the complaint that stays */

	VEC(char *) complaints; /* for the user: which code is not used, or not wholly, and why */
	uint64_t next_time;     /* of the first event that is not mapped yet; UINT64_MAX: none */
};

/* @facts, @memory and @objects are borrowed. */
void jits_init(struct jits *jits, const struct trace_facts *facts, const struct anonmem *memory,
	       struct objects *objects);
void jits_deinit(struct jits *jits);

/* Append a text to the complaints. Return: 0 or -ENOMEM. */
_must_check_ _printf_(2, 3) int jits_complain(struct jits *jits, const char *format, ...);

/*
 * Process @pid mapped the jitdump @path into @space at @time (ns): open the dump in the snapshot,
 * or at @path if there is no snapshot. If the dump cannot be used, there is a complaint, and it is
 * left out.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int jits_begin(struct jits *jits, struct space *space, uint32_t pid, const char *path,
			    uint64_t time);

/*
 * Map the code of all events up to @time (ns). Afterwards nothing with an earlier time may be
 * mapped in the spaces.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int jits_apply(struct jits *jits, uint64_t time);
