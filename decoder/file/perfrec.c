/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/file/perfrec.h"

#include <errno.h>
#include <linux/perf_event.h>

/* The fields of a trailer; each takes 8 bytes. */
#define TRAILER_BITS                                                                              \
	((uint64_t)(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | \
		    PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER))

static size_t fields_size(uint64_t sample_type)
{
	return 8 * (size_t)__builtin_popcountll(sample_type & TRAILER_BITS);
}

/* Split the last @size bytes off @body into @ret_tail. */
static int take_tail(struct cursor *body, size_t size, struct cursor *ret_tail)
{
	struct cursor tail = *body, head;

	if (cursor_left(body) < size)
		return -EBADMSG;
	if (cursor_get_sub(&tail, cursor_left(body) - size, &head) < 0)
		return -EBADMSG;

	*body = head;
	*ret_tail = tail;
	return 0;
}

int perfrec_next(struct cursor *c, struct perfrec *ret_rec)
{
	struct cursor at = *c, body;
	struct perf_event_header h;

	if (cursor_left(&at) == 0)
		return PERFREC_END;
	if (cursor_get(&at, sizeof(h), &h) < 0)
		return PERFREC_TRUNCATED;
	if (h.size < sizeof(h))
		return -EBADMSG;
	if (cursor_get_sub(&at, h.size - sizeof(h), &body) < 0)
		return PERFREC_TRUNCATED;

	*ret_rec = (struct perfrec){ .type = h.type, .misc = h.misc, .body = body };
	*c = at;
	return 0;
}

uint64_t perfrec_id(struct cursor body, uint64_t sample_type)
{
	uint64_t behind = 0, id;
	struct cursor tail;

	if (!(sample_type & PERF_SAMPLE_IDENTIFIER)) {
		if (!(sample_type & PERF_SAMPLE_ID))
			return 0;
		behind = sample_type & (PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU);
	}

	if (take_tail(&body, sizeof(id) + fields_size(behind), &tail) < 0 ||
	    cursor_get(&tail, sizeof(id), &id) < 0)
		return 0;
	return id;
}

int perfrec_take_trailer(struct cursor *body, uint64_t sample_type,
			 struct perfrec_trailer *ret_trailer)
{
	struct perfrec_trailer t = { .pid = UINT32_MAX, .tid = UINT32_MAX, .cpu = UINT32_MAX };
	struct cursor tail;
	uint32_t unused;
	uint64_t id;
	int r;

	r = take_tail(body, fields_size(sample_type), &tail);
	if (r < 0)
		return r;

	/* The size was checked as a whole, so no read below can fail. */
	if (sample_type & PERF_SAMPLE_TID) {
		r = r ?: cursor_get(&tail, sizeof(t.pid), &t.pid);
		r = r ?: cursor_get(&tail, sizeof(t.tid), &t.tid);
	}
	if (sample_type & PERF_SAMPLE_TIME)
		r = r ?: cursor_get(&tail, sizeof(t.time), &t.time);
	if (sample_type & PERF_SAMPLE_ID)
		r = r ?: cursor_get(&tail, sizeof(id), &id);
	if (sample_type & PERF_SAMPLE_STREAM_ID)
		r = r ?: cursor_get(&tail, sizeof(id), &id);
	if (sample_type & PERF_SAMPLE_CPU) {
		r = r ?: cursor_get(&tail, sizeof(t.cpu), &t.cpu);
		r = r ?: cursor_get(&tail, sizeof(unused), &unused);
	}
	if (r < 0)
		return r;

	*ret_trailer = t;
	return 0;
}

int perfrec_get_string(struct cursor *c, const char **ret_string)
{
	const uint8_t *nul = memchr(c->pos, 0, cursor_left(c));
	struct cursor string;
	int r;

	if (!nul)
		return -EBADMSG;
	r = cursor_get_sub(c, (size_t)(nul - c->pos) + 1, &string);
	if (r < 0)
		return r;

	*ret_string = (const char *)string.pos;
	return 0;
}
