/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/x86/insn.h"

#include <errno.h>

#include "decoder/x86/plain.h"
#include "decoder/x86/unknown.h"
#include "decoder/x86/zydis.h"

/* A direct branch has its target in the instruction: a far one a pointer, others a distance. */
static enum ptd_insn_class branch_class(const ZydisDecodedInstruction *zi,
					enum ptd_insn_class direct, enum ptd_insn_class indirect)
{
	return zi->raw.imm[0].size ? direct : indirect;
}

static enum ptd_insn_class class_of(const ZydisDecodedInstruction *zi)
{
	switch (zi->mnemonic) {
	case ZYDIS_MNEMONIC_JMP:
		return branch_class(zi, PTD_INSN_JUMP, PTD_INSN_JUMP_INDIRECT);
	case ZYDIS_MNEMONIC_CALL:
		return branch_class(zi, PTD_INSN_CALL, PTD_INSN_CALL_INDIRECT);
	case ZYDIS_MNEMONIC_RET:
		return zi->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR ? PTD_INSN_RETURN_FAR
								     : PTD_INSN_RETURN;
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ:
	case ZYDIS_MNEMONIC_SYSRET:
	case ZYDIS_MNEMONIC_SYSEXIT:
	case ZYDIS_MNEMONIC_UIRET:
	case ZYDIS_MNEMONIC_RSM:
		return PTD_INSN_RETURN_FAR;
	case ZYDIS_MNEMONIC_SYSCALL:
		return PTD_INSN_SYSCALL;
	case ZYDIS_MNEMONIC_SYSENTER:
		return PTD_INSN_SYSENTER;
	case ZYDIS_MNEMONIC_INT:
	case ZYDIS_MNEMONIC_INT1:
	case ZYDIS_MNEMONIC_INT3:
	case ZYDIS_MNEMONIC_INTO:
		return PTD_INSN_INTERRUPT;
	case ZYDIS_MNEMONIC_VMCALL:
	case ZYDIS_MNEMONIC_VMLAUNCH:
	case ZYDIS_MNEMONIC_VMRESUME:
	case ZYDIS_MNEMONIC_SEAMCALL:
	case ZYDIS_MNEMONIC_SEAMRET:
	case ZYDIS_MNEMONIC_TDCALL:
		return PTD_INSN_VM;
	case ZYDIS_MNEMONIC_PTWRITE:
		return PTD_INSN_PTWRITE;
	case ZYDIS_MNEMONIC_XBEGIN: /* falls through, also when the transaction aborts later */
	case ZYDIS_MNEMONIC_XABORT:
	case ZYDIS_MNEMONIC_XEND:
		return PTD_INSN_OTHER;
	default:
		/* Only the legacy encoding: Zydis also knows the VEX jumps of Knights Corner. */
		if (zi->meta.category == ZYDIS_CATEGORY_COND_BR &&
		    zi->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY)
			return PTD_INSN_JUMP_COND;
		return PTD_INSN_OTHER;
	}
}

/* This looks at the category, not the name: MOVSD and CMPSD are also SSE instructions. */
static bool has_repeat_prefix(const ZydisDecodedInstruction *zi)
{
	if (zi->meta.category != ZYDIS_CATEGORY_STRINGOP &&
	    zi->meta.category != ZYDIS_CATEGORY_IOSTRINGOP)
		return false;
	for (size_t i = 0; i < zi->raw.prefix_count; i++)
		if (zi->raw.prefixes[i].value == 0xf2 || zi->raw.prefixes[i].value == 0xf3)
			return true;
	return false;
}

int insn_decode(uint8_t mode, const uint8_t *bytes, size_t size, struct insn *ret_insn)
{
	struct unknown unknown;
	ZydisDecodedInstruction zi;
	struct insn insn = {};
	ZyanStatus status;

	if (mode == 64 && plain_decode(bytes, size, ret_insn))
		return 0;
	status = zydis_decode(mode, bytes, size, &zi, NULL);
	if (status == ZYDIS_STATUS_NO_MORE_DATA || status == ZYAN_STATUS_INVALID_ARGUMENT)
		return -EBADMSG;
	if (!ZYAN_SUCCESS(status)) {
		if (unknown_decode(mode, bytes, size, &unknown) < 0)
			return -EBADMSG;
		*ret_insn = (struct insn){ .size = unknown.size,
					   .class = unknown.class,
					   .far = unknown.class == PTD_INSN_RETURN_FAR };
		return 0;
	}

	insn.size = zi.length;
	insn.class = (uint8_t)class_of(&zi);
	insn.rep = has_repeat_prefix(&zi);
	switch (insn.class) {
	case PTD_INSN_JUMP:
	case PTD_INSN_CALL:
	case PTD_INSN_JUMP_COND:
		insn.far = !zi.raw.imm[0].is_relative;
		insn.disp = insn.far ? 0 : zi.raw.imm[0].value.s;
		break;
	case PTD_INSN_JUMP_INDIRECT:
	case PTD_INSN_CALL_INDIRECT:
		insn.far = zi.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
		break;
	case PTD_INSN_RETURN_FAR:
		insn.far = true;
		break;
	}

	*ret_insn = insn;
	return 0;
}

uint64_t insn_narrow_target(uint8_t mode, const uint8_t *bytes, size_t size, uint64_t target)
{
	for (size_t i = 0; mode == 32 && i < size; i++) {
		switch (bytes[i]) {
		case 0x66:
			return (uint16_t)target;
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
		case 0x64:
		case 0x65:
		case 0x67:
		case 0xf2:
		case 0xf3:
			continue;
		}
		break;
	}
	return (uint32_t)target;
}
