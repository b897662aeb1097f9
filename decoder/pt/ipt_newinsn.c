/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/pt/ipt_newinsn.h"

#include <string.h>

#include "decoder/x86/unknown.h"

#define INSN_SIZE_MAX 15
#define OPCODE_SIZE   3
#define PIECE_SIZE    (UINT64_C(1) << 16)

/* The bytes of each: what comes before them are prefixes. */
static const uint8_t fred_return[OPCODE_SIZE] = { 0x0f, 0x01, 0xca };
static const uint8_t jmpabs[OPCODE_SIZE] = { 0xd5, 0x00, 0xa1 };

#define PREFIX 0x2e /* CS: it means nothing in 64-bit code */

/*
 * Find @opcode by the rarest of its bytes in code, which is the one at @rare. Return: its offset,
 * at @from or behind; @size if it is not there.
 */
static uint64_t find(const uint8_t *code, uint64_t size, uint64_t from, const uint8_t *opcode,
		     size_t rare)
{
	while (size >= OPCODE_SIZE && from <= size - OPCODE_SIZE) {
		const uint8_t *p = memchr(code + from + rare, opcode[rare],
					  (size_t)(size - OPCODE_SIZE - from + 1));

		if (!p)
			break;
		from = (uint64_t)(p - code) - rare;
		if (memcmp(code + from, opcode, OPCODE_SIZE) == 0)
			return from;
		from++;
	}
	return size;
}

/* Find either, the one that comes first. In pieces, so that the way to the first one of a kind is
 * not gone again for each one of the other kind. */
static uint64_t find_any(const uint8_t *code, uint64_t size, uint64_t from)
{
	while (from < size) {
		const uint64_t end = size - from > PIECE_SIZE ? from + PIECE_SIZE : size;
		const uint64_t fred = find(code, end, from, fred_return, 2);
		const uint64_t jump = find(code, end, from, jmpabs, 0);

		if (fred < end || jump < end)
			return fred < jump ? fred : jump;
		/* One may begin in this piece and end in the next. */
		from = end == size ? size : end - (OPCODE_SIZE - 1);
	}
	return size;
}

bool ipt_newinsn_find(const uint8_t *code, uint64_t size, uint64_t from, struct ipt_hole *ret_hole)
{
	const uint64_t at = find_any(code, size, from);

	if (at == size)
		return false;
	*ret_hole = (struct ipt_hole){
		.start = at - from < INSN_SIZE_MAX ? from : at - INSN_SIZE_MAX,
		.end = at + 1,
	};
	return true;
}

void ipt_newinsn_disguise(uint8_t *code, size_t size)
{
	static const uint8_t iret[] = { 0xcf }, jump[] = { 0xff, 0xe0 };
	struct insn insn;

	if (size > INSN_SIZE_MAX)
		size = INSN_SIZE_MAX;
	if (find_any(code, size, 0) == size || !unknown_branch(64, code, size, &insn))
		return;
	memset(code, PREFIX, insn.size);
	if (insn.class == PTD_INSN_RETURN_FAR)
		memcpy(code + insn.size - sizeof(iret), iret, sizeof(iret));
	else
		memcpy(code + insn.size - sizeof(jump), jump, sizeof(jump));
}
