/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/symbol/elfbytes.h"

#include <stdbool.h>
#include <string.h>

#include "decoder/util/filebytes.h"

/* Where the headers are, whatever the class of the file. */
struct tables {
	uint64_t segments, sections; /* offsets */
	uint64_t n_segments, n_sections;
	size_t segment_size, section_size;
};

#define TABLES_OF(header, bits)                                                   \
	(struct tables)                                                           \
	{                                                                         \
		.segments = (header)->e_phoff, .sections = (header)->e_shoff,     \
		.n_segments = (header)->e_phnum, .n_sections = (header)->e_shnum, \
		.segment_size = sizeof(Elf##bits##_Phdr),                         \
		.section_size = sizeof(Elf##bits##_Shdr),                         \
	}

/* Numbers too large for the file's header stand in the first section header. */
static bool read_large_numbers(struct filebytes *file, struct tables *tables)
{
	Elf64_Shdr wide;
	Elf32_Shdr narrow;
	const uint8_t *p;

	if (tables->sections == 0 || (tables->n_sections > 0 && tables->n_segments < PN_XNUM))
		return true;
	p = filebytes_get(file, tables->sections, tables->section_size);
	if (!p)
		return false;
	if (tables->section_size == sizeof(narrow)) {
		memcpy(&narrow, p, sizeof(narrow));
		wide.sh_size = narrow.sh_size;
		wide.sh_info = narrow.sh_info;
	} else {
		memcpy(&wide, p, sizeof(wide));
	}
	if (tables->n_sections == 0)
		tables->n_sections = wide.sh_size;
	if (tables->n_segments == PN_XNUM)
		tables->n_segments = wide.sh_info;
	return true;
}

static bool find_tables(struct filebytes *file, struct tables *ret_tables)
{
	const uint8_t *ident = filebytes_get(file, 0, EI_NIDENT);
	Elf64_Ehdr wide;
	Elf32_Ehdr narrow;

	if (!ident || memcmp(ident, ELFMAG, SELFMAG) != 0 || ident[EI_DATA] != ELFDATA2LSB)
		return false;
	if (ident[EI_CLASS] != ELFCLASS64 && filebytes_copy(file, 0, &narrow, sizeof(narrow)))
		*ret_tables = TABLES_OF(&narrow, 32);
	else if (ident[EI_CLASS] == ELFCLASS64 && filebytes_copy(file, 0, &wide, sizeof(wide)))
		*ret_tables = TABLES_OF(&wide, 64);
	else
		return false;
	return read_large_numbers(file, ret_tables) &&
	       ret_tables->n_segments <= ELFBYTES_HEADERS_MAX &&
	       ret_tables->n_sections <= ELFBYTES_HEADERS_MAX;
}

/* Read a table as far as it lies in the file. Return: whether it could be read. */
static bool read_table(struct filebytes *file, uint64_t offset, uint64_t size)
{
	const uint64_t all = filebytes_size(file);

	if (offset >= all)
		return true;
	return filebytes_get(file, offset, size < all - offset ? size : all - offset);
}

Elf *elfbytes_begin(struct filebytes *file)
{
	_cleanup_(elfbytes_endp) Elf *elf = NULL;
	struct tables t;

	if (!find_tables(file, &t) ||
	    !read_table(file, t.segments, t.n_segments * t.segment_size) ||
	    !read_table(file, t.sections, t.n_sections * t.section_size))
		return NULL;
	(void)elf_version(EV_CURRENT);
	/* libelf does not write to the bytes, but its type does not say so. */
	elf = elf_memory((char *)(uintptr_t)filebytes_get(file, 0, 1), filebytes_size(file));
	return elf && elf_kind(elf) == ELF_K_ELF ? TAKE(elf) : NULL;
}
