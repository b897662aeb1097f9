/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/pt/when.h"

#include "decoder/pt/peek.h"

static bool is_kernel(uint64_t ip)
{
	return ip >> 63;
}

/* Return: whether a stretch of user code ends with @packet. */
static bool ends_stretch(const struct packet *packet, uint64_t *last_ip)
{
	switch (packet->type) {
	case PACKET_PSB:
		*last_ip = 0;
		return false;
	case PACKET_FUP:
	case PACKET_TIP_PGE:
		(void)packet_ip(packet, last_ip);
		return false;
	case PACKET_TIP:
		return packet_ip(packet, last_ip) && is_kernel(*last_ip);
	case PACKET_TIP_PGD:
	case PACKET_OVF:
		(void)packet_ip(packet, last_ip);
		return true;
	default:
		return false;
	}
}

/* Find the time that is told next from where @walk stands. */
static void look_ahead(struct when *when, struct walk *walk)
{
	struct peek peek = peek_from(walk, walk->offset);
	struct tsc tsc = walk->tsc;
	uint64_t last_ip = walk->last_ip;
	struct packet packet;

	*when = (struct when){ .from = walk->offset, .until = UINT64_MAX, .t = UINT64_MAX };
	for (;;) {
		if (!peek_next(&peek, &packet)) {
			/* Packets that cannot be read are passed over, as by walk_sync(). */
			when->ended = peek.offset + 1;
			if (!peek_sync(&peek))
				return;
			tsc_forget(&tsc);
			continue;
		}
		if (ends_stretch(&packet, &last_ip))
			when->ended = peek.offset;
		if (tsc_tells(&tsc, packet.type)) {
			tsc_take(&tsc, &packet, false);
			when->t = tsc.now;
			when->until = peek.offset - packet.size;
			return;
		}
		if (packet.type == PACKET_TMA)
			tsc_take(&tsc, &packet, false);
	}
}

struct when_bounds when_find(struct when *when, struct walk *walk, uint64_t ip)
{
	if (walk->is_timed || is_kernel(ip))
		return (struct when_bounds){};
	if (walk->offset < when->from || walk->offset > when->until)
		look_ahead(when, walk);
	if (when->ended > walk->offset || when->t == UINT64_MAX)
		return (struct when_bounds){ .to = when->t };
	return (struct when_bounds){ when->t, when->t };
}
