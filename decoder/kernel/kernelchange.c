/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/kernel/kernelchange.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/symbol/source.h"
#include "decoder/trace/bpfprog.h"
#include "util/perf/codec.h"

#define PAGE_SHIFT    12
#define FUNCTIONS_MAX (1u << 16)
#define KERNEL_MIN    (UINT64_C(1) << 63)
#define LOADED_MAX \
	(1u << 17) /* functions of programs, counted each time that a program is loaded */

struct kernel_function {
	struct symbol_source source;
	const char *name; /* borrowed from the record */
	uint64_t address, size;
	struct object *object; /* has the code of this function and no other */
};

static int read_function(struct symbol_source *source, struct symtab *symtab)
{
	const struct kernel_function *f = (const struct kernel_function *)source;
	const size_t size = strlen(f->name);

	if (size == 0 || size > UINT16_MAX)
		return 0;
	return symtab_add(symtab, &(struct symtab_symbol){ .address = f->address,
							   .size = f->size,
							   .limit = f->address + f->size,
							   .name = f->name,
							   .name_size = (uint16_t)size });
}

static const struct symbol_source_ops function_ops = { .read = read_function };

static struct kernel_function *function_free(struct kernel_function *function)
{
	if (!function)
		return NULL;
	symbol_source_deinit(&function->source);
	free(function);
	return NULL;
}
DEFINE_CLEANUP(struct kernel_function *, function_free);

/*
 * Find or make the object of the function @symbol. Return: 0, and NULL if there are too many
 * functions; -ENOMEM.
 */
static int function_object(struct kernelchanges *c, const struct record_ksymbol *symbol,
			   const struct object **ret_object)
{
	const uint64_t key[] = { symbol->addr, symbol->len,
				 map_hash(symbol->name, strlen(symbol->name)) };
	const uint64_t hash = map_hash(key, sizeof(key)), *known = map_get(&c->by_name, hash);
	_cleanup_(function_freep) struct kernel_function *f = NULL;
	int r;

	*ret_object = NULL;
	if (known) {
		*ret_object = c->functions.items[*known]->object;
		return 0;
	}
	if (c->functions.n == FUNCTIONS_MAX)
		return 0;
	f = malloc(sizeof(*f));
	if (!f)
		return -ENOMEM;
	*f = (struct kernel_function){ .source.ops = &function_ops,
				       .name = symbol->name,
				       .address = symbol->addr,
				       .size = symbol->len };
	r = synthetics_new_object(
	    c->synthetics, symbol->ksym_type == PERF_RECORD_KSYMBOL_TYPE_BPF ? "[bpf]" : "[ool]",
	    &f->object);
	if (r != 0)
		return r < 0 ? r : 0;
	f->object->symbols = &f->source;
	r = map_put(&c->by_name, hash, c->functions.n);
	if (r == 0)
		r = vec_push(&c->functions, f);
	if (r < 0)
		return r;
	*ret_object = TAKE(f)->object;
	return 0;
}

/* Return: whether the kernel has code there. Of a user's address nothing is believed. */
static bool is_kernels(uint64_t address, uint64_t size)
{
	return address >= KERNEL_MIN && size > 0 && size - 1 <= UINT64_MAX - address;
}

static int add_change(struct kernelchanges *c, const struct history_change *event)
{
	return vec_push(
	    &c->list,
	    { .last = event->start + (event->size - 1), .order = c->list.n, .change = *event });
}

static int on_ksymbol(struct kernelchanges *c, const struct trace_record *record)
{
	struct record_ksymbol symbol;
	struct history_change event;
	const struct object *object;
	bool ends;
	int r;

	if (record_read_ksymbol(trace_record_body(record), &symbol) < 0 ||
	    !is_kernels(symbol.addr, symbol.len)) {
		c->n_skipped++;
		return 0;
	}
	ends = symbol.flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER;
	r = function_object(c, &symbol, &object);
	if (r < 0)
		return r;
	event = (struct history_change){
		.time = record->time,
		.start = symbol.addr,
		.size = symbol.len,
		.before = { .fill = ends ? HISTORY_ANY : HISTORY_NONE },
		.after = { .fill = ends ? HISTORY_NONE : HISTORY_ANY },
		.sets_owner = true,
		.owner_before = ends ? object : NULL,
		.owner_after = ends ? NULL : object,
	};
	return add_change(c, &event);
}

/*
 * A BPF program was loaded that has @function. The recorder asked for its code some time later: if
 * the code was poked in between, the poke contradicts the recorder's copy, and the bytes are
 * unknown until the poke. What was there before the program is not known.
 */
static int on_loaded(struct kernelchanges *c, uint64_t time,
		     const struct bpfprog_function *function)
{
	if (!is_kernels(function->address, function->size)) {
		c->n_skipped++;
		return 0;
	}
	return add_change(c, &(struct history_change){
				 .time = time,
				 .start = function->address,
				 .size = function->size,
				 .before = { .fill = HISTORY_ANY },
				 .after = { function->code, function->size, HISTORY_NONE },
			     });
}

/* The kernel makes this record after the KSYMBOL records of the program, and before the program can
 * run. */
static int on_bpf_event(struct kernelchanges *c, const struct trace_record *record)
{
	struct bpfprog_function function;
	struct bpfprog program;
	const uint64_t *known;
	struct record_bpf_event bpf;
	int r = 0;

	if (record_read_bpf_event(trace_record_body(record), &bpf) < 0) {
		c->n_skipped++;
		return 0;
	}
	known = bpf.type == PERF_BPF_EVENT_PROG_LOAD ? map_get(&c->by_id, bpf.id) : NULL;
	if (!known)
		return 0;
	program = c->programs[*known];
	while (r == 0 && program.tag == bpf.tag && c->n_loaded < LOADED_MAX &&
	       bpfprog_next_function(&program, &function) == 0) {
		r = on_loaded(c, record->time, &function);
		c->n_loaded++;
	}
	return r;
}

static int on_poke(struct kernelchanges *c, const struct trace_record *record)
{
	struct record_text_poke poke;
	uint16_t size;

	if (record_read_text_poke(trace_record_body(record), &poke) < 0)
		size = 0;
	else
		size = poke.old_len > poke.new_len ? poke.old_len : poke.new_len;
	if (size == 0 || !is_kernels(poke.addr, size)) {
		c->n_skipped++;
		return 0;
	}
	/* Where there are no bytes before or after, there was, or will be, no code. */
	return add_change(c, &(struct history_change){
				 .time = record->time,
				 .start = poke.addr,
				 .size = size,
				 .before = { poke.old_bytes, poke.old_len, HISTORY_NONE },
				 .after = { poke.new_bytes, poke.new_len, HISTORY_NONE },
			     });
}

int kernelchanges_init(struct kernelchanges *c, const struct bpfprog *programs, size_t n_programs,
		       struct synthetics *synthetics)
{
	int r = 0;

	*c = (struct kernelchanges){ .programs = programs,
				     .n_programs = n_programs,
				     .synthetics = synthetics };
	for (size_t i = 0; r == 0 && i < n_programs; i++)
		if (!map_get(&c->by_id, programs[i].id))
			r = map_put(&c->by_id, programs[i].id, i);
	return r;
}

int kernelchanges_add(struct kernelchanges *c, const struct trace_record *record)
{
	switch (record->type) {
	case PERF_RECORD_KSYMBOL:
		return on_ksymbol(c, record);
	case PERF_RECORD_BPF_EVENT:
		return on_bpf_event(c, record);
	case PERF_RECORD_TEXT_POKE:
		return on_poke(c, record);
	default:
		return 0;
	}
}

static int by_address(const void *pa, const void *pb)
{
	const struct kernelchange *a = pa, *b = pb;

	if (a->change.start != b->change.start)
		return a->change.start < b->change.start ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

static int by_order(const void *pa, const void *pb)
{
	const struct kernelchange *a = pa, *b = pb;

	return a->order < b->order ? -1 : a->order > b->order;
}

/*
 * Pokes of one page form one chunk: the kernel mostly pokes many places at once, and a mapping for
 * each place would be too many. Functions do not, since neighbours come and go one by one.
 */
static bool belongs(const struct kernelchunk *chunk, bool has_function,
		    const struct kernelchange *change)
{
	if (change->change.start <= chunk->last)
		return true;
	return !has_function && !change->change.sets_owner &&
	       change->change.start >> PAGE_SHIFT == chunk->last >> PAGE_SHIFT;
}

int kernelchanges_group(struct kernelchanges *changes)
{
	struct kernelchange *c = changes->list.items;
	const size_t n = changes->list.n;
	bool has_function = false;

	if (n > 0)
		qsort(c, n, sizeof(*c), by_address);
	for (size_t i = 0; i < n; i++) {
		struct kernelchunk *chunk =
		    changes->chunks.n > 0 ? &changes->chunks.items[changes->chunks.n - 1] : NULL;

		if (!chunk || !belongs(chunk, has_function, &c[i])) {
			const int r = vec_push(
			    &changes->chunks,
			    { .start = c[i].change.start, .last = c[i].last, .first_change = i });
			if (r < 0)
				return r;
			chunk = &changes->chunks.items[changes->chunks.n - 1];
			has_function = false;
		}
		chunk->n_changes++;
		chunk->last = c[i].last > chunk->last ? c[i].last : chunk->last;
		has_function = has_function || c[i].change.sets_owner;
	}
	for (size_t i = 0; i < changes->chunks.n; i++)
		qsort(c + changes->chunks.items[i].first_change, changes->chunks.items[i].n_changes,
		      sizeof(*c), by_order);
	return 0;
}

void kernelchanges_forget(struct kernelchanges *c)
{
	map_deinit(&c->by_name);
	map_deinit(&c->by_id);
	vec_deinit(&c->list);
	vec_deinit(&c->chunks);
}

void kernelchanges_deinit(struct kernelchanges *c)
{
	kernelchanges_forget(c);
	for (size_t i = 0; i < c->functions.n; i++)
		(void)function_free(c->functions.items[i]);
	vec_deinit(&c->functions);
}
