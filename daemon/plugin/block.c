/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "daemon/plugin/block.h"

#include <errno.h>
#include <string.h>

#include "decoder/x86/insn.h"

/* Code that writes numbers into itself has new bytes each time. After this number of blocks at one
 * address, blocks with the same layout are treated as one. */
#define SIBLINGS_MAX 16

/* A block whose end is being looked for. */
struct draft {
	uint64_t ip;
	uint64_t last_ip;
	uint64_t next_ip;
	uint64_t target;
	uint64_t hash;
	uint16_t n;
	uint8_t end;
	bool sets_cr3;
	uint16_t offsets[BLOCK_INSNS_MAX];
};

static enum block_end block_end_of(const struct insn *insn)
{
	if (insn->far)
		return BLOCK_FAR;

	switch ((enum ptd_insn_class)insn->class) {
	case PTD_INSN_JUMP:
		return BLOCK_JUMP;
	case PTD_INSN_JUMP_INDIRECT:
		return BLOCK_JUMP_INDIRECT;
	case PTD_INSN_JUMP_COND:
		return BLOCK_COND;
	case PTD_INSN_CALL:
		return BLOCK_CALL;
	case PTD_INSN_CALL_INDIRECT:
		return BLOCK_CALL_INDIRECT;
	case PTD_INSN_RETURN:
		return BLOCK_RETURN;
	case PTD_INSN_RETURN_FAR:
		return BLOCK_FAR;
	case PTD_INSN_SYSCALL:
	case PTD_INSN_SYSENTER:
		return BLOCK_SYSCALL;
	case PTD_INSN_INTERRUPT:
		return BLOCK_INTERRUPT;
	case PTD_INSN_VM: /* faults in user code */
	case PTD_INSN_PTWRITE:
	case PTD_INSN_OTHER:
		break;
	}
	return insn->rep ? BLOCK_REP : BLOCK_FALLS;
}

/* The hash of the bytes of consecutive instructions. */
static uint64_t hash_more(uint64_t hash, const uint8_t *bytes, size_t size)
{
	uint64_t halves[2] = {};

	memcpy(halves, bytes, size < sizeof(halves) ? size : sizeof(halves));
	hash = (hash ^ halves[0]) * UINT64_C(0x9e3779b97f4a7c15);
	hash = (hash ^ hash >> 32 ^ halves[1]) * UINT64_C(0xff51afd7ed558ccd);
	return hash ^ hash >> 29;
}

static void draft_block(uint8_t mode, uint64_t ip, const struct block_insn *insns, size_t n,
			struct draft *ret_draft)
{
	struct draft *d = ret_draft;

	d->ip = d->last_ip = d->next_ip = ip;
	d->target = d->hash = 0;
	d->n = 0;
	d->end = BLOCK_FALLS;
	d->sets_cr3 = false;
	for (size_t i = 0; i < n && i < BLOCK_INSNS_MAX; i++) {
		const struct block_insn *from = &insns[i];
		struct insn insn;

		if (insn_decode(mode, from->bytes, from->size, &insn) < 0 ||
		    insn.size != from->size)
			break;
		d->hash = hash_more(d->hash, from->bytes, from->size);
		d->offsets[d->n++] = (uint16_t)(from->ip - ip);
		d->last_ip = from->ip;
		d->next_ip = from->ip + from->size;
		/* An INTO falls through unless QEMU says that it was interrupted. */
		d->end = system_may_go_on(insn.class, from->bytes, from->size)
			     ? BLOCK_FALLS
			     : block_end_of(&insn);
		d->sets_cr3 = system_sets_cr3(from->bytes, from->size);
		d->target =
		    insn_target(mode, from->bytes, from->size, d->next_ip + (uint64_t)insn.disp);
	}
}

static bool same_layout(const struct block *block, const struct draft *d)
{
	return block->n == d->n && block->end == d->end && block->sets_cr3 == d->sets_cr3 &&
	       block->last_ip == d->last_ip && block->next_ip == d->next_ip &&
	       block->target == d->target &&
	       memcmp(block->offsets, d->offsets, d->n * sizeof(*d->offsets)) == 0;
}

static struct block *first_at(const struct blocks *blocks, uint64_t ip)
{
	return map_pointer(&blocks->by_ip, ip);
}

/* Where the end leads, as far as that is known. */
static void set_leads(struct block *block)
{
	block->leads[0] = block->leads[1] = BLOCK_NOWHERE;
	switch ((enum block_end)block->end) {
	case BLOCK_COND:
		block->n_bits = 1;
		block->leads[0] = block->next_ip;
		block->leads[1] = block->target;
		break;
	case BLOCK_CALL:
		block->calls = block->target != block->next_ip;
		block->leads[0] = block->leads[1] = block->target;
		break;
	case BLOCK_JUMP:
		block->leads[0] = block->leads[1] = block->target;
		break;
	case BLOCK_FALLS:
	case BLOCK_REP:
		block->leads[0] = block->leads[1] = block->next_ip;
		break;
	default:
		break;
	}
}

static int add_block(struct blocks *blocks, const struct draft *d, struct block *sibling,
		     struct block **ret_block)
{
	struct block *block = arena_alloc(&blocks->arena, sizeof(*block) + d->n * sizeof(uint16_t));
	int r;

	if (!block)
		return -ENOMEM;

	block->ip = d->ip;
	block->last_ip = d->last_ip;
	block->next_ip = d->next_ip;
	block->target = d->target;
	block->hash = d->hash;
	block->id = blocks->n;
	block->n = d->n;
	block->end = d->end;
	block->sets_cr3 = d->sets_cr3;
	block->sibling = sibling;
	block->marks = sibling ? sibling->marks & BLOCK_HANDLER : 0;
	set_leads(block);
	memcpy(block->offsets, d->offsets, d->n * sizeof(uint16_t));
	r = map_put(&blocks->by_ip, d->ip, (uintptr_t)block);
	if (r < 0)
		return r;

	blocks->n++;
	*ret_block = block;
	return BLOCKS_NEW;
}

int blocks_get(struct blocks *blocks, uint64_t ip, const struct block_insn *insns, size_t n,
	       struct block **ret_block)
{
	struct block *first = first_at(blocks, ip);
	unsigned n_siblings = 0;
	struct draft draft;

	draft_block(blocks->mode, ip, insns, n, &draft);
	for (struct block *b = first; b; b = b->sibling, n_siblings++) {
		if ((b->hash == draft.hash || n_siblings >= SIBLINGS_MAX) &&
		    same_layout(b, &draft)) {
			*ret_block = b;
			return 0;
		}
	}
	return add_block(blocks, &draft, first, ret_block);
}

void blocks_mark_handler(struct blocks *blocks, uint64_t ip)
{
	for (struct block *b = first_at(blocks, ip); b; b = b->sibling)
		(void)atomic_fetch_or(&b->marks, BLOCK_HANDLER);
}

int block_index(const struct block *block, uint64_t ip)
{
	for (int i = 0; i < block->n; i++)
		if (block->ip + block->offsets[i] == ip)
			return i;
	return -1;
}
