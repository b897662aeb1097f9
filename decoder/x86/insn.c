/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/x86/insn.h"

#include <errno.h>
#include <string.h>

#include "decoder/x86/unknown.h"
#include "decoder/x86/zydis.h"
#include "ptd/record.h"

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

/* --- plain instructions ----------------------------------------------------------------------- */

/* With fewer bytes Zydis decides whether all of the instruction is there. */
#define PLAIN_SIZE_MAX 15

#define OPERAND_SIZE 0x66
#define TWO_BYTES    0x0f
#define REX_MASK     0xf0
#define REX          0x40
#define REX_W        0x08

/* The prefix: an instruction has at most one, and it may be a part of the opcode. */
enum { NONE = 1, P66 = 2, PF2 = 4, PF3 = 8, NP66 = NONE | P66, ANY = NP66 | PF2 | PF3 };

/* What stands behind the opcode. */
enum {
	MODRM = 1,
	MEMORY = 2 | MODRM, /* a ModRM byte that means memory */
	REG0 = 4 | MODRM,   /* a ModRM byte whose register field is 0 */
	IMM8 = 8,
	IMMZ = 16, /* four bytes, but two with 0x66 and no REX.W */
	IMMV = 32, /* the same, but eight with REX.W */
	REL8 = 64,
	REL32 = 128,
};

struct form {
	uint8_t prefixes; /* that it may have; 0: not known here */
	uint8_t parts;
	uint8_t class; /* enum ptd_insn_class */
};

/* clang-format off */
#define ALU(op)                                                                \
	[(op) ... (op) + 3] = { NP66, MODRM, 0 }, [(op) + 4] = { NP66, IMM8, 0 }, \
	[(op) + 5] = { NP66, IMMZ, 0 }

static const struct form one_byte[256] = {
	ALU(0x00), ALU(0x08), ALU(0x10), ALU(0x18), ALU(0x20), ALU(0x28), ALU(0x30), ALU(0x38),
	[0x50 ... 0x5f] = { NP66, 0, 0 }, /* push, pop */
	[0x63] = { NP66, MODRM, 0 },
	[0x68] = { NP66, IMMZ, 0 },
	[0x69] = { NP66, MODRM | IMMZ, 0 },
	[0x6a] = { NP66, IMM8, 0 },
	[0x6b] = { NP66, MODRM | IMM8, 0 },
	[0x70 ... 0x7f] = { NONE, REL8, PTD_INSN_JUMP_COND },
	[0x80] = { NP66, MODRM | IMM8, 0 },
	[0x81] = { NP66, MODRM | IMMZ, 0 },
	[0x83] = { NP66, MODRM | IMM8, 0 },
	[0x84 ... 0x8b] = { NP66, MODRM, 0 }, /* test, xchg, mov */
	[0x8d] = { NP66, MEMORY, 0 }, /* lea */
	[0x90 ... 0x99] = { NP66, 0, 0 },
	[0xa8] = { NP66, IMM8, 0 },
	[0xa9] = { NP66, IMMZ, 0 },
	[0xb0 ... 0xb7] = { NP66, IMM8, 0 },
	[0xb8 ... 0xbf] = { NP66, IMMV, 0 },
	[0xc0 ... 0xc1] = { NP66, MODRM | IMM8, 0 }, /* shifts */
	[0xc3] = { NONE, 0, PTD_INSN_RETURN },
	[0xc6] = { NP66, REG0 | IMM8, 0 },
	[0xc7] = { NP66, REG0 | IMMZ, 0 },
	[0xc9] = { NP66, 0, 0 },
	[0xd0 ... 0xd3] = { NP66, MODRM, 0 },
	[0xe8] = { NONE, REL32, PTD_INSN_CALL },
	[0xe9] = { NONE, REL32, PTD_INSN_JUMP },
	[0xeb] = { NONE, REL8, PTD_INSN_JUMP },
	[0xf6 ... 0xf7] = { NP66, MODRM, 0 }, /* see group_form(), as of 0xff */
	[0xff] = { NONE, MODRM, 0 },
};

static const struct form two_bytes[256] = {
	[0x05] = { NONE, 0, PTD_INSN_SYSCALL },
	[0x10 ... 0x11] = { ANY, MODRM, 0 }, /* movups, movss, … */
	[0x14 ... 0x15] = { NP66, MODRM, 0 },
	[0x1f] = { NP66, MODRM, 0 }, /* nop */
	[0x28 ... 0x29] = { NP66, MODRM, 0 },
	[0x2a] = { PF2 | PF3, MODRM, 0 },
	[0x2c ... 0x2d] = { PF2 | PF3, MODRM, 0 },
	[0x2e ... 0x2f] = { NP66, MODRM, 0 },
	[0x40 ... 0x4f] = { NP66, MODRM, 0 }, /* cmov */
	[0x51] = { ANY, MODRM, 0 },
	[0x54 ... 0x57] = { NP66, MODRM, 0 },
	[0x58 ... 0x5a] = { ANY, MODRM, 0 },
	[0x5c ... 0x5f] = { ANY, MODRM, 0 },
	[0x60 ... 0x6b] = { NP66, MODRM, 0 },
	[0x6c ... 0x6d] = { P66, MODRM, 0 },
	[0x6e] = { NP66, MODRM, 0 },
	[0x6f] = { NP66 | PF3, MODRM, 0 },
	[0x70] = { ANY, MODRM | IMM8, 0 },
	[0x74 ... 0x76] = { NP66, MODRM, 0 },
	[0x7e ... 0x7f] = { NP66 | PF3, MODRM, 0 },
	[0x80 ... 0x8f] = { NONE, REL32, PTD_INSN_JUMP_COND },
	[0x90 ... 0x9f] = { NP66, MODRM, 0 }, /* set */
	[0xa3] = { NP66, MODRM, 0 },
	[0xa4] = { NP66, MODRM | IMM8, 0 },
	[0xa5] = { NP66, MODRM, 0 },
	[0xab] = { NP66, MODRM, 0 },
	[0xac] = { NP66, MODRM | IMM8, 0 },
	[0xad] = { NP66, MODRM, 0 },
	[0xaf ... 0xb1] = { NP66, MODRM, 0 }, /* imul, cmpxchg */
	[0xb3] = { NP66, MODRM, 0 },
	[0xb6 ... 0xb7] = { NP66, MODRM, 0 }, /* movzx, and below movsx */
	[0xbb] = { NP66, MODRM, 0 },
	[0xbc ... 0xbd] = { NP66 | PF3, MODRM, 0 },
	[0xbe ... 0xc1] = { NP66, MODRM, 0 },
	[0xc6] = { NP66, MODRM | IMM8, 0 },
	[0xc8 ... 0xcf] = { NP66, 0, 0 }, /* bswap */
	[0xd1 ... 0xd5] = { NP66, MODRM, 0 },
	[0xd6] = { P66, MODRM, 0 },
	[0xd8 ... 0xe5] = { NP66, MODRM, 0 },
	[0xe8 ... 0xef] = { NP66, MODRM, 0 },
	[0xf1 ... 0xf6] = { NP66, MODRM, 0 },
	[0xf8 ... 0xfe] = { NP66, MODRM, 0 },
};
/* clang-format on */

/* The form of opcodes for which it depends on the register field of the ModRM byte. */
static struct form group_form(struct form form, uint8_t opcode, uint8_t modrm)
{
	const uint8_t reg = modrm >> 3 & 7;

	if (opcode == 0xf6 || opcode == 0xf7) {
		if (reg < 2) /* test */
			form.parts |= opcode == 0xf6 ? IMM8 : IMMZ;
	} else if (opcode == 0xff) {
		if (reg == 2)
			form.class = PTD_INSN_CALL_INDIRECT;
		else if (reg == 4)
			form.class = PTD_INSN_JUMP_INDIRECT;
		else if (reg != 0 && reg != 1 && reg != 6)
			form.prefixes = 0;
	}
	return form;
}

/* Return: how many bytes the ModRM byte at @p is, with SIB and displacement. */
static size_t modrm_size(const uint8_t *p)
{
	const uint8_t mod = p[0] >> 6, rm = p[0] & 7;
	const size_t size = 1 + (mod != 3 && rm == 4);

	if (mod == 0)
		return size + (rm == 5 || (rm == 4 && (p[1] & 7) == 5) ? 4 : 0);
	return size + (mod == 1 ? 1 : mod == 2 ? 4 : 0);
}

static size_t immediate_size(uint8_t parts, bool is_short, bool is_wide)
{
	if (parts & (IMM8 | REL8))
		return 1;
	if (parts & IMMV && is_wide)
		return 8;
	if (parts & (IMMZ | IMMV))
		return is_short && !is_wide ? 2 : 4;
	return parts & REL32 ? 4 : 0;
}

static uint8_t prefix_of(uint8_t byte)
{
	return byte == OPERAND_SIZE ? P66 : byte == 0xf2 ? PF2 : byte == 0xf3 ? PF3 : NONE;
}

bool plain_decode(const uint8_t *bytes, size_t size, struct insn *ret_insn)
{
	const uint8_t *p = bytes, prefix = size < PLAIN_SIZE_MAX ? 0 : prefix_of(p[0]);
	bool has_two_bytes;
	struct form form;
	uint8_t rex = 0;
	int32_t rel;

	if (!prefix)
		return false;
	p += prefix != NONE;
	if ((*p & REX_MASK) == REX)
		rex = *p++;
	has_two_bytes = *p == TWO_BYTES;
	p += has_two_bytes;
	form = has_two_bytes ? two_bytes[*p] : one_byte[*p];
	p++;
	if (form.parts & MODRM) {
		if (!has_two_bytes)
			form = group_form(form, p[-1], *p);
		if ((form.parts & MEMORY & ~MODRM && *p >> 6 == 3) ||
		    (form.parts & REG0 & ~MODRM && *p >> 3 & 7))
			return false;
		p += modrm_size(p);
	}
	if (!(form.prefixes & prefix))
		return false;
	memcpy(&rel, p, sizeof(rel));
	p += immediate_size(form.parts, prefix == P66, rex & REX_W);
	*ret_insn = (struct insn){
		.size = (uint8_t)(p - bytes),
		.class = form.class,
		.disp = form.parts & REL8    ? (int8_t)rel
			: form.parts & REL32 ? rel
					     : 0,
	};
	return true;
}

/* --- system instructions ---------------------------------------------------------------------- */

static bool is_rex(uint8_t byte)
{
	return (byte & 0xf0) == 0x40;
}

/* 0f 22 /3. */
bool system_sets_cr3(const uint8_t *bytes, size_t size)
{
	size_t i = 0;

	while (i < size && (is_rex(bytes[i]) || bytes[i] == 0xf0))
		i++;
	return size - i == 3 && bytes[i] == 0x0f && bytes[i + 1] == 0x22 &&
	       (bytes[i + 2] & 0x38) == 0x18;
}

/* 0f c7 /6 with memory, and neither 66 nor f3, which make other instructions of it. */
bool system_sets_vmcs(const uint8_t *bytes, size_t size)
{
	size_t i = 0;

	while (i < size &&
	       (is_rex(bytes[i]) || bytes[i] == 0x67 || bytes[i] == 0x2e || bytes[i] == 0x36 ||
		bytes[i] == 0x3e || bytes[i] == 0x26 || (bytes[i] & 0xfe) == 0x64))
		i++;
	return size - i >= 3 && bytes[i] == 0x0f && bytes[i + 1] == 0xc7 &&
	       (bytes[i + 2] & 0x38) == 0x30 && bytes[i + 2] < 0xc0;
}

/* INTO is ce, which may also be the number of an INT. */
bool system_may_go_on(uint8_t iclass, const uint8_t *bytes, size_t size)
{
	return iclass == PTD_INSN_VM || (iclass == PTD_INSN_INTERRUPT && bytes[size - 1] == 0xce &&
					 (size == 1 || bytes[size - 2] != 0xcd));
}

/* 0f 01 c2 and c3. */
bool system_enters_vm(const uint8_t *bytes, size_t size)
{
	return size >= 3 && bytes[size - 3] == 0x0f && bytes[size - 2] == 0x01 &&
	       (bytes[size - 1] == 0xc2 || bytes[size - 1] == 0xc3);
}
