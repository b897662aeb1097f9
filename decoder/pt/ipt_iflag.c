/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/pt/ipt_iflag.h"

#include <string.h>

#define MODE         0x99
#define IF           0x04 /* in the second byte; the modes are below it */
#define NO_TSX       0x20 /* the second byte: neither in a transaction nor aborted */
#define CYC_MASK     0x03
#define CYC          0x03
#define ADDRESS_MASK 0x1f
#define FUP          0x1d
#define TIP          0x0d
#define TIP_PGE      0x11

#define FLAG_SIZE 16 /* of the packet and those that tell that it is one, at the most */
#define AHEAD     (UINT64_C(1) << 16)
#define STEP_MIN  (UINT64_C(1) << 12)

/* Can a packet with an address begin at @at? CYC packets may be before it. */
static bool is_address(const uint8_t *at, const uint8_t *end)
{
	while (at < end && (*at & CYC_MASK) == CYC)
		at++;
	return at < end && ((*at & ADDRESS_MASK) == FUP || (*at & ADDRESS_MASK) == TIP ||
			    (*at & ADDRESS_MASK) == TIP_PGE);
}

/* Return: where a MODE.Exec with the flag set may be, as what sets it looks; NULL: nowhere. */
static const uint8_t *find_flag(const uint8_t *at, const uint8_t *end)
{
	while (at + 2 < end) {
		at = memchr(at, MODE, (size_t)(end - 2 - at));
		if (!at || (at[1] >= IF && at[1] < IF + 3 && is_address(at + 2, end)))
			return at;
		at++;
	}
	return NULL;
}

/*
 * Begin to tell packets from each other, at the PSB before @at; at the first one if there is none.
 */
static bool begin(struct ipt_iflag *iflag, const struct pt_config *config, uint64_t at)
{
	struct ipt_walk *w = &iflag->walk;

	if (ipt_walk_init(w, config) < 0)
		return false;
	w->synced = pt_pkt_sync_set(w->packets, at) == 0 && pt_pkt_sync_backward(w->packets) == 0;
	if (!w->synced)
		(void)pt_pkt_sync_set(w->packets, 0);
	return true;
}

static void take(struct ipt_iflag *iflag, const struct pt_config *config, uint64_t offset,
		 const struct pt_packet *packet)
{
	switch (packet->type) {
	case ppt_psb:
	case ppt_ovf:
		iflag->is_status = true;
		break;
	case ppt_mode:
		iflag->mode = offset;
		iflag->has_mode = packet->payload.mode.leaf == pt_mol_exec && !iflag->is_status;
		return;
	case ppt_fup:
		/* Writable: see engine_config.pt. */
		if (iflag->has_mode)
			((uint8_t *)(uintptr_t)config->begin)[iflag->mode + 1] = NO_TSX;
		/* Behind an overflow; that of a PSB+ is followed by its end. */
		iflag->is_status = false;
		break;
	case ppt_psbend:
	case ppt_tip_pge:
		iflag->is_status = false;
		break;
	case ppt_pad:
	case ppt_cyc:
	case ppt_mtc:
	case ppt_tsc:
	case ppt_tma:
	case ppt_cbr:
		return;
	default:
		break;
	}
	iflag->has_mode = false;
}

/*
 * Look at the packets up to @end, each once in all: so this goes on even if it was something else
 * that looked like a flag.
 */
static void walk(struct ipt_iflag *iflag, const struct pt_config *config, uint64_t end)
{
	struct ipt_walk *w = &iflag->walk;
	struct pt_packet packet;

	while (w->end < end) {
		const uint64_t before = w->end;

		if (!ipt_walk_next(w, &packet))
			return;
		if (w->offset != before)
			iflag->has_mode = false;
		take(iflag, config, w->offset, &packet);
	}
}

void ipt_iflag_deinit(struct ipt_iflag *iflag)
{
	if (iflag->walks)
		ipt_walk_deinit(&iflag->walk);
	iflag->walks = false;
}

void ipt_iflag_look(struct ipt_iflag *iflag, const struct pt_config *config, uint64_t offset)
{
	const uint64_t size = (uint64_t)(config->end - config->begin);
	const uint64_t end = size - offset < AHEAD ? size : offset + AHEAD;
	const uint8_t *flag;

	if (iflag->looked >= end || (end < size && end - iflag->looked < STEP_MIN))
		return;
	if (!iflag->walks) {
		flag = find_flag(config->begin + iflag->looked, config->begin + end);
		iflag->walks = flag && begin(iflag, config, (uint64_t)(flag - config->begin));
	}
	if (iflag->walks)
		walk(iflag, config, end);
	iflag->looked = end < size ? end - FLAG_SIZE : size;
}
