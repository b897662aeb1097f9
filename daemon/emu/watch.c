/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "daemon/emu/watch.h"

#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <string.h>

#include "util/regular.h"

/* A file in which functions are looked for. */
struct file {
	Elf *elf;
	const char *name; /* without its directory */
	const struct watch_mapping *mapping;
};

uint32_t watch_at(const struct watch *watch, uint64_t address)
{
	for (size_t i = 0; i < watch->places.n; i++)
		if (watch->places.items[i].address == address)
			return watch->places.items[i].condition + 1;
	return 0;
}

static void forget(struct watch *watch, uint64_t start, uint64_t end)
{
	size_t n = 0;

	for (size_t i = 0; i < watch->places.n; i++) {
		const struct watch_place place = watch->places.items[i];

		if (place.address < start || place.address >= end)
			watch->places.items[n++] = place;
	}
	watch->places.n = n;
}

/* Get the offset in the file of what is to be at @vaddr. Return: whether the file has it. */
static bool find_offset(Elf *elf, uint64_t vaddr, uint64_t *ret_offset)
{
	size_t n = 0;
	GElf_Phdr p;

	if (elf_getphdrnum(elf, &n) < 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!gelf_getphdr(elf, (int)i, &p) || p.p_type != PT_LOAD || vaddr < p.p_vaddr ||
		    vaddr - p.p_vaddr >= p.p_filesz)
			continue;
		*ret_offset = p.p_offset + (vaddr - p.p_vaddr);
		return true;
	}
	return false;
}

static bool is_wanted(const struct file *file, const struct condition *condition, const char *name)
{
	return condition->kind == CONDITION_ENTER && strcmp(condition->function, name) == 0 &&
	       (!condition->object || strcmp(condition->object, file->name) == 0);
}

static void add_symbol(struct watch *watch, const struct file *file, const GElf_Sym *symbol,
		       const char *name)
{
	const struct watch_mapping *m = file->mapping;
	uint64_t offset;

	if (GELF_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF)
		return;
	for (uint32_t i = 0; i < watch->n_conditions; i++) {
		if (!is_wanted(file, &watch->conditions[i], name) ||
		    !find_offset(file->elf, symbol->st_value, &offset) || offset < m->offset ||
		    offset - m->offset >= m->end - m->start)
			continue;
		/* A file has the same symbol in two tables. */
		if (watch_at(watch, m->start + (offset - m->offset)) == 0 &&
		    watch->places.n < WATCH_PLACES_MAX)
			(void)vec_push(&watch->places, { .address = m->start + (offset - m->offset),
							 .condition = i });
	}
}

static void add_table(struct watch *watch, const struct file *file, Elf_Scn *section)
{
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Shdr header;
	GElf_Sym symbol;

	if (!data || !gelf_getshdr(section, &header) || header.sh_entsize == 0)
		return;
	for (size_t i = 0; i < header.sh_size / header.sh_entsize; i++) {
		const char *name;

		if (!gelf_getsym(data, (int)i, &symbol))
			return;
		name = elf_strptr(file->elf, header.sh_link, symbol.st_name);
		if (name)
			add_symbol(watch, file, &symbol, name);
	}
}

static bool has_wanted(const struct watch *watch, const char *name)
{
	for (size_t i = 0; i < watch->n_conditions; i++) {
		const struct condition *c = &watch->conditions[i];

		if (c->kind == CONDITION_ENTER && (!c->object || strcmp(c->object, name) == 0))
			return true;
	}
	return false;
}

void watch_map(struct watch *watch, const struct watch_mapping *mapping)
{
	const char *slash = mapping->path ? strrchr(mapping->path, '/') : NULL;
	struct file file = { .name = slash ? slash + 1 : mapping->path, .mapping = mapping };
	_cleanup_(fd_closep) int fd = -1;
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	forget(watch, mapping->start, mapping->end);
	if (!file.name || !has_wanted(watch, file.name))
		return;
	fd = regular_open(AT_FDCWD, mapping->path, 0);
	file.elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ, NULL);
	if (!file.elf)
		return;
	while ((section = elf_nextscn(file.elf, section)))
		if (gelf_getshdr(section, &header) &&
		    (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM))
			add_table(watch, &file, section);
	(void)elf_end(file.elf);
}

void watch_deinit(struct watch *watch)
{
	vec_deinit(&watch->places);
}
