/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/pt/place.h"

#include "decoder/image/view.h"
#include "decoder/pt/engine_base.h"
#include "decoder/pt/errata.h"

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

static bool is_in_filter(const struct engine_config *config, uint64_t ip)
{
	bool filters = false, is_in = false;

	for (size_t i = 0; i < config->n_filters; i++) {
		const struct engine_filter *filter = &config->filters[i];
		const bool hits = filter->first <= ip && ip <= filter->last;

		if (filter->stops && hits)
			return false;
		filters = filters || !filter->stops;
		is_in = is_in || (!filter->stops && hits);
	}
	return is_in || !filters;
}

/* Can packets have been switched off by @insn of @run? @is_far: it is a far transfer. */
static bool can_disable(const struct engine *engine, const struct walk_event *event,
			const struct ptd_run *run, const struct ptd_insn *insn, bool is_far)
{
	const uint64_t target = run_target(run);

	switch (insn->iclass) {
	case PTD_INSN_OTHER:
		return !event->has_ip && is_cr3_write(insn, run->block->bytes + insn->offset);
	case PTD_INSN_PTWRITE:
		return false;
	case PTD_INSN_JUMP:
	case PTD_INSN_CALL:
		if (is_far)
			return true;
		if (event->has_ip)
			return target == event->ip;
		/* SKL014: it is missing where a direct branch leaves the filter's range. */
		return engine->config.n_filters > 0 && engine->errata & ERRATUM_SKL014 &&
		       !is_in_filter(&engine->config, target);
	case PTD_INSN_JUMP_COND:
	case PTD_INSN_RETURN:
		return event->has_ip;
	default:
		/* Without an address only far transfers leave what is traced. */
		return event->has_ip || is_far;
	}
}

/* Can instruction @i of @run have done what the event says? */
static bool can_do(const struct engine *engine, const struct walk_event *event, const struct seg *s,
		   const struct ptd_run *run, size_t i)
{
	const struct ptd_insn *insn = &run->block->insns[run->first + i];
	const uint8_t *bytes = run->block->bytes + insn->offset;
	const bool is_far =
	    run == &s->runs[s->n_runs - 1] && i + 1u == run->n && s->kind == SEG_FAR;

	switch (event->kind) {
	case WALK_DISABLED:
		return can_disable(engine, event, run, insn, is_far);
	case WALK_PAGING:
		return is_far || is_cr3_write(insn, bytes);
	case WALK_VMCS:
		return is_far || is_vmptrld(insn, bytes);
	default:
		return insn->iclass == PTD_INSN_PTWRITE;
	}
}

size_t place_find(const struct engine *engine, const struct walk_event *event, const struct seg *s,
		  bool is_done)
{
	size_t at = 0;

	for (size_t r = 0; r < s->n_runs; r++) {
		const struct ptd_run *run = &s->runs[r];

		for (size_t i = 0; i < run->n; i++, at++) {
			if (event->place == WALK_NEXT
				? can_do(engine, event, s, run, i)
				: ptd_run_ip(run, i) == event->ip &&
				      (at > 0 || !is_done || event->place != WALK_BEFORE))
				return at;
		}
	}
	return s->n_insns;
}

bool place_is_vm_entry(const struct seg *s)
{
	const struct ptd_run *run = &s->runs[s->n_runs - 1];
	const struct ptd_insn *insn = run_last(run);
	const uint8_t last_byte = run->block->bytes[insn->offset + insn->size - 1];

	return insn->iclass == PTD_INSN_VM && insn->size >= 3 &&
	       (last_byte == 0xc2 || last_byte == 0xc3);
}
