/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "daemon/plugin/flow.h"

static enum flow_verdict follows(const struct flow *flow)
{
	truthlog_whole(flow->log, flow->block->id);
	return FLOW_FOLLOWS;
}

/* Check whether control is at an instruction of the block that runs again. */
static enum flow_verdict restarts(const struct flow *flow, uint64_t ip)
{
	const struct block *b = flow->block;
	int i;

	if (flow->last_began) {
		if (ip != b->last_ip)
			return FLOW_ODD;
		truthlog_partial(flow->log, b->id, b->n - 1u);
		return FLOW_RESTARTS;
	}
	i = b->n == 0 && ip == b->ip ? 0 : block_index(b, ip);
	if (i < 0)
		return FLOW_ODD;
	truthlog_partial(flow->log, b->id, (uint32_t)i);
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
		/* A call of the next instruction reads the program counter: the CPU does not push
		 * it. */
		if (b->target != b->next_ip)
			encode_push(e, b->next_ip);
		return follows(flow);
	/* These branches can go anywhere. But if control is at the branch itself, it faulted or is
	 * repeated, and has not branched to itself. */
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

static void stop_packets(struct flow *flow)
{
	flow->encode = NULL;
	flow->block = NULL;
	flow->last_began = false;
}

/* Log what retired for certain. Return: the address of the first instruction that may not have
 * retired. */
static uint64_t log_retired(struct flow *flow)
{
	const struct block *b = flow->block;

	flow->n_odd++;
	if (!flow->last_began)
		return b->ip;
	truthlog_partial(flow->log, b->id, b->n - 1u);
	return b->last_ip;
}

/* Judge the block, which was interrupted before @ip. Return: the address for the packet that says
 * so. */
static uint64_t judge_interrupted(struct flow *flow, uint64_t ip)
{
	const struct block *b = flow->block;

	/* The block ended in int3 or int n, which by the packets has not run. */
	if (flow->last_began && b->end == BLOCK_INTERRUPT && ip == b->next_ip) {
		truthlog_unreported(flow->log, b->id);
		return b->last_ip;
	}
	return flow_step(flow, ip) == FLOW_ODD ? log_retired(flow) : ip;
}

void flow_interrupt(struct flow *flow, uint64_t ip)
{
	encode_disable_at(flow->encode, judge_interrupted(flow, ip));
	stop_packets(flow);
}

void flow_event(struct flow *flow, uint64_t ip, uint64_t to)
{
	encode_event(flow->encode, judge_interrupted(flow, ip), to);
}

bool flow_syscall(struct flow *flow)
{
	const struct block *b = flow->block;
	bool is_call = true;

	if (flow->last_began && b->end == BLOCK_SYSCALL) {
		truthlog_whole(flow->log, b->id);
		encode_disable(flow->encode);
		stop_packets(flow);
	} else if (flow->last_began && b->end == BLOCK_INTERRUPT) {
		flow_interrupt(flow, b->next_ip);
	} else {
		/* In the vsyscall page control arrived, and nothing ran. */
		flow_odd(flow);
		is_call = false;
	}
	return is_call;
}

void flow_odd(struct flow *flow)
{
	encode_disable_at(flow->encode, log_retired(flow));
	stop_packets(flow);
}
