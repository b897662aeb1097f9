/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * ptdecode
 *
 * What programs that execute ptdecode, or have it executed, know of its command line: see
 * ptdecode(1).
 */

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Exit statuses. */
enum {
	PTDECODE_OK = 0,
	PTDECODE_FAILED = 1,
	PTDECODE_USAGE = 2,
	PTDECODE_GAPS = 3, /* decoded, but the input was damaged or code was missing */
};

/* Return: whether @format, as -f has it, is the format @name, with options or without. */
static inline bool ptdecode_format_is(const char *format, const char *name)
{
	const size_t n = strlen(name);

	return strncmp(format, name, n) == 0 && (format[n] == '\0' || format[n] == ':');
}
