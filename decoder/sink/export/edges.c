/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/export/edges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OUTSIDE 0u /* number of all places in other objects */

const struct sink_option edges_options[] = {
	{ .name = "binary",
	  .value = "NAME",
	  .help = "of this object, by its path or the last part of that",
	  .is_required = true },
	{},
};

static int add(struct edges *edges, unsigned kind, uint32_t from, uint32_t to)
{
	const uint64_t key = (uint64_t)from << 32 | to;
	uint64_t *n = map_get(&edges->counts[kind], key);

	if (!n)
		return map_put(&edges->counts[kind], key, 1);
	++*n;
	return 0;
}

/* Return: 0 or -ENOMEM. */
static int number_of(struct edges *edges, const struct ptd_block *block, size_t insn,
		     uint32_t *ret_number)
{
	const uint64_t address = block->address + block->insns[insn].offset;
	uint64_t number;
	int r;

	if (edges->addresses.n == UINT32_MAX)
		return -ENOMEM;
	r = map_number(&edges->numbers, address, edges->addresses.n, &number);
	*ret_number = (uint32_t)number;
	return r > 0 ? vec_push(&edges->addresses, address) : r;
}

bool edges_is_named(const struct ptd_object *object, const char *name)
{
	return strcmp(object->name, name) == 0 || strcmp(basename(object->name), name) == 0;
}

/* Return: whether @object is the one that is asked for. */
static bool is_asked(struct edges *edges, const struct ptd_object *object)
{
	bool is_named;

	if (object == edges->object)
		return true;
	if (object == edges->other)
		return false;
	is_named = edges_is_named(object, edges->name);
	if (is_named && !edges->object) {
		edges->object = object;
		return true;
	}
	edges->has_another = edges->has_another || is_named;
	edges->other = object;
	return false;
}

static void begin_anew(struct edge_thread *thread)
{
	thread->has_last = false;
	thread->start = OUTSIDE;
}

/* The last run ended with a branch to @run. */
static int take_branch(struct edges *edges, struct edge_thread *thread, const struct ptd_run *run)
{
	const bool is_from_inside = is_asked(edges, thread->last.block->object);
	const bool is_to_inside = is_asked(edges, run->block->object);
	uint32_t from = OUTSIDE, to = OUTSIDE;
	int r = 0;

	if (is_from_inside)
		r = number_of(edges, thread->last.block, thread->last.first + thread->last.n - 1u,
			      &from);
	if (r == 0 && is_to_inside)
		r = number_of(edges, run->block, run->first, &to);
	if (r == 0 && (is_from_inside || is_to_inside))
		r = add(edges, EDGE_BRANCH, from, to);
	if (r == 0 && thread->start != OUTSIDE && is_from_inside)
		r = add(edges, thread->from_outside ? EDGE_THROUGH_FROM_OUTSIDE : EDGE_THROUGH,
			thread->start, from);
	thread->start = to;
	thread->from_outside = !is_from_inside;
	return r;
}

/* Does an instruction of this class lead elsewhere, even if that is right behind it? */
static bool is_always_taken(uint8_t iclass)
{
	return iclass == PTD_INSN_JUMP || iclass == PTD_INSN_JUMP_INDIRECT ||
	       iclass == PTD_INSN_CALL || iclass == PTD_INSN_CALL_INDIRECT ||
	       iclass == PTD_INSN_RETURN;
}

static int take_run(struct edges *edges, struct edge_thread *thread, const struct ptd_run *run)
{
	int r = 0;

	if (thread->has_last) {
		const struct ptd_run *last = &thread->last;
		const struct ptd_insn *insn = &last->block->insns[last->first + last->n - 1u];
		const bool follows = ptd_run_ip(run, 0) == last->base + insn->offset + insn->size;

		if (is_always_taken(insn->iclass) ||
		    (insn->iclass == PTD_INSN_JUMP_COND && !follows))
			r = take_branch(edges, thread, run);
		else if (!follows)
			thread->start = OUTSIDE;
	}
	thread->last = *run;
	thread->has_last = true;
	return r;
}

/* Does the code behind the mark not follow from the code before it? */
static bool is_break(const struct ptd_mark *mark)
{
	return mark->kind == PTD_MARK_GAP || mark->kind == PTD_MARK_ASYNC ||
	       mark->kind == PTD_MARK_STOP || mark->kind == PTD_MARK_OUT_OF_SCOPE ||
	       mark->kind == PTD_MARK_TSX;
}

/* Find the thread of @slice, or add it. Return: 0 or -ENOMEM; the pointer is valid until the next
 * call. */
static int find_thread(struct edges *edges, const struct ptd_slice *slice,
		       struct edge_thread **ret_thread)
{
	const uint64_t key = (uint64_t)slice->space << 32 | slice->tid;

	*ret_thread = map_item(&edges->thread_index, key, &edges->threads, {});
	return *ret_thread ? 0 : -ENOMEM;
}

int edges_add(struct edges *edges, const struct ptd_batch *batch)
{
	struct edge_thread *thread;
	size_t m = 0;
	int r;

	r = find_thread(edges, batch->slice, &thread);
	for (size_t i = 0; i <= batch->n_runs && r == 0; i++) {
		for (; m < batch->n_marks && batch->marks[m].run == i; m++)
			if (is_break(&batch->marks[m]))
				begin_anew(thread);
		if (i < batch->n_runs)
			r = take_run(edges, thread, &batch->runs[i]);
	}
	return r;
}

static int by_place(const void *pa, const void *pb)
{
	const struct edge *a = pa, *b = pb;

	return COMPARE(a->from, b->from) ?: COMPARE(a->to, b->to);
}

int edges_list(const struct edges *edges, enum edge_kind kind, struct edge **ret_list,
	       size_t *ret_n)
{
	const struct map *counts = &edges->counts[kind];
	struct edge *list = calloc(counts->n_used + 1, sizeof(*list));
	size_t n = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < counts->n_slots; i++)
		if (counts->slots[i].used)
			list[n++] = (struct edge){
				.from = edges->addresses.items[counts->slots[i].key >> 32],
				.to = edges->addresses.items[(uint32_t)counts->slots[i].key],
				.n = counts->slots[i].value,
			};
	qsort(list, n, sizeof(*list), by_place);
	*ret_list = list;
	*ret_n = n;
	return 0;
}

const char *edges_complaint(const struct edges *edges)
{
	if (!edges->object)
		return "nothing of the object was executed: its name is as summary shows it, or "
		       "the last part of that";
	return edges->has_another ? "another object of that name was executed, too, and is left out"
				  : NULL;
}

int edges_init(struct edges *edges, const char *name)
{
	*edges = (struct edges){ .name = name };
	return vec_push(&edges->addresses, 0);
}

void edges_deinit(struct edges *edges)
{
	for (size_t kind = 0; kind < _EDGE_KINDS; kind++)
		map_deinit(&edges->counts[kind]);
	map_deinit(&edges->numbers);
	map_deinit(&edges->thread_index);
	vec_deinit(&edges->threads);
	vec_deinit(&edges->addresses);
}
