/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/pt/packet.h"

#include <string.h>

#include "decoder/pt/errata.h"
#include "ptd/record.h"

/* The first byte of packets that have one of their own. */
#define OPCODE_PAD  0x00
#define OPCODE_EXT  0x02
#define OPCODE_TSC  0x19
#define OPCODE_MTC  0x59
#define OPCODE_MODE 0x99
#define OPCODE_TRIG 0xd9

/* And of those that have a part of it: of packets with an address the low five bits. */
#define IP_MASK        0x1f
#define OPCODE_TIP_PGD 0x01
#define OPCODE_TIP     0x0d
#define OPCODE_TIP_PGE 0x11
#define OPCODE_FUP     0x1d

/* The byte behind OPCODE_EXT. */
#define EXT_CBR    0x03
#define EXT_PTW    0x12 /* in the low five bits */
#define EXT_CFE    0x13
#define EXT_PWRE   0x22
#define EXT_PSBEND 0x23
#define EXT_BEP    0x33 /* in the low seven bits */
#define EXT_PIP    0x43
#define EXT_EVD    0x53
#define EXT_EXSTOP 0x62 /* in the low seven bits */
#define EXT_BBP    0x63
#define EXT_TMA    0x73
#define EXT_PSB    0x82
#define EXT_STOP   0x83
#define EXT_PWRX   0xa2
#define EXT_TNT    0xa3
#define EXT_MWAIT  0xc2
#define EXT_MNT    0xc3
#define EXT_VMCS   0xc8
#define EXT_OVF    0xf3

#define EXT_IP   0x80 /* a FUP follows */
#define MNT_BYTE 0x88 /* the third one */

#define BIP_MASK 0x07
#define BIP      0x04

#define TMA_SIZE 7

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

static int read_ip(struct packet *packet, enum packet_type type, const uint8_t *p, size_t left)
{
	static const uint8_t sizes[8] = { 0, 2, 4, 6, 6, 0, 8, 0 };
	const uint8_t ip_bytes = p[0] >> 5;

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

static int read_mode(struct packet *packet, const uint8_t *p, size_t left)
{
	if (set_packet(packet, PACKET_MODE_EXEC, 2, left) != 0)
		return PACKET_CUT;
	switch (p[1] >> 5) {
	case 0: /* CS.L, then CS.D; a 64-bit segment has no D */
		packet->value = p[1] & 1 ? 64 : p[1] & 2 ? 32 : 16;
		packet->flag = p[1] & 4;
		return 0;
	case 1:
		packet->type = PACKET_MODE_TSX;
		packet->value = p[1] & (PACKET_TSX_BEGIN | PACKET_TSX_ABORT);
		return 0;
	default:
		return PACKET_BAD;
	}
}

static int read_psb(struct packet *packet, const uint8_t *p, size_t left)
{
	if (set_packet(packet, PACKET_PSB, 16, left) != 0)
		return PACKET_CUT;
	for (size_t i = 0; i < 16; i += 2)
		if (p[i] != OPCODE_EXT || p[i + 1] != EXT_PSB)
			return PACKET_BAD;
	return 0;
}

static int read_tma(struct packet *packet, const uint8_t *p, size_t left)
{
	if (set_packet(packet, PACKET_TMA, TMA_SIZE, left) != 0)
		return PACKET_CUT;
	packet->value = load(p + 2, 2);
	packet->extra = load(p + 5, 2);
	/* What is reserved is 0. */
	return p[4] != 0 || packet->extra > 0x1ff ? PACKET_BAD : 0;
}

static int read_ptw(struct packet *packet, const uint8_t *p, size_t left)
{
	const uint8_t size = p[1] & 0x20 ? 8 : 4;

	packet->flag = p[1] & EXT_IP;
	if (set_packet(packet, PACKET_PTW, 2 + size, left) != 0)
		return PACKET_CUT;
	packet->value = load(p + 2, size);
	packet->extra = size;
	return p[1] & 0x40 ? PACKET_BAD : 0;
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

/* Those that consist of a type, or of a payload and no more. */
static int read_plain(struct packet *packet, enum packet_type type, uint8_t size, size_t at,
		      size_t n, const uint8_t *p, size_t left)
{
	if (set_packet(packet, type, size, left) != 0)
		return PACKET_CUT;
	packet->value = load(p + at, n);
	return 0;
}

static int read_ext(struct packet *packet, const uint8_t *p, size_t left)
{
	int r;

	if (left < 2)
		return set_packet(packet, PACKET_PAD, 2, left);
	switch (p[1]) {
	case EXT_PSB:
		return read_psb(packet, p, left);
	case EXT_PSBEND:
		return set_packet(packet, PACKET_PSBEND, 2, left);
	case EXT_OVF:
		return set_packet(packet, PACKET_OVF, 2, left);
	case EXT_STOP:
		return set_packet(packet, PACKET_STOP, 2, left);
	case EXT_TNT:
		r = read_plain(packet, PACKET_TNT, 8, 2, 6, p, left);
		return r ? r : take_tnt(packet, packet->value);
	case EXT_CBR:
		return read_plain(packet, PACKET_CBR, 4, 2, 1, p, left);
	case EXT_TMA:
		return read_tma(packet, p, left);
	case EXT_PIP:
		r = read_plain(packet, PACKET_PIP, 8, 2, 6, p, left);
		packet->flag = packet->value & 1;
		packet->value = packet->value >> 1 << 5;
		return r;
	case EXT_VMCS:
		r = read_plain(packet, PACKET_VMCS, 7, 2, 5, p, left);
		packet->value <<= 12;
		return r;
	case EXT_MNT:
		if (left > 2 && p[2] != MNT_BYTE)
			return PACKET_BAD;
		return read_plain(packet, PACKET_MNT, 11, 3, 8, p, left);
	case EXT_MWAIT:
		r = read_plain(packet, PACKET_MWAIT, 10, 2, 4, p, left);
		packet->extra = r ? 0 : load(p + 6, 4);
		return r;
	case EXT_PWRE:
		packet->flag = left > 2 && p[2] & 0x80;
		return read_plain(packet, PACKET_PWRE, 4, 3, 1, p, left);
	case EXT_PWRX:
		packet->extra = left > 3 ? p[3] & 0x0f : 0;
		return read_plain(packet, PACKET_PWRX, 7, 2, 1, p, left);
	case EXT_EXSTOP:
	case EXT_EXSTOP | EXT_IP:
		packet->flag = p[1] & EXT_IP;
		return set_packet(packet, PACKET_EXSTOP, 2, left);
	case EXT_BEP:
	case EXT_BEP | EXT_IP:
		packet->flag = p[1] & EXT_IP;
		return set_packet(packet, PACKET_BEP, 2, left);
	case EXT_BBP:
		return read_plain(packet, PACKET_BBP, 3, 2, 1, p, left);
	case EXT_CFE:
		packet->flag = left > 2 && p[2] & 0x80;
		packet->extra = left > 3 ? p[3] : 0;
		r = read_plain(packet, PACKET_CFE, 4, 2, 1, p, left);
		packet->value &= 0x1f;
		return r;
	case EXT_EVD:
		r = read_plain(packet, PACKET_EVD, 11, 2, 1, p, left);
		packet->value &= 0x3f;
		packet->extra = r ? 0 : load(p + 3, 8);
		return r;
	default:
		return (p[1] & 0x1f) == EXT_PTW ? read_ptw(packet, p, left) : PACKET_BAD;
	}
}

static int read_any(struct packet *packet, const uint8_t *p, size_t left)
{
	switch (p[0]) {
	case OPCODE_PAD:
		return set_packet(packet, PACKET_PAD, 1, left);
	case OPCODE_EXT:
		return read_ext(packet, p, left);
	case OPCODE_TSC:
		return read_plain(packet, PACKET_TSC, 8, 1, 7, p, left);
	case OPCODE_MTC:
		return read_plain(packet, PACKET_MTC, 2, 1, 1, p, left);
	case OPCODE_MODE:
		return read_mode(packet, p, left);
	case OPCODE_TRIG:
		return read_trig(packet, p, left);
	}
	if (!(p[0] & 1)) {
		packet->type = PACKET_TNT;
		packet->size = 1;
		return take_tnt(packet, p[0] >> 1);
	}
	if ((p[0] & 3) == 3)
		return read_cyc(packet, p, left);
	switch (p[0] & IP_MASK) {
	case OPCODE_TIP:
		return read_ip(packet, PACKET_TIP, p, left);
	case OPCODE_TIP_PGE:
		return read_ip(packet, PACKET_TIP_PGE, p, left);
	case OPCODE_TIP_PGD:
		return read_ip(packet, PACKET_TIP_PGD, p, left);
	case OPCODE_FUP:
		return read_ip(packet, PACKET_FUP, p, left);
	default:
		return PACKET_BAD;
	}
}

int packet_read(struct packet_reader *reader, const uint8_t *p, size_t left,
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

int packet_read_mended(struct packet_reader *reader, uint32_t errata, const uint8_t *p, size_t n,
		       struct packet *packet)
{
	const int r = packet_read(reader, p, n, packet);

	if (r == 0 && errata & ERRATUM_SKD007 && is_skd007(packet, p, n))
		*packet = (struct packet){ .type = PACKET_PAD, .size = 1 };
	if (r != PACKET_BAD || packet->type != PACKET_TMA || !(errata & ERRATUM_SKZ84))
		return r;
	packet->type = PACKET_PAD;
	packet->size = TMA_SIZE + 1;
	return n < packet->size ? PACKET_CUT : 0;
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
