/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/x86/text.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "decoder/x86/unknown.h"
#include "decoder/x86/zydis.h"
#include "ptd/record.h"

static ZydisFormatter formatter;
static bool formatter_ready;
static pthread_once_t formatter_once = PTHREAD_ONCE_INIT;

/* Use AT&T syntax, which is the default of objdump and perf. */
static void init_formatter(void)
{
	static const struct {
		ZydisFormatterProperty property;
		ZyanUPointer value;
	} properties[] = {
		{ ZYDIS_FORMATTER_PROP_FORCE_RELATIVE_RIPREL, ZYAN_TRUE },
		{ ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE },
		{ ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE,
		  (ZyanUPointer)ZYDIS_PADDING_DISABLED },
		{ ZYDIS_FORMATTER_PROP_ADDR_PADDING_RELATIVE,
		  (ZyanUPointer)ZYDIS_PADDING_DISABLED },
		{ ZYDIS_FORMATTER_PROP_DISP_PADDING, (ZyanUPointer)ZYDIS_PADDING_DISABLED },
		{ ZYDIS_FORMATTER_PROP_IMM_PADDING, (ZyanUPointer)ZYDIS_PADDING_DISABLED },
	};

	if (!ZYAN_SUCCESS(ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_ATT)))
		return;
	for (size_t i = 0; i < ARRAY_LEN(properties); i++)
		if (!ZYAN_SUCCESS(ZydisFormatterSetProperty(&formatter, properties[i].property,
							    properties[i].value)))
			return;
	formatter_ready = true;
}

/*
 * Zydis adds up targets in 64 bits, and cuts them to 16 where the branch does. Return: the address
 * from which it comes to the right one of 32 bits.
 */
static uint64_t shown_address(uint8_t mode, uint64_t address, const ZydisDecodedInstruction *insn)
{
	const typeof(insn->raw.imm[0]) *imm = &insn->raw.imm[0];
	uint64_t target;

	if (mode == 64 || !imm->is_relative)
		return address;
	target = address + insn->length + (uint64_t)imm->value.s;
	return address - (target - (uint32_t)target);
}

size_t text_format(uint8_t mode, uint64_t address, const uint8_t *bytes, size_t size,
		   char ret_text[static TEXT_MAX])
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction insn;
	struct unknown unknown;
	const char *name;
	uint64_t target;

	(void)pthread_once(&formatter_once, init_formatter);
	if (formatter_ready && ZYAN_SUCCESS(zydis_decode(mode, bytes, size, &insn, operands)) &&
	    ZYAN_SUCCESS(ZydisFormatterFormatInstruction(
		&formatter, &insn, operands, insn.operand_count_visible, ret_text, TEXT_MAX,
		shown_address(mode, address, &insn), NULL)))
		return strlen(ret_text);

	name = unknown_branch(mode, bytes, size, &unknown);
	if (name && unknown.class == PTD_INSN_JUMP_INDIRECT) {
		memcpy(&target, bytes + unknown.size - sizeof(target), sizeof(target));
		return (size_t)snprintf(ret_text, TEXT_MAX, "%s 0x%" PRIx64, name, target);
	}
	if (name)
		return (size_t)snprintf(ret_text, TEXT_MAX, "%s", name);
	if (unknown_decode(mode, bytes, size, &unknown) == 0)
		return (size_t)snprintf(ret_text, TEXT_MAX, "(unknown)");
	strcpy(ret_text, "(bad)");
	return 0;
}
