/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/pt/packet.h"

#include <string.h>

#include "decoder/pt/errata.h"
#include "ptd/record.h"
#include "util/psb.h"

/* The first byte of packets that are told apart by more than that. */
#define OPCODE_EXT  0x02
#define OPCODE_TRIG 0xd9

#define EXT_MNT  0xc3 /* the byte behind OPCODE_EXT */
#define MNT_BYTE 0x88 /* the third one */

#define BIP_MASK 0x07
#define BIP      0x04

#define TRIG_IP    0x80
#define TRIG_COUNT 0x40
#define TRIG_MORE  0x20

#define CYC_MORE      0x04 /* of the first byte */
#define CYC_MORE_NEXT 0x01 /* of the others */

static uint64_t load(const uint8_t *p, size_t size)
{
	uint64_t value = 0;

	for (size_t i = 0; i < size; i++)
		value |= (uint64_t)p[i] << 8 * i;
	return value;
}

static int set_packet(struct packet *packet, enum packet_type type, uint8_t size, size_t left)
{
	packet->type = type;
	packet->size = size;
	return left < size ? PACKET_CUT : 0;
}

/* The bits are those below the highest 1, which only says how many there are. */
static int take_tnt(struct packet *packet, uint64_t payload)
{
	if (payload == 0)
		return PACKET_BAD;
	packet->n_bits = (uint8_t)(63 - __builtin_clzll(payload));
	packet->bits = packet->n_bits > 0 ? payload << (64 - packet->n_bits) : 0;
	return 0;
}

/* Packets with an address, by the low five bits of the first byte; the others are IPBytes. */
static const uint8_t ip_types[32] = {
	[0x01] = PACKET_TIP_PGD, [0x0d] = PACKET_TIP, [0x11] = PACKET_TIP_PGE, [0x1d] = PACKET_FUP
};

static int read_ip(struct packet *packet, enum packet_type type, const uint8_t *p, size_t left)
{
	static const uint8_t sizes[8] = { 0, 2, 4, 6, 6, 0, 8, 0 };
	const uint8_t ip_bytes = p[0] >> 5;

	if (type == PACKET_PAD)
		return PACKET_BAD;
	packet->ip_bytes = ip_bytes;
	if (set_packet(packet, type, (uint8_t)(1 + sizes[ip_bytes]), left) != 0)
		return PACKET_CUT;
	packet->value = load(p + 1, sizes[ip_bytes]);
	return ip_bytes == 5 || ip_bytes == 7 ? PACKET_BAD : 0;
}

static int read_cyc(struct packet *packet, const uint8_t *p, size_t left)
{
	bool more = p[0] & CYC_MORE;
	unsigned shift = 5;

	packet->type = PACKET_CYC;
	packet->size = 1;
	packet->value = p[0] >> 3;
	for (; more; shift += 7) {
		if (packet->size >= left)
			return PACKET_CUT;
		if (shift >= 64)
			return PACKET_BAD;
		packet->value |= (uint64_t)(p[packet->size] >> 1) << shift;
		more = p[packet->size++] & CYC_MORE_NEXT;
	}
	return 0;
}

static int read_trig(struct packet *packet, const uint8_t *p, size_t left)
{
	const bool counts = left >= 2 && p[1] & TRIG_COUNT;

	if (set_packet(packet, PACKET_TRIG, counts ? 5 : 3, left) != 0)
		return PACKET_CUT;
	packet->flag = p[1] & TRIG_IP;
	packet->value = p[2] | (p[1] & TRIG_MORE ? PTD_TRIG_MORE : 0u);
	packet->extra = counts && !packet->flag ? load(p + 3, 2) + 1 : 0;
	/* With an address the count says nothing more: it is there, and is 0. */
	return packet->flag && (!counts || load(p + 3, 2) != 0) ? PACKET_BAD : 0;
}

/* Where a field of a packet lies: the number of its bits, the lowest of them in byte @at. */
struct field {
	uint8_t at, n_bits;
};

/* A packet whose first bytes state its size, and where its fields lie. */
struct form {
	uint8_t type, size;
	struct field value, extra;
	uint8_t flag_at; /* the byte whose highest bit is @flag; 0: there is none */
};

/* By the first byte. */
static const struct form forms[256] = {
	[0x00] = { PACKET_PAD, 1, {}, {}, 0 },
	[0x19] = { PACKET_TSC, 8, { 1, 56 }, {}, 0 },
	[0x59] = { PACKET_MTC, 2, { 1, 8 }, {}, 0 },
	[0x99] = { PACKET_MODE_EXEC, 2, { 1, 8 }, {}, 0 },
};

/* By the byte behind OPCODE_EXT. */
static const struct form ext_forms[256] = {
	[0x03] = { PACKET_CBR, 4, { 2, 8 }, {}, 0 },
	[0x12] = { PACKET_PTW, 6, { 2, 32 }, {}, 1 },
	[0x13] = { PACKET_CFE, 4, { 2, 5 }, { 3, 8 }, 2 },
	[0x22] = { PACKET_PWRE, 4, { 3, 8 }, {}, 2 },
	[0x23] = { PACKET_PSBEND, 2, {}, {}, 0 },
	[0x32] = { PACKET_PTW, 10, { 2, 64 }, {}, 1 },
	[0x33] = { PACKET_BEP, 2, {}, {}, 1 },
	[0x43] = { PACKET_PIP, 8, { 2, 48 }, {}, 0 },
	[0x53] = { PACKET_EVD, 11, { 2, 6 }, { 3, 64 }, 0 },
	[0x62] = { PACKET_EXSTOP, 2, {}, {}, 1 },
	[0x63] = { PACKET_BBP, 3, { 2, 8 }, {}, 0 },
	[0x73] = { PACKET_TMA, 7, { 2, 16 }, { 5, 16 }, 0 },
	[0x82] = { PACKET_PSB, PSB_SIZE, {}, {}, 0 },
	[0x83] = { PACKET_STOP, 2, {}, {}, 0 },
	[0x92] = { PACKET_PTW, 6, { 2, 32 }, {}, 1 },
	[0xa2] = { PACKET_PWRX, 7, { 2, 8 }, { 3, 4 }, 0 },
	[0xa3] = { PACKET_TNT, 8, { 2, 48 }, {}, 0 },
	[0xb2] = { PACKET_PTW, 10, { 2, 64 }, {}, 1 },
	[0xb3] = { PACKET_BEP, 2, {}, {}, 1 },
	[0xc2] = { PACKET_MWAIT, 10, { 2, 32 }, { 6, 32 }, 0 },
	[EXT_MNT] = { PACKET_MNT, 11, { 3, 64 }, {}, 0 },
	[0xc8] = { PACKET_VMCS, 7, { 2, 40 }, {}, 0 },
	[0xe2] = { PACKET_EXSTOP, 2, {}, {}, 1 },
	[0xf3] = { PACKET_OVF, 2, {}, {}, 0 },
};

static int take_mode(struct packet *packet)
{
	const uint64_t bits = packet->value;

	switch (bits >> 5) {
	case 0: /* CS.L, then CS.D; a 64-bit segment has no D */
		packet->value = bits & 1 ? 64 : bits & 2 ? 32 : 16;
		packet->flag = bits & 4;
		return 0;
	case 1:
		packet->type = PACKET_MODE_TSX;
		packet->value = bits & (PACKET_TSX_BEGIN | PACKET_TSX_ABORT);
		return 0;
	default:
		return PACKET_BAD;
	}
}

/* Take what the fields of the packet at @p mean, if it is more than what they say. */
static int take_meaning(struct packet *packet, const uint8_t *p)
{
	switch (packet->type) {
	case PACKET_TNT:
		return take_tnt(packet, packet->value);
	case PACKET_MODE_EXEC:
		return take_mode(packet);
	case PACKET_PSB:
		return memcmp(p, psb_bytes, PSB_SIZE) == 0 ? 0 : PACKET_BAD;
	case PACKET_TMA:
		/* What is reserved is 0. */
		return p[4] != 0 || packet->extra > 0x1ff ? PACKET_BAD : 0;
	case PACKET_PIP:
		packet->extra = packet->value & 1;
		packet->value = packet->value >> 1 << 5;
		return 0;
	case PACKET_VMCS:
		packet->value <<= 12;
		return 0;
	case PACKET_PTW:
		packet->extra = packet->size - 2u;
		return 0;
	default:
		return 0;
	}
}

static uint64_t load_field(const uint8_t *p, struct field field)
{
	const uint64_t value = load(p + field.at, (field.n_bits + 7u) / 8);

	return field.n_bits < 64 ? value & ((UINT64_C(1) << field.n_bits) - 1) : value;
}

static int read_form(struct packet *packet, const struct form *form, const uint8_t *p, size_t left)
{
	if (form->size == 0)
		return PACKET_BAD;
	if (set_packet(packet, form->type, form->size, left) != 0)
		return PACKET_CUT;
	packet->value = load_field(p, form->value);
	packet->extra = load_field(p, form->extra);
	packet->flag = form->flag_at > 0 && p[form->flag_at] & 0x80;
	return take_meaning(packet, p);
}

static int read_ext(struct packet *packet, const uint8_t *p, size_t left)
{
	if (left < 2)
		return set_packet(packet, PACKET_PAD, 2, left);
	if (p[1] == EXT_MNT && left > 2 && p[2] != MNT_BYTE)
		return PACKET_BAD;
	return read_form(packet, &ext_forms[p[1]], p, left);
}

static int read_any(struct packet *packet, const uint8_t *p, size_t left)
{
	if (p[0] == OPCODE_EXT)
		return read_ext(packet, p, left);
	if (p[0] == OPCODE_TRIG)
		return read_trig(packet, p, left);
	if (forms[p[0]].size > 0)
		return read_form(packet, &forms[p[0]], p, left);
	if (!(p[0] & 1)) {
		(void)set_packet(packet, PACKET_TNT, 1, left);
		return take_tnt(packet, p[0] >> 1);
	}
	if ((p[0] & 3) == 3)
		return read_cyc(packet, p, left);
	return read_ip(packet, ip_types[p[0] & 0x1f], p, left);
}

static int read_as_written(struct packet_reader *reader, const uint8_t *p, size_t left,
			   struct packet *ret_packet)
{
	int r;

	*ret_packet = (struct packet){};
	if (left == 0)
		return PACKET_CUT;
	if (reader->item_size > 0 && (p[0] & BIP_MASK) == BIP)
		return set_packet(ret_packet, PACKET_BIP, (uint8_t)(1 + reader->item_size), left);
	r = read_any(ret_packet, p, left);
	/* A block ends at its BEP, or where an overflow or a PSB cut it off. */
	if (r == 0 && ret_packet->type == PACKET_BBP)
		reader->item_size = ret_packet->value & 0x80 ? 4 : 8;
	else if (ret_packet->type != PACKET_PAD)
		reader->item_size = 0;
	return r;
}

/*
 * Erratum SKD007: an OVF was written behind the first byte of a CYC of two bytes, whose second byte
 * it seems to be.
 */
static bool is_skd007(const struct packet *packet, const uint8_t *p, size_t n)
{
	return packet->type == PACKET_CYC && packet->size == 2 &&
	       (packet->value & ~UINT64_C(0x1f)) == 0x20 && n > 2 && p[2] == 0xf3;
}

int packet_read(struct packet_reader *reader, const uint8_t *p, size_t left,
		struct packet *ret_packet)
{
	const int r = read_as_written(reader, p, left, ret_packet);

	if (r == 0 && reader->errata & ERRATUM_SKD007 && is_skd007(ret_packet, p, left))
		*ret_packet = (struct packet){ .type = PACKET_PAD, .size = 1 };
	if (r != PACKET_BAD || ret_packet->type != PACKET_TMA || !(reader->errata & ERRATUM_SKZ84))
		return r;
	ret_packet->type = PACKET_PAD;
	ret_packet->size++;
	return left < ret_packet->size ? PACKET_CUT : 0;
}

bool packet_ip(const struct packet *packet, uint64_t *last_ip)
{
	const uint64_t ip = packet->value;

	switch (packet->ip_bytes) {
	case 1:
		*last_ip = (*last_ip & ~UINT64_C(0xffff)) | ip;
		return true;
	case 2:
		*last_ip = (*last_ip & ~UINT64_C(0xffffffff)) | ip;
		return true;
	case 3:
		*last_ip = (uint64_t)((int64_t)(ip << 16) >> 16);
		return true;
	case 4:
		*last_ip = (*last_ip & ~UINT64_C(0xffffffffffff)) | ip;
		return true;
	case 6:
		*last_ip = ip;
		return true;
	default:
		return false;
	}
}
