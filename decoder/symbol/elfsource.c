/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/symbol/elfsource.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "decoder/symbol/debugfile.h"
#include "decoder/symbol/debuginfo.h"
#include "decoder/symbol/ehframe.h"
#include "decoder/symbol/elfsym.h"
#include "decoder/symbol/unwind.h"
#include "decoder/util/filebytes.h"

#define OBJECT_NAME_MAX 255 /* bytes of an object's name in that of a function; more are cut */

/* Forget what an earlier call read before it failed. */
static void forget(struct elf_source *elf)
{
	elf->debug = filebytes_unref(elf->debug);
	minidebug_deinit(&elf->minidebug);
	elf->ehframe = ehframe_free(elf->ehframe);
}

/* The debug file goes first: stubs may be named after symbols that only the debug file has. */
static int read_elf(struct symbol_source *source, struct symtab *symtab)
{
	struct elf_source *elf = (struct elf_source *)source;
	struct filebytes *stripped;
	int r;

	forget(elf);
	r = ehframe_new(elf->file, &elf->ehframe);
	if (r < 0)
		return r;
	if (!elf->places ||
	    !debugfile_find(elf->places, elf->object, elf->file, DEBUGFILE_SYMTAB, &elf->debug))
		r = minidebug_read(elf->file, &elf->minidebug);
	stripped = elf->debug ?: elf->minidebug.file;
	if (r == 0 && stripped)
		r = elfsym_read(symtab, stripped);
	return r < 0 ? r : elfsym_read(symtab, elf->file);
}

/* Look for the DWARF, once; it may be in another file than the symbols. */
static int open_debuginfo(struct elf_source *elf)
{
	struct filebytes *file = elf->file;
	int r;

	if (elf->has_debuginfo)
		return 0;
	/* An earlier call may have found it, and then failed. */
	elf->dwarf = filebytes_unref(elf->dwarf);
	if (!debugfile_has(file, DEBUGFILE_DWARF)) {
		if (elf->debug && debugfile_has(elf->debug, DEBUGFILE_DWARF))
			file = elf->debug;
		else if (elf->places && debugfile_find(elf->places, elf->object, file,
						       DEBUGFILE_DWARF, &elf->dwarf))
			file = elf->dwarf;
	}
	r = debuginfo_new(file, elf->places, &elf->debuginfo);
	elf->has_debuginfo = r == 0;
	return r;
}

static int find_positions(struct symbol_source *source, uint64_t address,
			  struct ptd_position *ret_positions)
{
	struct elf_source *elf = (struct elf_source *)source;
	const int r = open_debuginfo(elf);

	return r < 0 || !elf->debuginfo ? r
					: debuginfo_find(elf->debuginfo, address, ret_positions);
}

static int find_inlined(struct symbol_source *source, uint64_t address,
			const struct ptd_inlined **ret_inlined, uint64_t *ret_end)
{
	struct elf_source *elf = (struct elf_source *)source;
	const int r = open_debuginfo(elf);

	return r < 0 || !elf->debuginfo
		   ? r
		   : debuginfo_inlined(elf->debuginfo, address, ret_inlined, ret_end);
}

static int get_lines(struct symbol_source *source, struct ptd_line_table *ret_table)
{
	struct elf_source *elf = (struct elf_source *)source;
	const int r = open_debuginfo(elf);

	return r < 0 || !elf->debuginfo ? r : debuginfo_lines(elf->debuginfo, ret_table);
}

static bool find_function(struct symbol_source *source, uint64_t address, uint64_t *ret_start,
			  uint64_t *ret_end)
{
	const struct elf_source *elf = (const struct elf_source *)source;

	return ehframe_find(elf->ehframe, address, ret_start, ret_end);
}

static bool find_entry(struct symbol_source *source, uint64_t address,
		       struct ehframe_entry *ret_entry)
{
	const struct elf_source *elf = (const struct elf_source *)source;

	return elf->ehframe && ehframe_find_entry(elf->ehframe, address, ret_entry);
}

/* Return: whether the function at @address is a part of another one. */
static bool is_part(const struct elf_source *elf, uint64_t address)
{
	struct ehframe_entry entry;

	return ehframe_find_entry(elf->ehframe, address, &entry) && entry.start == address &&
	       unwind_begins_inside(&entry);
}

static int make_name(struct elf_source *elf, uint64_t address, struct symtab_symbol **ret_symbol)
{
	const char *object = basename(elf->object->name);
	struct symtab_symbol *symbol = arena_alloc(&elf->arena, sizeof(*symbol));
	char name[OBJECT_NAME_MAX + sizeof("+0x0123456789abcdef.cold")];
	const int size = snprintf(name, sizeof(name), "%.*s+0x%" PRIx64 "%s", OBJECT_NAME_MAX,
				  object, address, is_part(elf, address) ? ".cold" : "");

	if (!symbol)
		return -ENOMEM;
	*symbol = (struct symtab_symbol){
		.address = address,
		.limit = UINT64_MAX,
		.name = arena_strdup(&elf->arena, name),
		.name_size = (uint16_t)size,
	};
	if (!symbol->name)
		return -ENOMEM;
	*ret_symbol = symbol;
	return 0;
}

static int name_function(struct symbol_source *source, uint64_t address,
			 const struct symtab_symbol **ret_symbol)
{
	struct elf_source *elf = (struct elf_source *)source;
	struct symtab_symbol *symbol;
	int r;

	*ret_symbol = map_pointer(&elf->unnamed, address);
	if (*ret_symbol)
		return 0;
	r = make_name(elf, address, &symbol);
	if (r == 0)
		r = map_put(&elf->unnamed, address, (uintptr_t)symbol);
	if (r == 0)
		*ret_symbol = symbol;
	return r;
}

static const struct symbol_source_ops elf_ops = { .read = read_elf,
						  .bounds = find_function,
						  .name = name_function,
						  .entry = find_entry,
						  .positions = find_positions,
						  .inlined = find_inlined,
						  .lines = get_lines };

void elf_source_init(struct elf_source *source, const struct debugfile_places *places,
		     const struct ptd_object *object, struct filebytes *file)
{
	*source = (struct elf_source){
		.source.ops = &elf_ops, .places = places, .object = object, .file = file
	};
}

void elf_source_deinit(struct elf_source *source)
{
	symbol_source_deinit(&source->source);
	source->debuginfo = debuginfo_free(source->debuginfo);
	source->dwarf = filebytes_unref(source->dwarf);
	forget(source);
	map_deinit(&source->unnamed);
	arena_deinit(&source->arena);
}
