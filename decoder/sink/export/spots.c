/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/export/spots.h"

#include <errno.h>

#include "util/vec.h"

/* How many runs are counted at once. */
#define RUNS_MAX 1024u

int spots_count(struct tally *tally, struct tally_index *index, const struct ptd_batch *batch)
{
	struct tally_sum sums[RUNS_MAX];
	int r = 0;

	for (size_t i = 0; i < batch->n_runs && r == 0; i += RUNS_MAX) {
		const size_t left = batch->n_runs - i, n = left < RUNS_MAX ? left : RUNS_MAX;

		r = tally_add(tally, batch, sums, tally_sum(batch->runs + i, n, index, sums));
	}
	return r;
}

static bool calls(uint8_t iclass)
{
	return iclass == PTD_INSN_CALL || iclass == PTD_INSN_CALL_INDIRECT;
}

static int add_block(struct spots *spots, const struct tally_block *b,
		     const struct ptd_symbol *const *symbols)
{
	const struct ptd_block *block = b->block;
	uint64_t n = b->n_whole;
	int r = 0;

	for (size_t i = 0; i < block->n_insns && r == 0; i++) {
		const struct ptd_insn *insn = &block->insns[i];
		const uint64_t address = block->address + insn->offset;

		n += b->turns ? (uint64_t)b->turns[i] : 0;
		if (n > 0)
			r = vec_push(spots,
				     { .address = address,
				       .n = n,
				       .is_call = calls(insn->iclass),
				       .is_entry = insn->symbol != PTD_NO_SYMBOL &&
						   symbols[insn->symbol]->address == address });
	}
	return r;
}

static int by_address(const void *pa, const void *pb)
{
	const struct spot *a = pa, *b = pb;

	return COMPARE(a->address, b->address);
}

/* Sort the spots. Blocks overlap: what is at the same address becomes one. */
static void unite(struct spots *spots)
{
	size_t n = 0;

	if (spots->n == 0)
		return;
	vec_sort(spots, by_address);
	for (size_t i = 1; i < spots->n; i++) {
		if (spots->items[i].address == spots->items[n].address)
			spots->items[n].n += spots->items[i].n;
		else
			spots->items[++n] = spots->items[i];
	}
	spots->n = n + 1;
}

int spots_list(const struct tally *tally, const struct ptd_object *object,
	       const struct ptd_symbol *const *symbols, struct spots *ret_spots)
{
	int r = 0;

	for (size_t i = 0; i < tally->blocks.n && r == 0; i++) {
		const struct tally_block *b = &tally->blocks.items[i];

		if (b->block && b->block->object == object)
			r = add_block(ret_spots, b, symbols);
	}
	unite(ret_spots);
	return r;
}
