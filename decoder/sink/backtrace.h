/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Backtrace
 *
 * Writes the functions that are open on a stack, the innermost first: for each the address at which
 * it is, or goes on when the function below it returns, its name and file, and what is not certain.
 *
 *	  #0  0x00007f0000001234  futex_wait (/lib/libc.so.6)
 *	  #1  0x0000555555555010  worker (/bin/demo)
 *	      unknown above
 */

#include <stdbool.h>
#include <stddef.h>

#include "decoder/sink/json.h"
#include "ptd/calls.h"
#include "ptd/sink.h"

/*
 * Return: whether the outermost function is one in which programs or threads begin, so that there
 *         is none above it.
 */
bool backtrace_is_complete(const struct ptd_frame *frames, size_t n);

/* Write the functions as text, each in a line. Of very many only both ends are shown. */
void backtrace_put(struct ptd_output *output, const struct ptd_frame *frames, size_t n);

/* Write them as the members "frames", an array, and "complete" of an object. */
void backtrace_json(struct json *json, const struct ptd_frame *frames, size_t n);
