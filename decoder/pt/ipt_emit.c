/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Runs of blocks, made of the instructions that libipt says were executed. */

#include "decoder/pt/ipt.h"

#include <assert.h>
#include <errno.h>

/* Where code of @mode is that libipt, which reckons with 64 bits, says to be at @ip. */
static uint64_t cut(uint8_t mode, uint64_t ip)
{
	return mode == 64 ? ip : (uint32_t)ip;
}

/*
 * How many of @n instructions from @first on are of @block when it stands at @base: a block knows
 * its object, not where the piece of it ends that is mapped, at @last.
 */
static size_t reach(const struct ptd_block *block, uint64_t base, size_t first, size_t n,
		    uint64_t last)
{
	size_t reached = block->n_insns - first;

	if (reached > n)
		reached = n;
	if (last - base < block->size)
		while (reached > 1 && block->insns[first + reached - 1].offset > last - base)
			reached--;
	return reached;
}

/* Return: whether the last run leads to @ip. */
static bool leads_to(const struct ipt_flow *flow, uint64_t ip)
{
	switch (flow->way) {
	case IPT_FLOW_ON:
		return ip == flow->next;
	case IPT_FLOW_TARGET:
		return ip == flow->target;
	case IPT_FLOW_EITHER:
		return ip == flow->next || ip == flow->target;
	default:
		return true;
	}
}

/* Where libipt's block goes on behind the last run. */
static uint64_t on_from(const struct ipt_flow *flow)
{
	return flow->way == IPT_FLOW_TARGET ? flow->target : flow->next;
}

/* Note where the last run leads. */
static void note_flow(struct ipt_engine *e, const struct ptd_run *run)
{
	const struct ptd_block *block = run->block;
	const struct ptd_insn *last = &block->insns[run->first + run->n - 1];

	e->flow.ip = run->base + last->offset;
	e->flow.is_far_return = last->iclass == PTD_INSN_RETURN_FAR;
	e->flow.next = cut(block->mode, e->flow.ip + last->size);
	e->flow.target = cut(block->mode, run->base + (uint64_t)block->target);
	switch (last->iclass) {
	case PTD_INSN_OTHER:
	case PTD_INSN_PTWRITE:
		e->flow.way = IPT_FLOW_ON;
		break;
	case PTD_INSN_JUMP_COND:
		e->flow.way = IPT_FLOW_EITHER;
		break;
	case PTD_INSN_JUMP:
	case PTD_INSN_CALL:
		/* A direct far one, which 64-bit code has not, bears no target. */
		e->flow.way = block->mode == 64 || e->flow.target != e->flow.next
				  ? IPT_FLOW_TARGET
				  : IPT_FLOW_ANYWHERE;
		break;
	default:
		e->flow.way = IPT_FLOW_ANYWHERE;
	}
}

/* What is mapped at @ip: up to @ret_last it is. NULL: nothing is known to be. */
static const struct extent *find(const struct ipt_engine *e, uint64_t ip, uint64_t *ret_last)
{
	const struct extent *extent = e->image ? layout_find(&e->image->layout, ip) : NULL;

	if (!extent)
		return NULL;
	*ret_last = extent->last;
	if (e->image->layout.doubts.n > 0 && !layout_is_sure(&e->image->layout, ip, ret_last))
		return NULL;
	return extent;
}

/* The next @n instructions are of @block, which is in @extent, and known up to @last. */
static void append(struct ipt_engine *e, struct ipt_output *output, const struct extent *extent,
		   uint64_t last, const struct ptd_block *block, uint64_t ip, size_t n)
{
	assert(output->n < output->n_max);
	output->runs[output->n++] = (struct ptd_run){
		.block = block,
		.base = ip,
		.t = e->t,
		.n = (uint16_t)n,
		.early = extent->kind == MAPPING_EARLY,
	};
	note_flow(e, &output->runs[output->n - 1]);
	output->last = last;
	output->n_insns += n;
}

/* Return: whether @ip is the next instruction of the block that the last run ends in. */
static bool extend(struct ipt_output *output, uint64_t ip, size_t *n)
{
	struct ptd_run *last;
	size_t next, more;

	if (output->n == 0)
		return false;
	last = &output->runs[output->n - 1];
	next = (size_t)last->first + last->n;
	if (next >= last->block->n_insns || last->base + last->block->insns[next].offset != ip ||
	    ip > output->last)
		return false;

	more = reach(last->block, last->base, next, *n, output->last);
	last->n = (uint16_t)(last->n + more);
	output->n_insns += more;
	*n -= more;
	return true;
}

/* What libipt is told of the cache's error. */
static int status_of(struct ipt_engine *e, int error)
{
	if (error != -ENOMEM)
		return -pte_bad_insn;
	e->no_memory = true;
	return -pte_nomem;
}

int ipt_emit(struct ipt_engine *engine, struct ipt_output *output, uint64_t ip, size_t n,
	     uint8_t mode)
{
	uint64_t behind = ip = cut(mode, ip);

	while (n > 0) {
		const struct ptd_block *block;
		const struct extent *extent;
		uint64_t last;
		size_t take;
		int r;

		engine->ip = ip;
		if (extend(output, ip, &n)) {
			const struct ptd_run *run = &output->runs[output->n - 1];

			note_flow(engine, run);
			behind = engine->flow.next;
			ip = on_from(&engine->flow);
			continue;
		}

		if (!leads_to(&engine->flow, ip))
			return -pte_bad_query;
		extent = find(engine, ip, &last);
		if (!extent)
			return -pte_nomap;
		r = cache_get(engine->config.cache, extent->object,
			      extent->offset + (ip - extent->start), mode, &block);
		if (r < 0)
			return status_of(engine, r);

		if (output->n == output->n_max)
			return -pte_bad_insn;
		take = reach(block, ip, 0, n, last);
		append(engine, output, extent, last, block, ip, take);
		n -= take;
		behind = engine->flow.next;
		ip = on_from(&engine->flow);
	}
	engine->ip = behind;
	return 0;
}

int ipt_emit_stitched(struct ipt_engine *engine, struct ipt_output *output, uint64_t ip,
		      uint8_t mode, const uint8_t *bytes, size_t size)
{
	const struct extent *extent;
	const struct ptd_block *block;
	uint64_t last;
	int r;

	ip = cut(mode, ip);
	engine->ip = ip;
	if (!leads_to(&engine->flow, ip))
		return -pte_bad_query;
	extent = find(engine, ip, &last);
	if (!extent)
		return -pte_nomap;
	r = cache_get_stitched(engine->config.cache, extent->object,
			       extent->offset + (ip - extent->start), mode, bytes, size, &block);
	if (r < 0)
		return status_of(engine, r);
	append(engine, output, extent, last, block, ip, 1);
	return 0;
}
