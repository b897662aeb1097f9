/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/symbol/kallsyms.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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

static int read_line(struct kallsyms *kallsyms, struct word line)
{
	const struct word address = take(&line, ' '), kind = take(&line, ' ');
	const struct word name = take(&line, '\t');
	struct kallsyms_name n = { .name = name.text,
				   .module = line.text,
				   .module_size = line.size };

	if (!get_address(address, &n.address) || n.address == 0 || n.address == UINT64_MAX ||
	    !is_code(kind) || name.size == 0 || memchr(name.text, 0, name.size))
		return 0;
	n.name_size = (uint16_t)(name.size < KALLSYMS_NAME_MAX ? name.size : KALLSYMS_NAME_MAX);
	return vec_push(&kallsyms->names, n);
}

/* Which of the modules is first does not matter. Return: as of memcmp(3). */
static int compare_modules(const struct kallsyms_name *name, const char *module, size_t size)
{
	if (name->module_size != size)
		return name->module_size < size ? -1 : 1;
	return memcmp(name->module, module, size);
}

static int compare(const void *pa, const void *pb, void *userdata)
{
	const struct kallsyms *kallsyms = userdata;
	const uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;
	const struct kallsyms_name *other = &kallsyms->names.items[b];
	const int r = compare_modules(&kallsyms->names.items[a], other->module, other->module_size);

	return r ? r : a < b ? -1 : a > b;
}

static int sort(struct kallsyms *kallsyms)
{
	int r;

	if (kallsyms->names.n == 0)
		return 0;
	r = vec_reserve(&kallsyms->by_module, kallsyms->names.n);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < kallsyms->names.n; i++)
		kallsyms->by_module.items[kallsyms->by_module.n++] = i;
	qsort_r(kallsyms->by_module.items, kallsyms->by_module.n,
		sizeof(*kallsyms->by_module.items), compare, kallsyms);
	return 0;
}

int kallsyms_parse(const struct mapfile *file, struct kallsyms *ret_kallsyms)
{
	struct word rest = { .text = (const char *)file->bytes, .size = file->size };
	struct kallsyms kallsyms = {};
	int r = 0;

	for (size_t n = 0; r == 0 && rest.size > 0 && n < LINES_MAX; n++)
		r = read_line(&kallsyms, take(&rest, '\n'));
	if (r == 0)
		r = sort(&kallsyms);
	if (r < 0) {
		kallsyms_deinit(&kallsyms);
		return r;
	}
	*ret_kallsyms = kallsyms;
	return 0;
}

void kallsyms_deinit(struct kallsyms *kallsyms)
{
	vec_deinit(&kallsyms->names);
	vec_deinit(&kallsyms->by_module);
}

static int add(struct symtab *symtab, const struct kallsyms_name *name)
{
	return symtab_add(symtab, &(struct symtab_symbol){
				      .address = name->address,
				      .limit = UINT64_MAX,
				      .name = name->name,
				      .name_size = name->name_size,
				      /* Of several names, one without an underscore: "_text",
				       * "__pfx_…" are no functions' own. */
				      .rank = name->name[0] == '_' ? SYMTAB_LABEL : SYMTAB_FUNCTION,
				  });
}

static int add_module(struct symtab *symtab, const struct kallsyms *kallsyms, const char *module)
{
	const struct kallsyms_name *names = kallsyms->names.items;
	const size_t size = strlen(module);
	size_t i;
	int r = 0;

	i = vec_bisect(&kallsyms->by_module, name,
		       compare_modules(&names[*name], module, size) < 0);
	for (; r == 0 && i < kallsyms->by_module.n; i++) {
		const struct kallsyms_name *name = &names[kallsyms->by_module.items[i]];

		if (compare_modules(name, module, size) != 0)
			break;
		r = add(symtab, name);
	}
	return r;
}

int kallsyms_read(struct symtab *symtab, const struct object *object,
		  const struct kallsyms *kallsyms)
{
	int r = 0;

	if (strcmp(object->id.name, "[kernel.kallsyms]") != 0)
		r = add_module(symtab, kallsyms, object->id.name);
	else
		for (size_t i = 0; i < kallsyms->names.n && r == 0; i++)
			r = add(symtab, &kallsyms->names.items[i]);
	/* Far more than any kernel has: those read so far must do. */
	return r == -E2BIG ? 0 : r;
}
