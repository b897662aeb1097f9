/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Timeline
 *
 * What the sideband proves: which thread ran on which CPU from when to when, and in which address
 * space. Built once from a trace's records; then asked by CPU and time.
 *
 * Rules: SWITCH_CPU_WIDE, SWITCH and ITRACE_START say who runs on a CPU from their time on; LOST
 * says that since the record before it that was made there, nobody knows. So does a sample of
 * sched_switch if the next one names another thread as the one that leaves; and if there is such a
 * pair, the last of each CPU says nothing of what comes after it: the event is that of some tasks,
 * and does not see others go. A FORK makes a task; with the parent's pid it is a thread and shares
 * the space, else the space is a copy at that time. COMM with the exec bit begins an empty space.
 * EXIT ends a task. MMAP and MMAP2 of executable code map an object; those of a jitdump begin what
 * it tells of (see jit.h).
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/image/objects.h"
#include "decoder/image/space.h"
#include "decoder/sideband/track.h"
#include "decoder/trace/trace.h"

struct timeline;

/*
 * Build it from the records of @trace; files come from @objects. Both must outlive it.
 *
 * Return: 0 or -ENOMEM. Records that make no sense are skipped and counted.
 */
_must_check_ int timeline_new(const struct trace *trace, struct objects *objects,
			      struct timeline **ret_timeline);

/*
 * Build the timeline of a bare PT stream: it is never known who runs, and all code is in @space,
 * which becomes the timeline's in any case.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int timeline_new_bare(struct space *space, struct timeline **ret_timeline);

struct timeline *timeline_free(struct timeline *timeline);

/*
 * Who is on @cpu at @time (ns). A stay ends also where its thread's space changes (exec), so space
 * is the same throughout a stay.
 */
void timeline_at(const struct timeline *timeline, uint32_t cpu, uint64_t time,
		 struct stay *ret_stay);

/* The stay of thread @tid at @time, whatever its CPU: for per-thread buffers. */
void timeline_at_tid(const struct timeline *timeline, uint32_t tid, uint64_t time,
		     struct stay *ret_stay);

/* Return: the space of code that runs whoever does, the kernel's; NULL if nothing is known of
 *         it. */
const struct space *timeline_kernel(const struct timeline *timeline);

/* Return: records that were skipped because they make no sense. */
size_t timeline_n_skipped(const struct timeline *timeline);

/* Return: texts for the user, the timeline's: what of the JITs' files could not be used, and
 *         why. */
const char *const *timeline_complaints(const struct timeline *timeline, size_t *ret_n);

DEFINE_CLEANUP(struct timeline *, timeline_free);
