/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Instruction text
 *
 * The disassembly of one instruction in AT&T syntax, by Zydis.
 */

#include <stddef.h>
#include <stdint.h>

#define TEXT_MAX 128

/*
 * Disassemble the instruction at @bytes, code of @mode bits at @address. Targets of branches are
 * shown as addresses. Of instructions that are younger than Zydis only the branches have a name;
 * the others are "(unknown)".
 *
 * Return: the length of the text; 0, and the text "(bad)", if the bytes are no instruction.
 */
size_t text_format(uint8_t mode, uint64_t address, const uint8_t *bytes, size_t size,
		   char ret_text[static TEXT_MAX]);
