/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * VM ring
 *
 * What lies in the memory that QEMU shares with a guest (ivshmem-plain): one PT unit per vCPU. The
 * plugin in QEMU writes the packets of what the vCPU runs, a module in the guest
 * (tests/guest/module) takes them to the AUX area. Unit N begins N * VMRING_STRIDE bytes in: a page
 * with this structure, then the packets. Both sides are the tests' own and trust each other.
 */

#include <linux/types.h>

#define VMRING_STRIDE  (4u << 20)
#define VMRING_OFFSET  4096u
#define VMRING_SIZE    (2u << 20)
#define VMRING_VECTORS 256

/* Bits of control, as in IA32_RTIT_CTL; those that attr.config has stand at the same places
 * there. */
#define VMRING_TRACE_EN   (1u << 0)
#define VMRING_CYC_EN     (1u << 1)
#define VMRING_OS         (1u << 2)
#define VMRING_USER       (1u << 3)
#define VMRING_MTC_EN     (1u << 9)
#define VMRING_TSC_EN     (1u << 10)
#define VMRING_DIS_RETC   (1u << 11)
#define VMRING_BRANCH_EN  (1u << 13)
#define VMRING_MTC_FREQ   14 /* 4 bits: an MTC every 2^this ticks of the crystal */
#define VMRING_PSB_FREQ   24 /* 4 bits: a PSB every 2^(this + 11) bytes */
#define VMRING_FREQ_MASK  0xfu
#define VMRING_PSB_FREQ_0 11

struct vmring {
	/* The guest's. */
	__u64 control;  /* what to trace; 0: nothing */
	__u64 restarts; /* how often it began anew, with a PSB */
	__u64 tail;     /* bytes it has taken */
	__u64 stalled;  /* it takes nothing, so that the ring fills: for tests of overflows */
	__u32 log;      /* number of the log that what it runs goes to: of the first unit only */
	__u32 pid, tid; /* who runs on the CPU; of a kernel thread both are its tid */
	__u64 handlers[VMRING_VECTORS]; /* of interrupts and exceptions, where its IDT says */

	/* The plugin's. */
	__u64 head; /* bytes it has written, ever */
	__u64 lost; /* bytes of packets it had no room for */
	__u64 overflows;
};
