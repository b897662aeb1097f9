/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The stubs of the procedure linkage table (PLT). Their layout depends on the linker, on lazy
 * binding and on CET, so no layout is assumed: a stub gets the name of the slot of the global
 * offset table (GOT) that it jumps through, or, if it only pushes the number of a relocation, of
 * that relocation.
 */

#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "decoder/symbol/elfsym.h"

struct slot {
	uint64_t address; /* of the slot in the GOT */
	const char *name;
	uint16_t name_size;
};

struct plt {
	VEC(struct slot) lazy;  /* in the order of .rela.plt; a name may be NULL */
	VEC(struct slot) slots; /* those that have names, by address */
};

static int compare_slots(const void *pa, const void *pb)
{
	const struct slot *a = pa, *b = pb;

	return COMPARE(a->address, b->address);
}

/* The symbol table that relocations refer to. */
struct names {
	const struct elfsym *elf;
	struct elfsym_section *section;
	Elf_Data *data; /* NULL in a static program, whose relocations refer to no symbols */
};

/* Name @slot after symbol @index; if that has no name, @slot stays as it is. */
static void name_slot(const struct names *names, uint64_t index, struct slot *slot)
{
	GElf_Sym sym;

	if (!names->data || index == 0 || index > INT32_MAX ||
	    !gelf_getsym(names->data, (int)index, &sym))
		return;
	slot->name = elfsym_string(names->elf, names->section->header.sh_link, sym.st_name,
				   &slot->name_size);
}

/* Name @slot after the indirect function at @address, which is the name that its callers use. */
static void name_ifunc_slot(struct symtab *symtab, uint64_t address, struct slot *slot)
{
	const struct symtab_symbol *symbol = symtab_at(symtab, address);

	if (symbol) {
		slot->name = symbol->name;
		slot->name_size = symbol->name_size;
	}
}

static int read_relocations(struct plt *plt, struct symtab *symtab, const struct names *names,
			    const char *name, bool lazy)
{
	struct elfsym_section *section = elfsym_find(names->elf, SHT_RELA, name);
	Elf_Data *data = section ? elfsym_data(names->elf, section) : NULL;
	GElf_Rela rela;

	for (int i = 0; data && gelf_getrela(data, i, &rela); i++) {
		const uint64_t type = GELF_R_TYPE(rela.r_info);
		struct slot slot = { .address = rela.r_offset };
		int r = 0;

		if (type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT)
			name_slot(names, GELF_R_SYM(rela.r_info), &slot);
		else if (type == R_X86_64_IRELATIVE)
			name_ifunc_slot(symtab, (uint64_t)rela.r_addend, &slot);
		if (lazy)
			r = vec_push(&plt->lazy, slot);
		if (slot.name && r == 0)
			r = vec_push(&plt->slots, slot);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Step over @bytes, and @n_more behind them, if they come next. */
static void skip_bytes(struct cursor *code, const char *bytes, size_t size, size_t n_more)
{
	char next[4];
	struct cursor c = *code;

	if (cursor_get(&c, size, next) == 0 && memcmp(next, bytes, size) == 0 &&
	    cursor_skip(&c, n_more) == 0)
		*code = c;
}

static const struct slot *find_slot(const struct plt *plt, struct cursor code, uint64_t address)
{
	const size_t size = cursor_left(&code);
	uint8_t op[2];
	int32_t value;

	skip_bytes(&code, "\xf3\x0f\x1e\xfa", 4, 0); /* endbr64 */
	skip_bytes(&code, "\x41\xbb", 2, 4); /* mov to %r11d: findings/mold-plt-number-in-r11.sh */
	skip_bytes(&code, "\xf2", 1, 0);     /* bnd */
	if (cursor_get(&code, 1, &op[0]) < 0)
		return NULL;
	if (op[0] == 0x68) /* push of the number of a relocation */
		return cursor_get(&code, sizeof(value), &value) == 0 &&
			       (uint32_t)value < plt->lazy.n && plt->lazy.items[value].name
			   ? &plt->lazy.items[value]
			   : NULL;
	if (op[0] == 0xff && cursor_get(&code, 1, &op[1]) == 0 && op[1] == 0x25 &&
	    cursor_get(&code, sizeof(value), &value) == 0 && plt->slots.n > 0) {
		/* jmp through memory at a distance from the next instruction */
		const struct slot key = { .address = address + (size - cursor_left(&code)) +
						     (uint64_t)(int64_t)value };

		return bsearch(&key, plt->slots.items, plt->slots.n, sizeof(key), compare_slots);
	}
	return NULL;
}

static int read_stubs(struct symtab *symtab, const struct elfsym *elf, const struct plt *plt,
		      const char *name)
{
	struct elfsym_section *section = elfsym_find(elf, SHT_PROGBITS, name);
	const uint8_t *bytes = section ? elfsym_bytes(elf, section) : NULL;
	struct cursor code, stub;
	uint64_t address, stub_size;

	if (!bytes || section->header.sh_size > UINT64_MAX - section->header.sh_addr)
		return 0;
	code = cursor_from(bytes, section->size);
	address = section->header.sh_addr;
	stub_size = section->header.sh_entsize == 8 ? 8 : 16;

	for (; cursor_get_sub(&code, stub_size, &stub) == 0; address += stub_size) {
		const struct slot *slot = find_slot(plt, stub, address);
		int r;

		if (!slot)
			continue;
		r = symtab_add(symtab, &(struct symtab_symbol){
					   .address = address,
					   .size = stub_size,
					   .limit = address + stub_size,
					   .name = slot->name,
					   .name_size = slot->name_size,
					   .plt = true,
				       });
		if (r < 0)
			return r;
	}
	return 0;
}

int plt_read(struct symtab *symtab, const struct elfsym *elf)
{
	static const char *const stubs[] = { ".plt", ".plt.sec", ".plt.got" };
	struct names names = { .elf = elf, .section = elfsym_find(elf, SHT_DYNSYM, NULL) };
	struct plt plt = {};
	GElf_Ehdr header;
	int r;

	if (elf->sections.n == 0 || !gelf_getehdr(elf->elf, &header) ||
	    header.e_machine != EM_X86_64)
		return 0;
	if (names.section)
		names.data = elfsym_data(elf, names.section);

	r = read_relocations(&plt, symtab, &names, ".rela.plt", true);
	if (r == 0)
		r = read_relocations(&plt, symtab, &names, ".rela.dyn", false);
	vec_sort(&plt.slots, compare_slots);
	for (size_t i = 0; i < ARRAY_LEN(stubs) && r == 0; i++)
		r = read_stubs(symtab, elf, &plt, stubs[i]);
	vec_deinit(&plt.lazy);
	vec_deinit(&plt.slots);
	return r;
}
