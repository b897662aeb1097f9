/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Plain instructions
 *
 * Nearly all instructions of 64-bit programs have an opcode of one or two bytes, at most two
 * prefixes, and a length that follows from these and the ModRM and SIB bytes. A table knows them,
 * which is ten times as fast as Zydis. All others are left to Zydis, as is what the table does not
 * know for certain: it is meant to be short, not complete. A unit test compares the two for
 * everything that the table is asked for.
 *
 * Source: SDM volume 2, appendix A, "Opcode map".
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct insn;

/* Return: whether the @size bytes begin with such an instruction. */
bool plain_decode(const uint8_t *bytes, size_t size, struct insn *ret_insn);
