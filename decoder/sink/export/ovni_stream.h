/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * ovni stream
 *
 * The stream of one thread (decoder/util/ovni.h), in a file of its own (threadfile.h). The clock of
 * a stream does not go back: an event that is earlier than the last one has the time of that.
 *
 * In version 3, the functions that are open are the values on the stack of a type of marks. Version
 * 1 has no marks; each call is a task of nOS-V, whose type has the function's name.
 *
 * Functions that are found to have been open before the trace began, or before a gap, are entered
 * at the beginning of the section of the stream that began there; what stands behind them is moved.
 *
 * ovni's emulator refuses more than 512 functions that are open at a time. Further ones are left
 * out.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/sink/export/threadfile.h"
#include "ptd/calls.h"
#include "util/map.h"
#include "util/vec.h"

#define OVNI_VERSION_OLD 1
#define OVNI_VERSION     3
#define OVNI_DEPTH_MAX   512
#define OVNI_LABEL_MAX   500 /* bytes of a name; the emulator refuses more than 511 */
#define OVNI_CPU_NONE    (-1)
#define OVNI_TASK_NONE   0u
#define OVNI_GAP_SCOPE   _PTD_GAP_REASONS /* number of a gap of what was not asked for */
#define OVNI_GAPS        (_PTD_GAP_REASONS + 1)

/* Types of marks. */
enum ovni_mark {
	OVNI_MARK_FUNCTION,
	OVNI_MARK_GAP,
	OVNI_MARK_PTWRITE,
	_OVNI_MARKS,
};

/* What all streams of a trace share. */
struct ovni_streams {
	struct threadfiles out;
	unsigned int version;
	uint32_t n_types, n_tasks; /* of version 1, so far; numbers begin at 1 */
	uint64_t n_too_deep;       /* functions that were left out */
};

/* A function that is put at the beginning of the section. */
struct ovni_outer {
	const struct ptd_function *function;
	uint32_t task;
};

struct ovni_stream {
	struct ovni_streams *streams; /* borrowed; NULL until it is begun */
	struct threadfile out;
	uint64_t t;                   /* of the last event */
	struct map types;             /* version 1: id of a function → number of its type */
	uint32_t gap;                 /* the gap that is open, and 1; 0: none */
	uint32_t gap_task;            /* version 1: its task */
	uint32_t depth;               /* functions that are open */
	uint32_t depth_max;           /* that were since the section began */
	bool has_section;             /* functions can be put at its beginning: */
	uint64_t section;             /* which is this offset */
	uint64_t section_t;           /* at this time */
	VEC(struct ovni_outer) outer; /* the innermost first */
};

/*
 * Begin the stream in the file @name, which belongs to it then. @streams is borrowed until
 * ovni_stream_deinit().
 *
 * Return: 0 or negative errno, as do the functions below.
 */
_must_check_ int ovni_stream_begin(struct ovni_stream *stream, struct ovni_streams *streams,
				   char *name);

/* The thread begins on the CPU of the index @cpu, or comes back to a CPU: the same or another. */
_must_check_ int ovni_stream_execute(struct ovni_stream *stream, uint64_t t, int32_t cpu);
_must_check_ int ovni_stream_resume(struct ovni_stream *stream, uint64_t t);
_must_check_ int ovni_stream_resume_at(struct ovni_stream *stream, uint64_t t, int32_t cpu);

/* It leaves the CPU, or ends. */
_must_check_ int ovni_stream_pause(struct ovni_stream *stream, uint64_t t);
_must_check_ int ovni_stream_end(struct ovni_stream *stream, uint64_t t);

/*
 * Enter a function, and leave it. @ret_task is set to what the latter needs; OVNI_TASK_NONE: the
 * function is left out.
 */
_must_check_ int ovni_stream_enter(struct ovni_stream *stream, uint64_t t,
				   const struct ptd_function *function, uint32_t *ret_task);
_must_check_ int ovni_stream_leave(struct ovni_stream *stream, uint64_t t,
				   const struct ptd_function *function, uint32_t task);

/* A section begins. */
_must_check_ int ovni_stream_section(struct ovni_stream *stream, uint64_t t);

/* The function was open before the section began, below all that is known to have been. */
_must_check_ int ovni_stream_outer(struct ovni_stream *stream, const struct ptd_function *function,
				   uint32_t *ret_task);

/* A gap begins, for a reason or OVNI_GAP_SCOPE; or the gap ends, if there is one. */
_must_check_ int ovni_stream_gap(struct ovni_stream *stream, uint64_t t, uint32_t reason);
_must_check_ int ovni_stream_end_gap(struct ovni_stream *stream, uint64_t t);

/* The operand of a ptwrite, which version 1 cannot show, and which is not 0. */
_must_check_ int ovni_stream_value(struct ovni_stream *stream, uint64_t t, uint64_t value);

/* Write @size bytes of what a gap is called at @ret_text. */
void ovni_gap_name(uint32_t reason, char *ret_text, size_t size);

/* The stream is complete. */
_must_check_ int ovni_stream_finish(struct ovni_stream *stream);

/* @stream may be zero: it was never begun. */
void ovni_stream_deinit(struct ovni_stream *stream);
