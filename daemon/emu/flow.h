/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Flow
 *
 * Judges what a thread's last block did, once it is known where control went, and writes the
 * packets of that. A block says when it begins and when its last instruction begins. If the last
 * one began, all before it retired, and where control went tells about itself; if it did not, the
 * block was left in its midst, at the instruction where control is now.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/emu/block.h"
#include "daemon/emu/encode.h"
#include "daemon/emu/truthlog.h"

struct flow {
	struct encode *encode;     /* of the CPU the thread has; NULL: packets are off */
	const struct block *block; /* begun, not judged yet; NULL only when packets are off */
	bool last_began;           /* so has its last instruction */
	struct truthlog *log;      /* borrowed; NULL if there is none */
	uint64_t n_odd;            /* times that control went somewhere for no known reason */
};

enum flow_verdict {
	FLOW_FOLLOWS,  /* all of the block retired; @ip is where it leads */
	FLOW_RESTARTS, /* the instruction at @ip, in the block, has not retired; those before it
			* have */
	FLOW_ODD,      /* the block does not explain @ip: nothing was judged */
};

/*
 * Control is at @ip. If that is not odd, the block is judged, its packets are written and its
 * instructions logged; the caller sets the next block.
 */
enum flow_verdict flow_step(struct flow *flow, uint64_t ip);

/*
 * A signal or the like takes the thread away before the instruction at @ip, or just behind an int3:
 * judge the block and stop packets.
 */
void flow_interrupt(struct flow *flow, uint64_t ip);

/* The block led into the kernel: judge it and stop packets. */
void flow_syscall(struct flow *flow);

/*
 * As flow_interrupt(), but the handler at @to is covered by packets, too, which go on there; the
 * caller sets its block.
 */
void flow_event(struct flow *flow, uint64_t ip, uint64_t to);

/* The block led into the kernel, at @to, which packets cover, too: judge it and go on there. */
void flow_enter_kernel(struct flow *flow, uint64_t to);

/* The block led to where packets do not cover, by a far return: judge it and stop packets. */
void flow_leave(struct flow *flow);

/*
 * Control went somewhere for no known reason: claim what surely retired, and stop packets at the
 * first instruction that may not have.
 */
void flow_odd(struct flow *flow);
