/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Printable
 *
 * Decides which characters of a foreign text may be printed. The user who runs a program chooses
 * names of files, processes and functions, and another user sees them; they must not forge lines or
 * control the terminal. Not printed are the control characters of ASCII, the bytes 0x80 to 0x9f
 * (C1), U+0080 to U+009F in UTF-8, and bytes that are not UTF-8, which a terminal may interpret in
 * any way.
 *
 * Source: RFC 3629; ECMA-48, 5.3.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Return: the size in bytes of the character at the start of @text, which has @size bytes; 0 if the
 *         character may not be printed. */
static inline size_t printable_size(const char *text, size_t size)
{
	static const struct {
		uint8_t first, last;               /* of the first byte */
		uint8_t second_first, second_last; /* and of the second */
		uint8_t size;
	} rows[] = {
		{ 0xc2, 0xc2, 0xa0, 0xbf, 2 }, { 0xc3, 0xdf, 0x80, 0xbf, 2 },
		{ 0xe0, 0xe0, 0xa0, 0xbf, 3 }, { 0xe1, 0xec, 0x80, 0xbf, 3 },
		{ 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 },
		{ 0xf0, 0xf0, 0x90, 0xbf, 4 }, { 0xf1, 0xf3, 0x80, 0xbf, 4 },
		{ 0xf4, 0xf4, 0x80, 0x8f, 4 },
	};
	const uint8_t *b = (const uint8_t *)text;

	if (size == 0 || b[0] < ' ' || b[0] == 0x7f)
		return 0;
	if (b[0] < 0x80)
		return 1;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (b[0] < rows[i].first || b[0] > rows[i].last)
			continue;
		if (size < rows[i].size || b[1] < rows[i].second_first ||
		    b[1] > rows[i].second_last)
			return 0;
		for (size_t k = 2; k < rows[i].size; k++)
			if (b[k] < 0x80 || b[k] > 0xbf)
				return 0;
		return rows[i].size;
	}
	return 0;
}

/* Replace each of the @size bytes at @text that may not be printed by '?'. */
static inline void printable_clean(char *text, size_t size)
{
	for (size_t i = 0; i < size;) {
		const size_t n = printable_size(text + i, size - i);

		if (n == 0)
			text[i] = '?';
		i += n ? n : 1;
	}
}
