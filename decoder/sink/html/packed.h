/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Packed numbers
 *
 * Numbers as a text for a page: each is written in 7 bits a byte, the lowest first, and the high
 * bit of a byte says that another one follows (LEB128). The bytes are written in base64, whose
 * characters mean nothing to HTML.
 */

#include <stddef.h>
#include <stdint.h>

#include "decoder/sink/sink.h"

struct packed {
	struct output *output; /* borrowed; it keeps the first error */
	uint8_t bytes[3];      /* that are not written yet */
	size_t n;
};

/* Return: a text to @output in which nothing stands yet. */
static inline struct packed packed_begin(struct output *output)
{
	return (struct packed){ .output = output };
}

/* Write one byte, or one number. */
void packed_byte(struct packed *packed, uint8_t byte);
void packed_number(struct packed *packed, uint64_t number);

/* End the text. */
void packed_end(struct packed *packed);
