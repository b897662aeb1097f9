/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Diff, the state
 *
 * What a comparison has found out: diff.c makes it, and diff_report.c writes it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/sink/answer/diff.h"
#include "decoder/sink/answer/path.h"
#include "decoder/sink/tally.h"
#include "decoder/x86/text.h"
#include "ptd/calls.h"
#include "util/map.h"
#include "util/vec.h"

/*
 * The part of a stream that is one execution of a function: the runs of one thread from the first
 * instruction of the function to its end. An execution is a call while no other call of the
 * function is open on the stack; it has a number, in the order in which they began, from 1.
 */
struct region {
	const char *function; /* borrowed */
	uint64_t number;
	struct ptd_calls *calls;
	uint64_t n_begun; /* executions so far */
	bool is_inside, is_over;
	uint32_t stack;    /* on which the execution is */
	uint32_t pid, tid; /* of the thread that executes it */
	VEC(struct region_call {
		bool is_open;
		int32_t depth;
	})
	open; /* by stack: the outermost call of the function */
};

/* The runs of a batch that are in the region: from @from up to but not including @to. */
struct region_part {
	size_t from, to;
	bool begins; /* the region does, so marks before the first run are not in it */
};

#define DIFF_THREADS_MAX 4096u /* of one stream; others are not compared */
#define DIFF_FRAMES_MAX  32u   /* functions of a backtrace */
#define DIFF_PLACE_SIZE  512

/* What a thread did at the end of what both have in common. */
struct diff_sight {
	bool is_seen;
	uint64_t t, ip;             /* of the last common instruction */
	char insn[TEXT_MAX];        /* it, disassembled; "" if there is none */
	char at[DIFF_PLACE_SIZE];   /* where it is */
	char next[DIFF_PLACE_SIZE]; /* where the thread went on; "" if it did not */
	char
	    *frames[DIFF_FRAMES_MAX]; /* the functions that were open, the innermost first; owned */
	size_t n_frames, n_open;      /* of @n_open, the first @n_frames are here */
};

/* A thread, as it executes one program. */
struct diff_track {
	uint32_t pid, tid, space;
	char comm[16]; /* its last name */
	struct path path;
	uint64_t n_steps, n_insns;
	uint64_t hash;
	VEC(uint64_t) notes; /* the hash behind each WINDOW steps, and at the end */

	struct diff_track *other;           /* of the other stream, borrowed; NULL: there is none */
	struct diff_difference *difference; /* borrowed; NULL: none is to be found */
};

/* The first difference of two threads. */
struct diff_difference {
	struct diff_track *tracks[_DIFF_SIDES]; /* borrowed */
	uint64_t window;                        /* the part of the path in which it is */
	struct {
		VEC(struct path_step) list;
	} steps[_DIFF_SIDES]; /* of that part and the next ones, in pass 1 */
	bool is_found;
	uint64_t n_insns;                   /* executed by both in the same way */
	struct rejoin rejoin;               /* what is behind that */
	struct path_step step[_DIFF_SIDES]; /* the ones that differ */
	struct diff_sight sights[_DIFF_SIDES];
};

/* A function in both streams. */
struct diff_function {
	char *name;   /* NULL: code without a symbol */
	char *object; /* without its directory */
	uint64_t n_insns[_DIFF_SIDES];
	uint64_t n_entered[_DIFF_SIDES];
};

/* How often branches led to the first instruction of a symbol. */
struct diff_entry {
	uint64_t n;
	const struct ptd_object *object;
};

struct diff_stream {
	enum ptd_clock clock;
	VEC(struct diff_track *) tracks; /* in the order of their first instructions; owned */
	struct map index;                /* hash of the ids → index in tracks */
	uint64_t n_insns;
	uint64_t n_executions; /* of the function, up to the one that is compared */
	uint64_t n_left_out;   /* batches of threads that are too many */
};

struct diff {
	struct diff_subject subject;
	struct diff_stream streams[_DIFF_SIDES];
	VEC(struct diff_function) functions;
	struct map function_index; /* hash of the names → index in functions */
	VEC(struct diff_difference *) differences;
	size_t n_unshown; /* pairs of threads that differ, beyond SHOWN_MAX */

	/* Of the present pass over one stream. */
	unsigned int pass;
	enum diff_side side;
	struct path_places places;
	struct tally tally;
	struct tally_index tally_index;
	VEC(struct tally_sum) sums;
	VEC(struct diff_entry) entries; /* by symbol id */
	size_t n_wanted;                /* differences that the pass has not seen whole */
	struct region region;

	/* In pass 2: follows which functions are open. @n_fed_runs of the present batch, the first
	 * instructions of the next run, and marks were taken. */
	struct ptd_calls *calls;
	size_t n_fed_runs, n_fed_insns, n_fed_marks;
	VEC(struct ptd_run) fed_runs;
	VEC(struct ptd_mark) fed_marks;
};
