/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Plain instructions: whatever the table knows, Zydis says the same of it. Each prefix, kind of
 * REX, opcode and ModRM byte is tried, and each kind of SIB byte.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <Zydis/Zydis.h>
#include <string.h>

#include "base/base.h"
#include "decoder/x86/insn.h"

static const uint8_t prefixes[] = { 0, 0x66, 0xf2, 0xf3 };
static const uint8_t rexes[] = { 0, 0x40, 0x41, 0x48, 0x4f };
static const uint8_t sibs[] = { 0x00, 0x24, 0x25, 0xfd };

static ZydisDecoder decoder;
static size_t n_known;

static enum ptd_insn_class class_of(const ZydisDecodedInstruction *zi)
{
	switch (zi->mnemonic) {
	case ZYDIS_MNEMONIC_SYSCALL:
		return PTD_INSN_SYSCALL;
	case ZYDIS_MNEMONIC_RET:
		return PTD_INSN_RETURN;
	case ZYDIS_MNEMONIC_CALL:
		return zi->raw.imm[0].size ? PTD_INSN_CALL : PTD_INSN_CALL_INDIRECT;
	case ZYDIS_MNEMONIC_JMP:
		return zi->raw.imm[0].size ? PTD_INSN_JUMP : PTD_INSN_JUMP_INDIRECT;
	default:
		return zi->meta.category == ZYDIS_CATEGORY_COND_BR ? PTD_INSN_JUMP_COND
								   : PTD_INSN_OTHER;
	}
}

static void compare(const uint8_t bytes[static 15])
{
	ZydisDecodedInstruction zi;
	struct insn insn;
	ZyanStatus status;

	if (!plain_decode(bytes, 15, &insn))
		return;
	n_known++;
	status = ZydisDecoderDecodeInstruction(&decoder, NULL, bytes, 15, &zi);
	if (!ZYAN_SUCCESS(status) || zi.length != insn.size || class_of(&zi) != insn.class ||
	    insn.far || insn.rep ||
	    insn.disp != (zi.raw.imm[0].is_relative ? zi.raw.imm[0].value.s : 0) ||
	    zi.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR ||
	    zi.meta.category == ZYDIS_CATEGORY_STRINGOP)
		fail_msg("%02x %02x %02x %02x %02x %02x: %u bytes, class %u; Zydis: %x, %u bytes",
			 bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], insn.size,
			 insn.class, status, zi.length);
	assert_false(plain_decode(bytes, 14, &insn));
}

/* Try the opcode, which is the last byte before @at, with all that may stand behind it. */
static void try_opcode(uint8_t bytes[static 15], size_t at)
{
	for (unsigned modrm = 0; modrm < 256; modrm++) {
		bytes[at] = (uint8_t)modrm;
		for (size_t i = 0; i < ARRAY_LEN(sibs); i++) {
			bytes[at + 1] = sibs[i];
			compare(bytes);
		}
	}
}

static void try_opcodes(uint8_t prefix, uint8_t rex, bool has_two_bytes)
{
	uint8_t bytes[15];
	size_t at = 0;

	memset(bytes, 0x91, sizeof(bytes));
	if (prefix)
		bytes[at++] = prefix;
	if (rex)
		bytes[at++] = rex;
	if (has_two_bytes)
		bytes[at++] = 0x0f;
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		bytes[at] = (uint8_t)opcode;
		try_opcode(bytes, at + 1);
	}
}

static void as_zydis(void **state)
{
	(void)state;
	assert_true(ZYAN_SUCCESS(
	    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)));
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
		for (size_t k = 0; k < ARRAY_LEN(rexes); k++) {
			try_opcodes(prefixes[i], rexes[k], false);
			try_opcodes(prefixes[i], rexes[k], true);
		}
	}
	print_message("  %zu are known\n", n_known);
	assert_true(n_known > 1000000);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_zydis),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
