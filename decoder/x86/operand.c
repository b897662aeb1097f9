/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/x86/operand.h"

#include "decoder/x86/zydis.h"

#define SIZE_MAX_BYTES 64 /* of an operand: larger ones are saved states */
#define DISP_SIZE      4

/* Return: whether a byte can be the ModRM of such an operand, which 4 bytes of displacement follow.
 * Most instructions are ruled out by that. */
static bool may_have_operand(const uint8_t *bytes, size_t size)
{
	for (size_t i = 1; i + DISP_SIZE < size; i++)
		if ((bytes[i] & 0xc7) == 0x05)
			return true;
	return false;
}

static bool is_hint(const ZydisDecodedInstruction *insn)
{
	return insn->mnemonic == ZYDIS_MNEMONIC_NOP ||
	       insn->meta.category == ZYDIS_CATEGORY_PREFETCH ||
	       insn->meta.category == ZYDIS_CATEGORY_WIDENOP ||
	       insn->meta.category == ZYDIS_CATEGORY_NOP ||
	       insn->meta.category == ZYDIS_CATEGORY_CLDEMOTE ||
	       insn->meta.category == ZYDIS_CATEGORY_CLFLUSHOPT ||
	       insn->meta.category == ZYDIS_CATEGORY_CLWB ||
	       insn->mnemonic == ZYDIS_MNEMONIC_CLFLUSH;
}

/* Return: whether a mask chooses which parts are accessed. */
static bool is_masked(const ZydisDecodedInstruction *insn)
{
	return (insn->avx.mask.mode != ZYDIS_MASK_MODE_INVALID &&
		insn->avx.mask.mode != ZYDIS_MASK_MODE_DISABLED) ||
	       insn->mnemonic == ZYDIS_MNEMONIC_VMASKMOVPS ||
	       insn->mnemonic == ZYDIS_MNEMONIC_VMASKMOVPD ||
	       insn->mnemonic == ZYDIS_MNEMONIC_VPMASKMOVD ||
	       insn->mnemonic == ZYDIS_MNEMONIC_VPMASKMOVQ;
}

bool operand_rip(const uint8_t *bytes, size_t size, struct operand *ret_operand)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction insn;

	if (!may_have_operand(bytes, size) ||
	    !ZYAN_SUCCESS(zydis_decode(64, bytes, size, &insn, operands)) || is_hint(&insn) ||
	    is_masked(&insn))
		return false;
	for (size_t i = 0; i < insn.operand_count; i++) {
		const ZydisDecodedOperand *o = &operands[i];

		if (o->type != ZYDIS_OPERAND_TYPE_MEMORY || o->mem.type != ZYDIS_MEMOP_TYPE_MEM ||
		    o->mem.base != ZYDIS_REGISTER_RIP || insn.address_width != 64)
			continue;
		/* Behind fs and gs the address is relative to their base, too. */
		if (o->mem.segment == ZYDIS_REGISTER_FS || o->mem.segment == ZYDIS_REGISTER_GS ||
		    o->size == 0 || o->size % 8 != 0 || o->size / 8 > SIZE_MAX_BYTES)
			return false;
		*ret_operand = (struct operand){
			.disp = (int32_t)o->mem.disp.value,
			.size = (uint16_t)(o->size / 8),
			.reads = o->actions & ZYDIS_OPERAND_ACTION_MASK_READ,
			.writes = o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE,
		};
		return ret_operand->reads || ret_operand->writes;
	}
	return false;
}
