/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/pt/psbs.h"

#include "decoder/pt/packet.h"
#include "util/psb.h"

/* Bytes that are read at once. */
#define PSBS_WINDOW_SIZE ((size_t)1 << 13)

/* How far from the end of a span the last PSB is looked for first. */
#define LAST_SIZE (UINT64_C(1) << 15)

/* More packets of a PSB+ are not looked at. */
#define PSB_PACKETS_MAX 64

void psbs_init(struct psbs *psbs, const struct fileparts *pt)
{
	window_init(&psbs->window, pt, pt->memory ? 0 : PSBS_WINDOW_SIZE);
}

void psbs_deinit(struct psbs *psbs)
{
	window_deinit(&psbs->window);
}

int psbs_error(const struct psbs *psbs)
{
	return psbs->window.error;
}

uint64_t psbs_next(struct psbs *psbs, uint64_t from)
{
	return psb_find(&psbs->window, from);
}

/* Read the packet at @offset. Return: whether there is one. */
static bool read_packet(struct psbs *psbs, struct packet_reader *reader, uint64_t offset,
			struct packet *ret_packet)
{
	size_t n;
	const uint8_t *p = window_at(&psbs->window, offset, PACKET_SIZE_MAX, &n);

	return p && packet_read(reader, p, n, ret_packet) == 0;
}

uint64_t psbs_time(struct psbs *psbs, uint64_t offset)
{
	struct packet_reader reader = {};
	struct packet packet;

	for (size_t i = 0; i < PSB_PACKETS_MAX; i++) {
		if (!read_packet(psbs, &reader, offset, &packet) || packet.type == PACKET_PSBEND ||
		    packet.type == PACKET_OVF)
			return 0;
		if (packet.type == PACKET_TSC)
			return packet.value;
		offset += packet.size;
	}
	return 0;
}

/* Return: the TSC at the end of the packets from the PSB at @offset on, as far as it is told. */
static uint64_t time_behind(struct psbs *psbs, uint64_t offset, struct tsc tsc)
{
	struct packet_reader reader = {};
	struct packet packet;
	bool in_psb = false;

	for (; read_packet(psbs, &reader, offset, &packet); offset += packet.size) {
		if (packet.type == PACKET_PSB || packet.type == PACKET_PSBEND)
			in_psb = packet.type == PACKET_PSB;
		if (packet.type == PACKET_PSB)
			tsc_take_psb(&tsc);
		else if (packet_is_in(&packet, PACKETS_OF_TIME))
			tsc_take(&tsc, &packet, in_psb);
	}
	return tsc.has_tsc ? tsc.now : 0;
}

uint64_t psbs_last_time(struct psbs *psbs, const struct tsc *tsc)
{
	const uint64_t size = psbs->window.all.size;
	uint64_t last = size;

	for (uint64_t back = LAST_SIZE; last == size; back *= 2) {
		const uint64_t from = back < size ? size - back : 0;

		for (uint64_t at = psbs_next(psbs, from); at < size; at = psbs_next(psbs, at + 1))
			last = at;
		if (from == 0)
			break;
	}
	return last < size ? time_behind(psbs, last, *tsc) : 0;
}
