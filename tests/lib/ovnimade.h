/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Streams of ovni made by hand
 *
 * Streams for tests, written as text. Words are separated by blanks:
 *
 *	B	the largest bytes come first from now on
 *	h h2	the header of a stream, of version 1 or 2
 *	OHp@9	event OHp at 9, without a payload
 *	OHx@9(0,-1,0q)	likewise with a payload of numbers, of 4 bytes or, with q, 8
 *	VYc@9{1:text}	jumbo event, with the data 1 and the text, which ends with a NUL
 *	r0aff	bytes in hexadecimal
 *	-3	the last 3 bytes are missing
 */

#include <stddef.h>
#include <stdint.h>

#define OVNIMADE_MAX 65536

/* Make a stream. Return: its size. A word that is not understood ends the program. */
size_t ovnimade_put(const char *text, uint8_t ret_bytes[static OVNIMADE_MAX]);
