/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/pt/place.h"

#include "decoder/image/view.h"
#include "decoder/pt/engine.h"
#include "decoder/pt/walk.h"

static bool is_cr3_write(const struct ptd_insn *insn, const uint8_t *bytes)
{
	size_t i = 0;

	while (i < insn->size && ((bytes[i] & 0xf0) == 0x40 || bytes[i] == 0xf0))
		i++;
	return insn->size - i == 3 && bytes[i] == 0x0f && bytes[i + 1] == 0x22 &&
	       (bytes[i + 2] & 0x38) == 0x18;
}

/* VMPTRLD: 0f c7 /6 with memory, and neither 66 nor f3, which make other instructions of it. */
static bool is_vmptrld(const struct ptd_insn *insn, const uint8_t *bytes)
{
	size_t i = 0;

	while (i < insn->size && ((bytes[i] & 0xf0) == 0x40 || bytes[i] == 0x67 ||
				  bytes[i] == 0x2e || bytes[i] == 0x36 || bytes[i] == 0x3e ||
				  bytes[i] == 0x26 || (bytes[i] & 0xfe) == 0x64))
		i++;
	return insn->size - i >= 3 && bytes[i] == 0x0f && bytes[i + 1] == 0xc7 &&
	       (bytes[i + 2] & 0x38) == 0x30 && bytes[i + 2] < 0xc0;
}

bool place_is_vm_entry(const struct seg *s, size_t i)
{
	uint64_t ip;
	const uint8_t *bytes;
	const struct ptd_insn *insn = seg_insn(s, i, &ip, &bytes);

	return insn->iclass == PTD_INSN_VM && insn->size >= 3 &&
	       (bytes[insn->size - 1] == 0xc2 || bytes[insn->size - 1] == 0xc3);
}

static bool is_in_filter(const struct place *place, uint64_t ip)
{
	bool filters = false, is_in = false;

	for (size_t i = 0; i < place->n_filters; i++) {
		const struct engine_filter *filter = &place->filters[i];
		const bool hits = filter->first <= ip && ip <= filter->last;

		if (filter->stops && hits)
			return false;
		filters = filters || !filter->stops;
		is_in = is_in || (!filter->stops && hits);
	}
	return is_in || !filters;
}

/* Can packets have been switched off by the last instruction of @run, number @i of it? */
static bool can_disable(const struct place *place, const struct seg *s, const struct ptd_run *run,
			size_t i, const uint8_t *bytes)
{
	const struct ptd_insn *insn = &run->block->insns[i];
	const bool is_last = run == &s->runs[s->n_runs - 1] && i + 1u == run->n;
	const uint64_t target = run->base + (uint64_t)run->block->target;

	switch (insn->iclass) {
	case PTD_INSN_OTHER:
		return !place->event->has_ip && is_cr3_write(insn, bytes);
	case PTD_INSN_PTWRITE:
		return false;
	case PTD_INSN_JUMP:
	case PTD_INSN_CALL:
		if (is_last && s->kind == SEG_FAR)
			return true;
		if (place->event->has_ip)
			return target == place->event->ip;
		/* SKL014: it is missing where a direct branch leaves the filter's range. */
		return place->n_filters > 0 && place->lacks_ip && !is_in_filter(place, target);
	case PTD_INSN_JUMP_COND:
	case PTD_INSN_RETURN:
		return place->event->has_ip;
	default:
		/* Without an address only far transfers leave what is traced. */
		return place->event->has_ip || s->kind == SEG_FAR;
	}
}

/* Can the event be of instruction @i of @run? */
static bool can_do(const struct place *place, const struct seg *s, const struct ptd_run *run,
		   size_t i)
{
	const struct ptd_insn *insn = &run->block->insns[i];
	const uint8_t *bytes = run->block->bytes + insn->offset;
	const bool is_far =
	    run == &s->runs[s->n_runs - 1] && i + 1u == run->n && s->kind == SEG_FAR;

	switch (place->event->kind) {
	case WALK_DISABLED:
		return can_disable(place, s, run, i, bytes);
	case WALK_PAGING:
		return is_far || is_cr3_write(insn, bytes);
	case WALK_VMCS:
		return is_far || is_vmptrld(insn, bytes);
	default:
		return insn->iclass == PTD_INSN_PTWRITE;
	}
}

/* Is instruction @i of @run, the first of @s or not, the place of the event? */
static bool is_place(const struct place *place, const struct seg *s, const struct ptd_run *run,
		     size_t i, bool is_first)
{
	const uint64_t ip = run->base + run->block->insns[i].offset;

	switch (place->event->place) {
	case WALK_BEFORE:
		return ip == place->event->ip && !(is_first && place->is_done);
	case WALK_BEHIND:
		return ip == place->event->ip;
	case WALK_NEXT:
		return can_do(place, s, run, i);
	default:
		return true;
	}
}

size_t place_find(const struct place *place, const struct seg *s)
{
	size_t at = 0;

	for (size_t r = 0; r < s->n_runs; at += s->runs[r++].n)
		for (size_t i = 0; i < s->runs[r].n; i++)
			if (is_place(place, s, &s->runs[r], i, at + i == 0))
				return at + i;
	return s->n_insns;
}
