/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/symbol/instrmap.h"

#include <errno.h>

#include "base/cursor.h"
#include "decoder/symbol/elfsym.h"
#include "decoder/util/fdr.h"

#define ADDRESS_AT offsetof(struct entry, function)

struct entry {
	uint64_t place, function;
	uint8_t kind, is_always, version, reserved[13];
};

_Static_assert(sizeof(struct entry) == FDR_MAP_ENTRY_SIZE, "an entry as it is in the file");

/* Add the functions of the section at @address, which @c walks. */
static int add_functions(struct instrmap *map, struct cursor *c, uint64_t address)
{
	struct entry entry;
	int r = 0;

	for (; r == 0 && cursor_get(c, sizeof(entry), &entry) == 0; address += sizeof(entry)) {
		const bool is_relative = entry.version >= FDR_MAP_RELATIVE_FROM;
		const uint64_t function = entry.function + (is_relative ? address + ADDRESS_AT : 0);

		if (map->addresses.n > 0 && map->addresses.items[map->addresses.n - 1] == function)
			continue;
		if (map->addresses.n == INSTRMAP_MAX)
			break;
		r = vec_push(&map->addresses, function);
	}
	return r;
}

/* A program that may be loaded anywhere is of the same type as a library. It has an interpreter, or
 * a flag that says so. */
static bool is_library(const struct elfsym *elf)
{
	struct elfsym_section *dynamic;
	Elf_Data *data;
	GElf_Ehdr header;
	GElf_Dyn entry;

	if (!gelf_getehdr(elf->elf, &header) || header.e_type != ET_DYN ||
	    elfsym_find(elf, SHT_PROGBITS, ".interp"))
		return false;
	dynamic = elfsym_find(elf, SHT_DYNAMIC, NULL);
	data = dynamic ? elfsym_data(elf, dynamic) : NULL;
	for (int i = 0; data && gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++)
		if (entry.d_tag == DT_FLAGS_1 && entry.d_un.d_val & DF_1_PIE)
			return false;
	return dynamic;
}

int instrmap_read(struct filebytes *file, struct instrmap *ret_map)
{
	struct instrmap map = {};
	struct elfsym_section *section;
	const uint8_t *bytes;
	struct elfsym elf;
	struct cursor c;
	int r;

	r = elfsym_init(&elf, file);
	if (r < 0)
		return r;
	section = elfsym_find(&elf, SHT_PROGBITS, FDR_MAP_SECTION);
	bytes = section ? elfsym_bytes(&elf, section) : NULL;
	if (bytes) {
		c = cursor_from(bytes, section->size);
		r = add_functions(&map, &c, section->header.sh_addr);
		map.is_library = is_library(&elf);
	}
	elfsym_deinit(&elf);
	if (r == 0 && map.addresses.n == 0)
		r = -ENOENT;
	if (r < 0)
		instrmap_deinit(&map);
	else
		*ret_map = map;
	return r;
}

void instrmap_deinit(struct instrmap *map)
{
	vec_deinit(&map->addresses);
}
