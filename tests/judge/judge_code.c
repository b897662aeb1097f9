/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/judge/judge_code.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define FIRST_SLOTS (1U << 12)

static_assert(sizeof(struct code) == 16, "the table's slots are four to a cache line");

int codes_init(struct codes *codes)
{
	*codes = (struct codes){ .slots = calloc(FIRST_SLOTS, sizeof(struct code)),
				 .n_slots = FIRST_SLOTS };
	if (!codes->slots)
		return -ENOMEM;
	/* Only an unknown machine mode makes it fail. */
	(void)ZydisDecoderInit(&codes->decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	return 0;
}

void codes_deinit(struct codes *codes)
{
	free(codes->slots);
	codes->slots = NULL;
	codes->n_slots = codes->n_used = 0;
}

static struct code *find_slot(struct codes *codes, uint64_t pc)
{
	size_t i = codes_first_slot(codes, pc);

	while (codes->slots[i].class != CODE_EMPTY && codes->slots[i].pc != pc)
		i = (i + 1) & (codes->n_slots - 1);
	return &codes->slots[i];
}

static int grow_table(struct codes *codes)
{
	struct codes bigger = { .n_slots = codes->n_slots * 2 };

	bigger.slots = calloc(bigger.n_slots, sizeof(struct code));
	if (!bigger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < codes->n_slots; i++) {
		if (codes->slots[i].class != CODE_EMPTY)
			*find_slot(&bigger, codes->slots[i].pc) = codes->slots[i];
	}
	free(codes->slots);
	codes->slots = bigger.slots;
	codes->n_slots = bigger.n_slots;
	return 0;
}

int codes_put(struct codes *codes, struct code code)
{
	struct code *slot = find_slot(codes, code.pc);
	int r;

	assert(code.class != CODE_EMPTY);
	if (slot->class == CODE_EMPTY) {
		if (codes->n_used == CODES_MAX)
			return -E2BIG;
		if (codes->n_used >= codes->n_slots / 2) {
			r = grow_table(codes);
			if (r < 0)
				return r;
			slot = find_slot(codes, code.pc);
		}
		codes->n_used++;
	}
	*slot = code;
	return 0;
}

/* mov imm32 to eax or rax, or xor eax,eax: how programs choose a system call. */
static bool loads_eax(const ZydisDecodedInstruction *insn, int32_t *ret_value)
{
	const bool modrm_eax =
	    insn->raw.modrm.mod == 3 && insn->raw.modrm.reg == 0 && insn->raw.modrm.rm == 0;
	const bool plain_rex = insn->raw.rex.B == 0 && insn->raw.rex.R == 0;

	if (insn->opcode_map != ZYDIS_OPCODE_MAP_DEFAULT || !plain_rex || insn->operand_width < 32)
		return false;
	if (insn->mnemonic == ZYDIS_MNEMONIC_MOV &&
	    (insn->opcode == 0xb8 || (insn->opcode == 0xc7 && modrm_eax))) {
		*ret_value = (int32_t)insn->raw.imm[0].value.u;
		return true;
	}
	if (insn->mnemonic == ZYDIS_MNEMONIC_XOR &&
	    (insn->opcode == 0x31 || insn->opcode == 0x33) && modrm_eax) {
		*ret_value = 0;
		return true;
	}
	return false;
}

static enum code_class classify(const ZydisDecodedInstruction *insn, int32_t *ret_link)
{
	const bool direct = insn->raw.imm[0].is_relative;

	*ret_link = direct ? (int32_t)insn->raw.imm[0].value.s : 0;
	switch (insn->mnemonic) {
	case ZYDIS_MNEMONIC_JMP:
		return direct ? CODE_JUMP : CODE_JUMP_INDIRECT;
	case ZYDIS_MNEMONIC_CALL:
		return direct ? CODE_CALL : CODE_CALL_INDIRECT;
	case ZYDIS_MNEMONIC_RET:
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ:
	case ZYDIS_MNEMONIC_UIRET:
		return CODE_RETURN;
	case ZYDIS_MNEMONIC_SYSRET:
	case ZYDIS_MNEMONIC_SYSEXIT:
		return CODE_JUMP_INDIRECT;
	case ZYDIS_MNEMONIC_SYSENTER:
		return CODE_SYSENTER;
	case ZYDIS_MNEMONIC_SYSCALL:
		return CODE_SYSCALL;
	case ZYDIS_MNEMONIC_INT:
		return insn->raw.imm[0].value.u == 0x80 ? CODE_INT80 : CODE_PLAIN;
	case ZYDIS_MNEMONIC_XBEGIN: /* names where an abort lands; itself it only falls through */
		return CODE_PLAIN;
	default:
		if (insn->meta.category == ZYDIS_CATEGORY_COND_BR)
			return CODE_JUMP_COND;
		if (insn->attributes &
		    (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE))
			return CODE_REP;
		return loads_eax(insn, ret_link) ? CODE_LOAD_EAX : CODE_PLAIN;
	}
}

/* Return: whether all data of the instruction are relative to rip. Those of a push, a pop and a
 *         call are on the stack, too, and fs and gs have bases of their own. */
static bool accesses_data(const ZydisDecodedInstruction *insn)
{
	return insn->attributes & ZYDIS_ATTRIB_HAS_MODRM && insn->raw.modrm.mod == 0 &&
	       insn->raw.modrm.rm == 5 && insn->address_width == 64 &&
	       !(insn->attributes & (ZYDIS_ATTRIB_HAS_SEGMENT_FS | ZYDIS_ATTRIB_HAS_SEGMENT_GS)) &&
	       insn->mnemonic != ZYDIS_MNEMONIC_PUSH && insn->mnemonic != ZYDIS_MNEMONIC_POP &&
	       insn->mnemonic != ZYDIS_MNEMONIC_CALL;
}

void codes_decode(const struct codes *codes, uint64_t pc, const uint8_t *bytes, size_t size,
		  struct code *ret_code)
{
	ZydisDecodedInstruction insn;
	enum code_class class;
	int32_t link;

	*ret_code = (struct code){ .pc = pc, .size = (uint8_t)size, .class = CODE_UNKNOWN };
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&codes->decoder, NULL, bytes, size, &insn)))
		return;
	class = classify(&insn, &link);
	*ret_code = (struct code){ .pc = pc,
				   .link = link,
				   .size = insn.length,
				   .class = class,
				   .has_data = accesses_data(&insn) };
	if (ret_code->has_data)
		ret_code->link = (int32_t)insn.raw.disp.value;
}
