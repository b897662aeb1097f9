/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Unit
 *
 * The PT unit of one emulated CPU: it is told which blocks of code the CPU runs, user's and
 * kernel's, and writes the packets of those that it is set to trace into the ring that the guest
 * reads. When that is full, packets are lost, and OVF says so once there is room again.
 *
 * All is called by the vCPU's own thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/emu/block.h"
#include "daemon/emu/encode.h"
#include "daemon/emu/flow.h"
#include "daemon/emu/truth.h"
#include "daemon/emu/vmring.h"

/* Packets that have nowhere to go are written here. */
#define UNIT_SINK_SIZE 4096

struct unit {
	unsigned vcpu;
	volatile struct vmring *ring; /* borrowed, shared with the guest */
	volatile uint32_t *number;    /* borrowed, shared, too: of the log */
	struct truth *truth;          /* borrowed */

	struct flow flow;      /* its encode is one of the two below */
	struct encode encode;  /* into the ring */
	struct encode nowhere; /* while there is no room */
	bool dropping;         /* there was no room, and OVF was not written yet */
	uint64_t control;      /* value of the ring's that is obeyed */
	uint64_t restarts;
	struct truthlog *user_log;   /* of the thread @tid, */
	struct truthlog *kernel_log; /* and of the CPU, */
	uint32_t logs_number;        /* in this log */
	uint32_t tid;
	uint64_t n_events;
	uint64_t n_frameless; /* events of which nothing told where they came from */
	uint8_t sink[UNIT_SINK_SIZE];
};

void unit_init(struct unit *unit, unsigned vcpu, struct vmring *ring, volatile uint32_t *number,
	       struct truth *truth);

/* Is a handler of interrupts at @ip? */
bool unit_has_handler(const struct unit *unit, uint64_t ip);

/* The CPU begins a block of code. Kernel code is that in the upper half of all addresses. */
void unit_begin_block(struct unit *unit, const struct block *block);

static inline void unit_begin_last(struct unit *unit)
{
	unit->flow.last_began = true;
}
