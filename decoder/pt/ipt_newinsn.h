/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Newinsn
 *
 * Branches that libipt 2.0.5 does not know as branches: those of unknown_branch(). If libipt saw
 * them, it would go on behind them, and take the packet with their target for that of the next
 * branch there. So it is shown an older instruction of the same length in their place, which takes
 * the same packets: an iret for a return of FRED, an indirect jump for a JMPABS.
 *
 * The same bytes may be an immediate or a displacement of another instruction, which must stay as
 * it is. Where they are found libipt gets no section, a hole: it then asks for the bytes of each
 * instruction there by the address at which that begins.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Offsets of code; @end is exclusive. No instruction with such bytes in it begins elsewhere. */
struct ipt_hole {
	uint64_t start, end;
};

/* Find the first hole in @code that begins at @from or behind. Return: whether there is one. */
bool ipt_newinsn_find(const uint8_t *code, uint64_t size, uint64_t from, struct ipt_hole *ret_hole);

/* If the instruction of 64-bit code at @code is such a branch, put the other one in its place. */
void ipt_newinsn_disguise(uint8_t *code, size_t size);
