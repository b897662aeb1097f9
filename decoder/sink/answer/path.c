/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/answer/path.h"

#include <errno.h>
#include <stdlib.h>
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
	const char *base = basename(name);

	if (name[0] == '[')
		return NO_FILE;
	return map_hash(base, strlen(base)) | 2;
}

static int place_in_symbol(struct path_places *places, const struct ptd_batch *batch, uint32_t id,
			   uint64_t address, uint64_t *ret_place)
{
	const struct ptd_symbol *symbol = batch->symbols[id];
	uint64_t *place = vec_at(&places->symbols, id, 0);

	if (!place)
		return -ENOMEM;
	if (!*place)
		*place = map_hash(symbol->name, strlen(symbol->name)) | 1;
	*ret_place = *place + (address - symbol->address);
	return 0;
}

/* Get the place of an instruction of @block. Return: 0 or -ENOMEM. */
static int place_of(struct path_places *places, const struct ptd_batch *batch,
		    const struct ptd_block *block, size_t insn, uint64_t *ret_place)
{
	const uint64_t address = block->address + block->insns[insn].offset;
	const uint32_t symbol = block->insns[insn].symbol;
	uint64_t *object = vec_at(&places->objects, block->object->id, 0);

	if (!object)
		return -ENOMEM;
	if (!*object)
		*object = hash_object(block->object->name);
	if (*object != NO_FILE)
		*ret_place = *object + address;
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
			r = place_of(places, batch, path->block, path->insn, &step.from);
		if (r == 0)
			r = place_of(places, batch, block, run->first, &step.to);
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

/* --- rejoining -------------------------------------------------------------------------------- */

#define NO_STEP SIZE_MAX

/* The steps of both paths, found by the hash of a step and those behind it. */
struct search {
	const struct rejoin_path *paths;
	uint64_t *hashes[2]; /* for each step; 0: too few steps behind it are known */
	struct map first; /* hash → the first step of path 1 that has it, of those not passed */
	size_t *next;     /* for each step of path 1, the next one with the same hash */
};

static bool is_same(const struct path_step *a, const struct path_step *b)
{
	return a->kind == b->kind && a->from == b->from && a->to == b->to;
}

/* Return: the hash of step @i and those behind it, which is not 0; 0: they are not all known, or it
 * is the end. */
static uint64_t hash_at(const struct rejoin_path *path, size_t i)
{
	const size_t left = path->n - i;
	uint64_t hash = UINT64_C(0x9e3779b97f4a7c15);

	if (path->steps[i].kind == PATH_END ||
	    (left < REJOIN_STEPS && path->steps[path->n - 1].kind != PATH_END))
		return 0;
	for (size_t k = i; k < path->n && k < i + REJOIN_STEPS; k++) {
		const struct path_step *step = &path->steps[k];
		const uint64_t words[] = { step->kind, step->from, step->to };

		hash = hash * UINT64_C(0x165667b19e3779f9) + map_hash(words, sizeof(words));
	}
	return hash ?: 1;
}

static int prepare(struct search *search)
{
	const struct rejoin_path *b = &search->paths[1];
	int r = 0;

	for (size_t p = 0; p < 2; p++) {
		const struct rejoin_path *path = &search->paths[p];

		search->hashes[p] = calloc(path->n + 1, sizeof(*search->hashes[p]));
		if (!search->hashes[p])
			return -ENOMEM;
		for (size_t i = 0; i < path->n; i++)
			search->hashes[p][i] = hash_at(path, i);
	}
	search->next = calloc(b->n + 1, sizeof(*search->next));
	if (!search->next)
		return -ENOMEM;
	for (size_t i = b->n; i > 0 && r == 0; i--) {
		const uint64_t hash = search->hashes[1][i - 1];
		const uint64_t *later = hash ? map_get(&search->first, hash) : NULL;

		search->next[i - 1] = later ? (size_t)*later : NO_STEP;
		if (hash)
			r = map_put(&search->first, hash, i - 1);
	}
	return r;
}

static void search_deinit(struct search *search)
{
	free(search->hashes[0]);
	free(search->hashes[1]);
	free(search->next);
	map_deinit(&search->first);
}

/* Return: the first step of path 1, from @from on, from which path 0 goes on alike from @i on. */
static size_t find_same(struct search *search, size_t i, size_t from)
{
	const uint64_t hash = search->hashes[0][i];
	const uint64_t *found = hash ? map_get(&search->first, hash) : NULL;
	size_t k = found ? (size_t)*found : NO_STEP;

	while (k != NO_STEP && k < from)
		k = search->next[k];
	return k;
}

/*
 * Find where the paths go on alike behind the steps *@a and *@b, and go there.
 *
 * Return: whether there is such a place.
 */
static bool go_on(struct search *search, size_t *a, size_t *b)
{
	const size_t n = search->paths[0].n;
	size_t best = SIZE_MAX, best_a = 0, best_b = 0;

	for (size_t i = *a; i < n && i - *a < best; i++) {
		const size_t k = find_same(search, i, *b);

		if (k == NO_STEP || i - *a + (k - *b) >= best)
			continue;
		best = i - *a + (k - *b);
		best_a = i;
		best_b = k;
	}
	if (best == SIZE_MAX)
		return false;
	*a = best_a;
	*b = best_b;
	return true;
}

/* Return: instructions from step @from on before step @to, or before the last one that is known. */
static uint64_t insns_between(const struct rejoin_path *path, size_t from, size_t to)
{
	const size_t last = to < path->n ? to : path->n - 1;

	return path->steps[last].n_insns - path->steps[from].n_insns;
}

/* Compare what is behind the steps @at, which differ, up to where nothing is known. */
static void compare(struct search *search, size_t at[static 2], struct rejoin *rejoin)
{
	const struct rejoin_path *paths = search->paths;
	bool goes_on = true;

	for (; goes_on && at[0] < paths[0].n && at[1] < paths[1].n; rejoin->n_more++) {
		const size_t from[] = { at[0], at[1] };

		goes_on = go_on(search, &at[0], &at[1]);
		for (size_t p = 0; p < 2; p++) {
			if (!goes_on)
				at[p] = paths[p].n;
			rejoin->n_different[p] += insns_between(&paths[p], from[p], at[p]);
			if (rejoin->n_more == 0 && goes_on)
				rejoin->n_insns[p] = rejoin->n_different[p];
		}
		rejoin->is_found = rejoin->is_found || goes_on;
		while (at[0] < paths[0].n && at[1] < paths[1].n &&
		       is_same(&paths[0].steps[at[0]], &paths[1].steps[at[1]])) {
			at[0]++;
			at[1]++;
		}
	}
	/* The first one was counted, too. */
	rejoin->n_more--;
}

int rejoin_find(const struct rejoin_path paths[static 2], size_t first, struct rejoin *ret_rejoin)
{
	struct search search = { .paths = paths };
	struct rejoin rejoin = {};
	size_t at[] = { first, first };
	int r;

	r = prepare(&search);
	if (r == 0)
		compare(&search, at, &rejoin);
	search_deinit(&search);
	if (r < 0)
		return r;
	rejoin.is_whole = true;
	for (size_t p = 0; p < 2; p++) {
		rejoin.is_whole = rejoin.is_whole && at[p] == paths[p].n &&
				  paths[p].steps[at[p] - 1].kind == PATH_END;
		rejoin.n_compared[p] = insns_between(&paths[p], first, at[p]);
	}
	*ret_rejoin = rejoin;
	return 0;
}
