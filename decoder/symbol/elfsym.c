/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/symbol/elfsym.h"

#include <libelf.h>
#include <string.h>

#include "decoder/symbol/elfbytes.h"
#include "decoder/util/filebytes.h"

#define STRING_MAX 4096

struct elfsym_section *elfsym_find(const struct elfsym *elf, uint32_t type, const char *name)
{
	for (size_t i = 0; i < elf->sections.n; i++) {
		struct elfsym_section *s = &elf->sections.items[i];

		if (s->header.sh_type == type && (!name || strcmp(s->name, name) == 0))
			return s;
	}
	return NULL;
}

const uint8_t *elfsym_bytes(const struct elfsym *elf, struct elfsym_section *section)
{
	if (!section->bytes && section->size > 0)
		section->bytes = filebytes_get(elf->file, section->header.sh_offset, section->size);
	return section->bytes;
}

Elf_Data *elfsym_data(const struct elfsym *elf, struct elfsym_section *section)
{
	return elfsym_bytes(elf, section) ? elf_getdata(section->scn, NULL) : NULL;
}

/*
 * This does not call elf_strptr(), which looks for the end of the string from the end of the table:
 * a hostile file can have a very large table, and very many symbols.
 */
const char *elfsym_string(const struct elfsym *elf, size_t index, size_t offset, uint16_t *ret_size)
{
	struct elfsym_section *table;
	const char *strings, *string, *end;
	size_t left;

	if (index >= elf->sections.n)
		return NULL;
	table = &elf->sections.items[index];
	if (table->header.sh_type != SHT_STRTAB || offset >= table->size)
		return NULL;
	strings = (const char *)elfsym_bytes(elf, table);
	if (!strings)
		return NULL;
	string = strings + offset;
	left = table->size - offset;
	end = memchr(string, '\0', left < STRING_MAX ? left : STRING_MAX);
	if (!end || end == string)
		return NULL;
	*ret_size = (uint16_t)(end - string);
	return string;
}

static int read_sections(struct elfsym *elf)
{
	const uint64_t file_size = filebytes_size(elf->file);
	size_t names, n_headers;
	uint16_t size;

	if (elf_getshdrstrndx(elf->elf, &names) < 0 || elf_getshdrnum(elf->elf, &n_headers) < 0)
		return 0;

	for (size_t i = 0; i < n_headers && i < ELFBYTES_HEADERS_MAX; i++) {
		struct elfsym_section s = { .name = "", .scn = elf_getscn(elf->elf, i) };
		const GElf_Shdr *h = &s.header;
		int r;

		if (!s.scn || !gelf_getshdr(s.scn, &s.header))
			break;
		if (h->sh_type != SHT_NOBITS && h->sh_offset < file_size &&
		    h->sh_size <= ELFSYM_SECTION_MAX) {
			const uint64_t left = file_size - h->sh_offset;

			s.size = h->sh_size < left ? h->sh_size : left;
		}
		r = vec_push(&elf->sections, s);
		if (r < 0)
			return r;
	}

	for (size_t i = 0; i < elf->sections.n; i++) {
		struct elfsym_section *s = &elf->sections.items[i];
		const char *name = elfsym_string(elf, names, s->header.sh_name, &size);

		if (name)
			s->name = name;
	}
	return 0;
}

/* Return: whether @sym names code; then all of @ret_symbol but the name is set. */
static bool read_code_symbol(const struct elfsym *elf, const GElf_Sym *sym,
			     struct symtab_symbol *ret_symbol)
{
	const int type = GELF_ST_TYPE(sym->st_info);
	const GElf_Shdr *h;

	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
		return false;
	if (sym->st_shndx == SHN_UNDEF || sym->st_shndx >= elf->sections.n)
		return false;
	h = &elf->sections.items[sym->st_shndx].header;
	if (!(h->sh_flags & SHF_EXECINSTR) || sym->st_value - h->sh_addr >= h->sh_size ||
	    h->sh_size > UINT64_MAX - h->sh_addr)
		return false;

	*ret_symbol = (struct symtab_symbol){
		.address = sym->st_value,
		.size = sym->st_size,
		.limit = h->sh_addr + h->sh_size,
		.rank = type == STT_FUNC        ? SYMTAB_FUNCTION
			: type == STT_GNU_IFUNC ? SYMTAB_IFUNC
						: SYMTAB_LABEL,
	};
	return true;
}

static int read_symbol_table(struct symtab *symtab, const struct elfsym *elf, uint32_t type)
{
	struct elfsym_section *section = elfsym_find(elf, type, NULL);
	Elf_Data *data = section ? elfsym_data(elf, section) : NULL;
	GElf_Sym sym;

	for (int i = 0; data && gelf_getsym(data, i, &sym); i++) {
		struct symtab_symbol symbol;
		int r;

		if (!read_code_symbol(elf, &sym, &symbol))
			continue;
		symbol.name =
		    elfsym_string(elf, section->header.sh_link, sym.st_name, &symbol.name_size);
		if (!symbol.name)
			continue;
		r = symtab_add(symtab, &symbol);
		if (r < 0)
			return r;
	}
	return 0;
}

int elfsym_init(struct elfsym *elf, struct filebytes *file)
{
	int r = 0;

	*elf = (struct elfsym){ .elf = elfbytes_begin(file), .file = file };
	if (elf->elf)
		r = read_sections(elf);
	if (r < 0)
		elfsym_deinit(elf);
	return r;
}

void elfsym_deinit(struct elfsym *elf)
{
	vec_deinit(&elf->sections);
	if (elf->elf)
		elf_end(elf->elf);
	elf->elf = NULL;
}

int elfsym_read(struct symtab *symtab, struct filebytes *file)
{
	_cleanup_(elfsym_deinit) struct elfsym elf = {};
	int r;

	r = elfsym_init(&elf, file);
	if (r == 0)
		r = read_symbol_table(symtab, &elf, SHT_SYMTAB);
	if (r == 0)
		r = read_symbol_table(symtab, &elf, SHT_DYNSYM);
	if (r == 0)
		r = plt_read(symtab, &elf);
	return r;
}
