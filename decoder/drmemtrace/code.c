/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/drmemtrace/code.h"

#include <string.h>

#define INSN_BITS 16 /* of ptd_block.n_insns */

struct memtrace_code *memtrace_code_new(uint64_t serial)
{
	struct memtrace_code *code = calloc(1, sizeof(*code));

	if (!code)
		return NULL;
	code->serial = serial;
	code->generation = 1; /* a site begins with 0: it has yet to be compared with the others */
	return code;
}

struct memtrace_code *memtrace_code_free(struct memtrace_code *code)
{
	if (!code)
		return NULL;
	vec_deinit(&code->sites);
	map_deinit(&code->by_key);
	map_deinit(&code->by_pc);
	free(code);
	return NULL;
}

static bool same_bytes(const struct ptd_block *a, size_t i, const struct ptd_block *b, size_t j)
{
	const struct ptd_insn *x = &a->insns[i], *y = &b->insns[j];

	return x->size == y->size && !memcmp(a->bytes + x->offset, b->bytes + y->offset, x->size);
}

static uint64_t pc_of(const struct memtrace_site *site, size_t i)
{
	return site->base + site->block->insns[i].offset;
}

/* Is other code of this generation where this site's instructions are? */
static bool contradicts(const struct memtrace_code *code, const struct memtrace_site *site)
{
	for (size_t i = 0; i < site->block->n_insns; i++) {
		const uint64_t *claim = map_get(&code->by_pc, pc_of(site, i));
		const struct memtrace_site *other;

		if (!claim)
			continue;
		other = &code->sites.items[*claim >> INSN_BITS];
		if (other->generation == code->generation &&
		    !same_bytes(site->block, i, other->block, *claim & ((1 << INSN_BITS) - 1)))
			return true;
	}
	return false;
}

static int claim_pcs(struct memtrace_code *code, uint32_t index)
{
	struct memtrace_site *site = &code->sites.items[index];
	int r;

	if (contradicts(code, site))
		code->generation++;

	for (size_t i = 0; i < site->block->n_insns; i++) {
		r = map_put(&code->by_pc, pc_of(site, i), (uint64_t)index << INSN_BITS | i);
		if (r < 0)
			return r;
	}
	site->generation = code->generation;
	return 0;
}

/* Different sites may share a key; those that do are chained. */
static uint64_t key_of(const struct ptd_block *block, uint64_t base)
{
	return base + block->id * UINT64_C(0xd1b54a32d192ed03);
}

static bool is_site(const struct memtrace_site *site, const struct ptd_block *block, uint64_t base)
{
	return site->block == block && site->base == base;
}

static int add_site(struct memtrace_code *code, const struct ptd_block *block, uint64_t base,
		    uint64_t key, uint32_t next, uint32_t *ret_index)
{
	const uint32_t index = (uint32_t)code->sites.n;
	int r;

	r = vec_push(&code->sites, { .block = block, .base = base, .next = next });
	if (r < 0)
		return r;
	r = map_put(&code->by_key, key, index);
	if (r < 0) {
		code->sites.n--;
		return r;
	}
	code->n_insns += block->n_insns;
	*ret_index = index;
	return 0;
}

/* Return: the index of the site in the chain that begins at @link, plus 1; 0 if it is not there. */
static uint32_t find_in_chain(const struct memtrace_code *code, uint32_t link,
			      const struct ptd_block *block, uint64_t base)
{
	while (link && !is_site(&code->sites.items[link - 1], block, base))
		link = code->sites.items[link - 1].next;
	return link;
}

int memtrace_code_site(struct memtrace_code *code, const struct ptd_block *block, uint64_t base,
		       uint32_t *ret_site)
{
	const uint64_t key = key_of(block, base);
	const uint64_t *head = map_get(&code->by_key, key);
	const uint32_t link = head ? find_in_chain(code, (uint32_t)*head + 1, block, base) : 0;
	uint32_t index;
	int r;

	if (link) {
		index = link - 1;
	} else {
		r = add_site(code, block, base, key, head ? (uint32_t)*head + 1 : 0, &index);
		if (r < 0)
			return r;
	}

	if (code->sites.items[index].generation != code->generation) {
		r = claim_pcs(code, index);
		if (r < 0)
			return r;
	}
	*ret_site = index;
	return 0;
}

bool memtrace_code_find(const struct memtrace_code *code, const struct ptd_block *block,
			uint64_t base, uint32_t *ret_site)
{
	const uint64_t *head = map_get(&code->by_key, key_of(block, base));
	const uint32_t link = head ? find_in_chain(code, (uint32_t)*head + 1, block, base) : 0;

	if (!link || code->sites.items[link - 1].generation != code->generation)
		return false;
	*ret_site = link - 1;
	return true;
}
