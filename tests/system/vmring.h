/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * VM ring
 *
 * The layout of the memory that QEMU shares with a guest (ivshmem-plain), for tests: one ring per
 * vCPU. The plugin in QEMU writes the packets of what the vCPU runs, and a module in the guest
 * (tests/guest/module) copies them to the AUX area. Ring N begins at N * VMRING_STRIDE: a page with
 * this structure, then the packets. Both sides belong to the tests and trust each other.
 */

#include <linux/types.h>

#define VMRING_STRIDE  (4u << 20)
#define VMRING_OFFSET  4096u
#define VMRING_SIZE    (2u << 20)
#define VMRING_VECTORS 256

/* Bits of @control, as in IA32_RTIT_CTL. attr.config has some of them at the same places. */
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
	/* Written by the guest. */
	__u64 control;  /* what to record; 0: nothing */
	__u64 restarts; /* how often recording began anew, with a PSB */
	__u64 tail;     /* bytes that the guest has copied, ever */
	__u64 stalled;  /* the guest copies nothing, so that the ring fills, to test overflows */
	__u32 log;      /* number of the truth log in use; of the first ring only */
	__u32 pid, tid; /* the thread on the CPU; both are the tid of a kernel thread */
	__u64 handlers[VMRING_VECTORS]; /* addresses of interrupt handlers in the guest's IDT */

	/* Written by the plugin. */
	__u64 head; /* bytes of packets, ever */
	__u64 lost; /* bytes of packets it had no room for */
	__u64 overflows;
};
