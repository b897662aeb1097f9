/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "daemon/emu/flow.h"

static enum flow_verdict follows(const struct flow *flow)
{
	log_whole(flow->log, flow->block->id);
	return FLOW_FOLLOWS;
}

/* Is control at an instruction of the block that is to run again? */
static enum flow_verdict restarts(const struct flow *flow, uint64_t ip)
{
	const struct block *b = flow->block;
	int i;

	if (flow->last_began) {
		if (ip != b->last_ip)
			return FLOW_ODD;
		log_partial(flow->log, b->id, b->n - 1u);
		return FLOW_RESTARTS;
	}
	i = b->n == 0 && ip == b->ip ? 0 : block_index(b, ip);
	if (i < 0)
		return FLOW_ODD;
	log_partial(flow->log, b->id, (uint32_t)i);
	return FLOW_RESTARTS;
}

enum flow_verdict flow_step(struct flow *flow, uint64_t ip)
{
	const struct block *b = flow->block;
	struct encode *e = flow->encode;

	if (!flow->last_began)
		return restarts(flow, ip);

	switch ((enum block_end)b->end) {
	case BLOCK_COND:
		if (ip != b->target && ip != b->next_ip)
			break;
		encode_cond(e, ip == b->target);
		return follows(flow);
	case BLOCK_FALLS:
	case BLOCK_REP:
		if (ip != b->next_ip)
			break;
		return follows(flow);
	case BLOCK_JUMP:
		if (ip != b->target)
			break;
		return follows(flow);
	case BLOCK_CALL:
		if (ip != b->target)
			break;
		/* Reading one's own address is no call: the CPU does not remember it. */
		if (b->target != b->next_ip)
			encode_push(e, b->next_ip);
		return follows(flow);
	/*
	 * These can go anywhere; but control at the branch itself means that it faulted, or is
	 * tried again, not that it branched to itself.
	 */
	case BLOCK_RETURN:
		if (ip == b->last_ip)
			break;
		encode_return(e, ip);
		return follows(flow);
	case BLOCK_CALL_INDIRECT:
		if (ip == b->last_ip)
			break;
		encode_indirect(e, ip);
		encode_push(e, b->next_ip);
		return follows(flow);
	case BLOCK_JUMP_INDIRECT:
	case BLOCK_FAR:
		if (ip == b->last_ip)
			break;
		encode_indirect(e, ip);
		return follows(flow);
	case BLOCK_SYSCALL:
	case BLOCK_INTERRUPT:
		break;
	}
	return restarts(flow, ip);
}

static void stop(struct flow *flow)
{
	flow->encode = NULL;
	flow->block = NULL;
	flow->last_began = false;
}

/* The block ended in int3 or int n, which counts as not run as far as packets can say. */
static void stop_behind_int(struct flow *flow)
{
	log_unreported(flow->log, flow->block->id);
	encode_disable_at(flow->encode, flow->block->last_ip);
	stop(flow);
}

void flow_interrupt(struct flow *flow, uint64_t ip)
{
	const struct block *b = flow->block;

	if (flow->last_began && b->end == BLOCK_INTERRUPT && ip == b->next_ip) {
		stop_behind_int(flow);
	} else if (flow_step(flow, ip) == FLOW_ODD) {
		flow_odd(flow);
	} else {
		encode_disable_at(flow->encode, ip);
		stop(flow);
	}
}

void flow_syscall(struct flow *flow)
{
	const struct block *b = flow->block;

	if (flow->last_began && b->end == BLOCK_SYSCALL) {
		log_whole(flow->log, b->id);
		encode_disable(flow->encode);
		stop(flow);
	} else if (flow->last_began && b->end == BLOCK_INTERRUPT) {
		stop_behind_int(flow);
	} else {
		/* The vsyscall page: control got there, and nothing ran. */
		flow_odd(flow);
	}
}

void flow_odd(struct flow *flow)
{
	const struct block *b = flow->block;

	if (flow->last_began)
		log_partial(flow->log, b->id, b->n - 1u);
	encode_disable_at(flow->encode, flow->last_began ? b->last_ip : b->ip);
	stop(flow);
}
