/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Reading of logged calls
 *
 * What the decoder makes of a log of calls, as text:
 *
 *	2 9/7: >f@101 <f@111	on CPU 2, process 9, thread 7 enters f at 101 and leaves it at 111
 *	~f ^f *f		leaves it by a jump; and so the first of a chain of jumps; enters it
 *				and leaves it at once
 *	[bad packet, 16]	a gap, in which so many bytes were lost
 *	; byte 120: …		a complaint, behind all of it, without the path
 *	!: …			the error of an input that cannot be opened
 */

#include "ptd/decode.h"

/* Read the part @part of the input @path. Return: the text, which the caller frees. */
char *loggedread(const char *path, const struct ptd_part *part);

/* Return: @message without the path. */
const char *loggedread_without_path(const char *message, const char *path);
