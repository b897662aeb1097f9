/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/memtrace/codebook.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_SLOTS 256u

void codebook_deinit(struct codebook *book)
{
	free(book->slots);
	*book = (struct codebook){};
}

/* Return: the slot of @pc; there must be a free one. */
static struct codebook_entry *slot_of(const struct codebook *book, uint64_t pc)
{
	size_t i = codebook_slot(book, pc);

	while (book->slots[i].block && book->slots[i].pc != pc)
		i = (i + 1) & (book->n_slots - 1);
	return &book->slots[i];
}

static int grow_book(struct codebook *book)
{
	const size_t n = book->n_slots ? 2 * book->n_slots : FIRST_SLOTS;
	struct codebook bigger = { .slots = calloc(n, sizeof(*bigger.slots)), .n_slots = n };

	if (!bigger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < book->n_slots; i++)
		if (book->slots[i].block)
			*slot_of(&bigger, book->slots[i].pc) = book->slots[i];
	bigger.n_used = book->n_used;
	free(book->slots);
	*book = bigger;
	return 0;
}

int codebook_put(struct codebook *book, uint64_t pc, const struct ptd_block *block, uint32_t index)
{
	struct codebook_entry *slot;
	int r;

	if (book->n_used >= book->n_slots / 2) {
		r = book->n_used >= CODEBOOK_MAX ? -E2BIG : grow_book(book);
		if (r < 0)
			return r;
	}
	slot = slot_of(book, pc);
	book->n_used += !slot->block;
	*slot = (struct codebook_entry){ .pc = pc, .block = block, .index = index };
	return 0;
}
