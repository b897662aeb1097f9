/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/probes.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/image/object.h"
#include "decoder/symbol/resolver.h"
#include "decoder/symbol/source.h"
#include "decoder/symbol/stapsdt.h"
#include "util/message.h"

/* Those of one object, and their names PROVIDER:NAME. */
struct probes_of {
	struct stapsdt all;
	struct symbol_list names;
	VEC(char *) texts; /* of the names */
};

static struct probes_of *free_probes_of(struct probes_of *of)
{
	if (!of)
		return NULL;
	symbol_list_deinit(&of->names);
	vec_deinit_each(&of->texts, text, free(*text));
	stapsdt_deinit(&of->all);
	free(of);
	return NULL;
}
DEFINE_CLEANUP(struct probes_of *, free_probes_of);

void probes_init(struct probes *probes, struct resolver *resolver)
{
	*probes = (struct probes){ .resolver = resolver };
	(void)pthread_mutex_init(&probes->mutex, NULL);
}

void probes_deinit(struct probes *probes)
{
	for (size_t i = 0; i < probes->objects.n_slots; i++)
		if (probes->objects.slots[i].used)
			(void)free_probes_of((void *)(uintptr_t)probes->objects.slots[i].value);
	map_deinit(&probes->objects);
	vec_deinit(&probes->marks);
	(void)pthread_mutex_destroy(&probes->mutex);
}

/* --- of an object ----------------------------------------------------------------------------- */

static int name_probe(struct probes_of *of, const struct ptd_probe *probe)
{
	char *text = message_text("%s:%s", probe->provider, probe->name);
	int r = text ? vec_push(&of->texts, text) : -ENOMEM;

	if (r < 0) {
		free(text);
		return r;
	}
	/* Several may be at one address: the index is that of the name. */
	return symbol_list_add(&of->names, of->texts.n - 1, 1, text,
			       (uint16_t)strnlen(text, UINT16_MAX), NULL);
}

static int read_probes(const struct object *object, struct probes_of **ret_of)
{
	_cleanup_(free_probes_ofp) struct probes_of *of = calloc(1, sizeof(*of));
	int r;

	if (!of)
		return -ENOMEM;
	symbol_list_init(&of->names);
	r = stapsdt_read(object->file, &of->all);
	for (size_t i = 0; i < of->all.n && r == 0; i++)
		r = name_probe(of, &of->all.items[i]);
	if (r == 0)
		*ret_of = TAKE(of);
	return r;
}

/* The mutex is held. Return: 0, and @ret_of, NULL if it has none; or -ENOMEM. */
static int find_locked(struct probes *probes, const struct object *object,
		       struct probes_of **ret_of)
{
	_cleanup_(free_probes_ofp) struct probes_of *of = NULL;
	const uint64_t *known = map_get(&probes->objects, object->id.id);
	int r = 0;

	if (known) {
		*ret_of = (void *)(uintptr_t)*known;
		return 0;
	}
	if (object->state == OBJECT_OK && object->is_elf)
		r = read_probes(object, &of);
	if (r == 0 && of && of->all.n == 0)
		of = free_probes_of(of);
	if (r == 0)
		r = map_put(&probes->objects, object->id.id, (uintptr_t)of);
	*ret_of = r == 0 ? TAKE(of) : NULL;
	return r;
}

static int find(struct probes *probes, const struct object *object, struct probes_of **ret_of)
{
	int r;

	(void)pthread_mutex_lock(&probes->mutex);
	r = find_locked(probes, object, ret_of);
	(void)pthread_mutex_unlock(&probes->mutex);
	return r;
}

int probes_find(struct probes *probes, const struct object *object,
		const struct ptd_probe **ret_probes, size_t *ret_n)
{
	struct probes_of *of;
	const int r = find(probes, object, &of);

	*ret_probes = of ? of->all.items : NULL;
	*ret_n = of ? of->all.n : 0;
	return r;
}

/* --- in the stream ---------------------------------------------------------------------------- */

/* Return: index of the first one that is not before @address. */
static size_t first_from(const struct probes_of *of, uint64_t address)
{
	return vec_bisect(&of->all, probe, probe->address < address);
}

int probes_look_at(struct probes *probes, const struct object *object,
		   const struct ptd_block *block, bool *ret_has)
{
	struct probes_of *of;
	const int r = find(probes, object, &of);
	const size_t i = of ? first_from(of, block->address) : 0;

	*ret_has = of && i < of->all.n && of->all.items[i].address - block->address < block->size;
	probes->have_run = probes->have_run || *ret_has;
	return r;
}

/* Add the mark of @probe, which run @i executed. Return: 0 or -ENOMEM. */
static int add_mark(struct probes *probes, struct probes_of *of, const struct ptd_probe *probe,
		    const struct ptd_run *run, size_t i)
{
	uint32_t name = PTD_NO_SYMBOL;
	uint64_t end;
	int r;

	r = resolver_find(probes->resolver, &of->names.source, (uint64_t)(probe - of->all.items),
			  &name, &end);
	if (r < 0)
		return r;
	return vec_push(&probes->marks, { .run = i + 1,
					  .kind = PTD_MARK_PROBE,
					  .t = run->t,
					  .ip = run->base + (probe->address - run->block->address),
					  .value = name });
}

/* Add the marks of the probes that run @i, of a block that has some, executed. */
static int add_marks(struct probes *probes, const struct ptd_run *run, size_t i)
{
	const struct ptd_block *block = run->block;
	struct probes_of *of;
	int r;

	static_assert(offsetof(struct object, id) == 0, "objects of batches are the decoder's");
	r = find(probes, (const struct object *)block->object, &of);
	if (r < 0 || !of)
		return r;
	for (uint16_t k = run->first; k < run->first + run->n && r == 0; k++) {
		const uint64_t address = block->address + block->insns[k].offset;

		for (size_t p = first_from(of, address);
		     r == 0 && p < of->all.n && of->all.items[p].address == address; p++)
			r = add_mark(probes, of, &of->all.items[p], run, i);
	}
	return r;
}

int probes_batch(struct probes *probes, struct ptd_batch *batch)
{
	size_t m = 0, n_hits = 0;
	int r = 0;

	if (!probes->have_run)
		return 0;
	probes->marks.n = 0;
	for (size_t i = 0; i <= batch->n_runs && r == 0; i++) {
		const size_t n_before = probes->marks.n;

		if (i > 0 && batch->runs[i - 1].block->has_probes)
			r = add_marks(probes, &batch->runs[i - 1], i - 1);
		n_hits += probes->marks.n - n_before;
		while (r == 0 && m < batch->n_marks && batch->marks[m].run == i)
			r = vec_push(&probes->marks, batch->marks[m++]);
	}
	if (r < 0 || n_hits == 0)
		return r;
	batch->marks = probes->marks.items;
	batch->n_marks = probes->marks.n;
	batch->symbols = resolver_symbols(probes->resolver, &batch->n_symbols);
	return 0;
}
