/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/jit/jit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "decoder/jit/jitchange.h"
#include "decoder/jit/jitdump.h"
#include "ptd/snapshot.h"
#include "util/filebytes.h"
#include "util/ranges.h"

#define NAME "[jit]"

struct jit {
	struct space *space; /* borrowed */
	uint64_t begin;      /* ns; nothing of the dump is mapped before */
	struct object *object;
	struct object *nameless; /* the same bytes without names */
	struct jitdump dump;
	struct jitchanges changed; /* in memory, compared with the dump */
	size_t next;               /* event to be applied */
	size_t next_change;
	struct ranges live; /* the versions that hold now */
};

static struct jit *jit_free(struct jit *jit)
{
	if (!jit)
		return NULL;
	jitchanges_deinit(&jit->changed);
	jitdump_deinit(&jit->dump);
	ranges_deinit(&jit->live);
	free(jit);
	return NULL;
}
DEFINE_CLEANUP(struct jit *, jit_free);

void jits_init(struct jits *jits, const struct trace_facts *facts, const struct anonmem *memory,
	       struct objects *objects)
{
	*jits = (struct jits){
		.facts = facts, .memory = memory, .objects = objects, .next_time = UINT64_MAX
	};
}

void jits_deinit(struct jits *jits)
{
	for (size_t i = 0; i < jits->list.n; i++)
		(void)jit_free(jits->list.items[i]);
	vec_deinit(&jits->list);
	for (size_t i = 0; i < jits->complaints.n; i++)
		free(jits->complaints.items[i]);
	vec_deinit(&jits->complaints);
	map_deinit(&jits->left_out);
}

/* Return: the time of event @i on the clock of the sideband, in ns. */
static uint64_t time_of(const struct jits *jits, const struct jit *jit, size_t i)
{
	const struct trace_facts *facts = jits->facts;
	uint64_t time = jit->dump.events.items[i].time;

	if (!jit->dump.time_is_tsc)
		time += (uint64_t)facts->monotonic_offset_ns;
	else if (facts->clock.valid)
		time = tsc_to_ns(&facts->clock, time);
	else
		time = 0;
	return time > jit->begin ? time : jit->begin;
}

/* Let the symbols say when the functions were noted. */
static void date_loads(const struct jits *jits, struct jit *jit)
{
	for (size_t i = 0; i < jit->dump.events.n; i++) {
		const struct jitdump_event *event = &jit->dump.events.items[i];
		struct jitdump_load *load;

		if (event->kind != JITDUMP_LOAD)
			continue;
		load = &jit->dump.loads.items[event->load];
		load->note = (struct ptd_jit_note){ .t = time_of(jits, jit, i),
						    .address = load->address,
						    .size = load->size,
						    .index = load->index };
	}
}

static int map_event(struct jit *jit, uint64_t time, enum mapping_kind kind,
		     const struct jitdump_event *event)
{
	const struct jitdump_load *load = &jit->dump.loads.items[event->load];

	return space_map(jit->space, &(struct mapping){ .time = time,
							.kind = kind,
							.start = event->address,
							.size = load->size,
							.offset = load->offset,
							.object = jit->object });
}

static int end_version(struct jit *jit, uint64_t time, uint64_t start, uint64_t last)
{
	const uint64_t size = last - start < UINT64_MAX ? last - start + 1 : UINT64_MAX;

	return space_map(jit->space, &(struct mapping){ .time = time,
							.kind = MAPPING_RETIRE,
							.start = start,
							.size = size,
							.object = jit->nameless,
							.retired = jit->object });
}

/* A version from @start to @last begins: the versions that it overlaps end. */
static int begin_version(struct jit *jit, uint64_t time, uint64_t start, uint64_t last)
{
	const struct range new = { .start = start, .last = last };
	const struct ranges_place from = ranges_find(&jit->live, start);
	const struct range *l;
	size_t n = 0;
	int r;

	for (struct ranges_place at = from; (l = ranges_get(&jit->live, at)) && l->start <= last;
	     at = ranges_next(&jit->live, at)) {
		n++;
		/* The new version will cover those that lie inside it. */
		if (l->start >= start && l->last <= last)
			continue;
		r = end_version(jit, time, l->start, l->last);
		if (r < 0)
			return r;
	}
	return ranges_replace(&jit->live, from, n, &new, 1);
}

/* Map the changes that hold from the next event on. */
static int apply_changes(struct jit *jit, uint64_t time)
{
	const struct jitchanges *changed = &jit->changed;
	int r = 0;

	for (; r == 0 && jit->next_change < changed->list.n; jit->next_change++) {
		const struct jitchange *c = &changed->list.items[jit->next_change];

		if (c->event != jit->next)
			break;
		r = space_map(jit->space, &(struct mapping){ .time = time,
							     .kind = MAPPING_JIT,
							     .start = c->address,
							     .size = c->size,
							     .offset = c->offset,
							     .object = c->object });
	}
	return r;
}

static int apply_event(struct jit *jit, uint64_t time)
{
	const struct jitdump_event *event = &jit->dump.events.items[jit->next];
	int r;

	if (event->kind == JITDUMP_CLOSE)
		return end_version(jit, time, 0, UINT64_MAX);
	r = begin_version(jit, time, event->address,
			  event->address + (jit->dump.loads.items[event->load].size - 1));
	if (r == 0)
		r = map_event(jit, time, MAPPING_JIT, event);
	return r < 0 ? r : apply_changes(jit, time);
}

/* Return: the dump whose next event is the earliest, and the time of that event; or NULL. */
static struct jit *next_jit(const struct jits *jits, uint64_t *ret_time)
{
	struct jit *found = NULL;

	*ret_time = UINT64_MAX;
	for (size_t i = 0; i < jits->list.n; i++) {
		struct jit *jit = jits->list.items[i];
		uint64_t time;

		if (jit->next == jit->dump.events.n)
			continue;
		time = time_of(jits, jit, jit->next);
		if (found && time >= *ret_time)
			continue;
		found = jit;
		*ret_time = time;
	}
	return found;
}

int jits_apply(struct jits *jits, uint64_t time)
{
	struct jit *jit;
	int r;

	if (time < jits->next_time)
		return 0;
	while ((jit = next_jit(jits, &jits->next_time)) && jits->next_time <= time) {
		r = apply_event(jit, jits->next_time);
		if (r < 0)
			return r;
		jit->next++;
	}
	return 0;
}

/*
 * Map versions that are younger than the dump's mapping as early: backwards, so that the oldest
 * version is on top.
 */
static int map_early(const struct jits *jits, struct jit *jit)
{
	for (size_t i = jit->dump.events.n; i > 0; i--) {
		const struct jitdump_event *event = &jit->dump.events.items[i - 1];
		int r;

		if (event->kind == JITDUMP_CLOSE)
			continue;
		if (time_of(jits, jit, i - 1) == jit->begin)
			return 0;
		r = map_event(jit, jit->begin, MAPPING_EARLY, event);
		if (r < 0)
			return r;
	}
	return 0;
}

int jits_complain(struct jits *jits, const char *format, ...)
{
	char *text;
	va_list ap;
	int r;

	va_start(ap, format);
	r = vasprintf(&text, format, ap);
	va_end(ap);
	if (r < 0)
		return -ENOMEM;
	r = vec_push(&jits->complaints, text);
	if (r < 0)
		free(text);
	return r;
}

/* Complain about the part of the dump that is missing. */
static int complain_of_rest(struct jits *jits, const char *path, const struct jitdump *dump)
{
	int r = 0;

	if (dump->cut_at)
		r = jits_complain(jits,
				  "%s: ends inside the record at byte %" PRIu64
				  ": expected a whole one; code that was noted there is not known",
				  path, dump->cut_at);
	if (r == 0 && dump->n_skipped > 0)
		r = jits_complain(jits, "%s: %zu records that contradict themselves were left out",
				  path, dump->n_skipped);
	return r;
}

/* Return: 0; 1 if the dump cannot be used, with a complaint; -ENOMEM. */
static int open_dump(struct jits *jits, struct jit *jit, const char *path)
{
	struct object *object, *nameless;
	const char *why;
	int r;

	r = objects_add_memory(jits->objects, path, NAME, 0, &object);
	if (r == 0)
		r = objects_share(jits->objects, object, true, NAME, &nameless);
	/* Its compiler may still be writing to it. */
	if (r == 0)
		r = filebytes_read_all(object->file);
	if (r == 0)
		r = jitdump_parse(object_bytes(object, 0, object->size), object->size, &jit->dump,
				  &why);
	else
		why = r == -EINVAL   ? "expected a regular file"
		      : r == -ESTALE ? "it became shorter while it was read"
				     : strerror(-r);
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		r = jits_complain(jits, "%s: this jitdump is not used: %s", path, why);
		return r < 0 ? r : 1;
	}
	if (jit->dump.events.n > JITS_EVENTS_MAX - jits->n_events) {
		jitdump_deinit(&jit->dump);
		jit->dump = (struct jitdump){};
		r = jits_complain(
		    jits,
		    "%s: this jitdump is not used: with those before it there would be "
		    "more than %u records",
		    path, JITS_EVENTS_MAX);
		return r < 0 ? r : 1;
	}
	jits->n_events += jit->dump.events.n;
	object->symbols = &jit->dump.symbols;
	jit->object = object;
	jit->nameless = nameless;
	return complain_of_rest(jits, path, &jit->dump);
}

static int open_dump_of(struct jits *jits, struct jit *jit, uint32_t pid, const char *path)
{
	const char *dir = objects_dir(jits->objects);
	_cleanup_(freep) char *kept = NULL;

	if (!dir)
		return open_dump(jits, jit, path);
	if (asprintf(&kept, "%s/" PTD_SNAPSHOT_JIT "/jit-%" PRIu32 ".dump", dir, pid) < 0) {
		kept = NULL;
		return -ENOMEM;
	}
	return open_dump(jits, jit, kept);
}

/*
 * There are too many dumps. The complaint names the first one that is left out, and says how many
 * are.
 */
static int leave_out_dump(struct jits *jits, const struct space *space, const char *path)
{
	const uint64_t key = (uintptr_t)space;
	char *text, **complaint;
	int r;

	if (map_get(&jits->left_out, key))
		return 0;
	r = map_put(&jits->left_out, key, 1);
	if (r < 0)
		return r;
	if (jits->left_out.n_used == 1) {
		jits->left_out_at = jits->complaints.n;
		r = jits_complain(jits,
				  "%s: this jitdump is not used: there are more than %d of them",
				  path, JITS_MAX);
		if (r == 0)
			jits->n_left_out_at = strlen(jits->complaints.items[jits->left_out_at]);
		return r;
	}
	complaint = &jits->complaints.items[jits->left_out_at];
	if (asprintf(&text, "%.*s, %zu in all", (int)jits->n_left_out_at, *complaint,
		     JITS_MAX + jits->left_out.n_used) < 0)
		return -ENOMEM;
	free(*complaint);
	*complaint = text;
	return 0;
}

int jits_begin(struct jits *jits, struct space *space, uint32_t pid, const char *path,
	       uint64_t time)
{
	_cleanup_(jit_freep) struct jit *jit = NULL;
	int r;

	/* A dump may be mapped more than once, and its mapping may be recorded more than once. */
	for (size_t i = 0; i < jits->list.n; i++)
		if (jits->list.items[i]->space == space)
			return 0;
	if (jits->list.n == JITS_MAX)
		return leave_out_dump(jits, space, path);

	jit = calloc(1, sizeof(*jit));
	if (!jit)
		return -ENOMEM;
	ranges_init(&jit->live, sizeof(struct range));
	jit->space = space;
	jit->begin = time;
	r = open_dump_of(jits, jit, pid, path);
	if (r == 0) {
		date_loads(jits, jit);
		r = jitchanges_init(&jit->dump, jit->object, jits->memory, pid, jits->objects,
				    &jit->changed);
	}
	if (r == 0)
		r = map_early(jits, jit);
	if (r < 0)
		return r;
	/* A dump that cannot be used is kept, too: it has no events, and is not opened again. */
	r = vec_push(&jits->list, jit);
	if (r < 0)
		return r;
	jit = NULL;
	/* The events up to now come before those of other dumps. */
	jits->next_time = 0;
	return jits_apply(jits, time);
}
