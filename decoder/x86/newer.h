/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Newer
 *
 * Instructions that are younger than Zydis 4.0, by their shape: CMPccXADD, RAO-INT, AVX-IFMA,
 * AVX-NE-CONVERT, AVX-VNNI-INT8/16, SHA512, SM3, SM4, WRMSRNS, MSRLIST, USER_MSR, FRED, LKGS and
 * what else uses VEX and EVEX as all before did. Only their length matters, since none but FRED's
 * returns is a branch. It is asked about bytes that Zydis refuses, and says yes to some that no CPU
 * executes. APX (REX2, EVEX map 4) is not known here either.
 */

#include "decoder/x86/insn.h"

/* As insn_decode(). */
_must_check_ int newer_decode(uint8_t mode, const uint8_t *bytes, size_t size,
			      struct insn *ret_insn);
