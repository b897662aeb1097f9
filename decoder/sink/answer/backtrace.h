/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Backtrace
 *
 * Writes the functions that are open on a stack, the innermost first: for each the address at which
 * it is, or goes on when the function below it returns, its name and file, its source line if that
 * is known, and what is not certain. A function that was inlined has no frame. It stands on a line
 * of its own before the function that it was inlined into.
 *
 *	  #0  0x00007f0000001234  futex_wait (/lib/libc.so.6)
 *	      inlined             take_job at /src/worker.h:12
 *	  #1  0x0000555555555010  worker (/bin/demo) at /src/demo.c:80
 *	      unknown above
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/sink/json.h"
#include "decoder/sink/sink.h"
#include "ptd/calls.h"
#include "ptd/decode.h"

struct backtrace {
	const struct ptd_frame *frames; /* the innermost first; borrowed */
	size_t n;

	/* Who knows the source lines; NULL: they are not shown. Borrowed. */
	struct ptd_decoder *decoder;
	uint32_t space; /* address space of the thread */
	uint64_t t;     /* when the functions were open */

	/* What was open above these functions, as a core file says. */
	const struct ptd_core_frame *older; /* borrowed; NULL: nothing is known */
	size_t n_older;
	bool is_older_complete; /* the last one is the outermost */
};

enum {
	BACKTRACE_DIFFERS = 1, /* the core file has another stack: nothing was added */
};

/*
 * Add what the decoder's core file, if there is one, says was open in thread @tid of process @pid
 * above the functions of @backtrace, until another backtrace is asked for. Functions that were open
 * before a gap, and which the core file does not have, are taken out. The functions that are known
 * to be open must be in the core file, or nothing is added.
 *
 * Return: 0; BACKTRACE_DIFFERS; or -ENOMEM.
 */
_must_check_ int backtrace_add_core(struct backtrace *backtrace, uint32_t pid, uint32_t tid);

/*
 * Return: whether the outermost function is one in which programs or threads begin, so that there
 *         is none above it.
 */
bool backtrace_is_complete(const struct backtrace *backtrace);

/*
 * Write the functions as text, each in a line. Of very many only both ends are shown.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int backtrace_put(struct output *output, const struct backtrace *backtrace);

/*
 * Write them as the members "frames", an array, and "complete" of an object.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int backtrace_json(struct json *json, const struct backtrace *backtrace);
