/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Unit
 *
 * The PT unit of one emulated CPU of a guest. It is called for each block of code that the CPU
 * runs, user and kernel, and writes the packets of the code that it is configured to record into
 * the ring that the guest reads. When the ring is full, packets are lost, and an OVF follows as
 * soon as there is room.
 *
 * All functions are called by the vCPU's own thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/plugin/block.h"
#include "daemon/plugin/encode.h"
#include "daemon/plugin/flow.h"
#include "tests/system/truth.h"
#include "tests/system/vmring.h"

/* Size of the buffer for packets that are discarded. */
#define UNIT_SINK_SIZE 4096

struct unit {
	unsigned vcpu;
	volatile struct vmring *ring; /* borrowed, shared with the guest */
	volatile uint32_t *number;    /* of the log; borrowed, shared with the guest */
	struct truth *truth;          /* borrowed */

	struct flow flow;      /* its encode is one of the next two */
	struct encode encode;  /* writes into the ring */
	struct encode nowhere; /* writes into @sink while the ring has no room */
	bool dropping;         /* the ring had no room, and OVF was not written yet */
	uint64_t control;      /* the value of the ring's @control in use */
	uint64_t restarts;
	struct truthlog *user_log;   /* of the thread @tid */
	struct truthlog *kernel_log; /* of the CPU */
	uint32_t logs_number;        /* the log to which both belong */
	uint32_t tid;
	uint64_t n_events;
	uint64_t n_frameless; /* events whose interrupted address could not be read */
	uint8_t sink[UNIT_SINK_SIZE];
};

void unit_init(struct unit *unit, unsigned vcpu, struct vmring *ring, volatile uint32_t *number,
	       struct truth *truth);

/* Return: whether a handler of interrupts or exceptions is at @ip. */
bool unit_has_handler(const struct unit *unit, uint64_t ip);

/* The CPU begins a block. Code in the upper half of the address space is kernel code. */
void unit_begin_block(struct unit *unit, const struct block *block);

static inline void unit_begin_last(struct unit *unit)
{
	unit->flow.last_began = true;
}

/* The block led into the kernel, at @to, which is recorded, too. Judge it and continue there. */
void unit_enter_kernel(struct flow *flow, uint64_t to);

/* The block led by a far return to code that is not recorded. Judge it and stop packets. */
void unit_leave(struct flow *flow);
