/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Tasks
 *
 * The lives of threads and processes, told by FORK, COMM, EXIT and MMAP records in the order of
 * their time: which process a thread belongs to, what it is called, and which address space it has.
 *
 * A thread that a record names is there, even if nothing said how it began: then it has been there
 * since ever, in a process with an empty address space.
 */

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
#include "decoder/sideband/idtable.h"
#include "decoder/sideband/track.h"
#include "decoder/symbol/perfmap.h"
#include "decoder/trace/trace.h"
#include "util/map.h"
#include "util/vec.h"

enum {
	_TASKS_SUCCESS,

	TASKS_SKIPPED, /* the record makes no sense */
};

/* What is known of a tid now. */
struct thread {
	uint32_t tid;
	uint32_t pid;
	const char *comm;    /* borrowed from the records; "" if not known */
	struct space *space; /* of its process; borrowed from the tasks */
	uint64_t since;      /* it was not where it is now before this time */
	bool ended;          /* by an EXIT */
};

/* A space of a process, which it has from @time on. */
struct birth {
	uint32_t pid;
	uint64_t time;
};

struct tasks {
	struct objects *objects; /* borrowed */
	VEC(struct thread) threads;
	struct map by_tid; /* tid → index into threads, which is its owner number in lives */
	struct map space_of_pid; /* pid → index into spaces */
	VEC(struct space *) spaces;
	VEC(struct birth) births; /* of these */
	struct tracks lives;      /* by thread: a new item where process, space or comm changes */
	struct idtable build_ids;
	struct perfmaps perfmaps; /* whose names the next two have */
	struct anonmem memory;
	struct codelogs codelogs;
	struct replay replay;
	struct kernel kernel;
	struct jits jits;       /* to be applied before each record */
	uint64_t n_copies_left; /* of mappings */
};

/* The tasks of @trace, before its first record. Return: 0 or -ENOMEM. */
_must_check_ int tasks_init(struct tasks *tasks, const struct trace *trace,
			    struct objects *objects);
void tasks_deinit(struct tasks *tasks);

/* There are no more records: put what the code logs say that ran into the spaces. Return: 0 or
 * -ENOMEM. */
_must_check_ int tasks_finish(struct tasks *tasks);

/*
 * The thread @tid of process @pid, which @time is the first to hear of if there is none yet.
 *
 * Return: 0 and @ret_thread, valid until another is asked for; TASKS_SKIPPED if the ids are idle's
 *         or unknown; -ENOMEM.
 */
_must_check_ int tasks_thread(struct tasks *tasks, uint32_t pid, uint32_t tid, uint64_t time,
			      struct thread **ret_thread);

/* Return: what is known of @tid, as above; NULL if it is not a thread of @pid. */
struct thread *tasks_find(const struct tasks *tasks, uint32_t pid, uint32_t tid);

/* Return: the process of thread @tid; PTD_ID_UNKNOWN if it is not known. */
uint32_t tasks_pid_of(const struct tasks *tasks, uint32_t tid);

/* Return: what process @pid has mapped; NULL if it is not known. */
const struct space *tasks_space(const struct tasks *tasks, uint32_t pid);

/*
 * Apply a record of the type that the name says; of COMM, both kinds.
 *
 * Return: 0, TASKS_SKIPPED or -ENOMEM.
 */
_must_check_ int tasks_fork(struct tasks *tasks, const struct trace_record *record);
_must_check_ int tasks_exit(struct tasks *tasks, const struct trace_record *record);
_must_check_ int tasks_comm(struct tasks *tasks, const struct trace_record *record);
_must_check_ int tasks_map(struct tasks *tasks, const struct trace_record *record);
