/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/pt/ipt_walk.h"

#include <errno.h>

#include "decoder/pt/ipt_newer.h"

int ipt_walk_init(struct ipt_walk *walk, const struct pt_config *config)
{
	struct pt_config c = *config;

	/* What lies ahead is still to be decoded: nothing is written to it. */
	c.decode.callback = ipt_newer_look_ahead;
	walk->pt = config->begin;
	walk->size = (uint64_t)(config->end - config->begin);
	walk->packets = pt_pkt_alloc_decoder(&c);
	return walk->packets ? 0 : -ENOMEM;
}

void ipt_walk_deinit(struct ipt_walk *walk)
{
	pt_pkt_free_decoder(walk->packets);
	walk->packets = NULL;
}

/* Return: whether the packet has an address: then it is the last one now. */
static bool take_ip(struct ipt_walk *walk, const struct pt_packet_ip *packet)
{
	const uint64_t ip = packet->ip;

	switch (packet->ipc) {
	case pt_ipc_update_16:
		walk->ip = (walk->ip & ~UINT64_C(0xffff)) | ip;
		return true;
	case pt_ipc_update_32:
		walk->ip = (walk->ip & ~UINT64_C(0xffffffff)) | ip;
		return true;
	case pt_ipc_sext_48:
		walk->ip = (uint64_t)((int64_t)(ip << 16) >> 16);
		return true;
	case pt_ipc_update_48:
		walk->ip = (walk->ip & ~UINT64_C(0xffffffffffff)) | ip;
		return true;
	case pt_ipc_full:
		walk->ip = ip;
		return true;
	default:
		return false;
	}
}

static void take(struct ipt_walk *walk, const struct pt_packet *packet)
{
	walk->has_ip = false;
	switch (packet->type) {
	case ppt_psb:
	case ppt_ovf:
		walk->ip = 0;
		return;
	case ppt_tip:
	case ppt_tip_pge:
	case ppt_tip_pgd:
	case ppt_fup:
		walk->has_ip = take_ip(walk, &packet->payload.ip);
		return;
	default:
		return;
	}
}

/* Pass over a PEBS record, if packets cannot be told from each other since one begins here. */
static bool pass_blocks(struct ipt_walk *walk)
{
	const size_t n = ipt_newer_block_size(walk->pt + walk->offset, walk->size - walk->offset);

	return n > 0 && pt_pkt_sync_set(walk->packets, walk->offset + n) == 0;
}

bool ipt_walk_next(struct ipt_walk *walk, struct pt_packet *ret_packet)
{
	walk->was_lost = false;
	while (!walk->ended) {
		int n;

		if (!walk->synced && pt_pkt_sync_forward(walk->packets) < 0)
			break;
		walk->synced = true;
		(void)pt_pkt_get_offset(walk->packets, &walk->offset);
		n = pt_pkt_next(walk->packets, ret_packet, sizeof(*ret_packet));
		if (n == -pte_eos)
			break;
		if (n >= 0) {
			walk->end = walk->offset + (uint64_t)n;
			take(walk, ret_packet);
			return true;
		}
		if (pass_blocks(walk))
			continue;
		walk->synced = false;
		walk->was_lost = true;
	}
	walk->ended = true;
	return false;
}
