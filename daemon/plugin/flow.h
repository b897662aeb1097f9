/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Flow
 *
 * Finds out what a thread's last block did, as soon as it is known where control went, and writes
 * the packets for it, or the ground truth. QEMU reports when a block begins. If the last
 * instruction began, all instructions before it retired, and the place where control went shows
 * what it did. If not, the block was left before its end, at the instruction where control is now.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/plugin/block.h"
#include "daemon/plugin/encode.h"
#include "daemon/plugin/truthlog.h"

struct flow {
	struct encode *encode;     /* of the thread's virtual CPU; NULL: packets are off */
	const struct block *block; /* begun, not judged yet; NULL only when packets are off */
	bool last_began;           /* the last instruction of @block began */
	struct truthlog *log;      /* borrowed; NULL if there is none */
	uint64_t n_odd;            /* times that control went somewhere for no known reason */
};

enum flow_verdict {
	FLOW_FOLLOWS,  /* all of the block retired, and it leads to @ip */
	FLOW_RESTARTS, /* the instruction at @ip, in the block, has not retired; those before it
			* have */
	FLOW_ODD,      /* the block does not lead to @ip; nothing was written */
};

/*
 * Control is at @ip after @block, whose last instruction began. If that is where its bytes alone
 * lead, its packets are pending: a branch, which the caller writes if that fills a packet
 * (encode_is_full()); or a call. Return: whether that is so.
 */
static inline bool flow_leads(const struct block *block, uint64_t ip, struct encode *encode)
{
	const bool is_taken = ip == block->leads[1];

	if (!(is_taken | (ip == block->leads[0])))
		return false;
	encode_bits(encode, is_taken, block->n_bits);
	encode_push(encode, block->next_ip, block->calls);
	return true;
}

/* The same of a block that can lead anywhere. But if control is at the branch itself, that faulted
 * or is repeated, and has not branched to itself. */
bool flow_leads_far(const struct block *block, uint64_t ip, struct encode *encode);

/*
 * Control is at @ip after the flow's block. Unless that is FLOW_ODD, its packets are written and
 * its instructions are logged. The caller sets the next block.
 */
enum flow_verdict flow_step(struct flow *flow, uint64_t ip);

/*
 * A signal or the like interrupted the thread before the instruction at @ip, or just after an int3.
 * Judge the block and stop packets.
 */
void flow_interrupt(struct flow *flow, uint64_t ip);

/* The block led into the kernel. Judge it and stop packets. Return: whether it did so by an
 * instruction for that, and not by a call of the vsyscall page. */
bool flow_syscall(struct flow *flow);

/*
 * As flow_interrupt(), but the handler at @to is recorded, too: packets continue there. The caller
 * sets its block.
 */
void flow_event(struct flow *flow, uint64_t ip, uint64_t to);

/*
 * Control went somewhere for no known reason. Log what retired for certain, and stop packets at the
 * first instruction that may not have retired.
 */
void flow_odd(struct flow *flow);
