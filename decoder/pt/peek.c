/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/pt/peek.h"

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

	peek->r = packet_read_mended(&peek->reader, peek->walk->errata, p, n, ret_packet);
	if (peek->r != 0)
		return false;
	peek->offset += ret_packet->size;
	return true;
}

uint64_t peek_find_psb(struct window *window, uint64_t from)
{
	static const uint8_t psb[PEEK_PSB_SIZE] = { 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82,
						    2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82 };

	return window_find(window, from, psb, PEEK_PSB_SIZE);
}

bool peek_sync(struct peek *peek)
{
	peek->reader = (struct packet_reader){};
	peek->offset = peek_find_psb(&peek->walk->ahead, peek->offset);
	return peek->offset < peek->walk->size;
}

bool peek_has_pge(struct walk *w, uint64_t offset)
{
	struct peek peek = peek_from(w, offset);
	struct packet packet;

	while (peek_next(&peek, &packet)) {
		switch (packet.type) {
		case PACKET_PSBEND:
		case PACKET_PIP:
		case PACKET_MODE_EXEC:
		case PACKET_MODE_TSX:
		case PACKET_VMCS:
		case PACKET_MNT:
			continue;
		default:
			if (!packet_is_timing(&packet))
				return packet.type == PACKET_TIP_PGE;
		}
	}
	return false;
}

/* Look for the FUP that says where an overflow is over. Return: 1 and the offset behind it; 0 if
 * packets are off then; -1 if what is there makes no sense. */
static int find_overflow_fup(struct walk *w, uint64_t *ret_offset)
{
	struct peek peek = peek_from(w, w->offset);
	struct packet packet;

	while (peek_next(&peek, &packet)) {
		switch (packet.type) {
		case PACKET_FUP:
			*ret_offset = peek.offset;
			return 1;
		case PACKET_PSBEND:
		case PACKET_TIP:
		case PACKET_TIP_PGD:
		case PACKET_TNT:
			return -1;
		default:
			if (!packet_is_timing(&packet) && !packet_is_report(&packet))
				return 0;
		}
	}
	return peek.r == PACKET_CUT ? 0 : -1;
}

/* Has the PSB+ behind @peek a FUP? */
static bool psb_has_fup(struct peek *peek)
{
	struct packet packet;

	while (peek_next(peek, &packet)) {
		if (packet.type == PACKET_FUP)
			return packet.ip_bytes != 0;
		if (packet.type == PACKET_PSBEND || packet.type == PACKET_OVF)
			return false;
	}
	return true; /* it cannot be told */
}

/* Erratum APL12: is there proof that packets are off behind @offset? */
static bool is_off_from(struct walk *w, uint64_t offset)
{
	struct peek peek = peek_from(w, offset);
	struct packet packet;

	while (peek_next(&peek, &packet)) {
		switch (packet.type) {
		case PACKET_STOP:
		case PACKET_TIP_PGE:
			return true;
		case PACKET_TNT:
		case PACKET_TIP:
		case PACKET_TIP_PGD:
		case PACKET_OVF:
		case PACKET_PSBEND:
			return false;
		case PACKET_PSB:
			return !psb_has_fup(&peek);
		default:
			continue;
		}
	}
	return false;
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
	struct peek peek = peek_from(w, w->offset);
	uint64_t offset = peek.offset, mode_tsx = 0;
	struct packet packet;

	for (; peek_next(&peek, &packet); offset = peek.offset) {
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
		case PACKET_PSB: {
			struct peek in_psb = peek;

			while (peek_next(&in_psb, &packet) && packet.type != PACKET_PSBEND)
				if (packet.type == PACKET_FUP)
					return is_on_at(w, &packet, offset, over);
			return false;
		}
		case PACKET_PIP:
		case PACKET_VMCS:
		case PACKET_MODE_EXEC:
		case PACKET_MNT:
		case PACKET_PWRE:
		case PACKET_PWRX:
			continue;
		case PACKET_EXSTOP:
		case PACKET_PTW:
			/* Without an address they say nothing of it. */
			if (packet.flag)
				return false;
			continue;
		default:
			if (!packet_is_timing(&packet))
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

	while (peek_next(&peek, &packet)) {
		if (packet.type == PACKET_TIP_PGD) {
			*over = (struct peek_overflow){ PEEK_OFF, .offset = peek.offset };
			return true;
		}
		if (!packet_is_timing(&packet) && packet.type != PACKET_MNT)
			return false;
	}
	return false;
}

struct peek_overflow peek_overflow(struct walk *w)
{
	struct peek_overflow over = { PEEK_OFF, .offset = w->offset };
	uint64_t behind;
	const int found = find_overflow_fup(w, &behind);

	if (found > 0 && w->errata & ERRATUM_APL12 && is_off_from(w, behind))
		return (struct peek_overflow){ PEEK_OFF, .offset = behind };
	if (found > 0)
		return (struct peek_overflow){ PEEK_FUP, .offset = behind };
	if (w->errata & ERRATUM_SKD010 && is_skd010(w, &over))
		return over;
	if (found < 0 && w->errata & ERRATUM_APL11 && is_apl11(w, &over))
		return over;
	return (struct peek_overflow){ found < 0 ? PEEK_BAD : PEEK_OFF, .offset = w->offset };
}
