/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/perf/trailer.h"

#include <assert.h>
#include <errno.h>
#include <linux/perf_event.h>

#include "util/perf/perfabi.h"

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

void trailer_write(const struct trailer *trailer, uint8_t ret_bytes[static TRAILER_SIZE])
{
	const struct {
		uint32_t pid, tid;
		uint64_t time;
		uint32_t cpu, reserved;
		uint64_t id;
	} raw = {
		.pid = trailer->pid,
		.tid = trailer->tid,
		.time = trailer->time,
		.cpu = trailer->cpu,
		.id = trailer->id,
	};

	static_assert(sizeof(raw) == TRAILER_SIZE, "as PERFABI_SAMPLE_TYPE says");
	memcpy(ret_bytes, &raw, sizeof(raw));
}

int trailer_take(struct cursor *body, uint64_t sample_type, struct trailer *ret_trailer)
{
	struct trailer t = { .pid = UINT32_MAX, .tid = UINT32_MAX, .cpu = UINT32_MAX };
	struct cursor tail;
	uint32_t reserved;
	uint64_t stream;
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
		r = r ?: cursor_get(&tail, sizeof(t.id), &t.id);
	if (sample_type & PERF_SAMPLE_STREAM_ID)
		r = r ?: cursor_get(&tail, sizeof(stream), &stream);
	if (sample_type & PERF_SAMPLE_CPU) {
		r = r ?: cursor_get(&tail, sizeof(t.cpu), &t.cpu);
		r = r ?: cursor_get(&tail, sizeof(reserved), &reserved);
	}
	if (sample_type & PERF_SAMPLE_IDENTIFIER)
		r = r ?: cursor_get(&tail, sizeof(t.id), &t.id);
	if (r < 0)
		return r;

	*ret_trailer = t;
	return 0;
}

uint64_t trailer_id(struct cursor body, uint64_t sample_type)
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
