/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Zydis
 *
 * How this program calls Zydis, which reads nearly all instructions.
 *
 * 0f 1a and 0f 1b are the bounds instructions of MPX, or, on a CPU without MPX, NOPs with a ModRM.
 * The forms that MPX lacks are NOPs everywhere, but Zydis refuses them unless it is told that there
 * is no MPX. The lengths of the forms that MPX has are the same either way.
 */

#include <Zydis/Zydis.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Decode the instruction at @bytes as code of @mode bits: 16, 32 or 64. @operands has room for
 * ZYDIS_MAX_OPERAND_COUNT, or is NULL.
 *
 * Return: as ZydisDecoderDecodeFull(); what it returns for bad arguments if there is no such mode.
 */
ZyanStatus zydis_decode(uint8_t mode, const uint8_t *bytes, size_t size,
			ZydisDecodedInstruction *ret_insn, ZydisDecodedOperand *operands);
