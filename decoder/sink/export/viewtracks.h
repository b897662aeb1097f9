/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * View tracks
 *
 * What a viewer of traces shows: tracks, on which spans of time nest. Each thread has a track. So
 * has each further stack of a process, such as a goroutine's, since spans on a track must nest, and
 * the calls of two stacks do not. A span is a function that is open, or a gap. What a thread noted
 * itself (PTD_MARK_BEGIN) is on a track of its own, since it does not nest with the calls. If a
 * region ends before others that began in it, those end and begin again there.
 *
 * Viewers sort what they read by time, and what has the same time by its order in the file. A
 * function that is found to have been open at the start of the trace, or of what follows a gap, is
 * found last and must contain what came since. So it begins 1 ns before that, the next outer one
 * 2 ns, and so on. That there is room for it behind a gap, what follows the gap begins as many
 * ns later as functions were open before it. An outer function for which there is no room all the
 * same is left out and counted.
 *
 * A trace without time is shown in instructions: each takes 1 ns, and each thread begins at
 * VIEWTRACK_START.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/sink/openstacks.h"
#include "ptd/calls.h"
#include "ptd/record.h"
#include "ptd/sideband.h"
#include "util/map.h"
#include "util/vec.h"

#define VIEWTRACK_START (UINT64_C(1) << 20)

/* Further stacks, and threads that are not known, have numbers that no thread has. */
#define VIEWTRACK_TID_UNKNOWN (UINT32_C(1) << 23)

/* The process whose one thread has what the recorder did; no process has its number. */
#define VIEWTRACK_PID_OF_RECORDER (VIEWTRACK_TID_UNKNOWN - 2)

/* Signals that are kept until their threads are seen; further ones are left out. */
#define VIEWTRACK_SIGNALS_MAX (1u << 16)

/* Regions that a thread noted and that are open; what begins beyond them is shown as a point. */
#define VIEWTRACK_NOTED_MAX 256u

#define VIEWTRACK_NONE UINT32_MAX
#define VIEWTRACK_NAME 64 /* bytes of viewtrack_name() */

struct viewtrack {
	uint32_t id; /* dense, from 0 */
	uint32_t pid, tid;
	uint32_t stack;    /* number of a further stack; VIEWTRACK_NONE: the track is a thread's */
	uint32_t noted_by; /* tid of the thread that noted what is on the track; VIEWTRACK_NONE: the
			    * track has calls */
	const char *comm;  /* borrowed; NULL: not known */

	const struct ptd_call_thread *owner; /* whose track it is; borrowed; NULL: not known */
	bool has_gap;                        /* a gap is open */
	uint64_t last;                       /* end of what was shown last */
	uint64_t first;                      /* when what followed the last gap began; */
	uint64_t floor;                      /* outer functions begin at this time at least */
	uint32_t n_outer;                    /* that were found since */
	uint32_t part;         /* how many began so far, each behind a gap or a start */
	uint32_t n_before_gap; /* functions that may be found behind a gap */
};

/* What is shown. */
enum viewtrack_category {
	VIEWTRACK_USER, /* functions: */
	VIEWTRACK_KERNEL,
	VIEWTRACK_JIT,
	VIEWTRACK_GAP,
	VIEWTRACK_MARK,
	VIEWTRACK_SIGNAL,
	VIEWTRACK_NOTED,
	_VIEWTRACK_CATEGORIES,
};
extern const char *const viewtrack_categories[_VIEWTRACK_CATEGORIES]; /* their names */

enum viewtrack_category viewtrack_category_of(const struct ptd_function *function);

/* Return: what the track's thread is called; viewers take nothing for no name at all. */
static inline const char *viewtrack_comm(const struct viewtrack *track)
{
	return track->comm && track->comm[0] ? track->comm : "?";
}

/* Write the name of the track, which says what is on it. Return: @ret_name. */
const char *viewtrack_name(const struct viewtrack *track, char ret_name[static VIEWTRACK_NAME]);

/* A signal that a thread took; @is_fatal: it killed the process. */
struct viewtrack_signal {
	uint64_t t;
	uint64_t handler; /* its address; 0: the default action; 1: it is ignored */
	uint32_t pid, tid;
	uint32_t signal;
	int32_t code;
	bool is_fatal;
};

/* What a format writes; NULL: it has no such thing. The functions return 0 or negative errno. */
struct viewtracks_ops {
	/* The track is new, or its thread has another name. */
	int (*name)(void *state, const struct viewtrack *track);

	/* Spans: each that begins on a track ends before those that are open there already. @leave
	 * is the end of a function; NULL: the end of a gap, or of what another track goes on with.
	 */
	int (*begin)(void *state, const struct viewtrack *track, uint64_t t,
		     const struct open_frame *frame);
	int (*begin_gap)(void *state, const struct viewtrack *track, uint64_t t,
			 const struct ptd_mark *mark);
	int (*end)(void *state, const struct viewtrack *track, uint64_t t,
		   const struct ptd_call *leave);

	/* What a thread noted itself: a region begins, which end() ends; or a point. */
	int (*noted)(void *state, const struct viewtrack *track, uint64_t t,
		     const struct ptd_symbol *symbol, bool begins);

	/* Points in time, in any order. The snapshot has a track of its own. */
	int (*mark)(void *state, const struct viewtrack *track, uint64_t t,
		    const struct ptd_mark *mark);
	int (*signal)(void *state, const struct viewtrack *track,
		      const struct viewtrack_signal *signal);

	int (*snapshot)(void *state, const struct viewtrack *track, uint64_t t);

	/* A thread comes to the CPU (@is_in), or leaves it. */
	int (*run)(void *state, uint32_t cpu, uint64_t t, const struct viewtrack *track,
		   bool is_in);
};

struct viewtracks {
	const struct viewtracks_ops *ops; /* borrowed, as is @state */
	void *state;
	enum ptd_clock clock;
	uint64_t snapshot_taken; /* 0: no snapshot is shown */

	VEC(struct viewtrack) all; /* by their ids */
	struct map threads;        /* tracks of threads by pid and tid */
	struct open_stacks stacks;
	VEC(struct viewtrack_stack) shown; /* likewise by the number of the stack */
	VEC(bool) is_seen;                 /* by id of the thread: it has a track */
	VEC(struct viewtrack_signal) signals;
	uint32_t n_further; /* tracks of further stacks, and of what threads noted, so far */

	const struct ptd_symbol *const *symbols; /* of the last batch, by their ids; borrowed */
	VEC(struct viewtrack_noted) noted;
	struct map noted_by_thread; /* by pid and tid → index */

	/* The thread of the last call, and the track of its stack. */
	const struct ptd_call_thread *thread;
	uint32_t track;

	bool is_running; /* the thread of @slice runs since @t_begin, at least until @t_end */
	struct ptd_slice slice;
	uint64_t t_end;
	struct map cpus; /* when a thread left a CPU last */

	/* For the messages to the user. */
	uint64_t n_outer_left_out;
	uint64_t n_signals_left_out;

	char omission[160];
};

/* Which track shows a stack. */
struct viewtrack_stack {
	uint32_t track; /* VIEWTRACK_NONE: none yet */
	uint32_t own;   /* that was made for it as a further stack, likewise */
};

/* What a thread noted itself. */
struct viewtrack_noted {
	uint32_t track, of_thread;           /* with what it noted; with its calls */
	VEC(const struct ptd_symbol *) open; /* regions, the innermost is the last */
};

/* @info is borrowed until viewtracks_deinit(); @ops get @tracks as their state. */
void viewtracks_init(struct viewtracks *tracks, const struct viewtracks_ops *ops,
		     const struct ptd_info *info);
void viewtracks_deinit(struct viewtracks *tracks);

/* All functions are left: show what is left over. Return: 0 or negative errno. */
_must_check_ int viewtracks_finish(struct viewtracks *tracks);

/*
 * Operations of sinks of which the tracks are the state, or its first member; calls() shows several
 * calls, viewtracks_call() one.
 */
int viewtracks_sideband(void *state, const struct ptd_sideband *record);
int viewtracks_batch(void *state, const struct ptd_batch *batch, uint64_t t_end);
int viewtracks_calls(void *state, const struct ptd_call_batch *calls);
int viewtracks_mark(void *state, const struct ptd_slice *slice, const struct ptd_mark *mark);
const char *viewtracks_omission(void *state);

_must_check_ int viewtracks_call(struct viewtracks *tracks, const struct ptd_call_thread *thread,
				 const struct ptd_call *call);
