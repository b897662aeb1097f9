/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/symbol/jitsym.h"

#include <errno.h>
#include <string.h>

#include "decoder/image/jitdump.h"
#include "decoder/util/mapfile.h"

#define LINES_MAX (1u << 22)

/* By where the code is in the dump, which does not change when it is moved. */
static int read_jitdump(struct symtab *symtab, const struct jitdump *dump)
{
	for (size_t i = 0; i < dump->loads.n; i++) {
		const struct jitdump_load *l = &dump->loads.items[i];
		const int r = symtab_add(symtab, &(struct symtab_symbol){
						     .address = l->offset,
						     .size = l->size,
						     .limit = l->offset + l->size,
						     .name = l->name,
						     .name_size = l->name_size,
						 });

		if (r < 0)
			return r;
	}
	return 0;
}

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

/* Of a line, as far as it is inside the object. */
static int read_line(struct symtab *symtab, const struct object *object, const char *line,
		     const char *end)
{
	const uint64_t start = object_address(object, 0), limit = start + object->size;
	struct symtab_symbol symbol = { .limit = limit };
	size_t size;

	if (end - line > 2 && line[0] == '0' && line[1] == 'x')
		line += 2;
	if (!get_hex(&line, end, &symbol.address) || !get_hex(&line, end, &symbol.size))
		return 0;
	size = (size_t)(end - line);
	if (size == 0 || symbol.address < start || symbol.address >= limit)
		return 0;
	symbol.name = line;
	symbol.name_size = (uint16_t)(size < JITDUMP_NAME_MAX ? size : JITDUMP_NAME_MAX);
	return symtab_add(symtab, &symbol);
}

static int read_perf_map(struct symtab *symtab, const struct object *object)
{
	const char *at = (const char *)object->perf_map->bytes;
	const char *end = at + object->perf_map->size;
	int r = 0;

	for (size_t n = 0; r == 0 && at < end && n < LINES_MAX; n++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));

		if (!newline)
			newline = end;
		r = read_line(symtab, object, at, newline);
		at = newline < end ? newline + 1 : end;
	}
	return r;
}

int jitsym_read(struct symtab *symtab, const struct object *object)
{
	int r = 0;

	if (object->jitdump)
		r = read_jitdump(symtab, object->jitdump);
	if (r == 0 && object->perf_map && object->perf_map->size > 0)
		r = read_perf_map(symtab, object);
	/* Far more than any program has: those read so far must do. */
	return r == -E2BIG ? 0 : r;
}
