/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/drmemtrace/insn.h"

#include "decoder/drmemtrace/record.h"

/* What an instruction is if nothing needs to be known of where it went. */
static const uint16_t type_of_class[] = {
	[PTD_INSN_OTHER] = MEMTRACE_INSN,
	[PTD_INSN_JUMP] = MEMTRACE_DIRECT_JUMP,
	[PTD_INSN_JUMP_INDIRECT] = MEMTRACE_INDIRECT_JUMP,
	[PTD_INSN_JUMP_COND] = MEMTRACE_UNTAKEN_JUMP,
	[PTD_INSN_CALL] = MEMTRACE_DIRECT_CALL,
	[PTD_INSN_CALL_INDIRECT] = MEMTRACE_INDIRECT_CALL,
	[PTD_INSN_RETURN] = MEMTRACE_RETURN,
	[PTD_INSN_RETURN_FAR] = MEMTRACE_RETURN,
	[PTD_INSN_SYSCALL] = MEMTRACE_INSN,
	[PTD_INSN_SYSENTER] = MEMTRACE_SYSENTER,
	[PTD_INSN_INTERRUPT] = MEMTRACE_INSN,
	[PTD_INSN_VM] = MEMTRACE_INSN,
	[PTD_INSN_PTWRITE] = MEMTRACE_INSN,
};

/* sysret and sysexit, which DynamoRIO counts as jumps: 0f 07, 0f 35 behind any prefixes. */
static bool leaves_kernel(const uint8_t *bytes, size_t size)
{
	/* They have no operands, so their bytes are the last two. Those of retf may be its operand.
	 */
	return size >= 2 && bytes[size - 2] == 0x0f &&
	       (bytes[size - 1] == 0x07 || bytes[size - 1] == 0x35) &&
	       !(size >= 3 && bytes[size - 3] == 0xca);
}

uint16_t memtrace_insn_type(const struct ptd_block *block, size_t i)
{
	const struct ptd_insn *insn = &block->insns[i];

	if (insn->iclass == PTD_INSN_RETURN_FAR &&
	    leaves_kernel(block->bytes + insn->offset, insn->size))
		return MEMTRACE_INDIRECT_JUMP;
	return type_of_class[insn->iclass];
}
