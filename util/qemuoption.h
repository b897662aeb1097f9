/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * QEMU option
 *
 * Values of QEMU's options, in which a comma is written twice: a single one ends the value.
 */

#include <stddef.h>
#include <string.h>

/* Return: how much room qemuoption_put() needs at most for @text, without a NUL. */
static inline size_t qemuoption_size(const char *text)
{
	return 2 * strlen(text);
}

/* Write @text as a value, ended by a NUL, to @to. Return: where the NUL is. */
static inline char *qemuoption_put(char *to, const char *text)
{
	for (; *text; text++) {
		*to++ = *text;
		if (*text == ',')
			*to++ = ',';
	}
	*to = '\0';
	return to;
}
