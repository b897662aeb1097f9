/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/function.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/fullwrite.h"

#define SECTIONS_MAX 4096u
#define HEADERS_MAX  1024u
#define SYMBOLS_MAX  2000000u
#define PIECE_SIZE   65536u

/* Some bytes of the file. */
struct piece {
	uint64_t start; /* offset of the first one */
	size_t n;
	uint8_t bytes[PIECE_SIZE];
};

/* A file in which functions are looked for. */
struct search {
	int fd;
	struct piece *table, *names; /* two places of the file that are read side by side */
	bool is_64;
	uint64_t sections, headers; /* offsets */
	uint32_t n_sections, n_headers;
	uint64_t n_symbols; /* that may still be looked at */

	const char *const *wanted;
	size_t n_wanted;
	struct function *found;
	size_t n_found, n_max;
};

/* A section, as far as it matters. */
struct section {
	uint32_t type, link;
	uint64_t offset, size;
};

/* Fill @piece from @offset on. Return: 0, also if the file ends; or negative errno. */
static int fill(const struct search *s, struct piece *piece, uint64_t offset)
{
	const ssize_t n = fullread_at(s->fd, piece->bytes, PIECE_SIZE, offset);

	piece->start = offset;
	piece->n = n < 0 ? 0 : (size_t)n;
	return n < 0 ? (int)n : 0;
}

/*
 * Get the bytes at @offset: at least @least of them, or all up to the end of the file.
 *
 * Return: 0 and the @ret_n bytes at @ret_bytes; or negative errno.
 */
static int look(const struct search *s, struct piece *piece, uint64_t offset, size_t least,
		const uint8_t **ret_bytes, size_t *ret_n)
{
	int r = 0;

	if (offset < piece->start || offset - piece->start > piece->n ||
	    piece->n - (offset - piece->start) < least)
		r = fill(s, piece, offset);
	if (r < 0)
		return r;
	*ret_bytes = piece->bytes + (offset - piece->start);
	*ret_n = piece->n - (size_t)(offset - piece->start);
	return 0;
}

/* Get @size bytes. Return: 0; -EBADMSG if the file ends before; or another negative errno. */
static int get(const struct search *s, struct piece *piece, uint64_t offset, size_t size,
	       void *ret_bytes)
{
	const uint8_t *bytes;
	size_t n;
	int r;

	r = look(s, piece, offset, size, &bytes, &n);
	if (r < 0)
		return r;
	if (n < size)
		return -EBADMSG;
	memcpy(ret_bytes, bytes, size);
	return 0;
}

static int read_header(struct search *s)
{
	const uint8_t order = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
	uint8_t ident[EI_NIDENT];
	Elf64_Ehdr h64;
	Elf32_Ehdr h32;
	int r;

	r = get(s, s->table, 0, sizeof(ident), ident);
	if (r < 0)
		return r;
	if (memcmp(ident, ELFMAG, SELFMAG) != 0 || ident[EI_DATA] != order)
		return -EBADMSG;
	s->is_64 = ident[EI_CLASS] == ELFCLASS64;
	if (s->is_64) {
		r = get(s, s->table, 0, sizeof(h64), &h64);
		s->sections = h64.e_shoff;
		s->headers = h64.e_phoff;
		s->n_sections = h64.e_shnum;
		s->n_headers = h64.e_phnum;
	} else {
		r = get(s, s->table, 0, sizeof(h32), &h32);
		s->sections = h32.e_shoff;
		s->headers = h32.e_phoff;
		s->n_sections = h32.e_shnum;
		s->n_headers = h32.e_phnum;
	}
	if (r == 0 && (s->n_sections > SECTIONS_MAX || s->n_headers > HEADERS_MAX))
		r = -EBADMSG;
	return r;
}

static int get_section(struct search *s, uint32_t i, struct section *ret_section)
{
	Elf64_Shdr h64;
	Elf32_Shdr h32;
	int r;

	if (s->is_64) {
		r = get(s, s->table, s->sections + i * sizeof(h64), sizeof(h64), &h64);
		*ret_section = (struct section){ .type = h64.sh_type,
						 .link = h64.sh_link,
						 .offset = h64.sh_offset,
						 .size = h64.sh_size };
		return r;
	}
	r = get(s, s->table, s->sections + i * sizeof(h32), sizeof(h32), &h32);
	*ret_section = (struct section){ .type = h32.sh_type,
					 .link = h32.sh_link,
					 .offset = h32.sh_offset,
					 .size = h32.sh_size };
	return r;
}

/* Find the place in the file of what is to be at @address. Return: 0; -ENOENT; or another negative
 * errno. */
static int find_offset(struct search *s, uint64_t address, uint64_t *ret_offset)
{
	int r = 0;

	for (uint32_t i = 0; i < s->n_headers && r == 0; i++) {
		Elf64_Phdr p = {};
		Elf32_Phdr p32;

		if (s->is_64) {
			r = get(s, s->names, s->headers + i * sizeof(p), sizeof(p), &p);
		} else {
			r = get(s, s->names, s->headers + i * sizeof(p32), sizeof(p32), &p32);
			p = (Elf64_Phdr){ .p_type = p32.p_type,
					  .p_flags = p32.p_flags,
					  .p_offset = p32.p_offset,
					  .p_vaddr = p32.p_vaddr,
					  .p_filesz = p32.p_filesz };
		}
		if (r < 0 || p.p_type != PT_LOAD || !(p.p_flags & PF_X) || address < p.p_vaddr ||
		    address - p.p_vaddr >= p.p_filesz)
			continue;
		*ret_offset = p.p_offset + (address - p.p_vaddr);
		return 0;
	}
	return r < 0 ? r : -ENOENT;
}

static int add_function(struct search *s, uint32_t name, uint64_t address)
{
	uint64_t offset;
	int r;

	r = find_offset(s, address, &offset);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (size_t i = 0; i < s->n_found; i++)
		if (s->found[i].name == name && s->found[i].offset == offset)
			return 0;
	if (s->n_found < s->n_max)
		s->found[s->n_found++] = (struct function){ .name = name, .offset = offset };
	return 0;
}

/* Compare the name at @offset of the file with those that are wanted. */
static int judge_symbol(struct search *s, uint64_t name, uint64_t end, uint64_t address)
{
	const uint8_t *text;
	size_t n;
	int r;

	if (name >= end)
		return 0;
	r = look(s, s->names, name, 1, &text, &n);
	/* A name may go on behind what the piece has. */
	if (r == 0 && !memchr(text, 0, n))
		r = look(s, s->names, name, FUNCTION_NAME_MAX, &text, &n);
	if (r < 0 || !memchr(text, 0, n))
		return r;
	for (uint32_t i = 0; i < s->n_wanted; i++)
		if (strcmp((const char *)text, s->wanted[i]) == 0)
			return add_function(s, i, address);
	return 0;
}

static int search_table(struct search *s, const struct section *table, const struct section *names)
{
	const size_t size = s->is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	const uint64_t end = names->offset + names->size;
	int r = 0;

	if (end < names->offset)
		return -EBADMSG;
	for (uint64_t at = 0; at + size <= table->size && r == 0 && s->n_symbols > 0; at += size) {
		Elf64_Sym symbol;
		Elf32_Sym s32;

		s->n_symbols--;
		if (s->is_64) {
			r = get(s, s->table, table->offset + at, size, &symbol);
		} else {
			r = get(s, s->table, table->offset + at, size, &s32);
			symbol = (Elf64_Sym){ .st_name = s32.st_name,
					      .st_info = s32.st_info,
					      .st_shndx = s32.st_shndx,
					      .st_value = s32.st_value };
		}
		if (r == 0 && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC &&
		    symbol.st_shndx != SHN_UNDEF)
			r = judge_symbol(s, names->offset + symbol.st_name, end, symbol.st_value);
	}
	return r;
}

static int search_sections(struct search *s)
{
	struct section table, names;
	int r = 0;

	for (uint32_t i = 0; i < s->n_sections && r == 0; i++) {
		r = get_section(s, i, &table);
		if (r < 0 || (table.type != SHT_SYMTAB && table.type != SHT_DYNSYM) ||
		    table.link >= s->n_sections)
			continue;
		r = get_section(s, table.link, &names);
		if (r == 0)
			r = search_table(s, &table, &names);
	}
	return r;
}

int function_find(int fd, const char *const *names, size_t n_names, struct function *ret_functions,
		  size_t max)
{
	struct search s = { .fd = fd,
			    .table = calloc(1, sizeof(*s.table)),
			    .names = calloc(1, sizeof(*s.names)),
			    .n_symbols = SYMBOLS_MAX,
			    .wanted = names,
			    .n_wanted = n_names,
			    .found = ret_functions,
			    .n_max = max };
	int r = -ENOMEM;

	if (s.table && s.names)
		r = read_header(&s);
	if (r == 0)
		r = search_sections(&s);
	free(s.table);
	free(s.names);
	return r < 0 ? r : (int)s.n_found;
}
