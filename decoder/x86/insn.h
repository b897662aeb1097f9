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

/*
 * Nearly all instructions of 64-bit programs have an opcode of one or two bytes, at most two
 * prefixes, and a length that follows from these and the ModRM and SIB bytes. A table knows them,
 * which is ten times as fast as Zydis. All others are left to Zydis, as is what the table does not
 * know for certain: it is meant to be short, not complete. A unit test compares the two for
 * everything that the table is asked for.
 *
 * Source: SDM volume 2, appendix A, "Opcode map".
 */

struct insn;

/* Return: whether the @size bytes begin with such an instruction. */
bool plain_decode(const uint8_t *bytes, size_t size, struct insn *ret_insn);

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

/* Return: @ip as code of @mode bits has it: outside 64-bit code addresses wrap at 4 GiB. */
static inline uint64_t insn_wrap(uint8_t mode, uint64_t ip)
{
	return mode == 64 ? ip : (uint32_t)ip;
}

/*
 * Get where the direct near branch of @size bytes at @bytes leads. @target is the sum of the
 * address behind it and its distance. Outside 64-bit code addresses have 32 bits. In 32-bit code a
 * branch whose operand size is 16 bits keeps only 16 bits of the address.
 */
uint64_t insn_narrow_target(uint8_t mode, const uint8_t *bytes, size_t size, uint64_t target);

static inline uint64_t insn_target(uint8_t mode, const uint8_t *bytes, size_t size, uint64_t target)
{
	return mode == 64 ? target : insn_narrow_target(mode, bytes, size, target);
}

/* --- system instructions ---------------------------------------------------------------------- */

/*
 * Recognises the instructions by which a kernel or a hypervisor changes which code runs, because
 * the CPU writes packets for them. The decoder and the software source both use this.
 */

/* Return: whether the instruction of @size bytes, a valid one, sets CR3: MOV to CR3. */
bool system_sets_cr3(const uint8_t *bytes, size_t size);

/* Return: whether it takes another VMCS: VMPTRLD. */
bool system_sets_vmcs(const uint8_t *bytes, size_t size);

/*
 * Return: whether the instruction, one of class @iclass for which the CPU writes packets, may also
 *         have gone on to the next one without any: an INTO that found no overflow, or a call of a
 *         hypervisor that is hidden from the trace, or failed.
 */
bool system_may_go_on(uint8_t iclass, const uint8_t *bytes, size_t size);

/* Return: whether it, one of class PTD_INSN_VM, enters a guest: VMLAUNCH or VMRESUME. */
bool system_enters_vm(const uint8_t *bytes, size_t size);
