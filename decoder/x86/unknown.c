/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/x86/unknown.h"

#include <errno.h>
#include <stdbool.h>

#include "base/cursor.h"
#include "ptd/record.h"

#define INSN_SIZE_MAX 15

#define TARGET_SIZE 8 /* of a JMPABS */

/* Those prefixes of an instruction that matter. */
struct prefixes {
	uint8_t repeat; /* 0xf2 or 0xf3, the last one seen; 0 */
	bool address_size;
};

static int skip_bytes(struct cursor *c, size_t size)
{
	struct cursor skipped;

	return cursor_get_sub(c, size, &skipped);
}

/* Step over a ModRM byte and the SIB byte and displacement that it asks for. */
static int skip_modrm(struct cursor *c, unsigned int address_bits)
{
	uint8_t modrm, sib = 0, mod, rm;
	size_t disp;

	if (cursor_get(c, 1, &modrm) < 0)
		return -EBADMSG;
	mod = modrm >> 6;
	rm = modrm & 7;
	if (mod == 3)
		return 0;
	if (address_bits == 16)
		return skip_bytes(c, mod == 1 ? 1 : mod == 2 || rm == 6 ? 2 : 0);

	if (rm == 4 && cursor_get(c, 1, &sib) < 0)
		return -EBADMSG;
	disp = mod == 1 ? 1 : mod == 2 ? 4 : 0;
	if (mod == 0 && (rm == 5 || (rm == 4 && (sib & 7) == 5)))
		disp = 4;
	return skip_bytes(c, disp);
}

static int skip_prefixes(struct cursor *c, uint8_t mode, struct prefixes *ret_prefixes)
{
	struct prefixes prefixes = {};
	struct cursor next;
	uint8_t byte;

	for (next = *c; cursor_get(&next, 1, &byte) == 0; *c = next) {
		switch (byte) {
		case 0xf2:
		case 0xf3:
			prefixes.repeat = byte;
			break;
		case 0x67:
			prefixes.address_size = true;
			break;
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
		case 0x64:
		case 0x65:
		case 0x66:
			break;
		default:
			if (mode != 64 || (byte & 0xf0) != 0x40) {
				*ret_prefixes = prefixes;
				return 0;
			}
		}
	}
	return -EBADMSG;
}

/*
 * In VEX and EVEX, all opcodes of a map have an immediate of the same size, except in map 1.
 *
 * Return: the size of the immediate in bytes; -EBADMSG if the map is not known.
 */
static int vex_immediate(unsigned int map, uint8_t opcode)
{
	switch (map) {
	case 1:
		return (opcode >= 0x70 && opcode <= 0x73) || opcode == 0xc2 ||
		       (opcode >= 0xc4 && opcode <= 0xc6);
	case 2:
	case 5:
	case 6:
		return 0;
	case 3:
		return 1;
	case 7:
		return 4;
	default:
		return -EBADMSG;
	}
}

/*
 * Decode what follows @escape, the first byte of a VEX or EVEX prefix. Return: like
 * vex_immediate().
 */
static int decode_vex(struct cursor *c, uint8_t mode, uint8_t escape)
{
	const size_t size = escape == 0xc5 ? 1 : escape == 0xc4 ? 2 : 3;
	uint8_t payload[3], opcode;
	unsigned int map = 1;

	if (cursor_get(c, size, payload) < 0 || cursor_get(c, 1, &opcode) < 0)
		return -EBADMSG;
	/* In other modes than 64-bit, this is LDS, LES or BOUND with a memory operand. */
	if (mode != 64 && payload[0] < 0xc0)
		return -EBADMSG;
	if (escape != 0xc5)
		map = payload[0] & (escape == 0xc4 ? 0x1f : 7);
	return vex_immediate(map, opcode);
}

/* Decode what follows the byte 0f. Return: the size of the immediate, which is 0; or -EBADMSG. */
static int decode_two_byte(struct cursor *c, uint8_t mode, const struct prefixes *prefixes,
			   uint8_t *ret_class)
{
	uint8_t opcode, modrm;
	struct cursor next;

	if (cursor_get(c, 1, &opcode) < 0)
		return -EBADMSG;
	next = *c;
	if (cursor_get(&next, 1, &modrm) < 0)
		return -EBADMSG;

	*ret_class = PTD_INSN_OTHER;
	if (opcode == 0x38) { /* modrm is the second byte of the opcode */
		*c = next;
		return 0;
	}
	if (opcode == 0x00 && prefixes->repeat == 0xf2 && (modrm >> 3 & 7) == 6)
		return 0; /* LKGS */
	if (opcode == 0x01 && (modrm == 0xc6 || modrm == 0xc7))
		return 0; /* WRMSRNS, RDMSRLIST, WRMSRLIST, PBNDKB */
	if (opcode == 0x01 && modrm == 0xca && prefixes->repeat != 0 && mode == 64) {
		*ret_class = PTD_INSN_RETURN_FAR; /* ERETS, ERETU */
		return 0;
	}
	return -EBADMSG;
}

/* Step over a JMPABS. It has no prefixes but REX2, whose payload is 0. */
static int decode_jmpabs(struct cursor *c)
{
	uint8_t bytes[3];

	if (cursor_get(c, sizeof(bytes), bytes) < 0 || bytes[0] != 0xd5 || bytes[1] != 0x00 ||
	    bytes[2] != 0xa1)
		return -EBADMSG;
	return skip_bytes(c, TARGET_SIZE);
}

int unknown_decode(uint8_t mode, const uint8_t *bytes, size_t size, struct unknown *ret_insn)
{
	struct cursor c = cursor_from(bytes, size < INSN_SIZE_MAX ? size : INSN_SIZE_MAX);
	unsigned int address_bits = mode;
	uint8_t first, class = PTD_INSN_OTHER;
	struct prefixes prefixes;
	int immediate;

	if (mode == 64 && decode_jmpabs(&(struct cursor){ c.pos, c.end }) == 0) {
		*ret_insn =
		    (struct unknown){ .size = 3 + TARGET_SIZE, .class = PTD_INSN_JUMP_INDIRECT };
		return 0;
	}
	if (skip_prefixes(&c, mode, &prefixes) < 0 || cursor_get(&c, 1, &first) < 0)
		return -EBADMSG;
	if (first == 0x0f)
		immediate = decode_two_byte(&c, mode, &prefixes, &class);
	else if (first == 0xc4 || first == 0xc5 || first == 0x62)
		immediate = decode_vex(&c, mode, first);
	else
		return -EBADMSG;
	if (immediate < 0)
		return immediate;

	if (prefixes.address_size)
		address_bits = mode == 32 ? 16 : 32;
	if (skip_modrm(&c, address_bits) < 0 || skip_bytes(&c, (size_t)immediate) < 0)
		return -EBADMSG;
	*ret_insn = (struct unknown){ .size = (uint8_t)(c.pos - bytes), .class = class };
	return 0;
}

const char *unknown_branch(uint8_t mode, const uint8_t *bytes, size_t size,
			   struct unknown *ret_insn)
{
	struct cursor c = cursor_from(bytes, size < INSN_SIZE_MAX ? size : INSN_SIZE_MAX);
	struct prefixes prefixes;
	struct unknown insn;

	if (unknown_decode(mode, bytes, size, &insn) < 0 || insn.class == PTD_INSN_OTHER)
		return NULL;
	*ret_insn = insn;
	if (insn.class == PTD_INSN_JUMP_INDIRECT)
		return "jmpabs";
	return skip_prefixes(&c, mode, &prefixes) == 0 && prefixes.repeat == 0xf2 ? "erets"
										  : "eretu";
}
