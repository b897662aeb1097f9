/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/jit/jit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "decoder/jit/jitchange.h"
#include "decoder/jit/jitdump.h"
#include "decoder/util/filebytes.h"
#include "decoder/util/ranges.h"
#include "ptd/snapshot.h"
#include "util/mapname.h"
#include "util/message.h"

#define NAME "[jit]"

/* A jitdump that was read, for all processes that have it mapped. */
struct jit_file {
	char *path;
	struct object *object;   /* for code that is proven to have the dump's bytes */
	struct object *claimed;  /* the same, for code that only the dump claims */
	struct object *nameless; /* the same without names */
	struct jitdump dump;
	struct map pids; /* of the events */
	bool is_dated;
	bool is_missed; /* there was a complaint that events of a program are not in it */
};

/* A process that has a jitdump mapped. */
struct jit {
	struct jits_mapping mapping;
	struct jit_file *file;     /* borrowed */
	bool is_first;             /* it is the first process that mapped the dump */
	struct jitchanges changed; /* in memory, compared with the dump */
	size_t next;               /* event to be applied */
	size_t next_change;
	struct ranges live;   /* of struct live: the versions that hold now */
	struct ranges shared; /* memory that it shares with other processes, as of */
	size_t n_seen;        /* mappings of the space that were seen */
};

struct live {
	struct range range;
	uint32_t load;
};

/* For is_possible(). */
struct jit_in {
	const struct jits *jits;
	const struct jit *jit;
};

static struct jit_file *jit_file_free(struct jit_file *file)
{
	if (!file)
		return NULL;
	jitdump_deinit(&file->dump);
	map_deinit(&file->pids);
	free(file->path);
	free(file);
	return NULL;
}
DEFINE_CLEANUP(struct jit_file *, jit_file_free);

static struct jit *jit_free(struct jit *jit)
{
	if (!jit)
		return NULL;
	jitchanges_deinit(&jit->changed);
	ranges_deinit(&jit->live);
	ranges_deinit(&jit->shared);
	free(jit);
	return NULL;
}
DEFINE_CLEANUP(struct jit *, jit_free);

int jits_init(struct jits *jits, const struct trace_facts *facts, const struct anonmem *memory,
	      struct objects *objects)
{
	*jits = (struct jits){
		.facts = facts, .memory = memory, .objects = objects, .next_time = UINT64_MAX
	};
	return jitmap_init(&jits->map, objects_dir(objects));
}

void jits_deinit(struct jits *jits)
{
	vec_deinit_each(&jits->list, jit, jit_free(*jit));
	vec_deinit_each(&jits->files, file, jit_file_free(*file));
	jitmap_deinit(&jits->map);
	vec_deinit_each(&jits->complaints, text, free(*text));
	map_deinit(&jits->left_out);
}

/* --- whose events, and when ------------------------------------------------------------------- */

/* Return: whether the clock of the dump's events is known. */
static bool has_clock(const struct jits *jits, const struct jit_file *file)
{
	return !file->dump.time_is_tsc || jits->facts->clock.valid;
}

/* Return: the time of an event on the clock of the sideband, in ns; 0: not known. */
static uint64_t time_of(const struct jits *jits, const struct jit_file *file,
			const struct jitdump_event *event)
{
	if (!file->dump.time_is_tsc)
		return event->time + (uint64_t)jits->facts->monotonic_offset_ns;
	return has_clock(jits, file) ? tsc_to_ns(&jits->facts->clock, event->time) : 0;
}

static const struct jitdump_event *next_event(const struct jit *jit)
{
	return &jit->file->dump.events.items[jit->next];
}

/* Return: when the event is mapped in the process: what was noted before it mapped the dump is
 * there from then on. */
static uint64_t mapped_time(const struct jits *jits, const struct jit *jit,
			    const struct jitdump_event *event)
{
	const uint64_t time = time_of(jits, jit->file, event);

	return time > jit->mapping.time ? time : jit->mapping.time;
}

/* Take what lies in @new out of @ranges, and then add it if @is_added. Return: 0 or -ENOMEM. */
static int put_range(struct ranges *ranges, const struct range *new, bool is_added)
{
	const struct ranges_place from = ranges_find(ranges, new->start);
	struct range pieces[3], last = {};
	size_t n_pieces = 0, n_old = 0;
	const struct range *range;

	for (struct ranges_place at = from;
	     (range = ranges_get(ranges, at)) && range->start <= new->last;
	     at = ranges_next(ranges, at)) {
		if (n_old++ == 0 && range->start < new->start)
			pieces[n_pieces++] = (struct range){ range->start, new->start - 1 };
		last = *range;
	}
	if (is_added)
		pieces[n_pieces++] = *new;
	if (n_old > 0 && last.last > new->last)
		pieces[n_pieces++] = (struct range){ new->last + 1, last.last };
	return n_old + n_pieces > 0 ? ranges_replace(ranges, from, n_old, pieces, n_pieces) : 0;
}

/* Look at the mappings of the space that are new. Return: 0 or -ENOMEM. */
static int update_shared(struct jit *jit)
{
	const struct space *space = jit->mapping.space;
	const size_t n = space_n_own(space, UINT64_MAX);

	for (; jit->n_seen < n; jit->n_seen++) {
		const struct mapping *m = space_mapping(space, jit->n_seen);
		const struct range new = { m->start, m->start + (m->size - 1) };
		int r;

		if (m->kind != MAPPING_FILE && m->kind != MAPPING_MEMORY)
			continue;
		r = put_range(&jit->shared, &new, m->is_shared);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Return: 1 if the memory that @event is about is shared; 0; or -ENOMEM. */
static int is_shared(struct jit *jit, const struct jitdump_event *event)
{
	const struct range *range;
	const int r = update_shared(jit);

	if (r < 0)
		return r;
	range = ranges_get(&jit->shared, ranges_find(&jit->shared, event->address));
	return range && range->start <= event->address;
}

/* Return: whether the event was noted while the program ran. */
static bool is_of_program(const struct jits *jits, const struct jit *jit,
			  const struct jitdump_event *event)
{
	const uint64_t time = time_of(jits, jit->file, event);

	return !has_clock(jits, jit->file) ||
	       (time >= jit->mapping.birth && time < jit->mapping.end);
}

/* Return: whether the event is one of the process. The pid of the dump's head is that of the
 * process that began it, even if that is in a pid namespace of its own. */
static bool is_of_process(const struct jits *jits, const struct jit *jit,
			  const struct jitdump_event *event)
{
	const struct jitdump *dump = &jit->file->dump;

	/* What a parent noted before its child was known is the child's, too. */
	return event->pid == jit->mapping.pid ||
	       (jit->is_first && (event->pid == dump->pid || dump->is_of_one)) ||
	       (jit->mapping.birth == 0 && time_of(jits, jit->file, event) <= jit->mapping.time);
}

/* --- what is mapped --------------------------------------------------------------------------- */

static int map_event(struct jit *jit, uint64_t time, enum mapping_kind kind,
		     const struct jitdump_event *event)
{
	const struct jit_file *file = jit->file;
	const struct jitdump_load *load = &file->dump.loads.items[event->load];
	const size_t i = (size_t)(event - file->dump.events.items);

	return space_map(
	    jit->mapping.space,
	    &(struct mapping){
		.time = time,
		.kind = kind,
		.start = event->address,
		.size = load->size,
		.offset = load->offset,
		.object = jitchanges_prove(&jit->changed, i) ? file->object : file->claimed,
	    });
}

/* No version is known from @start to @last any more: the bytes are those of the memory, where that
 * is known. */
static int map_memory(const struct jits *jits, struct jit *jit, uint64_t time, uint64_t start,
		      uint64_t last)
{
	const struct anonmem_piece *m;
	int r = 0;

	while (r == 0 && (m = anonmem_find(jits->memory, jit->mapping.pid, start)) &&
	       m->start <= last) {
		const uint64_t from = m->start > start ? m->start : start;
		const uint64_t to = m->last < last ? m->last : last;

		r = space_map(jit->mapping.space,
			      &(struct mapping){ .time = time,
						 .kind = MAPPING_JIT,
						 .start = from,
						 .size = to - from + 1,
						 .offset = m->offset + (from - m->start),
						 .object = m->object });
		if (to == last)
			break;
		start = to + 1;
	}
	return r;
}

static int end_version(const struct jits *jits, struct jit *jit, uint64_t time, uint64_t start,
		       uint64_t last)
{
	const struct object *const named[] = { jit->file->object, jit->file->claimed };

	for (size_t i = 0; i < ARRAY_LEN(named); i++) {
		const int r =
		    space_map(jit->mapping.space, &(struct mapping){ .time = time,
								     .kind = MAPPING_RETIRE,
								     .start = start,
								     .size = last - start + 1,
								     .object = jit->file->nameless,
								     .retired = named[i] });

		if (r < 0)
			return r;
	}
	return map_memory(jits, jit, time, start, last);
}

/* A version begins: the versions that it overlaps end. */
static int begin_version(const struct jits *jits, struct jit *jit, uint64_t time,
			 const struct live *new)
{
	const struct ranges_place from = ranges_find(&jit->live, new->range.start);
	const struct live *l;
	size_t n = 0;
	int r;

	for (struct ranges_place at = from;
	     (l = ranges_get(&jit->live, at)) && l->range.start <= new->range.last;
	     at = ranges_next(&jit->live, at)) {
		n++;
		/* The new version will cover those that lie inside it. */
		if (l->range.start >= new->range.start && l->range.last <= new->range.last)
			continue;
		r = end_version(jits, jit, time, l->range.start, l->range.last);
		if (r < 0)
			return r;
	}
	return ranges_replace(&jit->live, from, n, new, 1);
}

/* The code of @event, a MOVE, is not where it was. */
static int leave_place(const struct jits *jits, struct jit *jit, uint64_t time,
		       const struct jitdump_event *event)
{
	const struct ranges_place at = ranges_find(&jit->live, event->from);
	const struct live *l = ranges_get(&jit->live, at);
	int r;

	if (!l || l->range.start != event->from || l->load != event->load)
		return 0;
	r = end_version(jits, jit, time, l->range.start, l->range.last);
	return r < 0 ? r : ranges_replace(&jit->live, at, 1, NULL, 0);
}

/* Map the changes that hold from the next event on. */
static int apply_changes(struct jit *jit, uint64_t time)
{
	const struct jitchanges *changed = &jit->changed;
	int r = 0;

	for (; r == 0 && jit->next_change < changed->list.n; jit->next_change++) {
		const struct jitchange *c = &changed->list.items[jit->next_change];

		if (c->event < jit->next)
			continue;
		if (c->event > jit->next)
			break;
		r = space_map(jit->mapping.space, &(struct mapping){ .time = time,
								     .kind = MAPPING_JIT,
								     .start = c->address,
								     .size = c->size,
								     .offset = c->offset,
								     .object = c->object });
	}
	return r;
}

static int apply_event(const struct jits *jits, struct jit *jit)
{
	const struct jitdump_event *event = next_event(jit);
	const uint64_t size = jit->file->dump.loads.items[event->load].size;
	const struct live new = { { event->address, event->address + (size - 1) }, event->load };
	const uint64_t time = mapped_time(jits, jit, event);
	int r;

	if (!is_of_program(jits, jit, event))
		return 0;
	r = is_of_process(jits, jit, event) ? 1 : is_shared(jit, event);
	if (r <= 0)
		return r;
	r = event->kind == JITDUMP_CODE_MOVE ? leave_place(jits, jit, time, event) : 0;
	if (r == 0)
		r = begin_version(jits, jit, time, &new);
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

		if (jit->next == jit->file->dump.events.n)
			continue;
		time = mapped_time(jits, jit, next_event(jit));
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
		r = apply_event(jits, jit);
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
	const struct jitdump *dump = &jit->file->dump;

	for (size_t i = dump->events.n; i > jit->next; i--) {
		const struct jitdump_event *event = &dump->events.items[i - 1];
		int r;

		if (mapped_time(jits, jit, event) == jit->mapping.time)
			return 0;
		if (!is_of_program(jits, jit, event) || !is_of_process(jits, jit, event))
			continue;
		r = map_event(jit, jit->mapping.time, MAPPING_EARLY, event);
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

/* Let the symbols say when the functions were noted. */
static void date_loads(const struct jits *jits, struct jit *jit)
{
	struct jitdump *dump = &jit->file->dump;

	for (size_t i = 0; i < dump->events.n; i++) {
		const struct jitdump_event *event = &dump->events.items[i];
		struct jitdump_load *load;

		if (event->kind != JITDUMP_CODE_LOAD)
			continue;
		load = &dump->loads.items[event->load];
		load->note = (struct ptd_jit_note){ .t = mapped_time(jits, jit, event),
						    .address = load->address,
						    .size = load->size,
						    .index = load->index };
	}
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

/* Make the objects of the dump's bytes. */
static int make_objects(struct jits *jits, struct jit_file *file)
{
	int r;

	r = objects_add_memory(jits->objects, file->path, NAME, &file->object);
	if (r == 0)
		r = objects_share(jits->objects, file->object, true, NAME, &file->claimed);
	if (r == 0)
		r = objects_share(jits->objects, file->object, true, NAME, &file->nameless);
	if (r < 0)
		return r;
	file->claimed->id.is_claimed = file->nameless->id.is_claimed = true;
	file->claimed->proven = file->object;
	/* Its compiler may still be writing to it. */
	return filebytes_read_all(file->object->file);
}

/* Return: 0; 1 if the dump cannot be used, with a complaint; -ENOMEM. */
static int read_file(struct jits *jits, struct jit_file *file)
{
	const char *why;
	int r;

	r = make_objects(jits, file);
	if (r == 0)
		r = jitdump_parse(object_bytes(file->object, 0, file->object->size),
				  file->object->size, &file->dump, &why);
	else
		why = r == -EINVAL   ? "expected a regular file"
		      : r == -ESTALE ? "it became shorter while it was read"
				     : strerror(-r);
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		r = jits_complain(jits, "%s: this jitdump is not used: %s", file->path, why);
		return r < 0 ? r : 1;
	}
	file->object->symbols = file->claimed->symbols = &file->dump.symbols;
	for (size_t i = 0; r == 0 && i < file->dump.events.n; i++)
		r = map_put(&file->pids, file->dump.events.items[i].pid, 1);
	return r < 0 ? r : complain_of_rest(jits, file->path, &file->dump);
}

/* Return: where the bytes of the dump lie, which the caller frees; NULL if there is no memory. */
static char *locate_file(const struct jits *jits, const struct jits_mapping *mapping,
			 const struct jitmap_line *line)
{
	const char *dir = objects_dir(jits->objects);

	if (line && !line->name)
		return message_text("%s of process %" PRIu32, mapping->path, mapping->pid);
	if (line)
		return message_text("%s/" PTD_SNAPSHOT_JIT "/%s", dir, line->name);
	if (dir)
		return message_text("%s/" PTD_SNAPSHOT_JIT "/jit-%" PRIu32 ".dump", dir,
				    mapping->pid);
	return strdup(mapping->path);
}

static struct jit_file *find_file(const struct jits *jits, const char *path)
{
	for (size_t i = 0; i < jits->files.n; i++)
		if (strcmp(jits->files.items[i]->path, path) == 0)
			return jits->files.items[i];
	return NULL;
}

/* Get the file of the dump, which is read at the first time. A file that is missing, or cannot be
 * used, has no events. Return: 0 or -ENOMEM. */
static int get_file(struct jits *jits, const struct jits_mapping *mapping,
		    struct jit_file **ret_file)
{
	const struct jitmap_line *line =
	    jitmap_find(&jits->map, mapping->pid, mapping->path, mapping->time);
	_cleanup_(jit_file_freep) struct jit_file *file = NULL;
	_cleanup_(freep) char *path = locate_file(jits, mapping, line);
	int r;

	if (!path)
		return -ENOMEM;
	*ret_file = find_file(jits, path);
	if (*ret_file)
		return 0;
	file = calloc(1, sizeof(*file));
	if (!file || vec_reserve(&jits->files, 1) < 0)
		return -ENOMEM;
	file->path = TAKE(path);
	if (line && !line->name)
		r = jits_complain(jits, "%s: this jitdump is not in the snapshot%s%s", file->path,
				  line->why[0] ? ": " : "", line->why);
	else
		r = read_file(jits, file);
	if (r < 0)
		return r;
	*ret_file = file;
	jits->files.items[jits->files.n++] = TAKE(file);
	return 0;
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
	text = message_text("%.*s, %zu in all", (int)jits->n_left_out_at, *complaint,
			    JITS_MAX + jits->left_out.n_used);
	if (!text)
		return -ENOMEM;
	free(*complaint);
	*complaint = text;
	return 0;
}

/* The events of the file may be too many: a dump may be mapped many times. Return: whether they are
 * not; or -ENOMEM. */
static int charge_events(struct jits *jits, const struct jit_file *file)
{
	const size_t n = file->dump.events.n;
	int r;

	if (n <= JITS_EVENTS_MAX - jits->n_events) {
		jits->n_events += n;
		return 1;
	}
	r = jits_complain(jits,
			  "%s: this jitdump is not used: with those before it there would be more "
			  "than %u records",
			  file->path, JITS_EVENTS_MAX);
	return r < 0 ? r : 0;
}

static int jit_new(struct jits *jits, const struct jits_mapping *mapping, struct jit_file *file,
		   struct jit **ret_jit)
{
	struct jit *jit = calloc(1, sizeof(*jit));
	bool is_first = true;
	int r;

	if (!jit)
		return -ENOMEM;
	for (size_t i = 0; i < jits->list.n; i++)
		is_first = is_first && jits->list.items[i]->file != file;
	*jit = (struct jit){ .mapping = *mapping, .file = file, .is_first = is_first };
	ranges_init(&jit->live, sizeof(struct live));
	ranges_init(&jit->shared, sizeof(struct range));
	r = charge_events(jits, file);
	if (r == 0)
		jit->next = file->dump.events.n;
	*ret_jit = jit;
	return r < 0 ? r : 0;
}

/* Return: whether the process had the event in its memory at some time, as far as that can be known
 * beforehand. */
static bool is_possible(void *userdata, const struct jitdump_event *event)
{
	const struct jit_in *in = userdata;

	return is_of_program(in->jits, in->jit, event) && is_of_process(in->jits, in->jit, event);
}

/* Begin with @jit, which belongs to the list then. */
static int add_jit(struct jits *jits, struct jit *jit)
{
	struct jit_in in = { jits, jit };
	int r;

	r = jitchanges_init(&jit->file->dump, jit->file->object, jits->memory, jit->mapping.pid,
			    jits->objects, is_possible, &in, &jit->changed);
	if (r == 0)
		r = map_early(jits, jit);
	return r < 0 ? r : vec_push(&jits->list, jit);
}

/* A program has none of the events of its dump, but a later one has: the file was begun anew. */
static int complain_of_loss(struct jits *jits, const struct jit *jit)
{
	const struct jitdump *dump = &jit->file->dump;

	if (jit->file->is_missed || jit->mapping.end == UINT64_MAX || dump->events.n == 0)
		return 0;
	for (size_t i = 0; i < dump->events.n; i++)
		if (is_of_program(jits, jit, &dump->events.items[i]))
			return 0;
	jit->file->is_missed = true;
	return jits_complain(
	    jits,
	    "%s: a later program of process %" PRIu32
	    " began this jitdump anew: what an earlier one noted in it is not known",
	    jit->file->path, jit->mapping.pid);
}

/* Return: whether the program has the dump mapped already. @file: NULL: any dump. */
static bool has_begun(const struct jits *jits, const struct jits_mapping *mapping,
		      const struct jit_file *file)
{
	for (size_t i = 0; i < jits->list.n; i++)
		if (jits->list.items[i]->mapping.space == mapping->space &&
		    (!file || jits->list.items[i]->file == file))
			return true;
	return false;
}

int jits_begin(struct jits *jits, const struct jits_mapping *mapping)
{
	_cleanup_(jit_freep) struct jit *jit = NULL;
	struct jit_file *file;
	int r;

	if (jits->list.n == JITS_MAX)
		return has_begun(jits, mapping, NULL)
			   ? 0
			   : leave_out_dump(jits, mapping->space, mapping->path);
	r = get_file(jits, mapping, &file);
	if (r < 0)
		return r;
	/* A dump may be mapped more than once, and its mapping may be recorded more than once. */
	if (has_begun(jits, mapping, file))
		return 0;

	r = jit_new(jits, mapping, file, &jit);
	if (r == 0 && !file->is_dated) {
		date_loads(jits, jit);
		file->is_dated = true;
	}
	if (r == 0)
		r = complain_of_loss(jits, jit);
	if (r == 0)
		r = add_jit(jits, jit);
	if (r < 0)
		return r;
	jit = NULL;
	/* The events up to now come before those of other dumps. */
	jits->next_time = 0;
	return jits_apply(jits, mapping->time);
}

/* Return: 1 if more events may be of the child, beside those that its memory has of its parent; 0;
 * or -ENOMEM. */
static int needs_jit(struct jit *parent, const struct jits_mapping *child)
{
	const int r = update_shared(parent);

	if (r < 0)
		return r;
	return parent->next < parent->file->dump.events.n &&
	       (parent->shared.n > 0 || map_get(&parent->file->pids, child->pid));
}

/* A child has the versions that its parent's memory had when it was forked. */
static int fork_jit(struct jits *jits, const struct jit *parent, const struct jits_mapping *child)
{
	_cleanup_(jit_freep) struct jit *jit = NULL;
	const struct live *l;
	int r;

	r = jit_new(jits, child, parent->file, &jit);
	if (r < 0)
		return r;
	jit->next = parent->next;
	for (struct ranges_place at = {}; r == 0 && (l = ranges_get(&parent->live, at));
	     at = ranges_next(&parent->live, at))
		r = ranges_replace(&jit->live, ranges_find(&jit->live, l->range.start), 0, l, 1);
	if (r == 0)
		r = add_jit(jits, jit);
	if (r == 0)
		jit = NULL;
	return r;
}

int jits_fork(struct jits *jits, const struct space *parent, const struct jits_mapping *child)
{
	const size_t n = jits->list.n;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		struct jit *jit = jits->list.items[i];

		if (jit->mapping.space != parent)
			continue;
		r = needs_jit(jit, child);
		if (r <= 0)
			continue;
		if (jits->list.n == JITS_MAX)
			return leave_out_dump(jits, child->space, jit->mapping.path);
		r = fork_jit(jits, jit, child);
	}
	return r;
}

bool jits_is_dump(const struct jits *jits, uint32_t pid, const char *path)
{
	return jitmap_find(&jits->map, pid, path, UINT64_MAX) || mapname_is_jitdump(path);
}
