/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/steady.h"

#include <errno.h>
#include <string.h>

#include "util/map.h"

void steady_deinit(struct steady *steady)
{
	vec_deinit(&steady->symbols);
	vec_deinit(&steady->blocks);
}

static uint64_t hash_text(const char *text)
{
	return map_hash(text, strlen(text));
}

static uint64_t hash_code(const struct ptd_block *block)
{
	const uint64_t parts[] = {
		map_hash(block->bytes, block->size),
		map_hash(block->insns, block->n_insns * sizeof(*block->insns)),
	};

	return map_hash(parts, sizeof(parts));
}

static int note_symbols(struct steady *steady, const struct ptd_batch *batch)
{
	/* Of those known some are compared: all of them each time would take too long. */
	const size_t n_known = steady->symbols.n, step = n_known / 64 + 1;
	int r = 0;

	for (size_t i = 0; i < n_known; i += step)
		if (batch->symbols[i] != steady->symbols.items[i].symbol)
			return -EBADMSG;
	for (size_t i = n_known; i < batch->n_symbols && r == 0; i++)
		r = vec_push(&steady->symbols, { .symbol = batch->symbols[i],
						 .was = *batch->symbols[i],
						 .name = hash_text(batch->symbols[i]->name) });
	return r;
}

static int note_block(struct steady *steady, const struct ptd_block *block)
{
	struct steady_block *known;
	int r;

	while (steady->blocks.n <= block->id) {
		r = vec_push(&steady->blocks, {});
		if (r < 0)
			return r;
	}
	known = &steady->blocks.items[block->id];
	if (!known->block)
		*known = (struct steady_block){ .block = block,
						.was = *block,
						.code = hash_code(block),
						.name = hash_text(block->object->name) };
	return known->block == block ? 0 : -EBADMSG;
}

int steady_batch(struct steady *steady, const struct ptd_batch *batch)
{
	int r;

	r = note_symbols(steady, batch);
	for (size_t i = 0; i < batch->n_runs && r == 0; i++)
		r = note_block(steady, batch->runs[i].block);
	return r;
}

/* Padding may differ. */
static bool is_same(const struct ptd_block *a, const struct ptd_block *b)
{
	return a->id == b->id && a->n_insns == b->n_insns && a->size == b->size &&
	       a->mode == b->mode && a->object == b->object && a->address == b->address &&
	       a->bytes == b->bytes && a->insns == b->insns && a->target == b->target;
}

size_t steady_n_changed(const struct steady *steady)
{
	size_t n = 0;

	for (size_t i = 0; i < steady->symbols.n; i++) {
		const struct steady_symbol *s = &steady->symbols.items[i];

		n += s->symbol->name != s->was.name || s->symbol->address != s->was.address ||
		     hash_text(s->symbol->name) != s->name;
	}
	for (size_t i = 0; i < steady->blocks.n; i++) {
		const struct steady_block *b = &steady->blocks.items[i];

		n += b->block && (!is_same(b->block, &b->was) || hash_code(b->block) != b->code ||
				  hash_text(b->block->object->name) != b->name);
	}
	return n;
}
