/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Frame
 *
 * What all perf records have in common: a header that states the type and the size, then the body,
 * then the trailer if the kernel makes such records. A frame writes one record into
 * the caller's memory: it allocates nothing and takes no lock, so that it may be used in a signal
 * handler.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

struct trailer;

struct frame {
	uint8_t *bytes; /* borrowed, like the room */
	size_t room;
	size_t size; /* that is wanted so far: more than the room if the record does not fit */
};

/* Begin a record in the @room bytes at @to. */
void frame_begin(struct frame *frame, uint32_t type, uint16_t misc, void *to, size_t room);

/* Add @size bytes to the body. */
void frame_put(struct frame *frame, const void *bytes, size_t size);

/* Add a string with its NUL, and with zeros, until all that is a multiple of @alignment bytes. */
void frame_put_string(struct frame *frame, const char *string, size_t alignment);

/*
 * Complete the record. Of the kernel's own the body is padded to 8 bytes, and the trailer follows;
 * of those that perf adds @trailer is NULL, and the body stays as it is.
 *
 * Return: the size of the record; 0 if there is no room for it, or no record is that large.
 */
_must_check_ size_t frame_end(struct frame *frame, const struct trailer *trailer);
