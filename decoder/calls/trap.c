/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/calls/trap.h"

#include <stdbool.h>
#include <string.h>

/* Return: the bytes of instruction @i if it has @size bytes and begins with @opcode. */
static const uint8_t *match(const struct ptd_block *block, size_t i, size_t size,
			    const char *opcode, size_t opcode_size)
{
	const uint8_t *bytes = block->bytes + block->insns[i].offset;

	return block->insns[i].size == size && memcmp(bytes, opcode, opcode_size) == 0 ? bytes
										       : NULL;
}

#define MATCH(block, i, size, opcode) match(block, i, size, opcode, sizeof(opcode) - 1)

/* Return: whether instructions @i - 1 and @i push the address that @ret_handler is set to. */
static bool pushes_handler(const struct ptd_block *block, size_t i, int64_t *ret_handler)
{
	const struct ptd_insn *lea;
	const uint8_t *bytes;
	int32_t displacement;

	/* lea NUMBER(%rip), %r8 to %r15; push of that */
	if (i < 1 || !MATCH(block, i, 2, "\x41") || !MATCH(block, i - 1, 7, "\x4c\x8d"))
		return false;
	lea = &block->insns[i - 1];
	bytes = block->bytes + lea->offset;
	if ((bytes[2] & 0xc7) != 0x05 ||
	    block->bytes[block->insns[i].offset + 1] != (0x50 | (bytes[2] >> 3 & 7)))
		return false;
	memcpy(&displacement, bytes + 3, sizeof(displacement));
	*ret_handler = (int64_t)lea->offset + lea->size + displacement;
	return true;
}

static enum trap_op op_in_state(const struct ptd_block *block, size_t i, int64_t *ret_handler)
{
	const uint8_t *link, *other;

	/* mov %rsp, LINK(%r14) behind push LINK(%r14) */
	link = MATCH(block, i, 4, "\x49\x89\x66");
	other = i > 0 ? MATCH(block, i - 1, 4, "\x41\xff\x76") : NULL;
	if (link && other && link[3] == other[3] && i > 1 &&
	    pushes_handler(block, i - 2, ret_handler))
		return TRAP_PUSH;

	/* pop LINK(%r14), perhaps behind mov LINK(%r14), %rsp */
	link = MATCH(block, i, 4, "\x41\x8f\x46");
	other = i > 0 ? MATCH(block, i - 1, 4, "\x49\x8b\x66") : NULL;
	if (!link)
		return TRAP_NONE;
	return other && link[3] == other[3] ? TRAP_RAISE : TRAP_POP;
}

static enum trap_op op_in_register(const struct ptd_block *block, size_t i, int64_t *ret_handler)
{
	/* mov %rsp, %r14 behind push %r14 */
	if (i > 2 && MATCH(block, i, 3, "\x49\x89\xe6") && MATCH(block, i - 1, 2, "\x41\x56") &&
	    pushes_handler(block, i - 2, ret_handler))
		return TRAP_PUSH;

	/* pop %r14 behind mov %r14, %rsp; or before add $8, %rsp */
	if (i > 0 && MATCH(block, i, 2, "\x41\x5e") && MATCH(block, i - 1, 3, "\x4c\x89\xf4"))
		return TRAP_RAISE;
	if (i > 0 && MATCH(block, i, 4, "\x48\x83\xc4\x08") && MATCH(block, i - 1, 2, "\x41\x5e"))
		return TRAP_POP;
	return TRAP_NONE;
}

enum trap_op trap_op_at(const struct ptd_block *block, size_t i, int64_t *ret_handler)
{
	enum trap_op op;

	if (block->mode != 64 || !block->bytes)
		return TRAP_NONE;
	op = op_in_state(block, i, ret_handler);
	return op != TRAP_NONE ? op : op_in_register(block, i, ret_handler);
}
