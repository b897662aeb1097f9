/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/jit/jitchange.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/util/ranges.h"
#include "decoder/x86/insn.h"

#define CHANGES_MAX (1u << 20)

#define INT3 0xcc

/* A version of code that still holds at the end of the dump. */
struct version {
	struct range range;
	size_t event;
};

struct jitchange_piece {
	const struct anonmem_piece *memory;
	struct object *object;
	struct symbol_list names; /* of the versions that were changed, by offset in the piece */
};

struct builder {
	struct jitchanges *changes;
	const struct jitdump *dump;
	const struct object *code; /* has the dump's bytes */
	struct objects *objects;
	struct ranges versions;
	bool (*is_possible)(void *userdata, const struct jitdump_event *event);
	void *userdata;
};

/* --- versions --------------------------------------------------------------------------------- */

static int begin_version(struct ranges *versions, const struct version *new)
{
	const struct ranges_place from = ranges_find(versions, new->range.start);
	const struct version *v;
	size_t n = 0;

	for (struct ranges_place at = from;
	     (v = ranges_get(versions, at)) && v->range.start <= new->range.last;
	     at = ranges_next(versions, at))
		n++;
	return ranges_replace(versions, from, n, new, 1);
}

/* The code of @event, a MOVE, leaves its place. */
static int leave_place(struct builder *b, const struct jitdump_event *event)
{
	const struct ranges_place at = ranges_find(&b->versions, event->from);
	const struct version *v = ranges_get(&b->versions, at);

	if (!v || v->range.start != event->from ||
	    b->dump->events.items[v->event].load != event->load)
		return 0;
	return ranges_replace(&b->versions, at, 1, NULL, 0);
}

static int collect_versions(struct builder *b)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < b->dump->events.n; i++) {
		const struct jitdump_event *e = &b->dump->events.items[i];
		struct version version = { .event = i };

		if (!b->is_possible(b->userdata, e))
			continue;
		version.range.start = e->address;
		version.range.last = e->address + (b->dump->loads.items[e->load].size - 1);
		r = e->kind == JITDUMP_CODE_MOVE ? leave_place(b, e) : 0;
		if (r == 0)
			r = begin_version(&b->versions, &version);
	}
	return r;
}

/* --- changes ---------------------------------------------------------------------------------- */

static struct jitchange_piece *piece_free(struct jitchange_piece *piece)
{
	if (!piece)
		return NULL;
	symbol_list_deinit(&piece->names);
	free(piece);
	return NULL;
}
DEFINE_CLEANUP(struct jitchange_piece *, piece_free);

/* Return: 0; -ENOMEM; or what went wrong with its file. */
static int piece_of(struct builder *b, const struct anonmem_piece *memory,
		    struct jitchange_piece **ret_piece)
{
	_cleanup_(piece_freep) struct jitchange_piece *piece = NULL;
	struct jitchanges *changes = b->changes;
	int r;

	/* Versions come by address, and so do pieces. */
	if (changes->pieces.n > 0 &&
	    changes->pieces.items[changes->pieces.n - 1]->memory == memory) {
		*ret_piece = changes->pieces.items[changes->pieces.n - 1];
		return 0;
	}
	piece = calloc(1, sizeof(*piece));
	if (!piece)
		return -ENOMEM;
	piece->memory = memory;
	r = objects_share(b->objects, memory->object, true, "[jit]", &piece->object);
	if (r < 0)
		return r;
	symbol_list_init(&piece->names);
	piece->object->symbols = &piece->names.source;
	*ret_piece = piece;
	r = vec_push(&changes->pieces, piece);
	if (r == 0)
		piece = NULL;
	return r;
}

/* Return: the event from which on the change @patch of @version holds. */
static size_t event_of(const struct builder *b, const struct version *version,
		       const struct patch *patch)
{
	const struct version *target =
	    ranges_get(&b->versions, ranges_find(&b->versions, patch->target));

	if (!patch->is_link || !target || target->range.start > patch->target ||
	    target->event < version->event)
		return version->event;
	return target->event;
}

/* The part of a version that lies in one piece of memory. */
struct part {
	const struct version *version;
	const struct anonmem_piece *memory;
	uint64_t start;
	size_t size;
	struct jitdump_load load; /* of its bytes in the dump */
	const struct ptd_jit_note *note;
};

/* Return: 1; 0 if there are too many; or -ENOMEM. */
static int add_changes(struct builder *b, const struct part *part, const struct patches *patches)
{
	struct jitdump_load load = part->load;
	struct jitchange_piece *piece;
	int r;

	if (b->changes->list.n + patches->list.n > CHANGES_MAX)
		return 0;
	r = piece_of(b, part->memory, &piece);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	load.offset = part->memory->offset + (part->start - part->memory->start);
	r = symbol_list_add(&piece->names, load.offset, load.size, load.name, load.name_size,
			    part->note);
	for (size_t i = 0; r == 0 && i < patches->list.n; i++) {
		const struct patch *p = &patches->list.items[i];

		r = vec_push(&b->changes->list, { .event = event_of(b, part->version, p),
						  .address = part->start + p->offset,
						  .size = p->size,
						  .offset = load.offset + p->offset,
						  .object = piece->object });
	}
	return r < 0 ? r : 1;
}

static bool is_cleared(const uint8_t *bytes, size_t size)
{
	return (bytes[0] == 0 || bytes[0] == INT3) && memcmp(bytes, bytes + 1, size - 1) == 0;
}

/* Return: 1 if the memory proves the bytes of the part; 0; or -ENOMEM. */
static int compare_part(struct builder *b, const struct part *part)
{
	const uint8_t *now =
	    object_bytes(part->memory->object,
			 part->memory->offset + (part->start - part->memory->start), part->size);
	const uint8_t *noted = object_bytes(b->code, part->load.offset, part->size);
	_cleanup_(patches_deinit) struct patches patches = {};
	int r;

	if (!now || !noted)
		return 0;
	r = patches_find(noted, now, part->size, part->start, &patches);
	if (r < 0 || patches.list.n == 0)
		return r < 0 ? r : 1;
	return is_cleared(now, part->size) ? 0 : add_changes(b, part, &patches);
}

static int compare_version(struct builder *b, const struct version *v, const struct anonmem *memory,
			   uint32_t pid)
{
	const uint64_t v_last = v->range.last;
	uint64_t start = v->range.start;
	int r = 1;

	while (r >= 0) {
		const struct anonmem_piece *m = anonmem_find(memory, pid, start);
		struct part part = { .version = v, .memory = m };
		bool is_gap = !m || m->start > start;
		uint64_t last;
		int proven;

		r = is_gap ? 0 : r;
		if (!m || m->start > v_last)
			break;
		part.start = m->start > start ? m->start : start;
		last = m->last < v_last ? m->last : v_last;
		part.size = last - part.start + 1;
		part.load = b->dump->loads.items[b->dump->events.items[v->event].load];
		part.note = &b->dump->loads.items[b->dump->events.items[v->event].load].note;
		part.load.offset += part.start - v->range.start;
		part.load.size = part.size;
		proven = compare_part(b, &part);
		r = proven <= 0 ? proven : r;
		if (last == v_last)
			break;
		start = last + 1;
	}
	if (r == 1)
		b->changes->proven[v->event / 8] |= (uint8_t)(1u << v->event % 8);
	return r < 0 ? r : 0;
}

bool jitchanges_prove(const struct jitchanges *changes, size_t i)
{
	return changes->proven && changes->proven[i / 8] & 1u << i % 8;
}

static int compare_changes(const void *pa, const void *pb)
{
	const struct jitchange *a = pa, *b = pb;

	return COMPARE(a->event, b->event) ?: COMPARE(a->address, b->address);
}

int jitchanges_init(const struct jitdump *dump, const struct object *object,
		    const struct anonmem *memory, uint32_t pid, struct objects *objects,
		    bool (*is_possible)(void *userdata, const struct jitdump_event *event),
		    void *userdata, struct jitchanges *ret_changes)
{
	struct jitchanges changes = {};
	struct builder b = { .changes = &changes,
			     .dump = dump,
			     .code = object,
			     .objects = objects,
			     .is_possible = is_possible,
			     .userdata = userdata };
	const struct version *v;
	int r;

	*ret_changes = (struct jitchanges){};
	if (!anonmem_find(memory, pid, 0))
		return 0;
	changes.proven = calloc(dump->events.n / 8 + 1, 1);
	if (!changes.proven)
		return -ENOMEM;
	ranges_init(&b.versions, sizeof(struct version));
	r = collect_versions(&b);
	for (struct ranges_place at = {}; r == 0 && (v = ranges_get(&b.versions, at));
	     at = ranges_next(&b.versions, at))
		r = compare_version(&b, v, memory, pid);
	ranges_deinit(&b.versions);
	if (r < 0) {
		jitchanges_deinit(&changes);
		return r;
	}
	vec_sort(&changes.list, compare_changes);
	*ret_changes = changes;
	return 0;
}

void jitchanges_deinit(struct jitchanges *changes)
{
	vec_deinit_each(&changes->pieces, piece, piece_free(*piece));
	vec_deinit(&changes->list);
	free(changes->proven);
}

/* --- patches ---------------------------------------------------------------------------------- */

#define INSN_MAX 15 /* a patch ends before this number of equal bytes */

void patches_deinit(struct patches *patches)
{
	vec_deinit(&patches->list);
}

static bool is_direct(const struct insn *insn)
{
	return insn->class == PTD_INSN_JUMP || insn->class == PTD_INSN_JUMP_COND ||
	       insn->class == PTD_INSN_CALL;
}

/* Return: whether @insn at @noted is, at @now, the same branch to somewhere else. */
static bool is_link(const uint8_t *noted, const struct insn *insn, const uint8_t *now, size_t left,
		    struct insn *ret_now)
{
	const size_t opcode_size = insn->size > 4 ? insn->size - 4u : insn->size - 1u;

	return is_direct(insn) && memcmp(noted, now, opcode_size) == 0 &&
	       insn_decode(64, now, left, ret_now) == 0 && ret_now->size == insn->size;
}

/* Return: the offset at which the bytes are equal again after the difference at @from. */
static size_t end_of_difference(const uint8_t *noted, const uint8_t *now, size_t size, size_t from)
{
	size_t end = from + 1;

	for (size_t i = end; i < size && i - end < INSN_MAX; i++)
		if (noted[i] != now[i])
			end = i + 1;
	return end;
}

/*
 * Compilers keep data between functions. Data decode to instructions of wrong lengths, but soon
 * after them the lengths are right again.
 */
int patches_find(const uint8_t *noted, const uint8_t *now, size_t size, uint64_t address,
		 struct patches *ret_patches)
{
	size_t at = 0;

	*ret_patches = (struct patches){};
	if (memcmp(noted, now, size) == 0)
		return 0;
	while (at < size) {
		struct patch patch = { .offset = at };
		struct insn insn, linked;
		int r;

		if (insn_decode(64, noted + at, size - at, &insn) < 0)
			insn = (struct insn){ .size = 1 };
		if (memcmp(noted + at, now + at, insn.size) == 0) {
			at += insn.size;
			continue;
		}

		patch.is_link = is_link(noted + at, &insn, now + at, size - at, &linked);
		if (patch.is_link) {
			patch.size = insn.size;
			patch.target = address + at + insn.size + (uint64_t)linked.disp;
		} else {
			patch.size = end_of_difference(noted, now, size, at + insn.size - 1) - at;
		}
		for (size_t i = at; i < at + patch.size; i++)
			ret_patches->n_bytes += noted[i] != now[i];
		r = vec_push(&ret_patches->list, patch);
		if (r < 0)
			return r;
		at += patch.size;
	}
	return 0;
}
