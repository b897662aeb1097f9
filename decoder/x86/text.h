/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Text
 *
 * The disassembly of one instruction, AT&T or Intel; by Zydis.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

#define TEXT_MAX 128

/*
 * Write the instruction at @bytes as it reads at @address: relative targets are absolute.
 *
 * Return: the length of the text; 0 (and "(bad)") if the bytes are no instruction.
 */
size_t text_format(uint8_t mode, uint64_t address, const uint8_t *bytes, size_t size,
		   char ret_text[static TEXT_MAX]);
