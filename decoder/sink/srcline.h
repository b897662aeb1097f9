/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Source line
 *
 * The text that outputs show for a place in the source code:
 *
 *	/src/list.c:120
 *
 * With the functions that were inlined there, it has the words of addr2line:
 *
 *	push at /src/list.h:12 (inlined by) main at /src/demo.c:40
 */

#include <stddef.h>

#include "base/base.h"
#include "decoder/sink/sink.h"
#include "ptd/calls.h"
#include "ptd/record.h"

#define SRCLINE_MAX 2048 /* bytes; longer texts are cut */

/*
 * Write the text of @n positions, as ptd_decoder_positions() gives them; of the first one alone
 * unless @shown is SINK_INLINES. What is foreign in it can be printed.
 *
 * Return: the number of bytes in @ret_text, to which no NUL is added; 0 if nothing is shown.
 */
size_t srcline_format(const struct ptd_position *positions, size_t n, enum sink_positions shown,
		      char ret_text[static SRCLINE_MAX]);

/*
 * Find where a function begins in the source code. Only the file and the line are
 * @ret_position; these belong to the decoder. @decoder may be NULL: nothing is known.
 *
 * Return: 1; 0: it is not known; or -ENOMEM.
 */
_must_check_ int srcline_of_function(struct ptd_decoder *decoder,
				     const struct ptd_function *function,
				     struct ptd_position *ret_position);
