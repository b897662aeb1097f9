/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * JITs
 *
 * Maps the code that JIT compilers noted in jitdumps into the spaces of their processes, at the
 * times at which they noted it.
 *
 * Each load or move of a function begins a version of code. The version holds until a later version
 * overlaps it, however little, or the code is moved away. The part that is not overlapped loses its
 * name. Code may run before its compiler finds the time to note it. Therefore, where no version
 * holds yet, the first later version is mapped, marked as early.
 *
 * A jitdump is a claim about bytes: some compilers note other bytes than they execute. What ran is:
 *
 *	there is                               | bytes of         | name of
 *	---------------------------------------+------------------+---------------
 *	a code log of the program, of the      | the log, as of   | the version
 *	software source (see replay.h)         | that time        |
 *	memory in the snapshot, and the last   | the memory (see  | the version
 *	version, which holds at the end        | jitchange.h)     |
 *	such memory that was cleared: all its  | the dump         | the version
 *	bytes are 00, or all are cc            |                  |
 *	memory in the snapshot, but no version | the memory       | the perf map
 *	is known any more                      |                  |
 *	a version that was replaced or moved   | the dump         | the version
 *	later: the memory was used again       |                  |
 *	no memory                              | the dump         | the version, as
 *	                                       |                  | long as it holds
 *
 * Code whose bytes are the dump's alone is of another object (struct ptd_object has is_claimed).
 *
 * An event is of the program that had the dump mapped at its time: a process that executes another
 * program, or another process with its number, may begin the same file anew. Processes that were
 * forked may write into the dump of their parent. Then an event is of the process whose pid it
 * states; and in shared memory of all of them.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/image/objects.h"
#include "decoder/image/space.h"
#include "decoder/jit/anonmem.h"
#include "decoder/jit/jitmap.h"
#include "decoder/trace/trace.h"
#include "util/map.h"
#include "util/vec.h"

#define JITS_MAX        1024 /* of processes and dumps; a complaint says how many more there are */
#define JITS_EVENTS_MAX (1u << 24) /* of all dumps: a process may map one dump many times */

struct jit;
struct jit_file;

struct jits {
	const struct trace_facts *facts; /* borrowed, like memory and objects */
	const struct anonmem *memory;
	struct objects *objects;
	struct jitmap map; /* of the snapshot */
	VEC(struct jit_file *) files;
	VEC(struct jit *) list;
	size_t n_events; /* of all dumps */

	/* Spaces whose dumps are more than JITS_MAX; one complaint is about all of them. */
	struct map left_out;
	size_t left_out_at;   /* index of the complaint */
	size_t n_left_out_at; /* size of the part of the complaint that stays */

	VEC(char *) complaints; /* for the user: which code is not used, or not wholly, and why */
	uint64_t next_time;     /* of the first event that is not mapped yet; UINT64_MAX: none */
};

/*
 * @facts, @memory and @objects are borrowed. Return: 0 or -ENOMEM; in both cases the caller
 * deinitializes @jits.
 */
_must_check_ int jits_init(struct jits *jits, const struct trace_facts *facts,
			   const struct anonmem *memory, struct objects *objects);
void jits_deinit(struct jits *jits);

/* Append a text to the complaints. Return: 0 or -ENOMEM. */
_must_check_ _printf_(2, 3) int jits_complain(struct jits *jits, const char *format, ...);

/* A process has a jitdump mapped. */
struct jits_mapping {
	uint32_t pid;
	struct space *space; /* of its program; borrowed */
	/* In ns: when the program began; when it mapped the dump; when another began in the
	 * process, or UINT64_MAX. */
	uint64_t birth, time, end;
	const char *path;
};

/* Return: whether the process mapped a jitdump, by what the snapshot says of @path; without that,
 * by the name. */
bool jits_is_dump(const struct jits *jits, uint32_t pid, const char *path);

/*
 * Open the dump that was mapped in the snapshot, or at its path if there is no snapshot. If the
 * dump cannot be used, there is a complaint, and it is left out.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int jits_begin(struct jits *jits, const struct jits_mapping *mapping);

/*
 * @child was forked from the process with the space @parent: it has the same dumps mapped, but for
 * @child->path, which is not used.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int jits_fork(struct jits *jits, const struct space *parent,
			   const struct jits_mapping *child);

/*
 * Map the code of all events up to @time (ns). Afterwards nothing with an earlier time may be
 * mapped in the spaces.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int jits_apply(struct jits *jits, uint64_t time);
