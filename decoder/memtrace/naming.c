/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/memtrace/naming.h"

#include <errno.h>
#include <string.h>

#include "decoder/image/objects.h"
#include "decoder/memtrace/tracedir.h"
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
