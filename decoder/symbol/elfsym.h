/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Elfsym
 *
 * What an ELF file says about the names of its code: .symtab and .dynsym together, and the stubs of
 * its procedure linkage table, which have no symbols but relocations.
 */

#include <gelf.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/symbol/symtab.h"

/*
 * Add the symbols of the ELF file of @size bytes at @bytes, which must outlive @symtab. What is
 * malformed in it is left out.
 *
 * Return: 0; -ENOMEM.
 */
_must_check_ int elfsym_read(struct symtab *symtab, const uint8_t *bytes, size_t size);

/* --- for the other files of this folder ------------------------------------------------------- */

/* One section: its header, and its bytes as far as the file has them. */
struct elfsym_section {
	GElf_Shdr header;
	Elf_Scn *scn;
	const char *name; /* "" if it has none */
	const uint8_t *bytes;
	size_t size;
};

struct elfsym {
	Elf *elf; /* NULL if it is no ELF file */
	const uint8_t *bytes;
	size_t size;
	VEC(struct elfsym_section) sections; /* by index */
};

/*
 * Read the sections of the file; there are none if it is no ELF file.
 *
 * Return: 0; or -ENOMEM, and there is nothing to deinit.
 */
_must_check_ int elfsym_init(struct elfsym *elf, const uint8_t *bytes, size_t size);
void elfsym_deinit(struct elfsym *elf);

/* Return: the first section of that type, and called @name unless that is NULL; or NULL. */
const struct elfsym_section *elfsym_find(const struct elfsym *elf, uint32_t type, const char *name);

/*
 * The string at @offset of the string table that is section @index.
 *
 * Return: the string; NULL if there is none, it is empty, or it is longer than 4095 bytes.
 */
const char *elfsym_string(const struct elfsym *elf, size_t index, size_t offset,
			  uint16_t *ret_size);

/* Add the stubs of the PLT as symbols. Return: 0; -ENOMEM or -E2BIG. */
_must_check_ int plt_read(struct symtab *symtab, const struct elfsym *elf);
