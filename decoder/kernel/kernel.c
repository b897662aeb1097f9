/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/kernel/kernel.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "decoder/kernel/history.h"
#include "decoder/symbol/symtab.h"
#include "decoder/trace/bpfprog.h"
#include "decoder/util/filebytes.h"
#include "util/mapname.h"
#include "util/perf/codec.h"

/* --- synthetic objects ------------------------------------------------------------------------ */

#define SYNTHETICS_BYTES_MAX (UINT64_C(64) << 20)

/* Kernels that people run change code in fewer places. */
#define SYNTHETICS_PARTS_MAX 8192

enum {
	_SYNTHETICS_SUCCESS,

	SYNTHETICS_FULL, /* a limit is reached */
};

static void synthetics_init(struct synthetics *synthetics, struct objects *objects)
{
	*synthetics = (struct synthetics){ .objects = objects };
}

/* Unmap the code. The objects, which belong to @synthetics->objects, must not be used any more. */
static void synthetics_deinit(struct synthetics *synthetics)
{
	if (synthetics->bytes)
		(void)munmap(synthetics->bytes, SYNTHETICS_BYTES_MAX);
	map_deinit(&synthetics->by_content);
	vec_deinit(&synthetics->parts);
	vec_deinit(&synthetics->list);
}

static int reserve_memory(struct synthetics *synthetics)
{
	void *bytes;

	if (synthetics->bytes)
		return 0;
	bytes = mmap(NULL, SYNTHETICS_BYTES_MAX, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (bytes == MAP_FAILED)
		return -ENOMEM;
	synthetics->bytes = bytes;
	return 0;
}

/*
 * Add an object that is called @name and has no code yet.
 *
 * Return: 0, and @ret_object, which belongs to @synthetics->objects; SYNTHETICS_FULL; -ENOMEM.
 */
static int synthetics_new_object(struct synthetics *synthetics, const char *name,
				 struct object **ret_object)
{
	int r;

	r = reserve_memory(synthetics);
	if (r == 0)
		r = vec_reserve(&synthetics->list, 1);
	if (r == 0)
		r = objects_add_synthetic(synthetics->objects, name, ret_object);
	if (r == 0)
		synthetics->list.items[synthetics->list.n++] = *ret_object;
	return r;
}

static uint64_t hash_of_part(const struct object *object, uint64_t address, const uint8_t *bytes,
			     size_t size)
{
	const uint64_t key[] = { object->id.id, address, size, map_hash(bytes, size) };

	return map_hash(key, sizeof(key));
}

/*
 * Copy @size bytes of code into @object, as the code at @address. If @object has the same bytes at
 * @address already, nothing is copied.
 *
 * Return: 0, and @ret_offset, the place of the bytes in @object; SYNTHETICS_FULL; -ENOMEM.
 */
static int synthetics_add_code(struct synthetics *synthetics, struct object *object,
			       uint64_t address, const uint8_t *bytes, size_t size,
			       uint64_t *ret_offset)
{
	const uint64_t key = hash_of_part(object, address, bytes, size);
	const uint64_t *known = map_get(&synthetics->by_content, key);
	int r;

	if (known) {
		const struct synthetic_part *p = &synthetics->parts.items[*known];

		if (p->object == object && p->address == address && p->size == size &&
		    memcmp(synthetics->bytes + p->offset, bytes, size) == 0) {
			*ret_offset = p->offset;
			return 0;
		}
	}
	if (synthetics->parts.n == SYNTHETICS_PARTS_MAX ||
	    size > SYNTHETICS_BYTES_MAX - synthetics->size)
		return SYNTHETICS_FULL;

	*ret_offset = synthetics->size;
	r = object_add_part(object, synthetics->size, size, address);
	if (r == 0)
		r = map_put(&synthetics->by_content, key, synthetics->parts.n);
	if (r == 0)
		r = vec_push(&synthetics->parts, { .object = object,
						   .address = address,
						   .offset = synthetics->size,
						   .size = size });
	if (r < 0)
		return r;
	memcpy(synthetics->bytes + synthetics->size, bytes, size);
	synthetics->size += size;
	return 0;
}

/* Let the objects have their code. No code may be added afterwards. Return: 0 or -ENOMEM. */
static int synthetics_finish(struct synthetics *synthetics)
{
	struct filebytes *file;
	const int r = filebytes_new_in_memory(synthetics->bytes, synthetics->size, &file);

	if (r < 0)
		return r;
	for (size_t i = 0; i < synthetics->list.n; i++) {
		struct object *object = synthetics->list.items[i];

		object->file = filebytes_ref(file);
		object->size = synthetics->size;
	}
	(void)filebytes_unref(file);
	return 0;
}

/* --- changes ---------------------------------------------------------------------------------- */

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

/*
 * Begin without changes. @programs are the BPF programs whose code the recorder kept; the objects
 * of functions are made in @synthetics. Both are borrowed.
 *
 * Return: 0 or -ENOMEM; in both cases the caller deinitializes @changes.
 */
static int kernelchanges_init(struct kernelchanges *c, const struct bpfprog *programs,
			      size_t n_programs, struct synthetics *synthetics)
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

/*
 * Append the changes that @record states, if any: most records state none. The changes point into
 * the record's payload.
 *
 * Return: 0 or -ENOMEM.
 */
static int kernelchanges_add(struct kernelchanges *c, const struct trace_record *record)
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

	return COMPARE(a->change.start, b->change.start) ?: COMPARE(a->order, b->order);
}

static int by_order(const void *pa, const void *pb)
{
	const struct kernelchange *a = pa, *b = pb;

	return COMPARE(a->order, b->order);
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

/* Sort the changes, and make chunks of them. No change may be added any more. Return: 0 or
 * -ENOMEM. */
static int kernelchanges_group(struct kernelchanges *changes)
{
	struct kernelchange *c = changes->list.items;
	const size_t n = changes->list.n;
	bool has_function = false;

	vec_sort(&changes->list, by_address);
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

/* Free the changes and the chunks. The functions that objects refer to stay, and the count of
 * skipped records. */
static void kernelchanges_forget(struct kernelchanges *c)
{
	map_deinit(&c->by_name);
	map_deinit(&c->by_id);
	vec_deinit(&c->list);
	vec_deinit(&c->chunks);
}

/* Free all; the objects of functions must not be used any more. */
static void kernelchanges_deinit(struct kernelchanges *c)
{
	kernelchanges_forget(c);
	vec_deinit_each(&c->functions, function, function_free(*function));
}

/* --- the kernel's space ----------------------------------------------------------------------- */

#define KERNEL_NAME  "[kernel.kallsyms]"
#define MAPPINGS_MAX (1u << 20)
#define COPIED_MAX   (1u << 16) /* mappings of modules; later modules are shown as the kernel */

/* How many bytes of versions and changes are looked at, at most. */
#define WORK_MIN        (UINT64_C(1) << 28)
#define WORK_PER_RECORD 4096

struct timed_mapping {
	struct mapping mapping;
	size_t order;
};

/* What is needed only while the space is made. */
struct builder {
	struct kernel *kernel;
	const struct trace *trace;
	struct objects *objects;
	const struct object *none;    /* an object without bytes */
	struct kcore_mappings copied; /* the copy of the kernel, as if it had not changed */
	VEC(struct timed_mapping) mappings;
	VEC(struct object *) defaults; /* synthetic; of changed code that is of no function */
	uint64_t work;
};

/* --- records --------------------------------------------------------------------------------- */

/* No other bytes will do: the kernel changes those of vmlinux and of modules when it loads them. */
static void note_lack(struct kernel *kernel, const struct record_mmap2 *map)
{
	const uint64_t last = map->addr + (map->len - 1);

	if (map->len == 0 || last < map->addr)
		return;
	if (kernel->lacks_to == 0 || map->addr < kernel->lacks_from)
		kernel->lacks_from = map->addr;
	if (last > kernel->lacks_to)
		kernel->lacks_to = last;
}

/* The kernel loaded a module, or is where the record says. */
static int on_map(struct builder *b, const struct trace_record *record)
{
	struct record_mmap2 map;

	if ((record->misc & PERF_RECORD_MISC_CPUMODE_MASK) != PERF_RECORD_MISC_KERNEL ||
	    record_read_mmap2(record->type, record->misc, trace_record_body(record), &map) < 0)
		return 0;
	if (!b->kernel->kcore.kernel)
		note_lack(b->kernel, &map);
	if (b->copied.list.n >= COPIED_MAX) {
		b->kernel->kcore.n_modules_left_out += b->kernel->kcore.kernel != NULL;
		return 0;
	}
	return kcore_map_module(&b->kernel->kcore, map.name, map.addr, map.len, record->time,
				&b->copied);
}

/* --- uretprobes ------------------------------------------------------------------------------- */

#define TRAMPOLINE_ADDRESS 0x1000 /* of the synthetic object's code */

/* Its system call is uretprobe, 335. */
static const uint8_t trampoline[] = {
	0x50,                                     /* push %rax */
	0x51,                                     /* push %rcx */
	0x41, 0x53,                               /* push %r11 */
	0x48, 0xc7, 0xc0, 0x4f, 0x01, 0x00, 0x00, /* mov $335, %rax */
	0x0f, 0x05,                               /* syscall */
	0x41, 0x5b,                               /* pop %r11 */
	0x59,                                     /* pop %rcx */
	0xc3,                                     /* ret, to where the function was called */
};

static int read_trampoline(struct symbol_source *source, struct symtab *symtab)
{
	static const char name[] = "uretprobe_trampoline";

	return symtab_add(symtab, &(struct symtab_symbol){
				      .address = TRAMPOLINE_ADDRESS,
				      .limit = TRAMPOLINE_ADDRESS + sizeof(trampoline),
				      .name = name,
				      .name_size = sizeof(name) - 1,
				      .rank = SYMTAB_FUNCTION,
				  });
}

static const struct symbol_source_ops trampoline_ops = { .read = read_trampoline };

/* A process may have the page [uprobes]. */
static int on_user_map(struct builder *b, const struct trace_record *record)
{
	struct kernel *kernel = b->kernel;
	struct record_mmap2 map;
	struct object *object;
	int r;

	if (kernel->trampoline ||
	    record_read_mmap2(record->type, record->misc, trace_record_body(record), &map) < 0 ||
	    !map.name || !mapname_is_uprobes(map.name))
		return 0;
	r = synthetics_new_object(&kernel->synthetics, map.name, &object);
	if (r == 0)
		r = synthetics_add_code(&kernel->synthetics, object, TRAMPOLINE_ADDRESS, trampoline,
					sizeof(trampoline), &kernel->trampoline_at);
	if (r != 0)
		return r == SYNTHETICS_FULL ? 0 : r;
	kernel->trampoline_symbols.ops = &trampoline_ops;
	object->symbols = &kernel->trampoline_symbols;
	kernel->trampoline = object;
	kernel->trampoline_size = sizeof(trampoline);
	return 0;
}

static int read_records(struct builder *b)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < b->trace->n_records; i++) {
		const struct trace_record *record = &b->trace->records[i];

		if (record->type == PERF_RECORD_MMAP || record->type == PERF_RECORD_MMAP2)
			r = on_map(b, record) ?: on_user_map(b, record);
		else
			r = kernelchanges_add(&b->kernel->changes, record);
		if (i % TRACE_EVICT_RECORDS == 0)
			trace_evict(b->trace);
	}
	return r;
}

/* --- mappings -------------------------------------------------------------------------------- */

static int add_mapping(struct builder *b, const struct mapping *mapping)
{
	return vec_push(&b->mappings, { .mapping = *mapping, .order = b->mappings.n });
}

/*
 * Map what does not change of @whole: all that lies between the chunks. When a limit is reached,
 * the rest is left as earlier mappings have it.
 */
static int map_between(struct builder *b, const struct mapping *whole)
{
	const uint64_t last = whole->start + (whole->size - 1);
	struct mapping piece = *whole;
	size_t i = vec_bisect(&b->kernel->changes.chunks, chunk, chunk->last < whole->start);

	for (;; i++) {
		const struct kernelchunk *chunk =
		    i < b->kernel->changes.chunks.n ? &b->kernel->changes.chunks.items[i] : NULL;
		const bool is_end = !chunk || chunk->start > last;
		int r;

		if (b->mappings.n >= MAPPINGS_MAX || b->work == 0)
			return 0;
		b->work--;
		piece.size = (is_end ? last : chunk->start - 1) - piece.start + 1;
		if (is_end || chunk->start > piece.start) {
			r = add_mapping(b, &piece);
			if (r < 0)
				return r;
		}
		if (is_end || chunk->last >= last)
			return 0;
		piece.start = chunk->last + 1;
		piece.offset = whole->offset + (piece.start - whole->start);
	}
}

/*
 * Find the object for changed code at @address that belongs to no function that a record names.
 *
 * Return: 0; SYNTHETICS_FULL; -ENOMEM.
 */
static int default_object(struct builder *b, uint64_t address, struct object **ret_object)
{
	const struct object *copied = b->kernel->kcore.kernel;
	const char *name;
	int r;

	if (b->copied.list.n > b->work)
		return SYNTHETICS_FULL;
	b->work -= b->copied.list.n;
	for (size_t i = 0; i < b->copied.list.n; i++) {
		const struct mapping *m = &b->copied.list.items[i];

		if (address >= m->start && address - m->start < m->size)
			copied = m->object;
	}
	name = copied ? copied->id.name : KERNEL_NAME;
	for (size_t i = 0; i < b->defaults.n; i++)
		if (strcmp(b->defaults.items[i]->id.name, name) == 0) {
			*ret_object = b->defaults.items[i];
			return 0;
		}
	r = synthetics_new_object(&b->kernel->synthetics, name, ret_object);
	if (r != 0)
		return r;
	(*ret_object)->symbols = copied ? copied->symbols : NULL;
	return vec_push(&b->defaults, *ret_object);
}

/* How far the versions of a chunk are mapped. */
struct version {
	const struct kernelchunk *chunk;
	struct object *owner; /* of bytes that belong to no function */
	uint8_t *bytes;       /* of the chunk's size */
	VEC(struct mapping) now, before;
};

static int map_none(struct builder *b, const struct kernelchunk *chunk, uint64_t time)
{
	return add_mapping(b, &(struct mapping){ .time = time,
						 .start = chunk->start,
						 .size = chunk->last - chunk->start + 1,
						 .object = b->none });
}

/*
 * Collect what is known of the history's version, piece by piece.
 *
 * Return: 0; SYNTHETICS_FULL; -ENOMEM.
 */
static int collect_version(struct builder *b, struct version *v, const struct history *h,
			   uint64_t time)
{
	int r = 0;

	v->now.n = 0;
	for (uint64_t i = 0, end; r == 0 && i < h->size; i = end) {
		const struct object *owner = history_owner(h, i);
		const bool known = history_byte(h, i) < HISTORY_ANY;
		struct mapping mapping = { .time = time,
					   .start = v->chunk->start + i,
					   .object = b->none };

		for (end = i; end < h->size && history_owner(h, end) == owner; end++) {
			const uint16_t byte = history_byte(h, end);

			if ((byte < HISTORY_ANY) != known)
				break;
			v->bytes[end - i] = (uint8_t)byte;
		}
		mapping.size = end - i;
		if (known) {
			struct object *object =
			    owner ? (struct object *)(uintptr_t)owner : v->owner;

			mapping.object = object;
			r = synthetics_add_code(&b->kernel->synthetics, object, mapping.start,
						v->bytes, mapping.size, &mapping.offset);
		}
		if (r == 0)
			r = vec_push(&v->now, mapping);
	}
	return r;
}

static bool is_as_before(const struct version *v)
{
	if (v->now.n != v->before.n)
		return false;
	for (size_t i = 0; i < v->now.n; i++) {
		const struct mapping *a = &v->now.items[i], *b = &v->before.items[i];

		if (a->start != b->start || a->size != b->size || a->offset != b->offset ||
		    a->object != b->object)
			return false;
	}
	return true;
}

/* Map the version that was collected, unless it is the one before. */
static int map_version(struct builder *b, struct version *v)
{
	int r = 0;

	if (is_as_before(v))
		return 0;
	if (b->mappings.n + v->now.n > MAPPINGS_MAX)
		return SYNTHETICS_FULL;
	for (size_t i = 0; r == 0 && i < v->now.n; i++)
		r = add_mapping(b, &v->now.items[i]);
	v->before.n = 0;
	if (r == 0)
		r = vec_reserve(&v->before, v->now.n);
	if (r == 0 && v->now.n > 0)
		memcpy(v->before.items, v->now.items, v->now.n * sizeof(*v->now.items));
	v->before.n = v->now.n;
	return r;
}

/* Map all versions. When a limit is reached, the chunk has no bytes from that time on. */
static int map_versions(struct builder *b, struct version *v, struct history *h)
{
	uint64_t time;
	int r = 0;

	while (r == 0 && history_next(h, &time)) {
		r = collect_version(b, v, h, time);
		if (r == 0)
			r = map_version(b, v);
	}
	return r == SYNTHETICS_FULL ? map_none(b, v->chunk, time) : r;
}

/*
 * Copy the chunk out of the kcore. A breakpoint (0xcc) where the kernel changes code may be there
 * only while it does so: that byte is not known.
 */
static void copy_chunk(const struct builder *b, const struct kernelchunk *chunk, uint16_t *copy)
{
	const uint64_t size = chunk->last - chunk->start + 1;

	for (uint64_t i = 0; i < size; i++)
		copy[i] = HISTORY_ANY;
	kcore_read(&b->kernel->kcore, chunk->start, size, copy);
	for (size_t i = 0; i < chunk->n_changes; i++) {
		const struct kernelchange *c =
		    &b->kernel->changes.list.items[chunk->first_change + i];
		uint16_t *first = &copy[c->change.start - chunk->start];

		if (!c->change.sets_owner && *first == 0xcc)
			*first = HISTORY_ANY;
	}
}

static int add_changes(const struct builder *b, const struct kernelchunk *chunk, struct history *h)
{
	int r = vec_reserve(&h->changes, chunk->n_changes);

	for (size_t i = 0; r == 0 && i < chunk->n_changes; i++) {
		struct history_change change =
		    b->kernel->changes.list.items[chunk->first_change + i].change;

		change.start -= chunk->start;
		r = vec_push(&h->changes, change);
	}
	return r;
}

/* A chunk that is too large has no bytes, from time 0 on: code that was there may have gone. */
static int map_chunk(struct builder *b, const struct kernelchunk *chunk)
{
	const uint64_t size = chunk->last - chunk->start + 1;
	_cleanup_(history_deinit) struct history history = {};
	_cleanup_(freep) uint16_t *copy = NULL;
	_cleanup_(freep) uint8_t *bytes = NULL;
	struct version version = { .chunk = chunk };
	int r;

	if (size == 0 || size > HISTORY_SIZE_MAX)
		return map_none(b, chunk, 0);
	copy = malloc(size * sizeof(*copy));
	bytes = version.bytes = malloc(size);
	if (!copy || !bytes)
		return -ENOMEM;
	copy_chunk(b, chunk, copy);
	r = add_changes(b, chunk, &history);
	if (r == 0)
		r = history_begin(&history, size, copy, !b->trace->facts.kcore_is_last, &b->work);
	if (r == 0)
		r = default_object(b, chunk->start, &version.owner);
	if (r == -E2BIG || r == SYNTHETICS_FULL)
		return map_none(b, chunk, 0);
	if (r == 0)
		r = map_versions(b, &version, &history);
	vec_deinit(&version.now);
	vec_deinit(&version.before);
	return r;
}

static int compare_mappings(const void *pa, const void *pb)
{
	const struct timed_mapping *a = pa, *b = pb;

	return COMPARE(a->mapping.time, b->mapping.time) ?: COMPARE(a->order, b->order);
}

static int fill_space(struct builder *b)
{
	int r;

	if (b->mappings.n == 0)
		return 0;
	vec_sort(&b->mappings, compare_mappings);
	r = space_new(UINT32_MAX, NULL, 0, &b->kernel->space);
	for (size_t i = 0; r == 0 && i < b->mappings.n; i++)
		r = space_map(b->kernel->space, &b->mappings.items[i].mapping);
	return r;
}

static int build(struct builder *b)
{
	int r;

	r = objects_find(b->objects, KERNEL_NAME, NULL, &b->none);
	if (r == 0)
		r = kcore_init(&b->kernel->kcore, b->objects);
	if (r == 0)
		r = kcore_map_all(&b->kernel->kcore, &b->copied);
	if (r == 0)
		r = kernelchanges_init(&b->kernel->changes, b->trace->programs.items,
				       b->trace->programs.n, &b->kernel->synthetics);
	if (r == 0)
		r = read_records(b);
	if (r == 0)
		r = kernelchanges_group(&b->kernel->changes);
	for (size_t i = 0; r == 0 && i < b->copied.list.n; i++)
		r = map_between(b, &b->copied.list.items[i]);
	for (size_t i = 0; r == 0 && i < b->kernel->changes.chunks.n; i++)
		r = map_chunk(b, &b->kernel->changes.chunks.items[i]);
	if (r == 0)
		r = synthetics_finish(&b->kernel->synthetics);
	return r < 0 ? r : fill_space(b);
}

int kernel_init(struct kernel *kernel, const struct trace *trace, struct objects *objects)
{
	struct builder b = {
		.kernel = kernel,
		.trace = trace,
		.objects = objects,
		.work = WORK_MIN + WORK_PER_RECORD * (uint64_t)trace->n_records,
	};
	int r;

	*kernel = (struct kernel){};
	synthetics_init(&kernel->synthetics, objects);
	r = build(&b);
	kernelchanges_forget(&kernel->changes);
	vec_deinit(&b.copied.list);
	vec_deinit(&b.mappings);
	vec_deinit(&b.defaults);
	return r;
}

bool kernel_lacks(const struct kernel *kernel, uint64_t ip)
{
	return kernel->lacks_to && ip >= kernel->lacks_from && ip <= kernel->lacks_to;
}

void kernel_deinit(struct kernel *kernel)
{
	(void)space_free(kernel->space);
	symbol_source_deinit(&kernel->trampoline_symbols);
	kernelchanges_deinit(&kernel->changes);
	synthetics_deinit(&kernel->synthetics);
	kcore_deinit(&kernel->kcore);
}
