/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Instruction
 *
 * The length and the branch class of one x86 instruction, decoded by Zydis. The decoder and the
 * software source both use this.
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
	bool rep; /* a repeated string instruction, which may be interrupted between two rounds */
	int64_t disp; /* JUMP, JUMP_COND, CALL when near: target = address + size + disp */
};

/*
 * Decode the instruction at @bytes as code of @mode bits: 16, 32 or 64.
 *
 * Return: 0; -EBADMSG if the @size bytes are no instruction, or only the beginning of one.
 */
_must_check_ int insn_decode(uint8_t mode, const uint8_t *bytes, size_t size,
			     struct insn *ret_insn);
