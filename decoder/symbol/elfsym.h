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

/*
 * Add the symbols of the ELF file of @size bytes at @bytes, which must outlive @symtab. Malformed
 * parts of the file are left out.
 *
 * Return: 0; -ENOMEM; -E2BIG if @symtab is full.
 */
_must_check_ int elfsym_read(struct symtab *symtab, const uint8_t *bytes, size_t size);

/* --- for the other files of this folder ------------------------------------------------------- */

/* A section: its header, and those of its bytes that lie in the file. */
struct elfsym_section {
	GElf_Shdr header;
	Elf_Scn *scn;
	const char *name; /* "" if the section has none */
	const uint8_t *bytes;
	size_t size;
};

struct elfsym {
	Elf *elf; /* NULL if the bytes are no ELF file */
	const uint8_t *bytes;
	size_t size;
	VEC(struct elfsym_section) sections; /* by index */
};

/*
 * Read the sections of the file of @size bytes at @bytes, which stay the caller's. A file that is
 * no ELF file has no sections.
 *
 * Return: 0; or -ENOMEM, and there is nothing to deinit.
 */
_must_check_ int elfsym_init(struct elfsym *elf, const uint8_t *bytes, size_t size);
void elfsym_deinit(struct elfsym *elf);

/* Return: the first section of type @type and, unless @name is NULL, of that name; or NULL. */
const struct elfsym_section *elfsym_find(const struct elfsym *elf, uint32_t type, const char *name);

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
