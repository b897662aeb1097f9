/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memtrace insn
 *
 * One instruction at the address at which it ran, and what a drmemtrace file says of it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/x86/insn.h"
#include "ptd/record.h"

struct memtrace_insn {
	const struct ptd_block *block; /* borrowed */
	uint64_t base;
	size_t index;
};

static inline uint64_t memtrace_insn_pc(const struct memtrace_insn *insn)
{
	return insn->base + insn->block->insns[insn->index].offset;
}

static inline uint8_t memtrace_insn_class(const struct memtrace_insn *insn)
{
	return insn->block->insns[insn->index].iclass;
}

static inline bool memtrace_insn_branches(uint8_t class)
{
	switch (class) {
	case PTD_INSN_JUMP:
	case PTD_INSN_JUMP_INDIRECT:
	case PTD_INSN_JUMP_COND:
	case PTD_INSN_CALL:
	case PTD_INSN_CALL_INDIRECT:
	case PTD_INSN_RETURN:
	case PTD_INSN_RETURN_FAR:
		return true;
	default:
		return false;
	}
}

/* Return: whether the record of such an instruction must say where the instruction went. */
static inline bool memtrace_insn_needs_outcome(uint8_t class)
{
	return memtrace_insn_branches(class) && class != PTD_INSN_JUMP && class != PTD_INSN_CALL;
}

/* Return: whether the instruction is one by which programs make system calls. */
static inline bool memtrace_insn_is_call(const struct memtrace_insn *insn)
{
	const struct ptd_insn *i = &insn->block->insns[insn->index];
	const uint8_t *bytes = insn->block->bytes + i->offset;

	return i->iclass == PTD_INSN_SYSCALL || i->iclass == PTD_INSN_SYSENTER ||
	       (i->iclass == PTD_INSN_INTERRUPT && i->size == 2 && bytes[0] == 0xcd &&
		bytes[1] == 0x80);
}

/* Return: the address of the first byte behind the instruction. */
static inline uint64_t memtrace_insn_next(const struct memtrace_insn *insn)
{
	return insn_wrap(insn->block->mode,
			 memtrace_insn_pc(insn) + insn->block->insns[insn->index].size);
}

/* Return: where the instruction, a direct branch, goes if it is taken. */
static inline uint64_t memtrace_insn_target(const struct memtrace_insn *insn)
{
	const struct ptd_insn *last = &insn->block->insns[insn->block->n_insns - 1];

	return insn_target(insn->block->mode, insn->block->bytes + last->offset, last->size,
			   insn->base + (uint64_t)insn->block->target);
}

/*
 * Return: the type of the record of instruction @i of @block (enum memtrace_type); of a conditional
 *         branch, the type if it is not taken.
 */
uint16_t memtrace_insn_type(const struct ptd_block *block, size_t i);
