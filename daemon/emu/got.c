/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "daemon/emu/got.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE ((uintptr_t)4096)

struct tables {
	const Elf64_Rela *relocations;
	size_t n_relocations;
	const Elf64_Sym *symbols;
	const char *strings;
};

/* glibc makes the addresses in the dynamic section absolute, other loaders leave them relative. */
static uintptr_t address(const struct dl_phdr_info *info, const Elf64_Dyn *dyn)
{
	return dyn->d_un.d_ptr < info->dlpi_addr ? info->dlpi_addr + dyn->d_un.d_ptr
						 : dyn->d_un.d_ptr;
}

static void read_tables(const struct dl_phdr_info *info, const Elf64_Dyn *dyn,
			struct tables *ret_tables)
{
	struct tables t = {};

	for (; dyn->d_tag != DT_NULL; dyn++) {
		switch (dyn->d_tag) {
		case DT_JMPREL:
			t.relocations = (const Elf64_Rela *)address(info, dyn);
			break;
		case DT_PLTRELSZ:
			t.n_relocations = dyn->d_un.d_val / sizeof(Elf64_Rela);
			break;
		case DT_SYMTAB:
			t.symbols = (const Elf64_Sym *)address(info, dyn);
			break;
		case DT_STRTAB:
			t.strings = (const char *)address(info, dyn);
			break;
		}
	}
	*ret_tables = t;
}

struct search {
	const char *name;
	void **slot;
};

/* The callback gets the main program first, and stops there. */
static int find_slot(struct dl_phdr_info *info, size_t size, void *userdata)
{
	struct search *search = userdata;
	struct tables t = {};

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			read_tables(
			    info, (const Elf64_Dyn *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr),
			    &t);
	if (!t.relocations || !t.symbols || !t.strings)
		return 1;
	for (size_t i = 0; i < t.n_relocations; i++) {
		const Elf64_Rela *r = &t.relocations[i];
		const Elf64_Sym *symbol = &t.symbols[ELF64_R_SYM(r->r_info)];

		if (ELF64_R_TYPE(r->r_info) == R_X86_64_JUMP_SLOT &&
		    strcmp(t.strings + symbol->st_name, search->name) == 0)
			search->slot = (void **)(info->dlpi_addr + r->r_offset);
	}
	return 1;
}

int got_replace(const char *name, void (*function)(void))
{
	struct search search = { .name = name };
	void *page;

	(void)dl_iterate_phdr(find_slot, &search);
	if (!search.slot)
		return -ENOENT;
	/* The table is read-only after the program was loaded. */
	page = (void *)((uintptr_t)search.slot & ~(PAGE - 1));
	if (mprotect(page, PAGE, PROT_READ | PROT_WRITE) < 0)
		return -errno;
	memcpy(search.slot, &function, sizeof(function));
	if (mprotect(page, PAGE, PROT_READ) < 0)
		return -errno;
	return 0;
}
