/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Sideband records of any bytes in any order of kinds, and the timeline that comes of them: asked
 * for every CPU and thread at the time of every record, with the spaces it answers walked through.
 *
 * A record of the input is a struct head and the bytes of its payload.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "decoder/image/layout.h"
#include "decoder/sideband/timeline.h"
#include "util/vec.h"

#define RECORDS_MAX 2000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct head {
	uint8_t type;
	uint8_t step; /* of time, since the record before */
	uint16_t misc;
	uint8_t cpu, pid, tid; /* of the trailer; 255: not stated */
	uint8_t size;          /* of the payload */
};

static uint32_t stated(uint8_t number)
{
	return number == UINT8_MAX ? TRACE_NONE : number;
}

/* Each payload is a copy of just its size, so that a sanitizer sees a read beyond it. */
static void read_records(struct trace *trace, const uint8_t *data, size_t size)
{
	struct cursor c = cursor_from(data, size), payload;
	VEC(struct trace_record) records = {};
	uint64_t time = 0;
	struct head h;

	while (records.n < RECORDS_MAX && cursor_get(&c, sizeof(h), &h) == 0 &&
	       cursor_get_sub(&c, h.size, &payload) == 0) {
		uint8_t *copy = malloc(h.size);

		if (!copy)
			abort();
		memcpy(copy, payload.pos, h.size);
		time += h.step;
		if (vec_push(&records, { .time = time,
					 .type = h.type,
					 .misc = h.misc,
					 .cpu = stated(h.cpu),
					 .pid = stated(h.pid),
					 .tid = stated(h.tid),
					 .payload = copy,
					 .payload_size = h.size }) < 0)
			abort();
	}
	trace->records = records.items;
	trace->n_records = records.n;
}

static void check_stay(const struct stay *stay, uint64_t time)
{
	if (stay->start > time || (stay->end <= time && stay->end != UINT64_MAX) || !stay->comm)
		abort();
	if (stay->space &&
	    space_generation(stay->space, time) > space_generation(stay->space, UINT64_MAX))
		abort();
}

/* Walk a space from its beginning; whatever is visible has bytes or says that it has none. */
static void walk_space(const struct space *space)
{
	const size_t end = space_generation(space, UINT64_MAX);
	const struct extent *before = NULL, *e;
	struct layout layout;

	layout_init(&layout, space);
	while (layout.generation < end)
		if (layout_advance(&layout) < 0)
			abort();
	for (struct ranges_place at = {}; (e = ranges_get(&layout.extents, at));
	     at = ranges_next(&layout.extents, at)) {
		if (e->last < e->start || (before && before->last >= e->start) ||
		    layout_find(&layout, e->start) != e)
			abort();
		before = e;
	}
	layout_deinit(&layout);
}

static void ask(const struct trace *trace, const struct timeline *timeline)
{
	const struct space *walked = NULL;
	struct stay stay;

	for (size_t i = 0; i < trace->n_records; i++) {
		const struct trace_record *r = &trace->records[i];

		timeline_at(timeline, r->cpu, r->time, &stay);
		check_stay(&stay, r->time);
		if (stay.space && stay.space != walked)
			walk_space(stay.space);
		walked = stay.space ? stay.space : walked;
		timeline_at_tid(timeline, r->tid, r->time, &stay);
		check_stay(&stay, r->time);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct timeline *timeline = NULL;
	struct objects *objects = NULL;
	struct trace trace = {};

	read_records(&trace, data, size);
	if (objects_new(NULL, &objects) < 0 || timeline_new(&trace, objects, &timeline) < 0)
		abort();
	ask(&trace, timeline);

	timeline_free(timeline);
	objects_free(objects);
	for (size_t i = 0; i < trace.n_records; i++)
		free((void *)(uintptr_t)trace.records[i].payload);
	free(trace.records);
	return 0;
}
