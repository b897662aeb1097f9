/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Instructions unknown to Zydis
 *
 * Recognises instructions that are younger than Zydis 4.0 by the shape of their encoding:
 * CMPccXADD, RAO-INT, AVX-IFMA, AVX-NE-CONVERT, AVX-VNNI-INT8/16, SHA512, SM3, SM4, WRMSRNS,
 * MSRLIST, USER_MSR, FRED, LKGS, and all others that use VEX and EVEX like older instructions do.
 * Only their length matters, except for three branches: FRED's returns ERETS and ERETU, which exist
 * in 64-bit code only, and APX's JMPABS. Other APX instructions (REX2, EVEX map 4) are not
 * recognised.
 *
 * These functions are meant for bytes that Zydis refuses. They accept some encodings that no CPU
 * executes.
 *
 * The target of a JMPABS stands in its bytes, but a linker may overwrite it at any time. The CPU
 * reports it in a packet, as if the jump were indirect, and so it is classified as an indirect
 * jump.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

/* What is known of such an instruction. It is no direct branch. */
struct unknown {
	uint8_t size;
	uint8_t class; /* enum ptd_insn_class; a return is a far one */
};

/*
 * Decode the instruction at @bytes as code of @mode bits: 16, 32 or 64.
 *
 * Return: 0; -EBADMSG if the @size bytes are no such instruction, or only the beginning of one.
 */
_must_check_ int unknown_decode(uint8_t mode, const uint8_t *bytes, size_t size,
				struct unknown *ret_insn);

/*
 * Decode the instruction at @bytes if it is one of the three branches.
 *
 * Return: its name, in lower case, and @ret_insn; NULL if it is none of them.
 */
const char *unknown_branch(uint8_t mode, const uint8_t *bytes, size_t size,
			   struct unknown *ret_insn);
