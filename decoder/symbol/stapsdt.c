/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/symbol/stapsdt.h"

#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "decoder/symbol/elfsym.h"

#define NOTE_TYPE 3
#define NOTE_NAME "stapsdt"

/* Real files have some 500; hostile ones could have 40 million in a section. */
#define PROBES_MAX 65536u

/* How far behind the displacement of an operand its instruction may end: immediate bytes. */
#define IMMEDIATE_MAX 4

typedef VEC(struct ptd_probe) probe_list;

static int by_address(const void *pa, const void *pb)
{
	const struct ptd_probe *a = pa, *b = pb;

	return COMPARE(a->address, b->address);
}

/* --- the notes -------------------------------------------------------------------------------- */

static uint64_t pad(uint64_t size)
{
	return (size + 3) & ~UINT64_C(3);
}

/* Skip @size bytes, and what pads them, unless the section ends there. */
static int get_padded(struct cursor *c, uint64_t size, struct cursor *ret_part)
{
	const uint64_t padding = pad(size) - size;
	const int r = cursor_get_sub(c, size, ret_part);

	return r < 0 ? r : cursor_skip(c, padding < cursor_left(c) ? padding : cursor_left(c));
}

static int get_address(struct cursor *c, bool is_wide, uint64_t *ret_address)
{
	uint32_t narrow;
	int r;

	if (is_wide)
		return cursor_get(c, sizeof(*ret_address), ret_address);
	r = cursor_get(c, sizeof(narrow), &narrow);
	*ret_address = r == 0 ? narrow : 0;
	return r;
}

/*
 * Read what a note says of its probe. @base: where .stapsdt.base is; 0: it is not there. If it was
 * elsewhere when the note was written, all addresses have been moved as far as it has.
 */
static int read_probe(struct cursor *note, bool is_wide, uint64_t base, struct ptd_probe *ret_probe)
{
	uint64_t address = 0, base_before = 0, semaphore = 0, moved;
	struct ptd_probe probe = {};
	int r;

	r = get_address(note, is_wide, &address);
	if (r == 0)
		r = get_address(note, is_wide, &base_before);
	if (r == 0)
		r = get_address(note, is_wide, &semaphore);
	if (r == 0)
		r = cursor_get_string(note, &probe.provider);
	if (r == 0)
		r = cursor_get_string(note, &probe.name);
	if (r < 0)
		return r;
	if (cursor_get_string(note, &probe.arguments) < 0)
		probe.arguments = "";
	moved = base ? base - base_before : 0;
	probe.address = address + moved;
	probe.semaphore = semaphore ? semaphore + moved : 0;
	*ret_probe = probe;
	return 0;
}

/* Return: 0 and what @notes has of probes; or -ENOMEM. */
static int read_notes(struct cursor notes, bool is_wide, uint64_t base, probe_list *probes)
{
	GElf_Nhdr header;

	while (probes->n < PROBES_MAX && cursor_get(&notes, sizeof(header), &header) == 0) {
		struct cursor name, text;
		struct ptd_probe probe;

		if (get_padded(&notes, header.n_namesz, &name) < 0 ||
		    get_padded(&notes, header.n_descsz, &text) < 0)
			return 0;
		if (header.n_type != NOTE_TYPE || header.n_namesz != sizeof(NOTE_NAME) ||
		    memcmp(name.pos, NOTE_NAME, sizeof(NOTE_NAME)) != 0 ||
		    read_probe(&text, is_wide, base, &probe) < 0)
			continue;
		if (vec_push(probes, probe) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* --- semaphores ------------------------------------------------------------------------------- */

/*
 * A semaphore counts who has enabled the probe. Code that reads it runs the probe only if it is not
 * 0; but most notes name a semaphore that no code reads. (postgresql 15: 58 of 71.)
 */

static int by_semaphore(const void *pa, const void *pb)
{
	const struct ptd_probe *a = pa, *b = pb;

	return COMPARE(a->semaphore, b->semaphore) ?: COMPARE(a->address, b->address);
}

/* The operand of an instruction refers to @address. */
static void note_reference(probe_list *probes, uint64_t address)
{
	size_t i = vec_bisect(probes, probe, probe->semaphore < address);

	for (; i < probes->n && probes->items[i].semaphore == address; i++)
		probes->items[i].is_guarded = true;
}

/* Look at each displacement that code may have: relative to the end of its instruction; or, of
 * 32-bit code, to @base. The probes are ordered by semaphore. */
static void look_for_references(probe_list *probes, const struct elfsym_section *code, bool is_wide,
				uint64_t base)
{
	const size_t n_without = vec_bisect(probes, probe, probe->semaphore == 0);
	const uint64_t first = probes->items[n_without].semaphore;
	const uint64_t last = probes->items[probes->n - 1].semaphore;
	const uint64_t n_behind = is_wide ? IMMEDIATE_MAX : 0;

	for (size_t i = 0; i + sizeof(int32_t) <= code->size; i++) {
		int32_t value;
		uint64_t to;

		memcpy(&value, code->bytes + i, sizeof(value));
		to = is_wide ? code->header.sh_addr + i + sizeof(value) + (uint64_t)(int64_t)value
			     : (uint32_t)(base + (uint64_t)value);
		if (to > last || to + n_behind < first)
			continue;
		for (uint64_t k = 0; k <= n_behind; k++)
			note_reference(probes, to + k);
	}
}

/* Position-independent 32-bit code refers to data relative to the global offset table. */
static uint64_t find_got(const struct elfsym *elf)
{
	const struct elfsym_section *got =
	    elfsym_find(elf, SHT_PROGBITS, ".got.plt") ?: elfsym_find(elf, SHT_PROGBITS, ".got");

	return got ? got->header.sh_addr : 0;
}

static void find_guards(probe_list *probes, const struct elfsym *elf, bool is_wide)
{
	const uint64_t got = is_wide ? 0 : find_got(elf);

	vec_sort(probes, by_semaphore);
	if (probes->items[probes->n - 1].semaphore == 0)
		return;
	for (size_t i = 0; i < elf->sections.n; i++) {
		struct elfsym_section *s = &elf->sections.items[i];

		if (!(s->header.sh_flags & SHF_EXECINSTR) || !elfsym_bytes(elf, s))
			continue;
		look_for_references(probes, s, is_wide, 0);
		if (got)
			look_for_references(probes, s, is_wide, got);
	}
}

/* --- the file --------------------------------------------------------------------------------- */

static int read_file(const struct elfsym *elf, probe_list *probes)
{
	struct elfsym_section *notes = elfsym_find(elf, SHT_NOTE, ".note.stapsdt");
	const struct elfsym_section *base = elfsym_find(elf, SHT_PROGBITS, ".stapsdt.base");
	const uint8_t *bytes = notes ? elfsym_bytes(elf, notes) : NULL;
	const bool is_wide = elf->elf && gelf_getclass(elf->elf) == ELFCLASS64;
	int r;

	if (!bytes)
		return 0;
	r = read_notes(cursor_from(bytes, notes->size), is_wide, base ? base->header.sh_addr : 0,
		       probes);
	if (r < 0 || probes->n == 0)
		return r;
	find_guards(probes, elf, is_wide);
	vec_sort(probes, by_address);
	return 0;
}

int stapsdt_read(struct filebytes *file, struct stapsdt *ret_probes)
{
	struct elfsym elf;
	probe_list probes = {};
	int r;

	r = elfsym_init(&elf, file);
	if (r < 0)
		return r;
	r = read_file(&elf, &probes);
	elfsym_deinit(&elf);
	if (r < 0)
		vec_deinit(&probes);
	else
		*ret_probes = (struct stapsdt){ .items = probes.items, .n = probes.n };
	return r;
}

void stapsdt_deinit(struct stapsdt *probes)
{
	free(probes->items);
	*probes = (struct stapsdt){};
}
