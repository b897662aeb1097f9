/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/symbol/elfsource.h"

#include "decoder/symbol/debugfile.h"
#include "decoder/symbol/elfsym.h"
#include "util/filebytes.h"

/* The debug file goes first: stubs may be named after symbols that only the debug file has. */
static int read_elf(struct symbol_source *source, struct symtab *symtab)
{
	struct elf_source *elf = (struct elf_source *)source;
	int r = 0;

	elf->debug = filebytes_unref(elf->debug);
	if (elf->places && debugfile_find(elf->places, elf->object, elf->file, &elf->debug))
		r = elfsym_read(symtab, elf->debug);
	return r < 0 ? r : elfsym_read(symtab, elf->file);
}

static const struct symbol_source_ops elf_ops = { .read = read_elf };

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
	source->debug = filebytes_unref(source->debug);
}
