/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Insn
 *
 * Length and branch class of one x86 instruction, by Zydis. The decoder and the software PT source
 * both ask here.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/record.h"

struct insn {
	uint8_t size;
	uint8_t class; /* enum ptd_insn_class */
	bool far;      /* a far jump, call or return */
	bool rep;      /* a repeated string instruction: may be interrupted before it is done */
	int64_t disp;  /* JUMP, JUMP_COND, CALL when near: target = address + size + disp */
};

/*
 * Decode the instruction at @bytes in @mode (16, 32, 64).
 *
 * Return: 0; -EBADMSG if the bytes are no instruction, or are cut off.
 */
_must_check_ int insn_decode(uint8_t mode, const uint8_t *bytes, size_t size,
			     struct insn *ret_insn);
