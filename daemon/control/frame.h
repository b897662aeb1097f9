/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Frame
 *
 * Where a message ends in what a D-Bus client sends: at first lines of text by which it
 * authenticates itself, the last of which is "BEGIN", then messages, whose fixed headers tell their
 * size. What is in a message is sd-bus's to judge; whether it is small is judged here.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/base.h"

/* Of a message. The longest that means something to us is a few hundred bytes. */
#define FRAME_SIZE_MAX ((size_t)16 << 10)

/* Of a line of the authentication. */
#define FRAME_LINE_MAX ((size_t)1 << 10)

/*
 * Find the end of the line or message that @bytes begin with.
 *
 * @begun: "BEGIN" was seen, messages follow; set when it is seen.
 *
 * Return: 1 and its size in @ret_size, 0 if it is not complete, -EMSGSIZE if it is or will be too
 * long, or -EBADMSG if this is no D-Bus.
 */
_must_check_ int frame_next(const void *bytes, size_t size, bool *begun, size_t *ret_size);
