/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Suffix
 *
 * How a name ends.
 */

#include <stdbool.h>
#include <string.h>

/* Return: whether @text ends with @suffix. */
static inline bool suffix_is(const char *text, const char *suffix)
{
	const size_t n = strlen(text), n_suffix = strlen(suffix);

	return n >= n_suffix && strcmp(text + n - n_suffix, suffix) == 0;
}
