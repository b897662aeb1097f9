/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Operand
 *
 * The operand in memory that an instruction of 64-bit code names relative to rip: its address
 * follows from that of the instruction, whatever the registers are.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct operand {
	int32_t disp;  /* the operand is at the address behind the instruction, plus this */
	uint16_t size; /* in bytes */
	bool reads, writes;
};

/*
 * Get the operand of the instruction of @size bytes at @bytes.
 *
 * Return: whether it has one. Addresses that are only computed (lea), hints (prefetches, nop),
 *         operands whose accessed parts a mask chooses, and those whose size
 *         depends on the state of the CPU are none.
 */
bool operand_rip(const uint8_t *bytes, size_t size, struct operand *ret_operand);
