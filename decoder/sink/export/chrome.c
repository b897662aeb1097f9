/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Chrome's JSON
 *
 * The calls as a timeline in the JSON of Chrome's tracing, which Perfetto, Chrome's developer tools
 * and others read: an array of events, each on a line. The beginning and the end of a span are
 * events of their own, and both have its name: by the format an end needs none, but Firefox
 * Profiler refuses a file where one is missing, and speedscope does not end what has another name.
 * CPUs are the threads of a process "CPUs".
 *
 * Source: "Trace Event Format", a document of Chrome's catapult project.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "decoder/sink/column.h"
#include "decoder/sink/export/viewtracks.h"
#include "decoder/sink/json.h"
#include "decoder/sink/output.h"
#include "decoder/sink/sinks.h"
#include "decoder/sink/srcline.h"
#include "util/arena.h"
#include "util/map.h"

/* The process whose threads are the CPUs; no process has its number. */
#define PID_OF_CPUS (VIEWTRACK_TID_UNKNOWN - 1)

/* More than an event takes beside the texts of its function and its track. */
#define EVENT_SIZE (4 * COLUMN_MAX + 160)

/* Members of an object, as they stand in many events. */
struct members {
	const char *text; /* NULL: they were not made yet */
	size_t size;
	size_t name_size; /* of the first of them, the name, if that is one */
};

/* The spans that are open on a track, the innermost is the last. */
struct open_spans {
	VEC(struct members) items; /* the names, which are texts of their own */
};

struct chrome {
	struct viewtracks tracks; /* comes first */
	struct output *output;
	struct ptd_decoder *decoder;   /* NULL: no source lines are shown */
	bool has_insns;                /* the input has instructions */
	VEC(struct members) functions; /* by their ids; the object "args" is still open */
	VEC(struct members) places;    /* the pid and tid of each track */
	VEC(struct open_spans) open;   /* by the ids of the tracks */
	VEC(struct members) names;     /* of other spans than functions */
	struct map by_text;            /* address of a text that stays → index of the name */
	struct arena texts;
	struct output scratch; /* in which members are made */
	struct map processes;  /* those that have a name */
	struct map cpus;       /* likewise, and the name of the thread that runs there */
	struct json json;      /* the document; events are objects in an array of it */
};

/* --- members ---------------------------------------------------------------------------------- */

/* Begin members that are to be kept. */
static struct json begin_members(struct chrome *chrome)
{
	struct json json = json_begin(&chrome->scratch);

	chrome->scratch.n_used = 0;
	/* What lies so deep stands on one line. */
	json_array(&json, NULL);
	json_array(&json, NULL);
	json_object(&json, NULL);
	return json;
}

/* Keep the members. Return: 0 or -ENOMEM. */
static int keep_members(struct chrome *chrome, struct members *ret_members)
{
	const char *all = (const char *)chrome->scratch.buffer, *start;

	if (chrome->scratch.error < 0)
		return chrome->scratch.error;
	start = (const char *)memchr(all, '{', chrome->scratch.n_used) + 1;
	ret_members->size = chrome->scratch.n_used - (size_t)(start - all);
	ret_members->text = arena_copy(&chrome->texts, start, ret_members->size);
	return ret_members->text ? 0 : -ENOMEM;
}

static int make_function(struct chrome *chrome, const struct ptd_function *function,
			 struct members *ret_members)
{
	struct ptd_position position;
	int r = srcline_of_function(chrome->decoder, function, &position);
	struct json json;
	size_t name_end;

	if (r < 0)
		return r;
	json = begin_members(chrome);
	json_text(&json, "name", function->name[0] ? function->name : "?");
	name_end = chrome->scratch.n_used;
	json_text(&json, "cat", viewtrack_categories[viewtrack_category_of(function)]);
	json_object(&json, "args");
	json_address(&json, "address", function->address);
	json_text(&json, "object", function->object->name);
	if (r > 0) {
		json_text(&json, "file", position.file);
		json_number(&json, "line", position.line);
	}
	r = keep_members(chrome, ret_members);
	ret_members->name_size = name_end - (chrome->scratch.n_used - ret_members->size);
	return r;
}

/*
 * Get the name @text of spans that are no functions. @key is a text that stays where it is, and
 * that no other name has.
 */
static int get_name(struct chrome *chrome, const char *key, const char *text,
		    struct members *ret_members)
{
	struct json json;
	uint64_t number;
	int r = map_number(&chrome->by_text, (uintptr_t)key, chrome->names.n, &number);

	if (r > 0) {
		struct members name = {};

		json = begin_members(chrome);
		json_text(&json, "name", text);
		r = keep_members(chrome, &name);
		if (r == 0)
			r = vec_push(&chrome->names, name);
	}
	if (r < 0)
		return r;
	*ret_members = chrome->names.items[number];
	return 0;
}

/* A span with that name begins on the track. */
static int open_span(struct chrome *chrome, const struct viewtrack *track, struct members name)
{
	struct open_spans *open = vec_at(&chrome->open, track->id, {});

	return open ? vec_push(&open->items, name) : -ENOMEM;
}

static inline int get_function(struct chrome *chrome, const struct ptd_function *function,
			       struct members *ret_members)
{
	struct members *members = vec_at(&chrome->functions, function->id, {});
	int r = 0;

	if (!members)
		return -ENOMEM;
	if (!members->text)
		r = make_function(chrome, function, members);
	*ret_members = *members;
	return r;
}

/* --- events ----------------------------------------------------------------------------------- */

/* Begin an event. Return: where its members can be written, @more bytes; NULL: the output failed.
 */
static inline char *begin_event(struct chrome *chrome, size_t more)
{
	json_object(&chrome->json, NULL);
	if (output_reserve(chrome->output, EVENT_SIZE + more) < 0)
		return NULL;
	return (char *)chrome->output->buffer + chrome->output->n_used;
}

static inline int end_event(struct chrome *chrome, const char *end)
{
	chrome->output->n_used = (size_t)((const uint8_t *)end - chrome->output->buffer);
	json_close(&chrome->json);
	return chrome->output->error;
}

/* Write the kind of the event, the time in us, and the process and thread. */
static char *put_head(char *to, char phase, uint64_t t, const struct members *place)
{
	to = mempcpy(to, "\"ph\": \"", 7);
	*to++ = phase;
	to = mempcpy(to, "\", \"ts\": ", 9);
	to = column_number(to, t / 1000, 0, ' ');
	*to++ = '.';
	to = column_number(to, t % 1000, 3, '0');
	to = mempcpy(to, ", ", 2);
	return mempcpy(to, place->text, place->size);
}

static char *put_how(char *to, const char *key, enum ptd_call_how how)
{
	const char *name = ptd_call_how_name(how);

	*to++ = '"';
	to = mempcpy(to, key, strlen(key));
	to = mempcpy(to, "\": \"", 4);
	to = mempcpy(to, name, strlen(name));
	*to++ = '"';
	return to;
}

static int begin(void *state, const struct viewtrack *track, uint64_t t,
		 const struct open_frame *frame)
{
	struct chrome *chrome = state;
	struct members function;
	const struct members *place = &chrome->places.items[track->id];
	char *p;
	int r;

	r = get_function(chrome, frame->function, &function);
	if (r < 0)
		return r;
	p = begin_event(chrome, function.size + place->size);
	if (!p)
		return chrome->output->error;
	p = put_head(p, 'B', t, place);
	p = mempcpy(p, ", ", 2);
	p = mempcpy(p, function.text, function.size);
	function.size = function.name_size;
	if (open_span(chrome, track, function) < 0)
		return -ENOMEM;
	if (frame->how != PTD_CALL_BY_CALL)
		p = put_how(mempcpy(p, ", ", 2), "entered_by", frame->how);
	if (frame->ambiguous)
		p = mempcpy(p, ", \"ambiguous\": true", 19);
	*p++ = '}';
	return end_event(chrome, p);
}

static int end(void *state, const struct viewtrack *track, uint64_t t, const struct ptd_call *leave)
{
	struct chrome *chrome = state;
	const struct members *place = &chrome->places.items[track->id];
	struct open_spans *open = &chrome->open.items[track->id];
	const struct members *name = &open->items.items[--open->items.n];
	char *p = begin_event(chrome, place->size + name->size);

	if (!p)
		return chrome->output->error;
	p = put_head(p, 'E', t, place);
	p = mempcpy(p, ", ", 2);
	p = mempcpy(p, name->text, name->size);
	if (leave && (chrome->has_insns || leave->how != PTD_CALL_BY_RETURN)) {
		p = mempcpy(p, ", \"args\": {", 11);
		if (chrome->has_insns) {
			p = mempcpy(p, "\"instructions\": ", 16);
			p = column_number(p, leave->n_insns_total, 0, ' ');
		}
		if (leave->how != PTD_CALL_BY_RETURN) {
			if (chrome->has_insns)
				p = mempcpy(p, ", ", 2);
			p = put_how(p, "left_by", leave->how);
		}
		*p++ = '}';
	}
	return end_event(chrome, p);
}

/* Write the head of an event that goes on with members by @chrome->json. */
static void put_open(struct chrome *chrome, char phase, uint64_t t, const struct members *place)
{
	char *p = begin_event(chrome, place->size);

	if (!p)
		return;
	p = put_head(p, phase, t, place);
	chrome->output->n_used = (size_t)((uint8_t *)p - chrome->output->buffer);
	/* What follows are not the first members. */
	chrome->json.has_items[chrome->json.depth - 1] = true;
}

/* The same, with the name and the category. Return: to what arguments are added. */
static struct json *put_point(struct chrome *chrome, char phase, uint64_t t,
			      const struct viewtrack *track, enum viewtrack_category category,
			      const char *name)
{
	put_open(chrome, phase, t, &chrome->places.items[track->id]);
	json_text(&chrome->json, "name", name);
	json_text(&chrome->json, "cat", viewtrack_categories[category]);
	if (phase == 'i')
		json_text(&chrome->json, "s", "t");
	json_object(&chrome->json, "args");
	return &chrome->json;
}

/* End the arguments and the event. */
static int end_point(struct chrome *chrome)
{
	json_close(&chrome->json);
	json_close(&chrome->json);
	return chrome->output->error;
}

static int begin_gap(void *state, const struct viewtrack *track, uint64_t t,
		     const struct ptd_mark *mark)
{
	const bool is_gap = mark->kind == PTD_MARK_GAP;
	const char *why =
	    is_gap ? ptd_gap_reason_name(mark->reason) : ptd_mark_kind_name(mark->kind);
	struct chrome *chrome = state;
	struct members members;
	struct json *json;
	char name[64];

	(void)snprintf(name, sizeof(name), "%s%s", is_gap ? "gap: " : "", why);
	if (get_name(chrome, why, name, &members) < 0 || open_span(chrome, track, members) < 0)
		return -ENOMEM;
	json = put_point(chrome, 'B', t, track, VIEWTRACK_GAP, name);
	json_number(json, "bytes_lost", mark->n_bytes);
	if (mark->ip)
		json_address(json, "address", mark->ip);
	return end_point(chrome);
}

static int put_mark(void *state, const struct viewtrack *track, uint64_t t,
		    const struct ptd_mark *mark)
{
	struct chrome *chrome = state;
	struct json *json =
	    put_point(chrome, 'i', t, track, VIEWTRACK_MARK, ptd_mark_kind_name(mark->kind));

	/* Other programs' numbers may not have 64 bits. */
	json_address(json, "value", mark->value);
	json_address(json, "extra", mark->extra);
	if (mark->ip)
		json_address(json, "address", mark->ip);
	return end_point(chrome);
}

static int put_noted(void *state, const struct viewtrack *track, uint64_t t,
		     const struct ptd_symbol *symbol, bool begins)
{
	struct chrome *chrome = state;
	struct members name;

	if (begins && (get_name(chrome, symbol->name, symbol->name, &name) < 0 ||
		       open_span(chrome, track, name) < 0))
		return -ENOMEM;
	(void)put_point(chrome, begins ? 'B' : 'i', t, track, VIEWTRACK_NOTED, symbol->name);
	return end_point(chrome);
}

static int put_signal(void *state, const struct viewtrack *track,
		      const struct viewtrack_signal *signal)
{
	struct chrome *chrome = state;
	struct json *json;
	char name[40];

	(void)snprintf(name, sizeof(name), "%ssignal %" PRIu32,
		       signal->is_fatal ? "killed by " : "", signal->signal);
	json = put_point(chrome, 'i', signal->t, track, VIEWTRACK_SIGNAL, name);
	if (!signal->is_fatal) {
		json_signed(json, "code", signal->code);
		json_address(json, "handler", signal->handler);
	}
	return end_point(chrome);
}

static int put_snapshot(void *state, const struct viewtrack *track, uint64_t t)
{
	(void)put_point(state, 'i', t, track, VIEWTRACK_MARK, "snapshot");
	return end_point(state);
}

/* --- tracks ----------------------------------------------------------------------------------- */

/* Name a process or a thread. */
static void put_name(struct chrome *chrome, const char *what, uint32_t pid, uint32_t tid,
		     const char *name)
{
	struct json *json = &chrome->json;

	json_object(json, NULL);
	json_text(json, "ph", "M");
	json_number(json, "pid", pid);
	json_number(json, "tid", tid);
	json_text(json, "name", what);
	json_object(json, "args");
	json_text(json, "name", name);
	json_close(json);
	json_close(json);
}

static int name_track(void *state, const struct viewtrack *track)
{
	struct chrome *chrome = state;
	const char *comm = viewtrack_comm(track);
	char name[VIEWTRACK_NAME];
	int r;

	if (track->pid == track->tid || !map_get(&chrome->processes, track->pid)) {
		r = map_put(&chrome->processes, track->pid, 1);
		if (r < 0)
			return r;
		put_name(chrome, "process_name", track->pid, track->tid, comm);
	}
	put_name(chrome, "thread_name", track->pid, track->tid, viewtrack_name(track, name));
	while (chrome->places.n <= track->id) {
		struct json json = begin_members(chrome);
		struct members place;

		json_number(&json, "pid", track->pid);
		json_number(&json, "tid", track->tid);
		if (keep_members(chrome, &place) < 0 || vec_push(&chrome->places, place) < 0)
			return -ENOMEM;
	}
	return chrome->output->error;
}

static int put_run(void *state, uint32_t cpu, uint64_t t, const struct viewtrack *track, bool is_in)
{
	struct chrome *chrome = state;
	struct json *json = &chrome->json;
	char name[32], text[64];
	const uint64_t *known = map_get(&chrome->cpus, cpu);
	struct members place = { .text = text };
	const char *comm = viewtrack_comm(track);

	/* The thread may have another name by the time that it leaves. */
	if (!is_in && known)
		comm = (const char *)(uintptr_t)*known;
	else if (map_put(&chrome->cpus, cpu, (uintptr_t)comm) < 0)
		return -ENOMEM;
	if (!known) {
		(void)snprintf(name, sizeof(name), "CPU %" PRIu32, cpu);
		put_name(chrome, "process_name", PID_OF_CPUS, cpu, "CPUs");
		put_name(chrome, "thread_name", PID_OF_CPUS, cpu, name);
	}
	place.size = (size_t)snprintf(text, sizeof(text), "\"pid\": %u, \"tid\": %" PRIu32,
				      PID_OF_CPUS, cpu);
	put_open(chrome, is_in ? 'B' : 'E', t, &place);
	json_text(json, "name", comm);
	if (is_in) {
		json_text(json, "cat", "cpu");
		json_object(json, "args");
		json_number(json, "pid", track->pid);
		json_number(json, "tid", track->tid);
		json_close(json);
	}
	json_close(json);
	return chrome->output->error;
}

static const struct viewtracks_ops ops = {
	.name = name_track,
	.begin = begin,
	.begin_gap = begin_gap,
	.end = end,
	.noted = put_noted,
	.mark = put_mark,
	.signal = put_signal,
	.snapshot = put_snapshot,
	.run = put_run,
};

/* --- its life --------------------------------------------------------------------------------- */

static void chrome_close(void *state)
{
	struct chrome *chrome = state;

	vec_deinit_each(&chrome->open, open, vec_deinit(&open->items));
	vec_deinit(&chrome->names);
	map_deinit(&chrome->by_text);
	vec_deinit(&chrome->functions);
	vec_deinit(&chrome->places);
	map_deinit(&chrome->processes);
	map_deinit(&chrome->cpus);
	output_deinit(&chrome->scratch);
	arena_deinit(&chrome->texts);
	viewtracks_deinit(&chrome->tracks);
}

static int chrome_open(void *state, const struct sink_config *config, struct output *output)
{
	struct chrome *chrome = state;

	chrome->output = output;
	chrome->scratch = output_memory();
	if (config->positions != SINK_NO_POSITIONS)
		chrome->decoder = config->decoder;
	chrome->has_insns = !config->info->logs_calls;
	viewtracks_init(&chrome->tracks, &ops, config->info);
	chrome->json = json_begin(output);
	json_object(&chrome->json, NULL);
	json_text(&chrome->json, "displayTimeUnit", "ns");
	json_array(&chrome->json, "traceEvents");
	return 0;
}

static int chrome_finish(void *state, const struct ptd_stats *stats, struct output *output)
{
	struct chrome *chrome = state;
	const int r = viewtracks_finish(&chrome->tracks);

	if (r < 0)
		return r;
	json_close(&chrome->json);
	json_close(&chrome->json);
	return 0;
}

static const struct sink_option options[] = { SINK_SIEVE_OPTIONS, {} };

const struct sink_ops sink_chrome = {
	.name = "chrome",
	.help = "JSON of Chrome's tracing, for Perfetto and others",
	.options = options,
	.is_sieved = true,
	.state_size = sizeof(struct chrome),
	.open = chrome_open,
	.sideband = viewtracks_sideband,
	.batch = viewtracks_batch,
	.calls = viewtracks_calls,
	.mark = viewtracks_mark,
	.finish = chrome_finish,
	.omission = viewtracks_omission,
	.close = chrome_close,
};
