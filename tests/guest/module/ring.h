/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Ring
 *
 * What lies in the memory that QEMU shares with the guest (ivshmem-plain): one PT unit per vCPU. The
 * plugin in QEMU writes the packets of what the vCPU runs, the module in the guest takes them to the
 * AUX area. Unit N begins N * RING_STRIDE bytes in: a page with this structure, then the packets.
 */

#include <linux/types.h>

#define RING_STRIDE (16u << 20)
#define RING_OFFSET 4096u
#define RING_SIZE   (8u << 20)

/* Bits of control, as in IA32_RTIT_CTL; those that attr.config has stand at the same places there. */
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
	__u64 control;  /* the guest's: what to trace; 0: nothing */
	__u64 restarts; /* the guest's: how often it began anew, with a PSB */
	__u64 tail;     /* the guest's: bytes it has taken */
	__u64 head;     /* the plugin's: bytes it has written, ever */
	__u64 lost;     /* the plugin's: bytes of packets it had no room for */
	__u64 overflows;
};
