/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/file/perfstream.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "decoder/file/perfrec.h"
#include "decoder/file/recsort.h"
#include "decoder/util/perfabi.h"

#define CPUID_SIZE_MAX 64

#define complain perfstream_complain

int perfstream_init(struct perfstream *s, const void *bytes, size_t size, const char *name,
		    char **reterr_message)
{
	*s = (struct perfstream){
		.bytes = bytes,
		.size = size,
		.name = name,
		.reterr_message = reterr_message,
		.trace = calloc(1, sizeof(*s->trace)),
	};
	return s->trace ? 0 : complain(s, -ENOMEM, "out of memory");
}

void perfstream_deinit(struct perfstream *s)
{
	perfattrs_deinit(&s->attrs);
	vec_deinit(&s->pieces);
	vec_deinit(&s->records);
	if (s->trace)
		s->trace = trace_free(s->trace);
}

uint64_t perfstream_offset(const struct perfstream *s, const void *position)
{
	return (uint64_t)((const uint8_t *)position - s->bytes);
}

static int complain_memory(struct perfstream *s)
{
	return complain(s, -ENOMEM, "out of memory");
}

static int complain_record(struct perfstream *s, int r, const struct perfrec *rec, const char *what)
{
	if (r == -ENOMEM)
		return complain_memory(s);
	return complain(s, r, "the record of type %" PRIu32 " at offset %" PRIu64 ": %s", rec->type,
			perfstream_offset(s, rec->body.pos) - sizeof(struct perf_event_header),
			what);
}

/* Features. */

static void read_cpuid(struct perfstream *s, struct cursor body)
{
	char text[CPUID_SIZE_MAX + 1] = {};
	uint32_t size;

	if (cursor_get(&body, sizeof(size), &size) < 0 || size > cursor_left(&body))
		return;
	if (size > CPUID_SIZE_MAX)
		size = CPUID_SIZE_MAX;
	if (cursor_get(&body, size, text) < 0)
		return;
	auxtrace_cpuid(text, &s->trace->facts);
}

static int add_record(struct perfstream *s, const struct perfrec *rec)
{
	return vec_push(&s->records, { .type = rec->type,
				       .misc = rec->misc,
				       .cpu = TRACE_NONE,
				       .pid = TRACE_NONE,
				       .tid = TRACE_NONE,
				       .file_offset = perfstream_offset(s, rec->body.pos) -
						      sizeof(struct perf_event_header),
				       .payload = rec->body.pos,
				       .payload_size = cursor_left(&rec->body) });
}

/* The table is made of records whose type does not count. */
static int read_build_ids(struct perfstream *s, struct cursor body)
{
	struct perfrec rec;
	int r;

	while (perfrec_next(&body, &rec) == 0) {
		rec.type = PERFABI_HEADER_BUILD_ID;
		r = add_record(s, &rec);
		if (r < 0)
			return complain_memory(s);
	}
	return 0;
}

static int read_dir_format(struct perfstream *s, struct cursor body)
{
	uint64_t version;

	if (cursor_get(&body, sizeof(version), &version) < 0 || version == 0)
		return 0;
	return complain(s, -EOPNOTSUPP,
			"recorded by several threads (perf record --threads): not supported yet");
}

int perfstream_feature(struct perfstream *s, uint64_t feature, struct cursor body)
{
	switch (feature) {
	case PERFABI_FEATURE_CPUID:
		read_cpuid(s, body);
		return 0;
	case PERFABI_FEATURE_BUILD_ID:
		return read_build_ids(s, body);
	case PERFABI_FEATURE_DIR_FORMAT:
		return read_dir_format(s, body);
	default:
		return 0;
	}
}

/* Records. */

static int on_attr(struct perfstream *s, const struct perfrec *rec)
{
	struct cursor c = rec->body;
	int r;

	if (!s->attr_records)
		return 0;

	r = perfattrs_add(&s->attrs, &c) ?: perfattrs_add_ids(&s->attrs, c);
	return r < 0 ? complain_record(s, r, rec, "no event attribute of at least 64 bytes") : 0;
}

static int on_feature(struct perfstream *s, const struct perfrec *rec)
{
	struct cursor c = rec->body;
	uint64_t feature;

	if (cursor_get(&c, sizeof(feature), &feature) < 0)
		return complain_record(s, -EBADMSG, rec, "too short for the number of a feature");
	return perfstream_feature(s, feature, c);
}

static int on_auxtrace_info(struct perfstream *s, const struct perfrec *rec)
{
	int r;

	r = auxtrace_info_read(rec->body, &s->info);
	if (r < 0)
		return complain_record(s, r, rec, "too short for the type of AUX trace");
	if (s->info.type != PERFABI_AUXTRACE_INTEL_PT)
		return complain_record(s, -EOPNOTSUPP, rec, "the AUX trace is no Intel PT");

	s->info_offset = perfstream_offset(s, rec->body.pos) - sizeof(struct perf_event_header);
	return 0;
}

/*
 * The bytes of an AUXTRACE record follow it. Return: 0, PERFREC_TRUNCATED if they are not all
 * there, or negative errno.
 */
static int on_auxtrace(struct perfstream *s, const struct perfrec *rec, struct cursor *stream)
{
	/* What is left of a file that was cut off is this record's, as far as it goes. In one that
	 * is whole, a record that wants more than there is lies about its size. */
	const bool is_cut = s->attr_records || s->trace->truncated_at;
	struct perfabi_auxtrace a = {};
	struct cursor c = rec->body, bytes;
	bool truncated;
	int r;

	r = cursor_get(&c, sizeof(a) - sizeof(a.header), (uint8_t *)&a + sizeof(a.header));
	if (r < 0)
		return complain_record(s, r, rec, "an AUXTRACE has 48 bytes");
	truncated = a.size > cursor_left(stream);
	if (truncated && !is_cut)
		return PERFREC_TRUNCATED;
	if (truncated)
		a.size = cursor_left(stream);
	r = cursor_get_sub(stream, (size_t)a.size, &bytes);
	if (r < 0)
		return r;

	if (a.size > 0)
		r = vec_push(&s->pieces,
			     { .idx = a.idx,
			       .cpu = a.cpu,
			       .tid = a.tid,
			       .span = { .bytes = bytes.pos,
					 .size = (size_t)a.size,
					 .offset = a.offset,
					 .reference = a.reference,
					 .file_offset = perfstream_offset(s, bytes.pos) } });
	if (r < 0)
		return complain_memory(s);
	return truncated ? PERFREC_TRUNCATED : 0;
}

static int on_record(struct perfstream *s, const struct perfrec *rec, struct cursor *stream)
{
	switch (rec->type) {
	case PERFABI_HEADER_ATTR:
		return on_attr(s, rec);
	case PERFABI_HEADER_FEATURE:
		return on_feature(s, rec);
	case PERFABI_AUXTRACE_INFO:
		return on_auxtrace_info(s, rec);
	case PERFABI_AUXTRACE:
		return on_auxtrace(s, rec, stream);
	case PERFABI_COMPRESSED:
	case PERFABI_COMPRESSED2:
		return complain_record(s, -EOPNOTSUPP, rec,
				       "compressed data (perf record -z): not supported yet");
	case PERF_RECORD_SAMPLE:
		return 0;
	case PERFABI_HEADER_BUILD_ID:
		return add_record(s, rec) < 0 ? complain_memory(s) : 0;
	default:
		if (rec->type >= PERF_RECORD_MAX)
			return 0;
		return add_record(s, rec) < 0 ? complain_memory(s) : 0;
	}
}

int perfstream_read(struct perfstream *s, struct cursor records)
{
	struct perfrec rec = {};
	uint64_t at;
	int r;

	for (;;) {
		at = perfstream_offset(s, records.pos);
		r = perfrec_next(&records, &rec);
		if (r == 0)
			r = on_record(s, &rec, &records);
		else if (r < 0)
			return complain(s, r,
					"the record at offset %" PRIu64
					" says that it is shorter than its header of 8 bytes: "
					"the file is damaged",
					at);

		if (r == PERFREC_END)
			return 0;
		if (r == PERFREC_TRUNCATED) {
			s->trace->truncated_at = at;
			return 0;
		}
		if (r < 0)
			return r;
	}
}

/* Putting together. */

/* FORK and EXIT state their time in the payload, too: for recordings without trailers. */
static uint64_t time_of_task_record(const struct trace_record *record)
{
	struct cursor c = cursor_from(record->payload, record->payload_size);
	uint32_t ids[4];
	uint64_t time;

	if (record->type != PERF_RECORD_FORK && record->type != PERF_RECORD_EXIT)
		return 0;
	if (cursor_get(&c, sizeof(ids), &ids) < 0 || cursor_get(&c, sizeof(time), &time) < 0)
		return 0;
	return time;
}

/* Return: 0, or -EBADMSG if the record is too short for its trailer. */
static int take_trailer(const struct perfstream *s, struct trace_record *record)
{
	struct cursor body = cursor_from(record->payload, record->payload_size);
	const struct perfattr *attr;
	struct perfrec_trailer t;
	int r;

	if (record->type >= PERF_RECORD_MAX)
		return 0;
	attr = perfattrs_of_record(&s->attrs, body);
	if (!attr || !attr->sample_id_all) {
		record->time = time_of_task_record(record);
		return 0;
	}

	r = perfrec_take_trailer(&body, attr->sample_type, &t);
	if (r < 0)
		return r;
	record->time = t.time;
	record->cpu = t.cpu;
	record->pid = t.pid;
	record->tid = t.tid;
	record->payload_size = cursor_left(&body);
	return 0;
}

/* The attrs are all known only now: in the pipe form they come as records. */
static int finish_records(struct perfstream *s)
{
	size_t n_kept = 0;
	int r;

	for (size_t i = 0; i < s->records.n; i++) {
		if (take_trailer(s, &s->records.items[i]) < 0)
			s->trace->n_skipped++;
		else
			s->records.items[n_kept++] = s->records.items[i];
	}

	r = recsort(s->records.items, n_kept);
	if (r < 0)
		return complain_memory(s);
	s->trace->n_records = n_kept;
	s->trace->records = TAKE(s->records.items);
	return 0;
}

static int finish_pt(struct perfstream *s)
{
	int r;

	if (!s->info_offset)
		return complain(s, -ENODATA, "holds no Intel PT (no AUXTRACE_INFO record)");
	for (size_t i = 0; i < s->attrs.list.n; i++)
		if (s->attrs.list.items[i].sample_type & PERF_SAMPLE_AUX)
			return complain(s, -EOPNOTSUPP,
					"holds Intel PT in samples (perf record --aux-sample): not "
					"supported yet");

	r = auxtrace_facts(&s->info, &s->attrs, &s->trace->facts);
	if (r == -ENOENT)
		return complain(s, -EBADMSG,
				"no event attribute has the type %" PRIu64
				" that AUXTRACE_INFO (at offset %" PRIu64 ") says Intel PT has",
				s->info.slots[PERFABI_PT_PMU_TYPE], s->info_offset);
	if (r < 0)
		return complain(
		    s, r,
		    "AUXTRACE_INFO at offset %" PRIu64 ": time shift %" PRIu64
		    " and multiplier %" PRIu64
		    "; expected at most %u, and a number that is not 0 and fits 32 bits",
		    s->info_offset, s->info.slots[PERFABI_PT_TIME_SHIFT],
		    s->info.slots[PERFABI_PT_TIME_MULT], CLOCK_SHIFT_MAX);

	r = auxtrace_queues(s->pieces.items, s->pieces.n, &s->info, s->trace);
	return r < 0 ? complain_memory(s) : 0;
}

int perfstream_finish(struct perfstream *s, struct trace **ret_trace)
{
	int r;

	r = finish_pt(s) ?: finish_records(s);
	if (r < 0)
		return r;
	*ret_trace = TAKE(s->trace);
	return 0;
}
