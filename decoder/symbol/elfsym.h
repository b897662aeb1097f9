/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * ELF symbols
 *
 * Reads the names of an ELF file's code: its .symtab and .dynsym, and the stubs of its procedure
 * linkage table (PLT), which have relocations instead of symbols.
 */

#include <gelf.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/symbol/symtab.h"

struct filebytes;

/*
 * Add the symbols of the ELF file @file, which must outlive @symtab. Malformed parts of the file,
 * and what cannot be read of it, are left out.
 *
 * Return: 0; -ENOMEM; -E2BIG if @symtab is full.
 */
_must_check_ int elfsym_read(struct symtab *symtab, struct filebytes *file);

/* --- for the other files of this folder ------------------------------------------------------- */

/* Larger sections are taken for empty: a file with a hole can state any size. */
#define ELFSYM_SECTION_MAX (UINT64_C(1) << 30)

/* A section: its header, and how many of its bytes lie in the file. */
struct elfsym_section {
	GElf_Shdr header;
	Elf_Scn *scn;
	const char *name; /* "" if the section has none */
	size_t size;
	const uint8_t *bytes; /* see elfsym_bytes(); NULL: they were not asked for yet */
};

struct elfsym {
	Elf *elf;                            /* NULL if the file is no ELF file */
	struct filebytes *file;              /* borrowed */
	VEC(struct elfsym_section) sections; /* by index */
};

/*
 * Read the headers of the sections of @file, which must outlive @elf. A file that is no ELF file
 * has no sections.
 *
 * Return: 0; or -ENOMEM, and there is nothing to deinit.
 */
_must_check_ int elfsym_init(struct elfsym *elf, struct filebytes *file);
void elfsym_deinit(struct elfsym *elf);

/*
 * Return: the section->size bytes of @section, read from the file if they were not; NULL if there
 *         are none, or they cannot be read.
 */
const uint8_t *elfsym_bytes(const struct elfsym *elf, struct elfsym_section *section);

/* Return: the bytes of @section as libelf presents its records; NULL as elfsym_bytes(). */
Elf_Data *elfsym_data(const struct elfsym *elf, struct elfsym_section *section);

/* Return: the first section of type @type and, unless @name is NULL, of that name; or NULL. */
struct elfsym_section *elfsym_find(const struct elfsym *elf, uint32_t type, const char *name);

/*
 * Find the string at @offset of the string table in section @index.
 *
 * Return: the string, and its length in @ret_size; NULL if there is none, it is empty, or it is
 *         longer than 4095 bytes.
 */
const char *elfsym_string(const struct elfsym *elf, size_t index, size_t offset,
			  uint16_t *ret_size);

/* Add the stubs of the PLT as symbols. Return: 0; -ENOMEM; -E2BIG if @symtab is full. */
_must_check_ int plt_read(struct symtab *symtab, const struct elfsym *elf);
