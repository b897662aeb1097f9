/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Ring
 *
 * What lies in the memory that QEMU shares with a guest (ivshmem-plain): one PT unit per vCPU. The
 * plugin in QEMU writes the packets of what the vCPU runs, a module in the guest
 * (tests/guest/module) takes them to the AUX area. Unit N begins N * RING_STRIDE bytes in: a page
 * with this structure, then the packets. Both sides are the tests' own and trust each other.
 */

#include <linux/types.h>

#define RING_STRIDE  (4u << 20)
#define RING_OFFSET  4096u
#define RING_SIZE    (2u << 20)
#define RING_VECTORS 256

/* Bits of control, as in IA32_RTIT_CTL; those that attr.config has stand at the same places
 * there. */
#define RING_TRACE_EN   (1u << 0)
#define RING_CYC_EN     (1u << 1)
#define RING_OS         (1u << 2)
#define RING_USER       (1u << 3)
#define RING_MTC_EN     (1u << 9)
#define RING_TSC_EN     (1u << 10)
#define RING_DIS_RETC   (1u << 11)
#define RING_BRANCH_EN  (1u << 13)
#define RING_MTC_FREQ   14 /* 4 bits: an MTC every 2^this ticks of the crystal */
#define RING_PSB_FREQ   24 /* 4 bits: a PSB every 2^(this + 11) bytes */
#define RING_FREQ_MASK  0xfu
#define RING_PSB_FREQ_0 11

struct ring {
	/* The guest's. */
	__u64 control;  /* what to trace; 0: nothing */
	__u64 restarts; /* how often it began anew, with a PSB */
	__u64 tail;     /* bytes it has taken */
	__u64 stalled;  /* it takes nothing, so that the ring fills: for tests of overflows */
	__u32 log;      /* number of the log that what it runs goes to: of the first unit only */
	__u32 pid, tid; /* who runs on the CPU; of a kernel thread both are its tid */
	__u64 handlers[RING_VECTORS]; /* of interrupts and exceptions, where its IDT says */

	/* The plugin's. */
	__u64 head; /* bytes it has written, ever */
	__u64 lost; /* bytes of packets it had no room for */
	__u64 overflows;
};
