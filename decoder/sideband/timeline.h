/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Timeline
 *
 * Which thread ran on which CPU from when to when, and in which address space, as far as the
 * sideband proves it. A timeline is built once from the records of a trace, and then asked by CPU
 * and time.
 *
 * The rules are:
 *
 * - SWITCH_CPU_WIDE, SWITCH and ITRACE_START state who runs on a CPU from their time on.
 * - After a LOST record of a CPU it is not known who ran there since the record before it.
 * - The same holds between two samples of sched_switch if the second one names another thread as
 * leaving than the first one named as coming. If a recording has such a pair, its event saw only
 * some tasks: then the last sample of each CPU does not state who ran after it.
 * - A FORK begins a task. If the pid is that of the parent, the task is a thread, which shares the
 *   parent's space; else the space is a copy of the parent's at that time.
 * - A COMM with the exec bit begins an empty space. An EXIT ends a task.
 * - MMAP and MMAP2 of executable code map an object. That of a jitdump begins to map the code that
 * the jitdump notes (see jit.h).
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
 * Build the timeline of @trace. Files that were mapped become objects of @objects. @trace and
 * @objects must outlive the timeline. Records that make no sense are skipped and counted.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int timeline_new(const struct trace *trace, struct objects *objects,
			      struct timeline **ret_timeline);

/*
 * Build the timeline of a bare PT stream: it is never known who runs, and all code is in @space,
 * which belongs to the timeline from then on, also on errors.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int timeline_new_bare(struct space *space, struct timeline **ret_timeline);

struct timeline *timeline_free(struct timeline *timeline);

/*
 * Find the stay on @cpu at @time (ns). A stay also ends where the space of its thread changes
 * (exec), so each stay has one space.
 */
void timeline_at(const struct timeline *timeline, uint32_t cpu, uint64_t time,
		 struct stay *ret_stay);

/* Find the stay of thread @tid at @time (ns), on whatever CPU: for AUX buffers of threads. */
void timeline_at_tid(const struct timeline *timeline, uint32_t tid, uint64_t time,
		     struct stay *ret_stay);

/* Return: the space with the number @id; NULL if there is none. */
const struct space *timeline_space(const struct timeline *timeline, uint32_t id);

/* Return: the last space of process @pid; NULL if the process is not known. */
const struct space *timeline_last_space(const struct timeline *timeline, uint32_t pid);

/* Return: the kernel's space, whose code any thread may run; NULL if nothing is known of it. */
const struct space *timeline_kernel(const struct timeline *timeline);

/* Return: whether the kernel's code at @ip is not known because the recording has no copy of it. */
bool timeline_lacks_kernel(const struct timeline *timeline, uint64_t ip);

/* Return: how many records were skipped because they make no sense. */
size_t timeline_n_skipped(const struct timeline *timeline);

/*
 * Return: texts for the user, which belong to the timeline: which jitdumps are not used, or not
 *         wholly, and why.
 */
const char *const *timeline_complaints(const struct timeline *timeline, size_t *ret_n);

DEFINE_CLEANUP(struct timeline *, timeline_free);
