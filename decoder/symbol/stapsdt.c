/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/symbol/stapsdt.h"

#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "decoder/symbol/elfsym.h"
#include "decoder/util/filebytes.h"

#define NOTE_TYPE 3
#define NOTE_NAME "stapsdt"

/* Real files have some 500; hostile ones could have 40 million in a section. */
#define PROBES_MAX 65536u

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
	/* A linker that discards the section states 0: findings/usdt-gc-sections.sh. */
	moved = base && base_before ? base - base_before : 0;
	probe.address = address ? address + moved : 0;
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
		/* A linker leaves 0 of code that it discarded. */
		if (header.n_type != NOTE_TYPE || header.n_namesz != sizeof(NOTE_NAME) ||
		    memcmp(name.pos, NOTE_NAME, sizeof(NOTE_NAME)) != 0 ||
		    read_probe(&text, is_wide, base, &probe) < 0 || probe.address == 0)
			continue;
		if (vec_push(probes, probe) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* --- semaphores ------------------------------------------------------------------------------- */

/*
 * A semaphore counts who has enabled the probe. Code that reads it runs the probe only if it is not
 * 0; but most notes name a semaphore that no code reads. (postgresql 15: 58 of 71.) What reads one
 * by the global offset table is not found.
 */

static int by_semaphore(const void *pa, const void *pb)
{
	const struct ptd_probe *a = pa, *b = pb;

	return COMPARE(a->semaphore, b->semaphore) ?: COMPARE(a->address, b->address);
}

/* The operand of an instruction refers to @address. */
static void note_reference(probe_list *probes, uint64_t address)
{
	size_t i = address ? vec_bisect(probes, probe, probe->semaphore < address) : probes->n;

	for (;
	     i < probes->n && probes->items[i].semaphore == address && !probes->items[i].is_guarded;
	     i++)
		probes->items[i].is_guarded = true;
}

/*
 * Return: how many bytes of an immediate follow the displacement of the instruction whose ModRM
 *         byte is at @modrm, which has two bytes before it; -1: it is none that reads a semaphore.
 */
static int immediate_size(const uint8_t *modrm)
{
	switch (modrm[-1]) {
	case 0x80: /* cmpb $, */
	case 0x83: /* cmpw $, */
		return 1;
	case 0x81: /* cmpw $, or cmpl $, */
		return modrm[-2] == 0x66 ? 2 : 4;
	case 0x39: /* cmp to memory, from memory; test; mov; lea */
	case 0x3b:
	case 0x85:
	case 0x8b:
	case 0x8d:
		return 0;
	case 0xb7: /* movzwl, movswl */
	case 0xbf:
		return modrm[-2] == 0x0f ? 0 : -1;
	default:
		return -1;
	}
}

/* How code may refer to data. */
enum reference {
	TO_RIP,      /* relative to the end of the instruction */
	TO_ABSOLUTE, /* by its address */
	TO_BASE,     /* relative to what a register has: the global offset table */
};

/* Return: where the operand behind the ModRM byte at @i leads, relative to the code's beginning. */
static int64_t leads_to(const struct elfsym_section *code, size_t i)
{
	int32_t value;

	memcpy(&value, code->bytes + i + 1, sizeof(value));
	return (int64_t)i + 1 + (int64_t)sizeof(value) + value;
}

/*
 * Return: whether the lea whose ModRM byte is at @i is one of two that stand side by side and lead
 *         to the same place: the start-up code's __TMC_END__, which lies where .data ends and the
 *         semaphores begin.
 */
static bool is_of_startup(const struct elfsym_section *code, size_t i)
{
	const size_t insn = 7, others[] = { i - insn, i + insn }; /* 48 8d, ModRM, displacement */

	if (code->bytes[i - 1] != 0x8d || i < insn + 2 || i + 2 * insn > code->size)
		return false;
	for (size_t k = 0; k < ARRAY_LEN(others); k++)
		if (code->bytes[others[k] - 1] == 0x8d &&
		    leads_to(code, others[k]) == leads_to(code, i))
			return true;
	return false;
}

/* Look at each place where an operand that refers to a semaphore may stand. The probes are ordered
 * by semaphore. */
static void look_for_references(probe_list *probes, const struct elfsym_section *code,
				enum reference reference, uint64_t base)
{
	const uint8_t mask = reference == TO_BASE ? 0xc0 : 0xc7; /* of the ModRM byte */
	const uint8_t wanted = reference == TO_BASE ? 0x80 : 0x05;

	for (size_t i = 2; i + 1 + sizeof(int32_t) <= code->size; i++) {
		const uint8_t *modrm = code->bytes + i;
		/* A mov to ax or eax has no ModRM byte. */
		const int more = reference == TO_ABSOLUTE && *modrm == 0xa1 ? 0
				 : (*modrm & mask) == wanted                ? immediate_size(modrm)
									    : -1;
		int32_t value;

		if (more < 0 || (reference == TO_RIP && is_of_startup(code, i)))
			continue;
		memcpy(&value, modrm + 1, sizeof(value));
		note_reference(probes, reference == TO_RIP
					   ? code->header.sh_addr + (uint64_t)leads_to(code, i) +
						 (uint64_t)more
					   : (uint32_t)(base + (uint64_t)value));
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
	uint64_t left =
	    filebytes_size(elf->file); /* hostile sections may all have the same bytes */

	vec_sort(probes, by_semaphore);
	if (probes->items[probes->n - 1].semaphore == 0)
		return;
	for (size_t i = 0; i < elf->sections.n; i++) {
		struct elfsym_section *s = &elf->sections.items[i];

		if (!(s->header.sh_flags & SHF_EXECINSTR) || s->size > left ||
		    !elfsym_bytes(elf, s))
			continue;
		left -= s->size;
		look_for_references(probes, s, is_wide ? TO_RIP : TO_ABSOLUTE, 0);
		if (got)
			look_for_references(probes, s, TO_BASE, got);
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
