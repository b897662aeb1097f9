/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Frame
 *
 * Finds the ends of lines and messages in what a D-Bus client sends. The client first sends lines
 * of text to authenticate itself, the last of which is "BEGIN", and then messages, whose fixed
 * headers state their size. This module checks the sizes; sd-bus checks what is in a message.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/base.h"

/* Bytes of a message. The longest message that the interface understands has a few hundred. */
#define FRAME_SIZE_MAX ((size_t)16 << 10)

/* Bytes of a line of the authentication. */
#define FRAME_LINE_MAX ((size_t)1 << 10)

/*
 * Find the end of the line or message with which @bytes begin.
 *
 * @begun: whether "BEGIN" was seen and messages follow; set when it is seen
 *
 * Return: 1 and the size in @ret_size; 0 if the line or message is not complete; -EMSGSIZE if it is
 *         too long, or will be; or -EBADMSG if it is no D-Bus.
 */
_must_check_ int frame_next(const void *bytes, size_t size, bool *begun, size_t *ret_size);
