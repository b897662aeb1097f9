/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/pt/ipt_walk.h"

#include <errno.h>

#define OPCODE_EXT  0x02
#define OPCODE_TRIG 0xd9
#define EXT_CFE     0x13
#define EXT_EVD     0x53
#define EXT_OVF     0xf3
#define EXT_BBP     0x63
#define EXT_BEP     0x33
#define EXT_BEP_IP  0xb3
#define EXT_EXSTOP  0xe2 /* with an address, which is in the FUP that follows */

#define BBP_SIZE 3
#define CFE_SIZE 4
#define EVD_SIZE 11

#define TRIG_SIZE       3
#define TRIG_SIZE_COUNT 5 /* with a count of instructions */
#define TRIG_COUNT      0x40

/* Return: the size of the TRIG packet at @p, or an error. */
static int trig_size(const uint8_t *p, size_t left)
{
	const size_t size = left < TRIG_SIZE || !(p[1] & TRIG_COUNT) ? TRIG_SIZE : TRIG_SIZE_COUNT;

	return left < size ? -pte_eos : (int)size;
}

static int look_ahead(struct pt_packet_unknown *unknown, const struct pt_config *config,
		      const uint8_t *pos, void *context)
{
	(void)context;
	unknown->packet = pos;
	unknown->priv = NULL;
	if (pos[0] == OPCODE_TRIG)
		return trig_size(pos, (size_t)(config->end - pos));
	if (config->end - pos < 2 || pos[0] != OPCODE_EXT)
		return -pte_bad_opc;
	switch (pos[1]) {
	case EXT_CFE:
		return CFE_SIZE;
	case EXT_EVD:
		return EVD_SIZE;
	case EXT_BEP:
	case EXT_BEP_IP:
		return 2;
	default:
		return -pte_bad_opc;
	}
}

/* Return: how many bytes at @p belong to a block whose items have @item_size bytes; 0: it is
 *         over. */
static size_t block_part(const uint8_t *p, size_t left, size_t *item_size)
{
	if ((p[0] & 0x07) == 0x04)
		return left > *item_size ? 1 + *item_size : 0;
	if (p[0] == 0x00)
		return 1;
	if (left >= BBP_SIZE && p[0] == OPCODE_EXT && p[1] == EXT_BBP) {
		*item_size = p[2] & 0x80 ? 4 : 8;
		return BBP_SIZE;
	}
	return 0;
}

static size_t block_size(const uint8_t *p, size_t left)
{
	size_t item_size, at = BBP_SIZE, n;

	if (left < BBP_SIZE || p[0] != OPCODE_EXT || p[1] != EXT_BBP)
		return 0;
	item_size = p[2] & 0x80 ? 4 : 8;
	while (at < left && (n = block_part(p + at, left - at, &item_size)) > 0)
		at += n;
	return at;
}

int ipt_walk_init(struct ipt_walk *walk, const struct pt_config *config)
{
	struct pt_config c = *config;

	/* What lies ahead is still to be decoded: nothing is written to it. */
	c.decode.callback = look_ahead;
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
	const size_t n = block_size(walk->pt + walk->offset, walk->size - walk->offset);

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
