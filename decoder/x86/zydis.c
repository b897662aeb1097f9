/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/x86/zydis.h"

static ZyanStatus decoder_init(ZydisDecoder *decoder, uint8_t mode)
{
	switch (mode) {
	case 64:
		return ZydisDecoderInit(decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	case 32:
		return ZydisDecoderInit(decoder, ZYDIS_MACHINE_MODE_LEGACY_32,
					ZYDIS_STACK_WIDTH_32);
	case 16:
		return ZydisDecoderInit(decoder, ZYDIS_MACHINE_MODE_LEGACY_16,
					ZYDIS_STACK_WIDTH_16);
	default:
		return ZYAN_STATUS_INVALID_ARGUMENT;
	}
}

static ZyanStatus decode(const ZydisDecoder *decoder, const uint8_t *bytes, size_t size,
			 ZydisDecodedInstruction *insn, ZydisDecodedOperand *operands)
{
	return operands ? ZydisDecoderDecodeFull(decoder, bytes, size, insn, operands)
			: ZydisDecoderDecodeInstruction(decoder, NULL, bytes, size, insn);
}

ZyanStatus zydis_decode(uint8_t mode, const uint8_t *bytes, size_t size,
			ZydisDecodedInstruction *ret_insn, ZydisDecodedOperand *operands)
{
	ZydisDecoder decoder;
	ZyanStatus status = decoder_init(&decoder, mode);

	if (ZYAN_SUCCESS(status))
		status = decode(&decoder, bytes, size, ret_insn, operands);
	if (ZYAN_SUCCESS(status) || status == ZYDIS_STATUS_NO_MORE_DATA ||
	    status == ZYAN_STATUS_INVALID_ARGUMENT ||
	    !ZYAN_SUCCESS(ZydisDecoderEnableMode(&decoder, ZYDIS_DECODER_MODE_MPX, ZYAN_FALSE)))
		return status;
	return decode(&decoder, bytes, size, ret_insn, operands);
}
