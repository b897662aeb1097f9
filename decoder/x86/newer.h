/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Newer
 *
 * Instructions that are younger than Zydis 4.0, by their shape: CMPccXADD, RAO-INT, AVX-IFMA,
 * AVX-NE-CONVERT, AVX-VNNI-INT8/16, SHA512, SM3, SM4, WRMSRNS, MSRLIST, USER_MSR, FRED, LKGS and
 * what else uses VEX and EVEX as all before did. Only their length matters, but for three branches:
 * FRED's returns, ERETS and ERETU, which exist in 64-bit code only, and APX's JMPABS. It is asked
 * about bytes that Zydis refuses, and says yes to some that no CPU executes. What else there is of
 * APX (REX2, EVEX map 4) is not known here either.
 *
 * The target of a JMPABS is in its bytes, but a linker may write another one there at any time: the
 * CPU tells it in a packet, as if the jump were indirect, and it is taken for one.
 */

#include "decoder/x86/insn.h"

/* As insn_decode(). */
_must_check_ int newer_decode(uint8_t mode, const uint8_t *bytes, size_t size,
			      struct insn *ret_insn);

/*
 * Is the instruction at @bytes one of the three branches?
 *
 * Return: its name, in lower case, and @ret_insn; or NULL.
 */
const char *newer_branch(uint8_t mode, const uint8_t *bytes, size_t size, struct insn *ret_insn);
