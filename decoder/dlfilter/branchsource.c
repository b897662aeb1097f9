/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/dlfilter/branchsource.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/drmemtrace/blockstore.h"
#include "decoder/image/objects.h"
#include "decoder/symbol/resolver.h"
#include "decoder/symbol/source.h"
#include "decoder/util/batchsource.h"
#include "decoder/x86/insn.h"
#include "util/arena.h"
#include "util/map.h"
#include "util/vec.h"

/* --- the code between two branches ------------------------------------------------------------ */

/*
 * The code between two branches that perf decoded. Perf says only where each branch led from and
 * to; all instructions in between, which follow one another in memory, executed, too. They are
 * found once for each pair of addresses of a file, and come out as runs of blocks.
 *
 * Bytes are as perf has them. Names are those of the file itself, where it can be read, so that
 * they are the same as for a recording that ptdecode decodes; and else perf's, as of the kernel.
 */

/* More code than this is not between two branches. */
#define BRANCHCODE_BYTES_MAX (UINT32_C(1) << 20)

/* More pairs of addresses are forgotten, and found anew. */
#define BRANCHCODE_WAYS_MAX (UINT32_C(1) << 22)

enum {
	BRANCHCODE_UNKNOWN = 1, /* no bytes are known there */
	BRANCHCODE_ODD,         /* the instructions do not lead from the one address to the other */
};

/* The code from one address to another. */
struct branch_way {
	struct ptd_run *runs; /* the base of each is relative to the first address */
	uint32_t n_runs;
	uint32_t n_insns;
	uint8_t last_size; /* of the last instruction */
};

#define INSN_MAX 15

struct known_object;

/* A function that perf names. */
struct named {
	struct symbol_list list; /* of this one symbol */
	const struct known_object *object;
	uint64_t start, size;
	struct named *next; /* of the same hash */
};

/* What perf calls by one name, with one build-id. */
struct known_object {
	const char *name;
	struct buildid buildid;
	const struct object *object;
	bool is_file; /* it is one that we can read */
	struct known_object *next;
};

struct known_way {
	const struct known_object *object;
	uint64_t address; /* of its first byte in the object */
	uint64_t size;    /* up to the last address */
	bool with_end;
	struct branch_way way;
	struct known_way *next;
};

struct branchcode {
	struct objects *objects;
	struct resolver *resolver;
	struct blockstore store;

	struct arena arena; /* objects and names */
	struct map known;   /* hash → struct known_object */
	struct map named;   /* hash → struct named */
	VEC(struct named *) all_named;
	const struct known_object *last; /* that was asked for; or NULL */

	struct arena way_arena;
	struct map ways; /* hash → struct known_way */
	uint32_t n_ways;

	uint8_t *bytes; /* room for BRANCHCODE_BYTES_MAX and one instruction */
	VEC(struct ptd_run) runs;
};

static int branchcode_init(struct branchcode *code, struct objects *objects,
			   struct resolver *resolver)
{
	code->objects = objects;
	code->resolver = resolver;
	code->bytes = malloc(BRANCHCODE_BYTES_MAX + INSN_MAX);
	return code->bytes ? 0 : -ENOMEM;
}

static void branchcode_deinit(struct branchcode *code)
{
	vec_deinit_each(&code->all_named, named, symbol_list_deinit(&(*named)->list));
	map_deinit(&code->known);
	map_deinit(&code->named);
	map_deinit(&code->ways);
	arena_deinit(&code->arena);
	arena_deinit(&code->way_arena);
	blockstore_deinit(&code->store);
	vec_deinit(&code->runs);
	free(code->bytes);
}

/* --- objects ---------------------------------------------------------------------------------- */

static bool is_object(const struct known_object *known, const struct branch_place *place)
{
	return known->buildid.size == place->buildid.size &&
	       memcmp(known->buildid.bytes, place->buildid.bytes, place->buildid.size) == 0 &&
	       strcmp(known->name, place->object) == 0;
}

/* Find the file, or make an object that only perf knows. */
static int make_object(struct branchcode *code, const struct branch_place *place,
		       struct known_object *known)
{
	struct object *made;
	int r;

	r = objects_find(code->objects, place->object, &place->buildid, &known->object);
	if (r < 0)
		return r;
	known->is_file = known->object->state == OBJECT_OK && known->object->is_elf;
	if (known->is_file)
		return 0;
	r = objects_add_synthetic(code->objects, known->name, &made);
	if (r == 0)
		known->object = made;
	return r;
}

static int find_object(struct branchcode *code, const struct branch_place *place,
		       const struct known_object **ret_known)
{
	struct known_object *known;
	uint64_t hash;
	int r;

	if (code->last && is_object(code->last, place)) {
		*ret_known = code->last;
		return 0;
	}
	hash = map_hash(place->object, strlen(place->object));
	for (known = map_pointer(&code->known, hash); known && !is_object(known, place);)
		known = known->next;
	if (!known) {
		known = arena_alloc(&code->arena, sizeof(*known));
		if (!known)
			return -ENOMEM;
		known->name = arena_strdup(&code->arena, place->object);
		known->buildid = place->buildid;
		known->next = map_pointer(&code->known, hash);
		if (!known->name)
			return -ENOMEM;
		r = make_object(code, place, known);
		if (r == 0)
			r = map_put(&code->known, hash, (uintptr_t)known);
		if (r < 0)
			return r;
	}
	*ret_known = code->last = known;
	return 0;
}

/* --- names ------------------------------------------------------------------------------------ */

static int make_named(struct branchcode *code, const struct branch_place *place,
		      struct named **ret_named)
{
	struct named *named = arena_alloc(&code->arena, sizeof(*named));
	size_t size = strlen(place->symbol);
	const char *name;
	int r;

	if (size > UINT16_MAX)
		size = UINT16_MAX;
	name = named ? arena_copy(&code->arena, place->symbol, size) : NULL;
	if (!name)
		return -ENOMEM;
	symbol_list_init(&named->list);
	named->start = place->symbol_start;
	named->size = place->symbol_end - place->symbol_start;
	r = vec_push(&code->all_named, named);
	if (r == 0)
		r = symbol_list_add(&named->list, named->start, named->size, name, (uint16_t)size,
				    NULL);
	*ret_named = named;
	return r;
}

/* Find the symbol at @place by what perf says of it. */
static int find_named(struct branchcode *code, const struct known_object *object,
		      const struct branch_place *place, uint32_t *ret_symbol, uint64_t *ret_end)
{
	const uint64_t key[] = { object->object->id.id, place->symbol_start };
	const uint64_t hash = map_hash(key, sizeof(key));
	struct named *named = map_pointer(&code->named, hash);
	uint64_t end;
	int r;

	*ret_symbol = PTD_NO_SYMBOL;
	*ret_end = place->address + 1;
	if (!place->symbol || place->symbol_start > place->address ||
	    place->symbol_end <= place->address)
		return 0;
	*ret_end = place->symbol_end;
	while (named && (named->object != object || named->start != place->symbol_start ||
			 named->size != place->symbol_end - place->symbol_start))
		named = named->next;
	if (!named) {
		r = make_named(code, place, &named);
		if (r < 0)
			return r;
		named->object = object;
		named->next = map_pointer(&code->named, hash);
		r = map_put(&code->named, hash, (uintptr_t)named);
		if (r < 0)
			return r;
	}
	return resolver_find(code->resolver, &named->list.source, place->address, ret_symbol, &end);
}

/* --- ways ------------------------------------------------------------------------------------- */

/* A way that is being found. */
struct search {
	struct branchcode *code;
	const struct branch_memory *memory;
	const struct known_object *object;
	uint64_t start;
	uint64_t link; /* address in the object as the stream shows it = ip + this */
	struct blockstore_draft draft;
	struct branch_way way;
	uint32_t symbol;
	uint64_t symbol_end; /* ip */
};

static int flush_draft(struct search *s)
{
	const struct ptd_block *block;
	int r;

	if (s->draft.n_insns == 0)
		return 0;
	r = blockstore_get(&s->code->store, &s->draft, &block);
	if (r == 0)
		r = vec_push(
		    &s->code->runs,
		    { .block = block, .base = s->draft.pc - s->start, .n = block->n_insns });
	s->draft.n_insns = s->draft.n_bytes = 0;
	return r;
}

static int find_symbol(struct search *s, uint64_t ip)
{
	struct branch_place place;
	uint64_t end;
	int r;

	if (ip < s->symbol_end)
		return 0;
	if (s->object->is_file) {
		r = resolver_find(s->code->resolver, s->object->object->symbols, ip + s->link,
				  &s->symbol, &end);
		s->symbol_end = end - s->link;
		return r;
	}
	s->symbol = PTD_NO_SYMBOL;
	s->symbol_end = ip + 1;
	if (!s->memory->place(s->memory->userdata, ip, &place))
		return 0;
	r = find_named(s->code, s->object, &place, &s->symbol, &end);
	s->symbol_end = end - place.address + ip;
	return r;
}

static int add_insn(struct search *s, uint64_t ip, const uint8_t *bytes, const struct insn *insn)
{
	struct blockstore_draft *draft = &s->draft;
	int r;

	r = find_symbol(s, ip);
	if (r == 0 && draft->n_insns == BLOCKSTORE_INSNS_MAX)
		r = flush_draft(s);
	if (r < 0)
		return r;
	if (draft->n_insns == 0)
		draft->pc = ip;
	draft->insns[draft->n_insns++] = (struct ptd_insn){ .offset = (uint16_t)draft->n_bytes,
							    .size = insn->size,
							    .iclass = insn->class,
							    .symbol = s->symbol };
	memcpy(draft->bytes + draft->n_bytes, bytes, insn->size);
	draft->n_bytes += insn->size;
	draft->target = (int64_t)draft->n_bytes + insn->disp;
	s->way.n_insns++;
	s->way.last_size = insn->size;
	return insn->class == PTD_INSN_OTHER || insn->class == PTD_INSN_PTWRITE ? 0
										: flush_draft(s);
}

/* Return: whether the next instruction in memory can be the next one to execute. */
static bool falls_through(const struct insn *insn)
{
	return insn->class == PTD_INSN_OTHER || insn->class == PTD_INSN_PTWRITE ||
	       insn->class == PTD_INSN_JUMP_COND;
}

/* Decode the @n bytes from the first address on, up to @end. Return: as branchcode_find(). */
static int walk(struct search *s, size_t n, uint64_t end, bool with_end)
{
	uint64_t ip = s->start;
	int r = 0;

	while (r == 0 && (ip < end || (with_end && ip == end))) {
		const uint8_t *bytes = s->code->bytes + (ip - s->start);
		const size_t left = n - (size_t)(ip - s->start);
		struct insn insn;

		if (insn_decode(s->draft.mode, bytes, left, &insn) < 0)
			return left < INSN_MAX ? BRANCHCODE_UNKNOWN : BRANCHCODE_ODD;
		if (ip < end && !falls_through(&insn))
			return BRANCHCODE_ODD;
		r = add_insn(s, ip, bytes, &insn);
		ip += insn.size;
		if (ip > end)
			break;
	}
	if (r < 0)
		return r;
	if (ip != end && !(with_end && ip == end + s->way.last_size))
		return BRANCHCODE_ODD;
	return flush_draft(s);
}

static uint64_t hash_of(const struct known_object *object, uint64_t address, uint64_t size,
			bool with_end)
{
	const uint64_t key[] = { object->object->id.id, address, size << 1 | with_end };

	return map_hash(key, sizeof(key));
}

/* Keep what was found. Return: 0 and @ret_way; or -ENOMEM. */
static int keep_way(struct search *s, uint64_t hash, struct known_way *way,
		    const struct branch_way **ret_way)
{
	struct branchcode *code = s->code;
	struct known_way *kept;
	int r;

	if (code->n_ways == BRANCHCODE_WAYS_MAX) {
		map_deinit(&code->ways);
		arena_deinit(&code->way_arena);
		code->ways = (struct map){};
		code->way_arena = (struct arena){};
		code->n_ways = 0;
	}
	way->way = s->way;
	way->way.n_runs = (uint32_t)code->runs.n;
	way->way.runs = arena_copy(&code->way_arena, code->runs.items,
				   code->runs.n * sizeof(*code->runs.items));
	way->next = map_pointer(&code->ways, hash);
	kept = way->way.runs ? arena_copy(&code->way_arena, way, sizeof(*way)) : NULL;
	if (!kept)
		return -ENOMEM;
	r = map_put(&code->ways, hash, (uintptr_t)kept);
	code->n_ways++;
	*ret_way = &kept->way;
	return r;
}

/* Return: whether what lies at @start is of the same mapping as @at, which lies at @end. */
static bool is_one_mapping(const struct search *s, uint64_t end, const struct branch_place *at)
{
	struct branch_place place;

	return s->start == end ||
	       (s->memory->place(s->memory->userdata, s->start, &place) && place.object &&
		is_object(s->object, &place) && place.address == at->address - (end - s->start));
}

/* Find the way @way, which is not known. Return: as branchcode_find(). */
static int find_new(struct search *s, uint64_t hash, struct known_way *way, uint8_t mode,
		    const struct branch_way **ret_way)
{
	struct branchcode *code = s->code;
	size_t n;
	int r;

	s->link = way->address - s->start;
	if (s->object->is_file)
		s->link = object_address(s->object->object, way->address) - s->start;
	s->draft.object = &s->object->object->id;
	s->draft.link = s->link;
	s->draft.mode = mode;
	code->runs.n = 0;
	n = s->memory->read(s->memory->userdata, s->start, code->bytes, way->size + INSN_MAX);
	r = walk(s, n, s->start + way->size, way->with_end);
	return r != 0 ? r : keep_way(s, hash, way, ret_way);
}

/*
 * Find the way from @start to the instruction at @end, which is on the way if @with_end. @at is
 * what @memory knows of @end.
 *
 * Return: 0 and @ret_way, which is valid until the next call; BRANCHCODE_UNKNOWN; BRANCHCODE_ODD;
 *         or -ENOMEM.
 */
static int branchcode_find(struct branchcode *code, const struct branch_memory *memory,
			   uint64_t start, uint64_t end, bool with_end,
			   const struct branch_place *at, const struct branch_way **ret_way)
{
	struct search s = { .code = code, .memory = memory, .start = start };
	struct known_way new;
	uint64_t hash;
	int r;

	if (!at->object)
		return BRANCHCODE_UNKNOWN;
	if (end < start || end - start > BRANCHCODE_BYTES_MAX)
		return BRANCHCODE_ODD;
	r = find_object(code, at, &s.object);
	if (r < 0)
		return r;
	new = (struct known_way){ .object = s.object,
				  .address = at->address - (end - start),
				  .size = end - start,
				  .with_end = with_end };
	hash = hash_of(s.object, new.address, new.size, with_end);
	for (const struct known_way *way = map_pointer(&code->ways, hash); way; way = way->next) {
		if (way->object == new.object && way->address == new.address &&
		    way->size == new.size && way->with_end == with_end) {
			*ret_way = &way->way;
			return 0;
		}
	}
	if (!is_one_mapping(&s, end, at))
		return BRANCHCODE_ODD;
	return find_new(&s, hash, &new, at->mode, ret_way);
}

/* --- the stream ------------------------------------------------------------------------------- */

/* Most runs of a batch, but for those of one more branch. */
#define BATCH_RUNS 4096

/* Where a CPU is; or a thread, where the CPU is not known. */
struct track {
	bool has_begun;
	uint64_t ip; /* where the last branch led to; 0: tracing has ended, or has not begun */
	uint64_t t;  /* of that */
};

struct known_thread {
	uint32_t pid;
	uint32_t space;
	const char *comm; /* NULL: not known */
	uint64_t left_at; /* address behind the instruction by which tracing ended; or 0 */
};

struct branchsource {
	struct batchsource source; /* the first field */
	struct branchcode code;
	struct map track_of; /* see track_key() → index */
	VEC(struct track) tracks;
	struct map thread_of; /* tid → index */
	VEC(struct known_thread) threads;
	struct map space_of; /* pid → the id of its space */
	uint32_t n_spaces;
	struct map comms; /* hash → string in the arena */
	struct arena arena;

	/* The batch that is being made, or that was given out. */
	struct ptd_slice slice;
	bool has_slice, is_new, is_given;
	VEC(struct ptd_run) runs;
	VEC(struct ptd_mark) marks;
	struct batchsource_count count;
};

static struct branchsource *of(struct batchsource *source)
{
	return (struct branchsource *)source;
}

/* --- batches ---------------------------------------------------------------------------------- */

static int start_stream(struct batchsource *batches, char **reterr_message)
{
	batchsource_reset(batches);
	return 0;
}

static bool is_empty(const struct branchsource *source)
{
	return source->runs.n == 0 && source->marks.n == 0;
}

static int next_batch(struct batchsource *batches, struct ptd_batch *ret_batch,
		      struct ptd_slice **ret_slice, bool *ret_new, char **reterr_message)
{
	struct branchsource *source = of(batches);
	int r;

	if (source->is_given) {
		source->runs.n = source->marks.n = 0;
		source->is_given = false;
	}
	if (is_empty(source))
		return 1;
	r = batchsource_count(batches, &source->count);
	if (r < 0)
		return r;
	*ret_batch = (struct ptd_batch){ .slice = &source->slice,
					 .runs = source->runs.items,
					 .n_runs = source->runs.n,
					 .marks = source->marks.items,
					 .n_marks = source->marks.n };
	ret_batch->symbols = resolver_symbols(source->code.resolver, &ret_batch->n_symbols);
	*ret_slice = &source->slice;
	*ret_new = source->is_new;
	source->is_new = false;
	source->is_given = true;
	return 0;
}

static int add_mark(struct branchsource *source, enum ptd_mark_kind kind, uint64_t t, uint64_t ip,
		    uint64_t value)
{
	return vec_push(&source->marks,
			{ .run = source->runs.n, .kind = kind, .t = t, .ip = ip, .value = value });
}

static int add_gap(struct branchsource *source, enum ptd_gap_reason reason, uint64_t t, uint64_t ip)
{
	source->count.n_gaps[reason]++;
	return vec_push(
	    &source->marks,
	    { .run = source->runs.n, .kind = PTD_MARK_GAP, .reason = reason, .t = t, .ip = ip });
}

static int add_runs(struct branchsource *source, const struct branch_way *way, uint64_t start,
		    uint64_t t)
{
	const int r = vec_reserve(&source->runs, way->n_runs);

	if (r < 0)
		return r;
	for (size_t i = 0; i < way->n_runs; i++) {
		struct ptd_run *run = &source->runs.items[source->runs.n++];

		*run = way->runs[i];
		run->base += start;
		run->t = t;
	}
	source->count.n_insns += way->n_insns;
	return 0;
}

/* --- threads ---------------------------------------------------------------------------------- */

static int keep_comm(struct branchsource *source, const char *comm, const char **ret_kept)
{
	const uint64_t hash = map_hash(comm, strlen(comm));
	const char *kept = map_pointer(&source->comms, hash);

	if (!kept || strcmp(kept, comm) != 0) {
		kept = arena_strdup(&source->arena, comm);
		if (!kept || map_put(&source->comms, hash, (uintptr_t)kept) < 0)
			return -ENOMEM;
	}
	*ret_kept = kept;
	return 0;
}

static int find_thread(struct branchsource *source, const struct branch *branch,
		       struct known_thread **ret_thread)
{
	*ret_thread =
	    map_item(&source->thread_of, branch->tid, &source->threads, { .pid = PTD_ID_UNKNOWN });
	return *ret_thread ? 0 : -ENOMEM;
}

/* Return: whether the thread executes another program now, as far as that can be seen. */
static bool has_executed(const struct known_thread *thread, const struct branch *branch)
{
	return branch->from == 0 && branch->to != thread->left_at && branch->comm && thread->comm &&
	       strcmp(thread->comm, branch->comm) != 0;
}

/* Bring what is known of the thread up to date. */
static int follow_thread(struct branchsource *source, struct known_thread *thread,
			 const struct branch *branch)
{
	const bool is_other = has_executed(thread, branch) && thread->pid == branch->pid;
	const uint64_t *space = map_get(&source->space_of, branch->pid);
	int r = 0;

	if (!space || is_other)
		r = map_put(&source->space_of, branch->pid, source->n_spaces++);
	if (r < 0)
		return r;
	thread->pid = branch->pid;
	thread->space = (uint32_t)*map_get(&source->space_of, branch->pid);
	if (branch->comm && (!thread->comm || strcmp(thread->comm, branch->comm) != 0))
		r = keep_comm(source, branch->comm, &thread->comm);
	return r;
}

static bool is_of_slice(const struct branchsource *source, const struct known_thread *thread,
			const struct branch *branch)
{
	const struct ptd_slice *slice = &source->slice;

	return source->has_slice && slice->cpu == branch->cpu && slice->tid == branch->tid &&
	       slice->pid == branch->pid && slice->space == thread->space &&
	       slice->comm == thread->comm;
}

static void begin_slice(struct branchsource *source, const struct known_thread *thread,
			const struct branch *branch)
{
	source->slice = (struct ptd_slice){ .cpu = branch->cpu,
					    .pid = branch->pid,
					    .tid = branch->tid,
					    .space = thread->space,
					    .t0 = branch->t,
					    .comm = thread->comm };
	source->has_slice = source->is_new = true;
}

/* --- branches --------------------------------------------------------------------------------- */

static uint64_t track_key(const struct branch *branch)
{
	return branch->cpu != UINT32_MAX ? branch->cpu : UINT64_C(1) << 32 | branch->tid;
}

static int find_track(struct branchsource *source, const struct branch *branch,
		      struct track **ret_track)
{
	*ret_track = map_item(&source->track_of, track_key(branch), &source->tracks, {});
	return *ret_track ? 0 : -ENOMEM;
}

/* Add what executed from @start up to the branch. Return: 0, or -ENOMEM. */
static int add_code(struct branchsource *source, const struct branch *branch,
		    const struct branch_memory *memory, uint64_t start, uint64_t t,
		    uint8_t *ret_last_size)
{
	const bool with_end = !branch->is_async;
	const struct branch_way *way;
	int r;

	*ret_last_size = 0;
	if (start == branch->from && !with_end)
		return 0;
	r = branchcode_find(&source->code, memory, start, branch->from, with_end, &branch->at,
			    &way);
	if (r > 0) {
		r = add_gap(source, r == BRANCHCODE_UNKNOWN ? PTD_GAP_NO_CODE : PTD_GAP_BAD_FLOW, t,
			    start);
		/* The branch itself did execute. */
		if (r == 0 && with_end && start != branch->from)
			r = branchcode_find(&source->code, memory, branch->from, branch->from, true,
					    &branch->at, &way);
		else if (r == 0)
			return 0;
		if (r > 0)
			return 0;
		start = branch->from;
		t = branch->t;
	}
	if (r == 0)
		r = add_runs(source, way, start, t);
	if (r == 0)
		*ret_last_size = way->last_size;
	return r;
}

static int add_end(struct branchsource *source, const struct branch *branch)
{
	if (branch->aborts)
		return add_mark(source, PTD_MARK_TSX, branch->t, branch->from, PTD_TSX_ABORT);
	if (branch->is_async)
		return add_mark(source, PTD_MARK_ASYNC, branch->t, branch->from, 0);
	return branch->to ? 0 : add_mark(source, PTD_MARK_OFF, branch->t, 0, 0);
}

static int take_branch(struct branchsource *source, struct track *track,
		       struct known_thread *thread, const struct branch *branch,
		       const struct branch_memory *memory)
{
	const uint64_t t = branch->t > track->t ? branch->t : track->t;
	uint8_t last_size = 0;
	int r = 0;

	if (branch->from == 0 && track->ip)
		r = add_gap(source, PTD_GAP_LOST, t, 0);
	else if (branch->from && !track->ip && track->has_begun)
		r = add_gap(source, PTD_GAP_LOST, t, 0);
	if (r == 0 && branch->from)
		r = add_code(source, branch, memory, track->ip ?: branch->from,
			     track->ip ? track->t : t, &last_size);
	if (r == 0 && branch->from)
		r = add_end(source, branch);
	thread->left_at = branch->to ? 0 : branch->from + last_size;
	*track = (struct track){ .has_begun = true, .ip = branch->to, .t = t };
	source->count.t_last = t;
	return r;
}

int branchsource_add(struct batchsource *batches, const struct branch *branch,
		     const struct branch_memory *memory)
{
	struct branchsource *source = of(batches);
	struct known_thread *thread;
	struct track *track;
	int r;

	r = find_thread(source, branch, &thread);
	if (r == 0)
		r = follow_thread(source, thread, branch);
	if (r < 0)
		return r;
	if (!is_of_slice(source, thread, branch)) {
		if (!is_empty(source))
			return BRANCHSOURCE_FULL;
		begin_slice(source, thread, branch);
	}
	if (source->runs.n >= BATCH_RUNS || source->marks.n >= BATCH_RUNS)
		return BRANCHSOURCE_FULL;
	if (is_empty(source))
		source->count =
		    (struct batchsource_count){ .cpu = branch->cpu, .t_first = branch->t };
	r = find_track(source, branch, &track);
	return r < 0 ? r : take_branch(source, track, thread, branch, memory);
}

/* --- its end and beginning -------------------------------------------------------------------- */

static void free_source(struct batchsource *batches)
{
	struct branchsource *source = of(batches);

	branchcode_deinit(&source->code);
	map_deinit(&source->track_of);
	map_deinit(&source->thread_of);
	map_deinit(&source->space_of);
	map_deinit(&source->comms);
	arena_deinit(&source->arena);
	vec_deinit(&source->tracks);
	vec_deinit(&source->threads);
	vec_deinit(&source->runs);
	vec_deinit(&source->marks);
	free(source);
}

static const struct batchsource_ops source_ops = {
	.start = start_stream,
	.next = next_batch,
	.free = free_source,
};

int branchsource_new(struct objects *objects, struct resolver *resolver,
		     struct batchsource **ret_source)
{
	struct branchsource *source = calloc(1, sizeof(*source));
	int r;

	if (!source)
		return -ENOMEM;
	source->source.ops = &source_ops;
	source->source.clock = PTD_CLOCK_NS;
	r = branchcode_init(&source->code, objects, resolver);
	if (r < 0) {
		free(source);
		return r;
	}
	*ret_source = &source->source;
	return 0;
}
