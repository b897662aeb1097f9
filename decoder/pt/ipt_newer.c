/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/pt/ipt_newer.h"

#include <string.h>

#define OPCODE_EXT 0x02
#define EXT_CFE    0x13
#define EXT_EVD    0x53
#define EXT_BBP    0x63
#define EXT_BEP    0x33
#define EXT_BEP_IP 0xb3
#define EXT_EXSTOP 0xe2 /* with an address, which is in the FUP that follows */

#define BBP_SIZE 3
#define CFE_SIZE 4
#define EVD_SIZE 11

static void add(struct ipt_newer *newer, enum ptd_mark_kind kind, uint64_t value, uint64_t extra)
{
	if (newer && newer->n < IPT_NEWER_MAX)
		newer->waiting[newer->n++] =
		    (struct ipt_newer_mark){ .kind = kind, .value = value, .extra = extra };
}

static int take_cfe(struct ipt_newer *newer, const uint8_t *pos, size_t left)
{
	if (left < CFE_SIZE)
		return -pte_eos;
	add(newer, PTD_MARK_CFE, pos[2] & 0x1f, pos[3]);
	/* What it is about was told before it. */
	for (size_t i = newer ? newer->n : 0; i > 0 && pos[2] & 0x80; i--) {
		if (i < newer->n && newer->waiting[i - 1].kind != PTD_MARK_EVD)
			break;
		newer->waiting[i - 1].interrupts = true;
	}
	return CFE_SIZE;
}

static int take_evd(struct ipt_newer *newer, const uint8_t *pos, size_t left)
{
	uint64_t datum;

	if (left < EVD_SIZE)
		return -pte_eos;
	memcpy(&datum, pos + 3, sizeof(datum));
	add(newer, PTD_MARK_EVD, pos[2] & 0x3f, datum);
	return EVD_SIZE;
}

/* Return: how many bytes at @p belong to a block whose items have @item_size bytes; 0: it is over. */
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

/*
 * Blank a PEBS record's blocks, from the first one's items to the end. The FUP behind an end with an address
 * counts for the compression of those that follow, so it must stay, and needs a packet that it
 * belongs to.
 */
static int take_blocks(struct ipt_newer *newer, const uint8_t *pos, size_t left)
{
	/* They are writable: see engine_config.pt. */
	uint8_t *p = (uint8_t *)(uintptr_t)pos;
	size_t item_size, at = BBP_SIZE, n;

	if (left < BBP_SIZE)
		return -pte_eos;
	item_size = p[2] & 0x80 ? 4 : 8;
	while (at < left && (n = block_part(p + at, left - at, &item_size)) > 0) {
		memset(p + at, 0, n);
		at += n;
	}
	if (left - at >= 2 && p[at] == OPCODE_EXT && p[at + 1] == EXT_BEP) {
		memset(p + at, 0, 2);
		add(newer, PTD_MARK_PEBS, 0, 0);
	} else if (left - at >= 2 && p[at] == OPCODE_EXT && p[at + 1] == EXT_BEP_IP) {
		p[at + 1] = EXT_EXSTOP;
		if (newer)
			newer->n_addresses++;
	}
	return BBP_SIZE;
}

int ipt_newer_packet(struct pt_packet_unknown *unknown, const struct pt_config *config,
		     const uint8_t *pos, void *context)
{
	const size_t left = (size_t)(config->end - pos);

	unknown->packet = pos;
	unknown->priv = NULL;
	if (left < 2 || pos[0] != OPCODE_EXT)
		return -pte_bad_opc;
	switch (pos[1]) {
	case EXT_CFE:
		return take_cfe(context, pos, left);
	case EXT_EVD:
		return take_evd(context, pos, left);
	case EXT_BBP:
		return take_blocks(context, pos, left);
	default:
		return -pte_bad_opc;
	}
}
