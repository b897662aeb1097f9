/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Codes
 *
 * What a trace file has said about the code at each pc: the length and the class of the
 * instruction, as Zydis decodes the announced bytes. This is a hash table of its own, with 16 bytes
 * an instruction, because it is asked once for each of up to 10^8 records, and because the judge
 * shares no code with what it judges.
 */

#include <Zydis/Zydis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

enum code_class {
	CODE_EMPTY,   /* a free slot of the table */
	CODE_UNKNOWN, /* bytes that are no instruction */
	CODE_PLAIN,
	CODE_LOAD_EAX, /* plain, and sets eax to link: the number of a system call that follows */
	CODE_REP,      /* a repeated string instruction */
	CODE_SYSCALL,
	CODE_INT80,
	CODE_SYSENTER,
	CODE_JUMP, /* from here on: branches */
	CODE_JUMP_COND,
	CODE_CALL,
	CODE_JUMP_INDIRECT, /* from here on: branches that need a marker 29 */
	CODE_CALL_INDIRECT,
	CODE_RETURN,
	CODE_N_CLASSES,
};

struct code {
	uint64_t pc;
	int32_t link; /* direct branches, and data relative to rip: pc + size + link */
	uint8_t size;
	uint8_t class; /* enum code_class */
	bool has_data; /* it accesses data relative to rip, and no others */
};

/* More different pcs than this in one file are refused: 1 GiB of table. */
#define CODES_MAX (1U << 25)

struct codes {
	struct code *slots;
	size_t n_slots; /* a power of two */
	size_t n_used;
	ZydisDecoder decoder;
};

/* Return: 0 or -ENOMEM. */
_must_check_ int codes_init(struct codes *codes);
void codes_deinit(struct codes *codes);

/*
 * Decode the @size bytes at @pc into @ret_code. Its size is that of the instruction, which may be
 * smaller than @size. If the bytes are no instruction, its class is CODE_UNKNOWN and its size
 * @size.
 */
void codes_decode(const struct codes *codes, uint64_t pc, const uint8_t *bytes, size_t size,
		  struct code *ret_code);

/* Set the code at its pc. Return: 0; -ENOMEM; -E2BIG if the table is full. */
_must_check_ int codes_put(struct codes *codes, struct code code);

static inline size_t codes_first_slot(const struct codes *codes, uint64_t pc)
{
	return (size_t)((pc * 0x9e3779b97f4a7c15u) >> 32) & (codes->n_slots - 1);
}

/* Return: the code at @pc, valid until the next codes_put(); NULL if none is known. */
static inline const struct code *codes_get(const struct codes *codes, uint64_t pc)
{
	for (size_t i = codes_first_slot(codes, pc);; i = (i + 1) & (codes->n_slots - 1)) {
		const struct code *slot = &codes->slots[i];

		if (slot->class == CODE_EMPTY)
			return NULL;
		if (slot->pc == pc)
			return slot;
	}
}

static inline bool code_is_syscall(const struct code *code)
{
	return code->class >= CODE_SYSCALL && code->class <= CODE_SYSENTER;
}

static inline bool code_is_branch(const struct code *code)
{
	return code->class >= CODE_JUMP;
}

static inline bool code_is_indirect(const struct code *code)
{
	return code->class >= CODE_JUMP_INDIRECT;
}

static inline uint64_t code_end(const struct code *code)
{
	return code->pc + code->size;
}

/* Return: where a direct branch goes if it is taken. */
static inline uint64_t code_target(const struct code *code)
{
	return code_end(code) + (uint64_t)(int64_t)code->link;
}
