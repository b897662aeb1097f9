/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/symbol/kallsyms.h"

#include <stdlib.h>
#include <string.h>

#define LINES_MAX         (1u << 22) /* kernels have some 200 000 */
#define KALLSYMS_NAME_MAX 4095u

/* Part of a line. */
struct word {
	const char *text;
	size_t size;
};

/*
 * Cut the first word off @line: the text up to the next @end, which is dropped, or up to its end.
 */
static struct word next_word(struct word *line, char end)
{
	const char *found = memchr(line->text, end, line->size);
	const size_t size = found ? (size_t)(found - line->text) : line->size;
	const struct word word = { .text = line->text, .size = size };

	line->text += size + (found != NULL);
	line->size -= size + (found != NULL);
	return word;
}

static bool read_address(struct word word, uint64_t *ret_address)
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

/* Return: whether @kind is that of a function, which may be a weak one. */
static bool is_function(struct word kind)
{
	return kind.size == 1 && memchr("tTwW", kind.text[0], 4);
}

static int read_symbol_line(struct kallsyms *kallsyms, struct word line)
{
	const struct word address = next_word(&line, ' '), kind = next_word(&line, ' ');
	const struct word name = next_word(&line, '\t');
	struct kallsyms_name n = { .name = name.text,
				   .module = line.text,
				   .module_size = line.size };

	if (!read_address(address, &n.address) || n.address == 0 || n.address == UINT64_MAX ||
	    !is_function(kind) || name.size == 0 || memchr(name.text, 0, name.size))
		return 0;
	n.name_size = (uint16_t)(name.size < KALLSYMS_NAME_MAX ? name.size : KALLSYMS_NAME_MAX);
	return vec_push(&kallsyms->names, n);
}

/* Any order of the modules would do. Return: like memcmp(3). */
static int compare_modules(const struct kallsyms_name *name, const char *module, size_t size)
{
	if (name->module_size != size)
		return name->module_size < size ? -1 : 1;
	return memcmp(name->module, module, size);
}

static int compare_by_module(const void *pa, const void *pb, void *userdata)
{
	const struct kallsyms *kallsyms = userdata;
	const uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;
	const struct kallsyms_name *other = &kallsyms->names.items[b];
	const int r = compare_modules(&kallsyms->names.items[a], other->module, other->module_size);

	return r ?: COMPARE(a, b);
}

static int sort_by_module(struct kallsyms *kallsyms)
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
		sizeof(*kallsyms->by_module.items), compare_by_module, kallsyms);
	return 0;
}

int kallsyms_parse(struct kallsyms *kallsyms)
{
	struct word rest = { .text = (const char *)kallsyms->text->bytes,
			     .size = kallsyms->text->size };
	int r = 0;

	if (kallsyms->is_parsed)
		return 0;
	for (size_t n = 0; r == 0 && rest.size > 0 && n < LINES_MAX; n++)
		r = read_symbol_line(kallsyms, next_word(&rest, '\n'));
	if (r == 0)
		r = sort_by_module(kallsyms);
	if (r < 0) {
		kallsyms_deinit(kallsyms);
		return r;
	}
	kallsyms->is_parsed = true;
	return 0;
}

void kallsyms_deinit(struct kallsyms *kallsyms)
{
	vec_deinit(&kallsyms->names);
	vec_deinit(&kallsyms->by_module);
	kallsyms->is_parsed = false;
}

/* --- the source of an object ------------------------------------------------------------------ */

static int add_name(struct symtab *symtab, const struct kallsyms_name *name)
{
	return symtab_add(symtab, &(struct symtab_symbol){
				      .address = name->address,
				      .limit = UINT64_MAX,
				      .name = name->name,
				      .name_size = name->name_size,
				      /* Names that begin with an underscore, such as "_text"
				       * and "__pfx_…", yield to others. */
				      .rank = name->name[0] == '_' ? SYMTAB_LABEL : SYMTAB_FUNCTION,
				  });
}

static int add_module_names(struct symtab *symtab, const struct kallsyms *kallsyms,
			    const char *module)
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
		r = add_name(symtab, name);
	}
	return r;
}

static int read_kallsyms(struct symbol_source *source, struct symtab *symtab)
{
	const struct kallsyms_source *object = (const struct kallsyms_source *)source;
	struct kallsyms *kallsyms = object->kallsyms;
	int r;

	r = kallsyms_parse(kallsyms);
	if (r == 0 && object->module)
		return add_module_names(symtab, kallsyms, object->module);
	for (size_t i = 0; r == 0 && i < kallsyms->names.n; i++)
		r = add_name(symtab, &kallsyms->names.items[i]);
	return r;
}

static const struct symbol_source_ops kallsyms_ops = { .read = read_kallsyms };

void kallsyms_source_init(struct kallsyms_source *source, struct kallsyms *kallsyms,
			  const char *module)
{
	*source = (struct kallsyms_source){ .source.ops = &kallsyms_ops,
					    .kallsyms = kallsyms,
					    .module = module };
}

void kallsyms_source_deinit(struct kallsyms_source *source)
{
	symbol_source_deinit(&source->source);
}
