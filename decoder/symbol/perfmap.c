/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/symbol/perfmap.h"

#include <stdbool.h>
#include <string.h>

/* As of a jitdump. */
#define NAME_SIZE_MAX 4095u

/* A number in hex, and the blank behind it. */
static bool get_hex(const char **text, const char *end, uint64_t *ret_number)
{
	const char *at = *text;
	uint64_t number = 0;

	for (; at < end && *at != ' '; at++) {
		const char *digits = "0123456789abcdef0123456789ABCDEF";
		const char *digit = *at ? strchr(digits, *at) : NULL;

		if (!digit || number >> 60)
			return false;
		number = number << 4 | ((size_t)(digit - digits) & 15);
	}
	if (at == *text || at == end)
		return false;
	*text = at + 1;
	*ret_number = number;
	return true;
}

static int read_line(struct perfmap *perfmap, const char *line, const char *end, uint32_t number)
{
	struct perfmap_name name = { .line = number };
	size_t size;

	if (end - line > 2 && line[0] == '0' && line[1] == 'x')
		line += 2;
	if (!get_hex(&line, end, &name.address) || !get_hex(&line, end, &name.size))
		return 0;
	size = (size_t)(end - line);
	if (size == 0)
		return 0;
	name.name = line;
	name.name_size = (uint16_t)(size < NAME_SIZE_MAX ? size : NAME_SIZE_MAX);
	return vec_push(&perfmap->names, name);
}

static int compare(const void *pa, const void *pb)
{
	const struct perfmap_name *a = pa, *b = pb;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return a->line < b->line ? -1 : a->line > b->line;
}

int perfmap_parse(const struct mapfile *file, size_t *n_lines, struct perfmap *ret_perfmap)
{
	const char *at = (const char *)file->bytes;
	const char *end = file->size > 0 ? at + file->size : at;
	struct perfmap perfmap = {};

	for (uint32_t line = 0; at<end && * n_lines> 0; line++, (*n_lines)--) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		int r;

		if (!newline)
			newline = end;
		r = read_line(&perfmap, at, newline, line);
		if (r < 0) {
			perfmap_deinit(&perfmap);
			return r;
		}
		at = newline < end ? newline + 1 : end;
	}
	if (perfmap.names.n > 0)
		qsort(perfmap.names.items, perfmap.names.n, sizeof(*perfmap.names.items), compare);
	*ret_perfmap = perfmap;
	return 0;
}

void perfmap_deinit(struct perfmap *perfmap)
{
	vec_deinit(&perfmap->names);
}
