/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/calls/blockfacts.h"

#include <errno.h>

void blockfacts_deinit(struct blockfacts_table *table)
{
	vec_deinit(&table->facts);
}

/* Return: whether @block, of code that has a symbol if @has_symbol, ends in something that the
 * rules must look at. */
static bool ends(const struct ptd_block *block, bool has_symbol)
{
	const struct ptd_insn *last = &block->insns[block->n_insns - 1];

	switch (last->iclass) {
	case PTD_INSN_OTHER:
	case PTD_INSN_PTWRITE:
		return false;
	case PTD_INSN_JUMP:
	case PTD_INSN_JUMP_COND:
	case PTD_INSN_JUMP_INDIRECT:
		return !has_symbol;
	case PTD_INSN_CALL:
		/* A call of the next instruction only finds out its address. */
		return block->target != last->offset + last->size;
	default:
		return true;
	}
}

static int find_facts(struct functions *functions, const struct ptd_batch *batch,
		      const struct ptd_block *block, struct blockfacts *ret_facts)
{
	struct blockfacts facts = { .is_known = true };
	uint32_t symbol = block->insns[0].symbol;
	int r;

	r = functions_code(functions, batch, block, 0, &facts.code);
	facts.end_code = facts.code;
	for (size_t i = 1; i < block->n_insns && r == 0; i++) {
		if (block->insns[i].symbol == symbol)
			continue;
		symbol = block->insns[i].symbol;
		facts.is_mixed = true;
		r = functions_code(functions, batch, block, i, &facts.end_code);
	}
	if (r < 0)
		return r;
	facts.ends = ends(block, !(facts.end_code & CODE_UNNAMED));
	facts.is_plain = !facts.is_mixed && !facts.ends;
	*ret_facts = facts;
	return 0;
}

int blockfacts_get(struct blockfacts_table *table, struct functions *functions,
		   const struct ptd_batch *batch, const struct ptd_block *block,
		   const struct blockfacts **ret_facts)
{
	struct blockfacts_recent *recent = blockfacts_recent(table, block);
	struct blockfacts *facts;
	int r;

	if (block->id >= table->facts.n) {
		r = vec_reserve(&table->facts, block->id + (size_t)1 - table->facts.n);
		if (r < 0)
			return r;
		while (table->facts.n <= block->id)
			table->facts.items[table->facts.n++] = (struct blockfacts){};
	}
	facts = &table->facts.items[block->id];
	if (!facts->is_known) {
		r = find_facts(functions, batch, block, facts);
		if (r < 0)
			return r;
	}
	*recent = (struct blockfacts_recent){ block, facts->is_plain ? facts->code : CODE_NONE };
	*ret_facts = facts;
	return 0;
}
