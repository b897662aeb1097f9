/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Walk
 *
 * Packets one after the other, without code: those of PEBS records are passed over, and where
 * packets cannot be told from each other it goes on at the next PSB. Addresses are made whole. It
 * writes to nothing.
 */

#include <intel-pt.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"

struct ipt_walk {
	struct pt_packet_decoder *packets;
	const uint8_t *pt;
	uint64_t size;
	bool synced;
	bool ended;    /* there is no more; looking for it again would take as long again */
	bool was_lost; /* before the packet read last, packets could not be told from each other */
	uint64_t offset; /* of the packet read last */
	uint64_t end;    /* behind it */
	bool has_ip;     /* it has an address: */
	uint64_t ip;     /* that of the last packet that had one; 0 behind a PSB or an overflow */
};

/* Return: whether an address is in the kernel's half. */
static inline bool ipt_is_kernel(uint64_t ip)
{
	return ip >> 63;
}

/* @config: of the span; borrowed for the call. Return: 0, or -ENOMEM; then, too, it is to be
 * freed. */
_must_check_ int ipt_walk_init(struct ipt_walk *walk, const struct pt_config *config);
void ipt_walk_deinit(struct ipt_walk *walk);

/* Read a packet, or, if it makes no sense, one from the next PSB on. Return: whether there is
 * one. */
_must_check_ bool ipt_walk_next(struct ipt_walk *walk, struct pt_packet *ret_packet);
