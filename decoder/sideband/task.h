/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Tasks
 *
 * The threads and processes of a recording over time, as FORK, COMM, EXIT and MMAP records state
 * them: which process a thread belongs to, its name, and the address space of its process. Records
 * must be applied in the order of time.
 *
 * A thread that a record names exists, even if no record states how it began: then it has existed
 * since the beginning, in a process whose address space was empty.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/image/objects.h"
#include "decoder/image/space.h"
#include "decoder/jit/anonmem.h"
#include "decoder/jit/codelog.h"
#include "decoder/jit/jit.h"
#include "decoder/jit/replay.h"
#include "decoder/kernel/kernel.h"
#include "decoder/sideband/track.h"
#include "decoder/symbol/perfmap.h"
#include "decoder/trace/trace.h"
#include "util/buildid.h"
#include "util/map.h"
#include "util/vec.h"

/*
 * When programs end because another one begins in their process, by an exec or under the same
 * number. The records are looked through when the first ending is asked for.
 */

struct ending {
	uint32_t pid;
	uint64_t time; /* ns */
};

struct endings {
	const struct trace *trace; /* borrowed */
	bool is_read;
	VEC(struct ending) list; /* by pid, then time */
};

/*
 * An entry of the table of build-ids that perf writes at the end of a recording. The table is used
 * for mappings whose records state no build-id.
 */
struct task_build_id {
	const char *path; /* borrowed from the trace */
	struct buildid id;
};

enum {
	_TASKS_SUCCESS,

	TASKS_SKIPPED, /* the record, or the id, makes no sense */
};

/* The state of a thread at the time of the record that was applied last. */
struct thread {
	uint32_t tid;
	uint32_t pid;
	const char *comm;    /* borrowed from the records; "": not known */
	struct space *space; /* of its process; borrowed from the tasks */
	uint64_t since;      /* ns; it came to where it is now at this time */
	bool ended;          /* an EXIT record was applied */
};

/* When a process got a space: at its fork, or at an exec. */
struct birth {
	uint32_t pid;
	uint64_t time; /* ns */
};

struct tasks {
	struct objects *objects; /* borrowed */
	VEC(struct thread) threads;
	struct map by_tid; /* tid → index into threads, which is its owner number in lives */
	struct map space_of_pid; /* pid → index into spaces */
	VEC(struct space *) spaces;
	VEC(struct birth) births; /* as many, of the spaces */
	struct tracks lives; /* by thread: an item for each change of its process, space or comm */
	VEC(struct task_build_id) build_ids; /* by path */
	struct perfmaps perfmaps;            /* whose names the next two have */
	struct anonmem memory;
	struct codelogs codelogs;
	struct replay replay;
	struct kernel kernel;
	struct jits jits;       /* whose events are applied before each record */
	struct endings endings; /* of programs, should one map a jitdump */
	uint64_t n_copies_left; /* mappings that forks may still copy */
	bool has_outside;       /* a process outside the PID namespace of the recording was met */
};

/*
 * Begin before the first record of @trace. @trace and @objects are borrowed.
 *
 * Return: 0 or -ENOMEM; in both cases the caller deinitializes @tasks.
 */
_must_check_ int tasks_init(struct tasks *tasks, const struct trace *trace,
			    struct objects *objects);
void tasks_deinit(struct tasks *tasks);

/* Finish after the last record: replay the code logs into the spaces. Return: 0 or -ENOMEM. */
_must_check_ int tasks_finish(struct tasks *tasks);

/*
 * Find the thread @tid of process @pid. If it is not known yet, it begins at @time (ns).
 *
 * Return: 0, and @ret_thread, which is valid until the next call; TASKS_SKIPPED if an id is 0
 *         (idle) or unknown; -ENOMEM.
 */
_must_check_ int tasks_thread(struct tasks *tasks, uint32_t pid, uint32_t tid, uint64_t time,
			      struct thread **ret_thread);

/* Return: the thread @tid, as above; NULL if it is not known, or not a thread of process @pid. */
struct thread *tasks_find(const struct tasks *tasks, uint32_t pid, uint32_t tid);

/* Return: the process of thread @tid; PTD_ID_UNKNOWN if the thread is not known. */
uint32_t tasks_pid_of(const struct tasks *tasks, uint32_t tid);

/* Return: the current space of process @pid; NULL if the process is not known. */
const struct space *tasks_space(const struct tasks *tasks, uint32_t pid);

/*
 * Apply a record: FORK; EXIT; COMM, with or without the exec bit; MMAP or MMAP2.
 *
 * Return: 0, TASKS_SKIPPED or -ENOMEM.
 */
_must_check_ int tasks_fork(struct tasks *tasks, const struct trace_record *record);
_must_check_ int tasks_exit(struct tasks *tasks, const struct trace_record *record);
_must_check_ int tasks_comm(struct tasks *tasks, const struct trace_record *record);
_must_check_ int tasks_map(struct tasks *tasks, const struct trace_record *record);
