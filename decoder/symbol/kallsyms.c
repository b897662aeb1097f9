/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/symbol/kallsyms.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "decoder/util/mapfile.h"

#define LINES_MAX         (1u << 22) /* kernels have some 200 000 */
#define KALLSYMS_NAME_MAX 4095u

/* Part of a line. */
struct word {
	const char *text;
	size_t size;
};

/* Take what is up to the next @end, or the end of the line; its end is taken, too. */
static struct word take(struct word *line, char end)
{
	const char *found = memchr(line->text, end, line->size);
	const size_t size = found ? (size_t)(found - line->text) : line->size;
	const struct word word = { .text = line->text, .size = size };

	line->text += size + (found != NULL);
	line->size -= size + (found != NULL);
	return word;
}

static bool get_address(struct word word, uint64_t *ret_address)
{
	uint64_t address = 0;

	if (word.size == 0 || word.size > 16)
		return false;
	for (size_t i = 0; i < word.size; i++) {
		const char *digits = "0123456789abcdef";
		const char *digit = memchr(digits, word.text[i], 16);

		if (!digit)
			return false;
		address = address << 4 | (uint64_t)(digit - digits);
	}
	*ret_address = address;
	return true;
}

/* A function, or what takes its place if nothing else does. */
static bool is_code(struct word kind)
{
	return kind.size == 1 && memchr("tTwW", kind.text[0], 4);
}

static bool belongs_to(struct word module, const struct object *object)
{
	const char *name = object->id.name;

	return strcmp(name, "[kernel.kallsyms]") == 0 ||
	       (module.size == strlen(name) && memcmp(module.text, name, module.size) == 0);
}

static int read_line(struct symtab *symtab, const struct object *object, struct word line)
{
	const struct word address = take(&line, ' '), kind = take(&line, ' ');
	const struct word name = take(&line, '\t');
	struct symtab_symbol symbol = { .limit = UINT64_MAX, .name = name.text };

	if (!get_address(address, &symbol.address) || symbol.address == 0 ||
	    symbol.address == UINT64_MAX || !is_code(kind) || name.size == 0 ||
	    memchr(name.text, 0, name.size) || !belongs_to(line, object))
		return 0;
	/* Of several names, one without an underscore: "_text", "__pfx_…" are no functions' own. */
	symbol.rank = name.text[0] == '_' ? SYMTAB_LABEL : SYMTAB_FUNCTION;
	symbol.name_size =
	    (uint16_t)(name.size < KALLSYMS_NAME_MAX ? name.size : KALLSYMS_NAME_MAX);
	return symtab_add(symtab, &symbol);
}

int kallsyms_read(struct symtab *symtab, const struct object *object)
{
	const struct mapfile *file = object->kallsyms;
	struct word rest;
	int r = 0;

	if (!file || file->size == 0)
		return 0;
	rest = (struct word){ .text = (const char *)file->bytes, .size = file->size };
	for (size_t n = 0; r == 0 && rest.size > 0 && n < LINES_MAX; n++)
		r = read_line(symtab, object, take(&rest, '\n'));
	/* Far more than any kernel has: those read so far must do. */
	return r == -E2BIG ? 0 : r;
}
