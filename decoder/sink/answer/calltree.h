/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Call tree
 *
 * The text or JSON of a call stream. In the text, each function is a line, indented below the one
 * that called it:
 *
 *	# thread 10/11 demo
 *	      1.000000005                             0  main [demo] {
 *	      1.000000105   0.100 us           12     1    f();
 *	      1.000002005   2.000 us          120     0  } // main
 *
 * The columns are the time, the duration, the instructions executed meanwhile, and the depth. A
 * function that called nothing has one line, with the time at which it was entered. Any other has
 * its duration in its last line, with the time at which it was left. A comment says what was no
 * plain call or return, and where the function stands in the source code if lines are to be shown.
 * The file of a function is named where it is not that of its caller.
 *
 * A function is printed once it is known whether anything below it is: at its end, or when
 * something below it ends or another thread goes on. Those that wait are those on the stacks, so
 * the memory does not depend on the number of calls. What is left out, because it took too little
 * time or is too deep, is counted with the nearest function above it that is printed.
 *
 * In the JSON, each function is an object, written when it is left; so what it called comes first.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/sink/column.h"
#include "decoder/sink/json.h"
#include "decoder/sink/openstacks.h"
#include "decoder/sink/sink.h"
#include "ptd/calls.h"
#include "util/arena.h"
#include "util/vec.h"

/* How a function is named. */
struct calltree_label {
	char *text; /* "NAME [FILE]"; the first @name_size bytes are the name; NULL: none */
	size_t name_size, size;

	/* Where the function begins in the source code; NULL: that is not known. Its file belongs
	 * to the decoder. */
	char *place; /* "FILE:LINE" */
	const char *file;
	uint32_t line;
};

struct calltree {
	/* The caller sets these. */
	struct output *output;       /* borrowed */
	const struct ptd_info *info; /* borrowed */
	struct ptd_decoder *decoder; /* borrowed; NULL: no source lines are shown */
	bool is_json;
	uint64_t min_duration;                   /* what took less is left out */
	int64_t max_depth;                       /* what is deeper is left out */
	const struct ptd_symbol *const *symbols; /* of the batch, by their ids; borrowed */

	struct json json;
	struct open_stacks stacks;
	bool is_begun;     /* there was a call */
	uint32_t stack;    /* of the last call */
	uint64_t t;        /* of the last call */
	bool is_named;     /* a thread was named in the text */
	uint32_t pid, tid; /* the last of them */
	struct column_times times;
	uint64_t n_left_out;               /* calls without a function above them that is printed */
	VEC(struct calltree_label) labels; /* by id of the function */
	struct arena texts;
};

void calltree_deinit(struct calltree *tree);

/* Write the head. */
void calltree_begin(struct calltree *tree);

/* Write the next calls, which are of @thread. Return: 0 or -ENOMEM. */
_must_check_ int calltree_calls(struct calltree *tree, const struct ptd_call_thread *thread,
				const struct ptd_call *calls, size_t n_calls);

/* Write the mark, which comes next in the thread of @slice, if it is a gap or what the program
 * noted itself. */
void calltree_mark(struct calltree *tree, const struct ptd_slice *slice,
		   const struct ptd_mark *mark);

/* Write the end. */
void calltree_end(struct calltree *tree);
