/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * ELF source
 *
 * The symbol source of an object that is an ELF file: its own symbol tables, the stubs of its
 * procedure linkage table, and the .symtab of its debug file if it has been stripped.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/symbol/source.h"
#include "ptd/record.h"

struct debugfile_places;
struct filebytes;

/* All pointers are borrowed. */
struct elf_source {
	struct symbol_source source;
	const struct debugfile_places *places;
	const struct ptd_object *object;
	struct filebytes *file;
	struct filebytes *debug; /* owned; NULL unless a debug file was found */
};

/*
 * Make the source of @object, the ELF file @file; both must outlive it.
 *
 * @places: where to look for debug files; NULL: use none
 */
void elf_source_init(struct elf_source *source, const struct debugfile_places *places,
		     const struct ptd_object *object, struct filebytes *file);
void elf_source_deinit(struct elf_source *source);
