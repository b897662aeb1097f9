/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/recordwalk.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <string.h>

#include "base/cursor.h"
#include "util/perf/perfabi.h"

/* How the trailers of one event's records are laid out, and which ids are its. */
struct layout {
	uint64_t sample_type;
	bool has_trailer;
	struct perfabi_section ids;
};

struct reader {
	const uint8_t *bytes;
	size_t size;
	VEC(struct layout) layouts;
};

static int read_layouts(struct reader *r, const struct perfabi_header *header)
{
	const struct perfabi_section *s = &header->attrs;

	if (s->offset > r->size || s->size > r->size - s->offset)
		return -EBADMSG;
	for (uint64_t at = s->offset, end = at + s->size; at < end;) {
		struct perf_event_attr attr = {};
		struct layout layout;
		uint64_t left = end - at;

		if (left < PERF_ATTR_SIZE_VER0)
			return -EBADMSG;
		memcpy(&attr, r->bytes + at, left < sizeof(attr) ? left : sizeof(attr));
		if (attr.size < PERF_ATTR_SIZE_VER0 || attr.size + sizeof(layout.ids) > left)
			return -EBADMSG;
		layout.sample_type = attr.sample_type;
		layout.has_trailer = attr.sample_id_all;
		memcpy(&layout.ids, r->bytes + at + attr.size, sizeof(layout.ids));
		if (layout.ids.offset > r->size || layout.ids.size > r->size - layout.ids.offset)
			return -EBADMSG;
		if (vec_push(&r->layouts, layout) < 0)
			return -ENOMEM;
		at += attr.size + sizeof(layout.ids);
	}
	return r->layouts.n ? 0 : -EBADMSG;
}

/* The layout that lists the id in the record's last eight bytes; the first, if none does. */
static const struct layout *layout_of(const struct reader *r, const uint8_t *payload, size_t size)
{
	uint64_t id, listed;

	if (!(r->layouts.items[0].sample_type & PERF_SAMPLE_IDENTIFIER) || size < sizeof(id))
		return &r->layouts.items[0];
	memcpy(&id, payload + size - sizeof(id), sizeof(id));
	for (size_t i = 0; i < r->layouts.n && id; i++) {
		const struct layout *l = &r->layouts.items[i];

		for (uint64_t k = 0; k + sizeof(listed) <= l->ids.size; k += sizeof(listed)) {
			memcpy(&listed, r->bytes + l->ids.offset + k, sizeof(listed));
			if (listed == id)
				return l;
		}
	}
	return &r->layouts.items[0];
}

/* Return: whether it is long enough for its trailer. */
static bool take_trailer(const struct reader *r, struct recordwalk_record *record)
{
	/* In the order in which they stand. */
	static const uint64_t fields[] = { PERF_SAMPLE_TID, PERF_SAMPLE_TIME,
					   PERF_SAMPLE_ID,  PERF_SAMPLE_STREAM_ID,
					   PERF_SAMPLE_CPU, PERF_SAMPLE_IDENTIFIER };
	const struct layout *layout = layout_of(r, record->payload, record->payload_size);
	const uint8_t *time = NULL, *at;
	size_t size = 0;

	if (record->type >= PERF_RECORD_MAX || !layout->has_trailer)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		size += layout->sample_type & fields[i] ? 8 : 0;
	if (record->payload_size < size)
		return false;
	record->payload_size -= size;
	at = record->payload + record->payload_size;
	if (layout->sample_type & PERF_SAMPLE_TIME)
		time = at + (layout->sample_type & PERF_SAMPLE_TID ? 8 : 0);
	if (time)
		memcpy(&record->time, time, sizeof(record->time));
	return true;
}

static int read_records(const struct reader *r, struct recordwalk *walk)
{
	const uint64_t end = walk->data_end < r->size ? walk->data_end : r->size;

	for (uint64_t at = walk->data_offset; at < end && end - at >= 8;) {
		struct perf_event_header header;
		struct recordwalk_record record;
		uint64_t more = 0;

		memcpy(&header, r->bytes + at, sizeof(header));
		if (header.size < sizeof(header) || header.size > end - at)
			break;
		record = (struct recordwalk_record){
			.offset = at,
			.size = header.size,
			.type = header.type,
			.misc = header.misc,
			.payload = r->bytes + at + sizeof(header),
			.payload_size = header.size - sizeof(header),
		};
		if (header.type == PERFABI_AUXTRACE && record.payload_size >= sizeof(more))
			memcpy(&more, record.payload, sizeof(more));
		record.size += more;
		if (take_trailer(r, &record) && vec_push(&walk->records, record) < 0)
			return -ENOMEM;
		if (more > end - at - header.size)
			break;
		at += header.size + more;
	}
	return 0;
}

int recordwalk_read(const uint8_t *bytes, size_t size, struct recordwalk *ret_walk)
{
	struct reader reader = { .bytes = bytes, .size = size };
	struct perfabi_header header = {};
	struct recordwalk walk = {};
	int r;

	if (size < 104)
		return -EBADMSG;
	memcpy(&header, bytes, sizeof(header));
	if (header.magic != PERFABI_MAGIC || header.size == PERFABI_PIPE_HEADER)
		return -EBADMSG;
	walk.data_offset = header.data.offset;
	walk.data_end = header.data.size == 0 || header.data.size > UINT64_MAX - header.data.offset
			    ? UINT64_MAX
			    : header.data.offset + header.data.size;

	r = read_layouts(&reader, &header);
	if (r == 0)
		r = read_records(&reader, &walk);
	vec_deinit(&reader.layouts);
	if (r < 0) {
		recordwalk_deinit(&walk);
		return r;
	}
	*ret_walk = walk;
	return 0;
}

void recordwalk_deinit(struct recordwalk *walk)
{
	vec_deinit(&walk->records);
}
