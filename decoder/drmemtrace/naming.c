/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/drmemtrace/naming.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/drmemtrace/container.h"
#include "decoder/drmemtrace/tracedir.h"
#include "decoder/image/objects.h"
#include "decoder/symbol/resolver.h"
#include "util/message.h"

static int read_table(struct naming *naming, const char *path, char **reterr_message)
{
	size_t line;
	const int r = symboltable_read(path, &naming->table, &line);

	if (r == -EBADMSG && line == 1)
		return message_set(reterr_message, r,
				   "%s: line 1: expected the names of the columns that "
				   "ptd-drmemtrace(5) has",
				   path);
	if (r == -EBADMSG)
		return message_set(reterr_message, r,
				   "%s: line %zu: expected an id of its own and nine columns "
				   "behind it, separated by tabs",
				   path, line);
	if (r < 0)
		return message_set(reterr_message, r, "%s: %s", path, strerror(-r));
	naming->has_table = true;
	return 0;
}

/* Read the table of mappings, if there is one. */
static int read_mappings(struct naming *naming, const char *dir, char **reterr_message)
{
	_cleanup_(freep) char *path = NULL;
	size_t line;
	int r;

	r = tracedir_find(dir, "mappings.tsv", &path);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = mappingtable_read(path, &naming->table.mappings, &line);
	if (r == -EBADMSG)
		return message_set(reterr_message, r,
				   "%s: line %zu: expected %s, separated by tabs", path, line,
				   line == 1 ? "the names of the columns that ptd-drmemtrace(5) has"
					     : "a pid and four columns behind it");
	return r < 0 ? message_set(reterr_message, r, "%s: %s", path, strerror(-r)) : 0;
}

int naming_init(struct naming *naming, const char *dir, struct objects *objects,
		struct resolver *resolver, char **reterr_message)
{
	_cleanup_(freep) char *table = NULL, *modules = NULL;
	int r;

	*naming = (struct naming){ .objects = objects, .resolver = resolver };
	r = tracedir_find(dir, "symbols.tsv", &table);
	if (r == 0) {
		r = read_table(naming, table, reterr_message);
		return r < 0 ? r : read_mappings(naming, dir, reterr_message);
	}
	if (r != -ENOENT)
		return r;
	r = tracedir_find(dir, "modules.log", &modules);
	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = modules_read(modules, &naming->modules);
	return r < 0 && modules ? message_set(reterr_message, r, "%s: %s", modules, strerror(-r))
				: r;
}

void naming_deinit(struct naming *naming)
{
	symboltable_deinit(&naming->table);
	modules_deinit(&naming->modules);
}

/* Nothing is known of the code but where it ran. */
static int find_unknown(struct naming *naming, struct naming_answer *ret_answer)
{
	struct object *object;
	int r;

	if (!naming->unknown) {
		r = objects_add_synthetic(naming->objects, "[unknown]", &object);
		if (r < 0)
			return r;
		naming->unknown = object;
	}
	*ret_answer = (struct naming_answer){ .object = naming->unknown };
	return 0;
}

int naming_find(struct naming *naming, uint64_t pid, uint64_t pc, uint64_t id,
		struct naming_answer *ret_answer)
{
	uint64_t offset, address, end;
	int r;

	if (naming->has_table) {
		ret_answer->symbol = symboltable_index(&naming->table, id);
		if (ret_answer->symbol == PTD_NO_SYMBOL)
			return find_unknown(naming, ret_answer);
		return symboltable_place(&naming->table, naming->objects, ret_answer->symbol, pid,
					 pc, &ret_answer->object, &ret_answer->link);
	}
	r = modules_find(&naming->modules, naming->objects, pc, &ret_answer->object, &offset);
	if (r < 0)
		return r;
	if (!ret_answer->object)
		return find_unknown(naming, ret_answer);
	address = object_address(ret_answer->object, offset);
	ret_answer->link = address - pc;
	return resolver_find(naming->resolver, ret_answer->object->symbols, address,
			     &ret_answer->symbol, &end);
}

const uint8_t *naming_bytes(struct naming *naming, uint64_t pc, size_t size)
{
	const struct object *object;
	uint64_t offset;

	if (modules_find(&naming->modules, naming->objects, pc, &object, &offset) < 0 || !object)
		return NULL;
	return object_bytes(object, offset, size);
}

const struct ptd_symbol *const *naming_symbols(const struct naming *naming, size_t *ret_n)
{
	if (!naming->has_table)
		return resolver_symbols(naming->resolver, ret_n);
	*ret_n = naming->table.pointers.n;
	return naming->table.pointers.items;
}

/* --- modules ---------------------------------------------------------------------------------- */

#define TEXT_MAX  (UINT32_C(1) << 26)
#define N_NUMBERS 7 /* before the path: id, containing id, start, end, entry, offset, base */

void modules_deinit(struct modules *modules)
{
	free(modules->text);
	modules->text = NULL;
	vec_deinit(&modules->segments);
}

/* Read a number and the comma behind it. */
static bool read_number(const char **at, int base, uint64_t *ret_number)
{
	char *end;

	errno = 0;
	*ret_number = strtoull(*at, &end, base);
	if (errno || end == *at)
		return false;
	while (*end == ' ')
		end++;
	if (*end != ',')
		return false;
	*at = end + 1;
	return true;
}

/*
 * Pass over what raw2trace keeps before the path: "v#1,", a size, a comma, and that number of bytes
 * of the module, which may be any. Return: whether that is as it should be.
 */
static bool skip_contents(const char **at, const char *end)
{
	uint64_t size;
	const char *comma;

	if (strncmp(*at, "v#", 2) != 0)
		return true;
	comma = strchr(*at, ',');
	if (!comma)
		return false;
	*at = comma + 1;
	if (!read_number(at, 10, &size) || size > (uint64_t)(end - *at))
		return false;
	*at += size;
	return true;
}

/* Take the line at @at. Return: 0 or -ENOMEM, and @ret_next, where the next one begins. */
static int read_line(struct modules *modules, char *at, char *end, char **ret_next)
{
	uint64_t numbers[N_NUMBERS];
	const char *from = at;
	bool is_good = true;
	char *newline, *path;

	for (size_t i = 0; i < N_NUMBERS && is_good; i++)
		is_good = read_number(&from, i < 2 ? 10 : 16, &numbers[i]);
	while (is_good && *from == ' ')
		from++;
	is_good = is_good && skip_contents(&from, end);
	while (is_good && *from == ' ')
		from++;
	path = at + (from - at);
	newline = memchr(path, '\n', (size_t)(end - path));
	if (newline)
		*newline = '\0';
	*ret_next = newline ? newline + 1 : end;
	if (!is_good || numbers[2] >= numbers[3])
		return 0;
	return vec_push(
	    &modules->segments,
	    { .start = numbers[2], .end = numbers[3], .offset = numbers[5], .path = path });
}

static int by_start(const void *a, const void *b)
{
	const struct modules_segment *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

int modules_read(const char *path, struct modules *ret_modules)
{
	_cleanup_(modules_deinit) struct modules modules = {};
	char *at, *end;
	size_t size;
	int r;

	r = container_read_all(path, TEXT_MAX, &modules.text, &size);
	if (r < 0)
		return r;
	end = modules.text + size;
	for (at = modules.text; at < end && r == 0;)
		r = read_line(&modules, at, end, &at);
	if (r < 0)
		return r;
	if (modules.segments.n > 0)
		qsort(modules.segments.items, modules.segments.n, sizeof(*modules.segments.items),
		      by_start);
	*ret_modules = modules;
	modules = (struct modules){};
	return 0;
}

int modules_find(struct modules *modules, struct objects *objects, uint64_t pc,
		 const struct object **ret_object, uint64_t *ret_offset)
{
	const size_t i = vec_bisect(&modules->segments, segment, segment->start <= pc);
	struct modules_segment *found = i > 0 ? &modules->segments.items[i - 1] : NULL;
	int r = 0;

	*ret_object = NULL;
	*ret_offset = 0;
	if (!found || pc >= found->end)
		return 0;
	if (!found->object)
		r = objects_find(objects, found->path, NULL, &found->object);
	if (r < 0)
		return r;
	*ret_object = found->object;
	*ret_offset = found->offset + (pc - found->start);
	return 0;
}
