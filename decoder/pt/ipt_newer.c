/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/pt/ipt_newer.h"

#include <string.h>

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
#define TRIG_IP         0x80
#define TRIG_COUNT      0x40
#define TRIG_MORE       0x20

/* Packets between one of ours and the one that it belongs to; more are not looked at. */
#define BETWEEN_MAX 32

static bool is_flow(enum pt_packet_type type)
{
	switch (type) {
	case ppt_psb:
	case ppt_ovf:
	case ppt_fup:
	case ppt_tip:
	case ppt_tip_pge:
	case ppt_tip_pgd:
	case ppt_tnt_8:
	case ppt_tnt_64:
		return true;
	default:
		return false;
	}
}

/* Return: the size of the TRIG packet at @p, or an error. */
static int trig_size(const uint8_t *p, size_t left)
{
	const size_t size = left < TRIG_SIZE || !(p[1] & TRIG_COUNT) ? TRIG_SIZE : TRIG_SIZE_COUNT;

	return left < size ? -pte_eos : (int)size;
}

int ipt_newer_look_ahead(struct pt_packet_unknown *unknown, const struct pt_config *config,
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

/* Note the first packet from @at on that tells of the flow; the last one looked at, if there is
 * none. */
static void note_next(struct ipt_newer_mark *mark, const struct pt_config *config,
		      const uint8_t *at)
{
	struct pt_config c = *config;
	struct pt_packet_decoder *packets;
	struct pt_packet packet = { .type = ppt_invalid };
	int n = 0;

	mark->next = (uint64_t)(at - config->begin);
	c.decode.callback = ipt_newer_look_ahead;
	packets = pt_pkt_alloc_decoder(&c);
	if (!packets)
		return;
	if (pt_pkt_sync_set(packets, mark->next) < 0)
		n = -pte_eos;
	for (size_t i = 0; i < BETWEEN_MAX && n >= 0 && !is_flow(packet.type); i++) {
		mark->next += (uint64_t)n;
		n = pt_pkt_next(packets, &packet, sizeof(packet));
	}
	pt_pkt_free_decoder(packets);
	if (n >= 0 && packet.type == ppt_fup) {
		mark->ip = packet.payload.ip.ip;
		mark->ip_mask = packet.payload.ip.ipc == pt_ipc_update_16   ? UINT16_MAX
				: packet.payload.ip.ipc == pt_ipc_update_32 ? UINT32_MAX
				: packet.payload.ip.ipc == pt_ipc_suppressed
				    ? 0
				    : UINT64_C(0xffffffffffff);
	}
}

static void add(struct ipt_newer *newer, const struct ipt_newer_mark *mark)
{
	if (newer->n < IPT_NEWER_MAX)
		newer->waiting[newer->n++] = *mark;
}

/* An EXSTOP with an address, that of the packet from @at on, stands for it. */
static void stand(struct ipt_newer *newer, const struct ipt_newer_mark *mark,
		  const struct pt_config *config, const uint8_t *at)
{
	struct ipt_newer_mark *last;

	if (newer->n_standing == IPT_NEWER_MAX)
		return;
	last = &newer->standing[newer->n_standing++];
	*last = *mark;
	note_next(last, config, at);
}

void ipt_newer_take_instruction(struct ipt_newer *newer)
{
	newer->at = false;
	for (size_t i = 0; i < newer->n; i++) {
		if (!newer->waiting[i].follows)
			continue;
		newer->waiting[i].follows = false;
		newer->waiting[i].next = 0;
		return;
	}
}

bool ipt_newer_take_standing(struct ipt_newer *newer, uint64_t ip, struct ipt_newer_mark *ret_mark)
{
	for (size_t i = 0; i < newer->n_standing; i++) {
		const struct ipt_newer_mark *mark = &newer->standing[i];

		if (((mark->ip ^ ip) & mark->ip_mask) != 0)
			continue;
		*ret_mark = *mark;
		/* What is before it was never reached. */
		newer->n_standing -= i + 1;
		memmove(newer->standing, mark + 1, newer->n_standing * sizeof(*mark));
		return true;
	}
	return false;
}

/* Is it of what an instruction did? Its address, if it is told, is that instruction's, and not of
 * an interruption. */
static bool is_of_instruction(uint64_t cfe)
{
	return cfe == PTD_CFE_IRET || cfe == PTD_CFE_VMENTRY || cfe == PTD_CFE_UIRET;
}

/*
 * The FUP behind such a one with an address is its own: a packet that libipt knows, which has one
 * as well, goes in the place of what is not needed any more.
 */
static int take_bound(struct ipt_newer *newer, struct ipt_newer_mark *mark,
		      const struct pt_config *config, const uint8_t *pos)
{
	mark->follows = true;
	add(newer, mark);
	stand(newer, mark, config, pos + CFE_SIZE);
	/* They are writable: see engine_config.pt. */
	memcpy((uint8_t *)(uintptr_t)pos + 2, (const uint8_t[]){ OPCODE_EXT, EXT_EXSTOP }, 2);
	return 2;
}

static int take_cfe(struct ipt_newer *newer, const struct pt_config *config, const uint8_t *pos,
		    size_t left)
{
	struct ipt_newer_mark mark = { .kind = PTD_MARK_CFE };
	bool has_ip;

	if (left < CFE_SIZE)
		return -pte_eos;
	mark.value = pos[2] & 0x1f;
	mark.extra = pos[3];
	/* Its address may have been lost. */
	has_ip = pos[2] & 0x80 && !(left >= CFE_SIZE + 2 && pos[CFE_SIZE] == OPCODE_EXT &&
				    pos[CFE_SIZE + 1] == EXT_OVF);
	if (!newer)
		return CFE_SIZE;
	if (has_ip && is_of_instruction(mark.value))
		return take_bound(newer, &mark, config, pos);
	mark.interrupts = has_ip;

	/* What it is about was told before it. */
	note_next(&mark, config, pos + CFE_SIZE);
	for (size_t i = newer->n; mark.interrupts && i > 0; i--) {
		struct ipt_newer_mark *before = &newer->waiting[i - 1];

		if (before->kind != PTD_MARK_EVD || before->next != mark.next)
			break;
		before->interrupts = true;
	}
	add(newer, &mark);
	return CFE_SIZE;
}

static int take_evd(struct ipt_newer *newer, const struct pt_config *config, const uint8_t *pos,
		    size_t left)
{
	struct ipt_newer_mark mark = { .kind = PTD_MARK_EVD };

	if (left < EVD_SIZE)
		return -pte_eos;
	mark.value = pos[2] & 0x3f;
	memcpy(&mark.extra, pos + 3, sizeof(mark.extra));
	if (newer) {
		note_next(&mark, config, pos + EVD_SIZE);
		add(newer, &mark);
	}
	return EVD_SIZE;
}

/*
 * The FUP behind a trigger with an address is the trigger's: in the place of its count, which is 0
 * then, goes a packet that libipt knows, which has one as well.
 */
static int take_trig(struct ipt_newer *newer, const struct pt_config *config, const uint8_t *pos,
		     size_t left)
{
	struct ipt_newer_mark mark = { .kind = PTD_MARK_TRIG };
	const int size = trig_size(pos, left);
	uint16_t count = 0;

	if (size < 0 || !newer)
		return size;
	if (size == TRIG_SIZE_COUNT)
		memcpy(&count, pos + TRIG_SIZE, sizeof(count));
	mark.value = pos[2] | (pos[1] & TRIG_MORE ? PTD_TRIG_MORE : 0u);
	if (!(pos[1] & TRIG_IP)) {
		mark.extra = size == TRIG_SIZE_COUNT ? count + UINT64_C(1) : 0;
		note_next(&mark, config, pos + size);
		add(newer, &mark);
		return size;
	}
	if (size != TRIG_SIZE_COUNT || count > 0)
		return -pte_bad_packet;
	/* They are writable: see engine_config.pt. */
	memcpy((uint8_t *)(uintptr_t)pos + TRIG_SIZE, (const uint8_t[]){ OPCODE_EXT, EXT_EXSTOP },
	       2);
	stand(newer, &mark, config, pos + size);
	return TRIG_SIZE;
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

size_t ipt_newer_block_size(const uint8_t *p, size_t left)
{
	size_t item_size, at = BBP_SIZE, n;

	if (left < BBP_SIZE || p[0] != OPCODE_EXT || p[1] != EXT_BBP)
		return 0;
	item_size = p[2] & 0x80 ? 4 : 8;
	while (at < left && (n = block_part(p + at, left - at, &item_size)) > 0)
		at += n;
	return at;
}

/*
 * Blank a PEBS record's blocks, from the first one's items to the end. The FUP behind an end with
 * an address counts for the compression of those that follow, so it must stay, and needs a packet
 * that it belongs to.
 */
static int take_blocks(struct ipt_newer *newer, const struct pt_config *config, const uint8_t *pos,
		       size_t left)
{
	/* They are writable: see engine_config.pt. */
	uint8_t *p = (uint8_t *)(uintptr_t)pos;
	const size_t at = ipt_newer_block_size(pos, left);

	if (at == 0)
		return -pte_eos;
	memset(p + BBP_SIZE, 0, at - BBP_SIZE);
	if (left - at >= 2 && p[at] == OPCODE_EXT && p[at + 1] == EXT_BEP) {
		memset(p + at, 0, 2);
		if (newer)
			add(newer, &(struct ipt_newer_mark){ .kind = PTD_MARK_PEBS });
	} else if (left - at >= 2 && p[at] == OPCODE_EXT && p[at + 1] == EXT_BEP_IP) {
		p[at + 1] = EXT_EXSTOP;
		if (newer)
			stand(newer, &(struct ipt_newer_mark){ .kind = PTD_MARK_PEBS }, config,
			      p + at + 2);
	}
	return BBP_SIZE;
}

int ipt_newer_packet(struct pt_packet_unknown *unknown, const struct pt_config *config,
		     const uint8_t *pos, void *context)
{
	const size_t left = (size_t)(config->end - pos);

	unknown->packet = pos;
	unknown->priv = NULL;
	if (pos[0] == OPCODE_TRIG)
		return take_trig(context, config, pos, left);
	if (left < 2 || pos[0] != OPCODE_EXT)
		return -pte_bad_opc;
	switch (pos[1]) {
	case EXT_CFE:
		return take_cfe(context, config, pos, left);
	case EXT_EVD:
		return take_evd(context, config, pos, left);
	case EXT_BBP:
		return take_blocks(context, config, pos, left);
	default:
		return -pte_bad_opc;
	}
}
