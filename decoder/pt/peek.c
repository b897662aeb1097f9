/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/pt/peek.h"

#include "util/psb.h"

/* Return: the bytes at @offset, and @ret_n, how many. The window stays where the walk is. */
static const uint8_t *bytes_ahead(struct walk *w, uint64_t offset, size_t *ret_n)
{
	const struct window *window = &w->window;

	if (offset < window->start || offset + PACKET_SIZE_MAX > window->start + window->n)
		return window_at(&w->ahead, offset, PACKET_SIZE_MAX, ret_n);
	*ret_n = (size_t)(window->start + window->n - offset);
	return window->bytes + (offset - window->start);
}

struct peek peek_from(struct walk *w, uint64_t offset)
{
	return (struct peek){ .walk = w, .offset = offset, .reader = w->reader };
}

bool peek_next(struct peek *peek, struct packet *ret_packet)
{
	size_t n;
	const uint8_t *p = bytes_ahead(peek->walk, peek->offset, &n);

	peek->r = packet_read(&peek->reader, p, n, ret_packet);
	if (peek->r != 0)
		return false;
	peek->offset += ret_packet->size;
	return true;
}

bool peek_past(struct peek *peek, uint32_t set, struct packet *ret_packet)
{
	do {
		if (!peek_next(peek, ret_packet))
			return false;
	} while (packet_is_in(ret_packet, set));
	return true;
}

bool peek_has_pge(struct walk *w, uint64_t offset)
{
	const uint32_t passed = PACKETS_OF_TIME | PACKET_BIT(PSBEND) | PACKET_BIT(PIP) |
				PACKET_BIT(MODE_EXEC) | PACKET_BIT(MODE_TSX) | PACKET_BIT(VMCS) |
				PACKET_BIT(MNT);
	struct peek peek = peek_from(w, offset);
	struct packet packet;

	return peek_past(&peek, passed, &packet) && packet.type == PACKET_TIP_PGE;
}

/* Has the PSB+ behind @peek a FUP? */
static bool psb_has_fup(struct peek *peek)
{
	const uint32_t ends = PACKET_BIT(FUP) | PACKET_BIT(PSBEND) | PACKET_BIT(OVF);
	struct packet packet;

	if (!peek_past(peek, ~ends, &packet))
		return true; /* it cannot be told */
	return packet.type == PACKET_FUP && packet.ip_bytes != 0;
}

/* Erratum APL12: is there proof that packets are off behind @offset? */
static bool is_off_from(struct walk *w, uint64_t offset)
{
	const uint32_t off = PACKET_BIT(STOP) | PACKET_BIT(TIP_PGE);
	const uint32_t on = PACKET_BIT(TNT) | PACKET_BIT(TIP) | PACKET_BIT(TIP_PGD) |
			    PACKET_BIT(OVF) | PACKET_BIT(PSBEND);
	struct peek peek = peek_from(w, offset);
	struct packet packet;

	if (!peek_past(&peek, ~(off | on | PACKET_BIT(PSB)), &packet))
		return false;
	return packet.type == PACKET_PSB ? !psb_has_fup(&peek) : packet_is_in(&packet, off);
}

/* Packets are on behind the overflow, at the address of @packet, if it has one. */
static bool is_on_at(const struct walk *w, const struct packet *packet, uint64_t offset,
		     struct peek_overflow *over)
{
	*over = (struct peek_overflow){ .end = PEEK_ON, .offset = offset, .ip = w->last_ip };
	return packet_ip(packet, &over->ip);
}

/*
 * Erratum SKD010: the FUP of an overflow is missing. If the packets that follow prove that they are
 * on, execution goes on at the first that says where. Return: whether there is such a proof.
 */
static bool is_skd010(struct walk *w, struct peek_overflow *over)
{
	const uint32_t passed = PACKETS_OF_TIME | PACKET_BIT(PIP) | PACKET_BIT(VMCS) |
				PACKET_BIT(MODE_EXEC) | PACKET_BIT(MNT) | PACKET_BIT(PWRE) |
				PACKET_BIT(PWRX);
	struct peek peek = peek_from(w, w->offset);
	uint64_t mode_tsx = 0;
	struct packet packet;

	while (peek_past(&peek, passed, &packet)) {
		const uint64_t offset = peek.offset - packet.size;

		switch (packet.type) {
		case PACKET_TIP_PGD:
			*over = (struct peek_overflow){ PEEK_OFF, .offset = peek.offset };
			return true;
		case PACKET_MODE_TSX:
			/* It stands alone where packets are off; or a FUP follows. */
			if (mode_tsx)
				return false;
			mode_tsx = offset;
			continue;
		case PACKET_FUP:
			return is_on_at(w, &packet, mode_tsx ? mode_tsx : offset, over);
		case PACKET_TIP:
			return is_on_at(w, &packet, peek.offset, over);
		case PACKET_PSB:
			return peek_past(&peek, ~(PACKET_BIT(FUP) | PACKET_BIT(PSBEND)), &packet) &&
			       packet.type == PACKET_FUP && is_on_at(w, &packet, offset, over);
		case PACKET_EXSTOP:
		case PACKET_PTW:
			/* Without an address they say nothing of it. */
			if (packet.flag)
				return false;
			continue;
		default:
			return false;
		}
	}
	return false;
}

/* Erratum APL11: a TIP.PGD too many, behind which packets are off. Return: whether that is so. */
static bool is_apl11(struct walk *w, struct peek_overflow *over)
{
	struct peek peek = peek_from(w, w->offset);
	struct packet packet;

	if (!peek_past(&peek, PACKETS_OF_TIME | PACKET_BIT(MNT), &packet) ||
	    packet.type != PACKET_TIP_PGD)
		return false;
	*over = (struct peek_overflow){ PEEK_OFF, .offset = peek.offset };
	return true;
}

struct peek_overflow peek_overflow(struct walk *w)
{
	const uint32_t bad =
	    PACKET_BIT(PSBEND) | PACKET_BIT(TIP) | PACKET_BIT(TIP_PGD) | PACKET_BIT(TNT);
	const uint32_t errata = w->reader.errata;
	struct peek peek = peek_from(w, w->offset);
	struct peek_overflow over;
	struct packet packet;
	bool is_bad;

	if (!peek_past(&peek, PACKETS_OF_TIME | PACKETS_OF_REPORTS, &packet))
		is_bad = peek.r == PACKET_BAD;
	else
		is_bad = packet_is_in(&packet, bad);
	if (peek.r == 0 && packet.type == PACKET_FUP)
		return (struct peek_overflow){
			errata & ERRATUM_APL12 && is_off_from(w, peek.offset) ? PEEK_OFF : PEEK_FUP,
			.offset = peek.offset,
		};
	if (errata & ERRATUM_SKD010 && is_skd010(w, &over))
		return over;
	if (is_bad && errata & ERRATUM_APL11 && is_apl11(w, &over))
		return over;
	return (struct peek_overflow){ is_bad ? PEEK_BAD : PEEK_OFF, .offset = w->offset };
}

/*
 * Time
 */

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
		return packet_ip(packet, last_ip) && *last_ip >> 63;
	case PACKET_TIP_PGD:
	case PACKET_OVF:
		(void)packet_ip(packet, last_ip);
		return true;
	default:
		return false;
	}
}

/* Find the time that is told next from where @walk stands. */
static void look_for_time(struct when *when, struct walk *walk)
{
	struct peek peek = peek_from(walk, walk->offset);
	struct tsc tsc = walk->tsc;
	uint64_t last_ip = walk->last_ip;
	bool is_guest = walk->state.non_root;
	struct packet packet;

	*when = (struct when){ .from = walk->offset, .until = UINT64_MAX, .t = UINT64_MAX };
	for (;;) {
		if (!peek_next(&peek, &packet)) {
			/* Packets that cannot be read are passed over, as by walk_sync(). */
			when->ended = peek.offset + 1;
			peek.reader.item_size = 0;
			peek.offset = psb_find(&walk->ahead, peek.offset);
			if (peek.offset == walk->size)
				return;
			tsc_forget(&tsc);
			continue;
		}
		if (ends_stretch(&packet, &last_ip))
			when->ended = peek.offset;
		if (packet.type == PACKET_PIP)
			is_guest = packet.extra;
		if (is_guest && packet_is_of_tsc(&packet))
			continue;
		if (tsc_tells(&tsc, packet.type)) {
			tsc_take(&tsc, &packet, false, peek.offset - packet.size);
			when->t = tsc.now;
			when->until = peek.offset - packet.size;
			return;
		}
		if (packet.type == PACKET_TMA)
			tsc_take(&tsc, &packet, false, peek.offset - packet.size);
	}
}

struct when_bounds when_find(struct when *when, struct walk *walk, uint64_t ip)
{
	if (walk->is_timed || ip >> 63)
		return (struct when_bounds){};
	if (walk->offset < when->from || walk->offset > when->until)
		look_for_time(when, walk);
	if (when->ended > walk->offset || when->t == UINT64_MAX)
		return (struct when_bounds){ .to = when->t };
	return (struct when_bounds){ when->t, when->t };
}
