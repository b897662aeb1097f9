/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Block
 *
 * The unit that QEMU translates: instructions that run one after the other. Only the last
 * can be a branch. A block has what is needed to follow control flow, and a hash of its bytes.
 * Blocks are immutable except for @marks, @maps and @version, and live as long as the process,
 * because threads refer to the last block they ran. The same code translated again gives the same
 * block; other code at the same address gives another block.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/x86/insn.h"
#include "util/arena.h"
#include "util/map.h"

#define BLOCK_INSNS_MAX 1024 /* QEMU ends blocks at 512 */

/* How the last instruction leaves the block. */
enum block_end {
	BLOCK_FALLS,
	BLOCK_JUMP,
	BLOCK_COND,
	BLOCK_CALL,
	BLOCK_JUMP_INDIRECT,
	BLOCK_CALL_INDIRECT,
	BLOCK_RETURN,
	BLOCK_FAR,
	BLOCK_SYSCALL,
	BLOCK_INTERRUPT, /* int3, int n */
	BLOCK_REP,       /* a repeated string instruction, which branches to itself until done */
};

/* Of block.marks. */
#define BLOCK_WATCHED 0xff  /* a condition waits for the entry at @ip: its index plus 1 */
#define BLOCK_HANDLER 0x100 /* a signal handler was registered at @ip */

/* No code is there, in any mode. */
#define BLOCK_NOWHERE (UINT64_C(1) << 63)

struct block {
	/* What is needed whenever it runs. */
	uint64_t ip;
	uint64_t leads[2]; /* where it leads without or with a branch that is taken, if only the
			    * last instruction's bytes say that; else BLOCK_NOWHERE */
	_Atomic uint64_t version; /* of its bytes that ptd has: see handover.h */
	_Atomic uint16_t marks;   /* BLOCK_… */
	uint8_t n_bits;           /* of TNT: 1 of BLOCK_COND */
	bool calls;            /* directly, and not what follows, which reads the program counter */
	uint8_t end;           /* enum block_end */
	bool sets_cr3;         /* the last instruction does */
	uint16_t n;            /* instructions; 0: none here can retire */
	_Atomic uint32_t maps; /* maps_version() when it was translated last */
	uint64_t next_ip;      /* after the last instruction */

	uint64_t last_ip;      /* of the last instruction */
	uint64_t target;       /* of BLOCK_JUMP, BLOCK_COND, BLOCK_CALL */
	uint64_t hash;         /* of its bytes */
	uint32_t id;           /* dense, from 0 */
	struct block *sibling; /* another block at the same @ip */
	uint16_t offsets[];    /* of each instruction from @ip */
};

struct blocks {
	uint8_t mode;     /* of the code: 64 or 32 */
	struct map by_ip; /* -> struct block * */
	struct arena arena;
	uint32_t n;
};

/* One instruction as QEMU passes it to the plugin. */
struct block_insn {
	uint64_t ip;
	const uint8_t *bytes;
	size_t size;
};

/*
 * Find or make the block at @ip of @n instructions. The block ends before the first of them that
 * cannot retire: one that QEMU counts but dropped because it crosses into the next page; one that
 * is illegal; or one whose length in QEMU differs from that in code of @blocks' mode.
 *
 * Return: 0; BLOCKS_NEW if it had to be made; or -ENOMEM.
 */
_must_check_ int blocks_get(struct blocks *blocks, uint64_t ip, const struct block_insn *insns,
			    size_t n, struct block **ret_block);
enum {
	BLOCKS_NEW = 1,
};

/* Mark the blocks at @ip as the start of a signal handler. */
void blocks_mark_handler(struct blocks *blocks, uint64_t ip);

static inline bool block_has_handler(const struct block *block)
{
	return atomic_load_explicit(&block->marks, memory_order_relaxed) & BLOCK_HANDLER;
}

/* Return: the index, plus 1, of the condition that waits for the entry at the block; 0: none. */
static inline uint32_t block_watched(const struct block *block)
{
	return atomic_load_explicit(&block->marks, memory_order_relaxed) & BLOCK_WATCHED;
}

/* Return: the index of the instruction of @block at @ip, or -1. */
int block_index(const struct block *block, uint64_t ip);
