/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "daemon/plugin/flow.h"

static bool is_far(const struct block *block)
{
	return block->end == BLOCK_RETURN || block->end == BLOCK_CALL_INDIRECT ||
	       block->end == BLOCK_JUMP_INDIRECT || block->end == BLOCK_FAR;
}

bool flow_leads_far(const struct block *block, uint64_t ip, struct encode *e)
{
	if (!is_far(block) || ip == block->last_ip)
		return false;
	if (block->end == BLOCK_RETURN)
		encode_return(e, ip);
	else
		encode_indirect(e, ip);
	if (block->end == BLOCK_CALL_INDIRECT)
		encode_push(e, block->next_ip, 1);
	return true;
}

/* Is control at an instruction of the block that runs again? */
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

/* Write what the block did, if it leads to @ip. */
static bool put_block(const struct block *b, uint64_t ip, struct encode *e)
{
	if (!flow_leads(b, ip, e) && !flow_leads_far(b, ip, e))
		return false;
	if (encode_is_full(e))
		encode_flush(e);
	return true;
}

static bool may_lead(const struct block *b, uint64_t ip)
{
	return ip == b->leads[0] || ip == b->leads[1] || (is_far(b) && ip != b->last_ip);
}

enum flow_verdict flow_step(struct flow *flow, uint64_t ip)
{
	const struct block *b = flow->block;

	if (!flow->last_began || !(flow->encode ? put_block(b, ip, flow->encode) : may_lead(b, ip)))
		return restarts(flow, ip);
	truthlog_whole(flow->log, b->id);
	return FLOW_FOLLOWS;
}

/* After the instruction before the one at @ip. */
static void stop_packets(struct flow *flow, uint64_t ip)
{
	if (flow->encode)
		encode_disable_at(flow->encode, ip);
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
	stop_packets(flow, judge_interrupted(flow, ip));
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
		if (flow->encode)
			encode_disable(flow->encode);
		flow->encode = NULL;
		flow->block = NULL;
		flow->last_began = false;
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
	stop_packets(flow, log_retired(flow));
}
