/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * ELF source
 *
 * The symbol source of an object that is an ELF file: its own symbol tables, the stubs of its
 * procedure linkage table, and if it has been stripped the .symtab of its debug file, or else of
 * its mini debuginfo.
 *
 * A function that none of these names is known by its call frame information. It is called by the
 * object and its address there, such as "ls+0x4e30"; with ".cold" behind it if that says that it is
 * a part of another function.
 *
 * Its source positions are in the DWARF of the object or of a debug file.
 */

#include "decoder/symbol/minidebug.h"
#include "decoder/symbol/source.h"
#include "ptd/record.h"
#include "util/arena.h"
#include "util/map.h"

struct debugfile_places;
struct debuginfo;
struct ehframe;
struct filebytes;

/* All pointers are borrowed, but for those that are said to be owned. */
struct elf_source {
	struct symbol_source source;
	const struct debugfile_places *places;
	const struct ptd_object *object;
	struct filebytes *file;
	struct filebytes *debug; /* owned; NULL unless a debug file was found */
	struct minidebug minidebug;
	struct ehframe *ehframe; /* owned; NULL until the symbols are read */

	/* Where the code stands in the source code; only for the operation that finds positions. */
	bool has_debuginfo;
	struct debuginfo *debuginfo; /* owned; NULL: there is none, or it was not looked for */
	struct filebytes *dwarf;     /* owned; NULL unless it is in a file of its own */

	/* The names of functions that have no symbols. */
	struct map unnamed; /* address → struct symtab_symbol * */
	struct arena arena; /* of these symbols, and their names */
};

/*
 * Make the source of @object, the ELF file @file; both must outlive it.
 *
 * @places: where to look for debug files; NULL: use none
 */
void elf_source_init(struct elf_source *source, const struct debugfile_places *places,
		     const struct ptd_object *object, struct filebytes *file);
void elf_source_deinit(struct elf_source *source);
