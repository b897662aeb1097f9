/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memtrace operands
 *
 * The operands in memory whose addresses are known (decoder/x86/operand.h), of instructions that
 * were looked up lately. What is remembered depends on the bytes of an instruction alone, and so
 * stays right whatever becomes of the code.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/x86/operand.h"

#define MEMTRACE_OPERANDS   4096
#define MEMTRACE_INSN_BYTES 15

struct memtrace_operands {
	struct {
		uint8_t size; /* of the instruction; 0: nothing is remembered */
		uint8_t bytes[MEMTRACE_INSN_BYTES];
		bool has_operand;
		struct operand operand;
	} lately[MEMTRACE_OPERANDS];
};

/* Return: as operand_rip(). */
bool memtrace_operands_find(struct memtrace_operands *operands, const uint8_t *bytes, size_t size,
			    struct operand *ret_operand);
