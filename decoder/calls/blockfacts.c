/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/calls/blockfacts.h"

#include <string.h>

#include "decoder/calls/trap.h"

void blockfacts_deinit(struct blockfacts_table *table)
{
	vec_deinit(&table->facts);
}

void blockfacts_forget(struct blockfacts_table *table, const struct functions *functions)
{
	if (table->n_learned != functions->n_learned)
		table->facts.n = 0;
	table->n_learned = functions->n_learned;
	table->n_starts = functions->n_starts;
	memset(table->recent, 0, sizeof(table->recent));
}

/* Return: whether @block, of code that has a symbol if @has_symbol, ends in something that the
 * rules must look at. */
static bool ends(const struct ptd_block *block, bool has_symbol)
{
	const struct ptd_insn *last = &block->insns[block->n_insns - 1];

	switch (last->iclass) {
	case PTD_INSN_OTHER:
	case PTD_INSN_PTWRITE:
	case PTD_INSN_JUMP:
	case PTD_INSN_JUMP_COND:
		return false;
	case PTD_INSN_JUMP_INDIRECT:
		return !has_symbol;
	case PTD_INSN_CALL:
		/* A call of the next instruction only finds out its address. */
		return block->target != last->offset + last->size;
	default:
		return true;
	}
}

/* Return: what the block does with traps. A branch behind raising leads to a handler. */
static uint8_t find_traps(const struct ptd_block *block)
{
	uint8_t flags = 0;
	int64_t handler;

	for (size_t i = 0; i < block->n_insns; i++) {
		const enum trap_op op = trap_op_at(block, i, &handler);

		if (op == TRAP_PUSH || op == TRAP_POP)
			flags |= BLOCKFACTS_TRAPS;
		else if (op == TRAP_RAISE)
			flags |= BLOCKFACTS_ENDS;
	}
	return flags;
}

static int find_facts(struct functions *functions, const struct ptd_batch *batch,
		      const struct ptd_block *block, struct blockfacts *ret_facts)
{
	const struct ptd_insn *last = &block->insns[block->n_insns - 1];
	struct blockfacts facts = { .flags = BLOCKFACTS_KNOWN,
				    .n_insns = block->n_insns,
				    .end = { .offset = (uint16_t)(last->offset + last->size),
					     .last_offset = last->offset,
					     .last_class = last->iclass } };
	uint32_t end_code;
	int r;

	r = functions_code(functions, batch, block, 0, &facts.code);
	if (r == 0)
		r = functions_code(functions, batch, block, block->n_insns - 1u, &end_code);
	if (r < 0)
		return r;
	facts.end.is_unnamed = end_code & CODE_UNNAMED;
	for (size_t i = 1; i < block->n_insns; i++)
		if (block->insns[i].symbol != block->insns[0].symbol)
			facts.flags |= BLOCKFACTS_MIXED;
	if (!(facts.code & CODE_UNNAMED)) {
		const struct function *f = functions_get(functions, facts.code);

		facts.role = f->role;
		if (functions_is_beginning(f, batch, block, 0))
			facts.flags |= BLOCKFACTS_BEGINS;
	}
	if (ends(block, !(end_code & CODE_UNNAMED)) ||
	    (function_leads_on(facts.role) && last->iclass == PTD_INSN_JUMP_INDIRECT))
		facts.flags |= BLOCKFACTS_ENDS;
	facts.flags |= find_traps(block);
	*ret_facts = facts;
	return 0;
}

const struct blockfacts *blockfacts_get(struct blockfacts_table *table, struct functions *functions,
					const struct ptd_batch *batch,
					const struct ptd_block *block)
{
	const size_t i = blockfacts_index(block);
	struct blockfacts *facts = vec_at(&table->facts, block->id, {});
	bool is_special;

	if (!facts ||
	    (!(facts->flags & BLOCKFACTS_KNOWN) && find_facts(functions, batch, block, facts) < 0))
		return NULL;
	if (table->recent[i].block != block && (facts->code & CODE_UNNAMED)) {
		facts->flags &= (uint8_t)~BLOCKFACTS_START;
		if (functions_begins(functions, block, 0))
			facts->flags |= BLOCKFACTS_START;
	}
	is_special = facts->flags & (BLOCKFACTS_MIXED | BLOCKFACTS_TRAPS | BLOCKFACTS_START);
	table->recent[i] = (struct blockfacts_recent){
		.block = block,
		.code = is_special ? CODE_NONE : facts->code,
		.n_insns = facts->flags & BLOCKFACTS_ENDS ? facts->n_insns : 0,
		.flags = facts->flags,
		.role = facts->role,
	};
	table->ends[i] = facts->end;
	return facts;
}
