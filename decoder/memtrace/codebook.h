/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Code book
 *
 * Which instruction a trace file has announced at each pc: as a place in a block.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/record.h"

/* More different pcs of one file are refused: this is 1.5 GiB of table. */
#define CODEBOOK_MAX (UINT32_C(1) << 25)

struct codebook_entry {
	uint64_t pc;
	const struct ptd_block *block; /* NULL: a free slot */
	uint32_t index;                /* of the instruction in the block */
};

struct codebook {
	struct codebook_entry *slots;
	size_t n_slots; /* 0 or a power of two */
	size_t n_used;
};

void codebook_deinit(struct codebook *book);

/* Set the instruction at @pc. Return: 0; -E2BIG if the book is full; -ENOMEM. */
_must_check_ int codebook_put(struct codebook *book, uint64_t pc, const struct ptd_block *block,
			      uint32_t index);

static inline size_t codebook_slot(const struct codebook *book, uint64_t pc)
{
	return (size_t)((pc * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (book->n_slots - 1);
}

/* Return: the instruction at @pc, valid until the next codebook_put(); NULL if none is known. */
static inline const struct codebook_entry *codebook_get(const struct codebook *book, uint64_t pc)
{
	size_t i;

	if (book->n_slots == 0)
		return NULL;
	for (i = codebook_slot(book, pc); book->slots[i].block; i = (i + 1) & (book->n_slots - 1))
		if (book->slots[i].pc == pc)
			return &book->slots[i];
	return NULL;
}
