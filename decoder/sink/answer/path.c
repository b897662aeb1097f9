/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/answer/path.h"

#include <string.h>

#include "util/map.h"

/* Instead of an object's hash: it is no file, and its symbols have the hashes. No name is hashed to
 * such a small number, as far as it matters. */
#define NO_FILE 1

void path_places_deinit(struct path_places *places)
{
	vec_deinit(&places->objects);
	vec_deinit(&places->symbols);
}

static uint64_t hash_object(const char *name)
{
	const char *base = strrchr(name, '/');

	if (name[0] == '[')
		return NO_FILE;
	base = base ? base + 1 : name;
	return map_hash(base, strlen(base)) | 2;
}

/* Make room for the element @id. New ones are 0. */
#define grow_to(vec, id)                                        \
	({                                                      \
		const size_t n_ = (size_t)(id) + 1;             \
		int r_ = 0;                                     \
		if ((vec)->n < n_) {                            \
			r_ = vec_reserve((vec), n_ - (vec)->n); \
			while (r_ == 0 && (vec)->n < n_)        \
				(vec)->items[(vec)->n++] = 0;   \
		}                                               \
		r_;                                             \
	})

static int place_in_symbol(struct path_places *places, const struct ptd_batch *batch, uint32_t id,
			   uint64_t address, uint64_t *ret_place)
{
	const struct ptd_symbol *symbol = batch->symbols[id];
	const int r = grow_to(&places->symbols, id);

	if (r < 0)
		return r;
	if (!places->symbols.items[id])
		places->symbols.items[id] = map_hash(symbol->name, strlen(symbol->name)) | 1;
	*ret_place = places->symbols.items[id] + (address - symbol->address);
	return 0;
}

int path_place(struct path_places *places, const struct ptd_batch *batch,
	       const struct ptd_block *block, size_t insn, uint64_t *ret_place)
{
	const uint64_t address = block->address + block->insns[insn].offset;
	const uint32_t symbol = block->insns[insn].symbol, object = block->object->id;
	const int r = grow_to(&places->objects, object);

	if (r < 0)
		return r;
	if (!places->objects.items[object])
		places->objects.items[object] = hash_object(block->object->name);
	if (places->objects.items[object] != NO_FILE)
		*ret_place = places->objects.items[object] + address;
	else if (symbol != PTD_NO_SYMBOL && symbol < batch->n_symbols)
		return place_in_symbol(places, batch, symbol, address, ret_place);
	else
		*ret_place = address;
	return 0;
}

void path_mark(struct path *path, const struct ptd_mark *mark)
{
	switch (mark->kind) {
	case PTD_MARK_GAP:
	case PTD_MARK_OUT_OF_SCOPE:
		path->pending = PATH_BROKEN;
		break;
	case PTD_MARK_ASYNC:
		if (path->pending == PATH_BRANCH)
			path->pending = PATH_INTERRUPTED;
		break;
	case PTD_MARK_TSX:
		if (mark->value == PTD_TSX_ABORT && path->pending == PATH_BRANCH)
			path->pending = PATH_INTERRUPTED;
		break;
	default:
		break;
	}
}

int path_run(struct path *path, struct path_places *places, const struct ptd_batch *batch,
	     const struct ptd_run *run, struct path_step *ret_step)
{
	const size_t last = (size_t)run->first + run->n - 1;
	const struct ptd_block *block = run->block;
	struct path_step step = { .kind = path->pending, .n_insns = path->n_insns };
	const bool is_step =
	    !path->block || path->next_ip != ptd_run_ip(run, 0) || path->pending == PATH_BROKEN;
	int r = 0;

	if (is_step) {
		if (path->block)
			r = path_place(places, batch, path->block, path->insn, &step.from);
		if (r == 0)
			r = path_place(places, batch, block, run->first, &step.to);
		if (r < 0)
			return r;
		*ret_step = step;
	}
	path->pending = PATH_BRANCH;
	path->n_insns += run->n;
	path->block = block;
	path->insn = (uint16_t)last;
	path->next_ip = run->base + block->insns[last].offset + block->insns[last].size;
	return is_step ? PATH_STEP : 0;
}
