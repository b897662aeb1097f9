/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A text as a perf map and as kallsyms. Whatever is in it: names are inside the text, as many as it
 * has lines at the most, and in order.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/symbol/kallsyms.h"
#include "decoder/symbol/perfmap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(bool holds)
{
	if (!holds)
		abort();
}

static void need_inside(const struct mapfile *file, const char *text, size_t size)
{
	const char *start = (const char *)file->bytes;

	need(text >= start && size <= file->size && (size_t)(text - start) <= file->size - size);
}

static void parse_perfmap(const struct mapfile *file)
{
	size_t n_left = 1000, n_before = n_left;
	struct perfmap perfmap = { .text = file, .n_lines_left = &n_left };

	need(perfmap_parse(&perfmap) == 0);
	need(perfmap.names.n <= n_before - n_left);
	need(perfmap.ranges.n <= 2 * perfmap.names.n);
	for (size_t i = 0; i < perfmap.names.n; i++) {
		const struct symtab_symbol *n = &perfmap.names.items[i];

		need_inside(file, n->name, n->name_size);
		need(n->size > 0 && n->limit > n->address);
		need(i == 0 || n[-1].address < n->address ||
		     (n[-1].address == n->address && n[-1].order < n->order));
	}
	for (size_t i = 0; i < perfmap.ranges.n; i++) {
		const struct perfmap_range *range = &perfmap.ranges.items[i];
		const struct symtab_symbol *n = &perfmap.names.items[range->name];

		need(i == 0 || range[-1].start < range->start);
		need(i + 1 < perfmap.ranges.n || range->name == SYMTAB_NONE);
		need(range->name == SYMTAB_NONE ||
		     (range->name < perfmap.names.n && n->address <= range->start &&
		      range[1].start <= n->limit));
	}
	perfmap_deinit(&perfmap);
}

static void parse_kallsyms(const struct mapfile *file)
{
	struct kallsyms kallsyms = { .text = file };

	need(kallsyms_parse(&kallsyms) == 0);
	need(kallsyms.by_module.n == kallsyms.names.n);
	for (size_t i = 0; i < kallsyms.names.n; i++) {
		const struct kallsyms_name *n = &kallsyms.names.items[i];

		need_inside(file, n->name, n->name_size);
		need_inside(file, n->module, n->module_size);
		need(kallsyms.by_module.items[i] < kallsyms.names.n);
	}
	kallsyms_deinit(&kallsyms);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Its own, so that a sanitizer sees its end. */
	uint8_t *copy = malloc(size ? size : 1);
	const struct mapfile file = { .bytes = size ? copy : NULL, .size = size };

	need(copy);
	if (size > 0)
		memcpy(copy, data, size);
	parse_perfmap(&file);
	parse_kallsyms(&file);
	free(copy);
	return 0;
}
