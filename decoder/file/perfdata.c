/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/file/perfdata.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/file/auxtrace.h"
#include "decoder/file/message.h"
#include "decoder/file/perfattr.h"
#include "decoder/file/perfrec.h"
#include "decoder/file/recsort.h"
#include "decoder/util/perfabi.h"
#include "decoder/util/vec.h"

#define CPUID_SIZE_MAX 64

struct parser {
	const uint8_t *bytes; /* borrowed, like the name */
	size_t size;
	const char *name;
	char **reterr_message;

	bool pipe;
	struct perfattrs attrs;
	struct auxtrace_info info;
	uint64_t info_offset; /* of its record; 0: not seen */
	VEC(struct auxtrace_piece) pieces;
	VEC(struct trace_record) records;
	struct trace *trace; /* what is being made */
};

static void parser_deinit(struct parser *p)
{
	perfattrs_deinit(&p->attrs);
	vec_deinit(&p->pieces);
	vec_deinit(&p->records);
	if (p->trace)
		p->trace = trace_free(p->trace);
}

#define complain(p, r, format, ...) \
	message_set((p)->reterr_message, (r), "%s: " format, (p)->name, ##__VA_ARGS__)

static int complain_memory(struct parser *p)
{
	return complain(p, -ENOMEM, "out of memory");
}

static uint64_t offset_of(const struct parser *p, const void *position)
{
	return (uint64_t)((const uint8_t *)position - p->bytes);
}

static int complain_record(struct parser *p, int r, const struct perfrec *rec, const char *what)
{
	if (r == -ENOMEM)
		return complain_memory(p);
	return complain(p, r, "the record of type %" PRIu32 " at offset %" PRIu64 ": %s", rec->type,
			offset_of(p, rec->body.pos) - sizeof(struct perf_event_header), what);
}

/* The @size bytes of the file at @offset, which the header calls @what. */
static int get_section(struct parser *p, const char *what, struct perfabi_section section,
		       struct cursor *ret_section)
{
	if (section.offset > p->size || section.size > p->size - section.offset)
		return complain(p, -EBADMSG,
				"the %s (%" PRIu64 " bytes at offset %" PRIu64
				") lies outside of the file, which has %zu bytes",
				what, section.size, section.offset, p->size);

	*ret_section = cursor_from(p->bytes + section.offset, section.size);
	return 0;
}

/* --- features ----------------------------------------------------------------------------------
 */

static void read_cpuid(struct parser *p, struct cursor body)
{
	char text[CPUID_SIZE_MAX + 1] = {};
	uint32_t size;

	if (cursor_get(&body, sizeof(size), &size) < 0 || size > cursor_left(&body))
		return;
	if (size > CPUID_SIZE_MAX)
		size = CPUID_SIZE_MAX;
	if (cursor_get(&body, size, text) < 0)
		return;
	auxtrace_cpuid(text, &p->trace->facts);
}

static int add_record(struct parser *p, const struct perfrec *rec)
{
	return vec_push(&p->records, { .type = rec->type,
				       .misc = rec->misc,
				       .cpu = TRACE_NONE,
				       .pid = TRACE_NONE,
				       .tid = TRACE_NONE,
				       .file_offset = offset_of(p, rec->body.pos) -
						      sizeof(struct perf_event_header),
				       .payload = rec->body.pos,
				       .payload_size = cursor_left(&rec->body) });
}

/* The table is made of records whose type does not count. */
static int read_build_ids(struct parser *p, struct cursor body)
{
	struct perfrec rec;
	int r;

	while (perfrec_next(&body, &rec) == 0) {
		rec.type = PERFABI_HEADER_BUILD_ID;
		r = add_record(p, &rec);
		if (r < 0)
			return complain_memory(p);
	}
	return 0;
}

static int read_dir_format(struct parser *p, struct cursor body)
{
	uint64_t version;

	if (cursor_get(&body, sizeof(version), &version) < 0 || version == 0)
		return 0;
	return complain(p, -EOPNOTSUPP,
			"recorded by several threads (perf record --threads): not supported yet");
}

static int read_feature(struct parser *p, uint64_t feature, struct cursor body)
{
	switch (feature) {
	case PERFABI_FEATURE_CPUID:
		read_cpuid(p, body);
		return 0;
	case PERFABI_FEATURE_BUILD_ID:
		return read_build_ids(p, body);
	case PERFABI_FEATURE_DIR_FORMAT:
		return read_dir_format(p, body);
	default:
		return 0;
	}
}

static bool feature_is_read(unsigned int feature)
{
	return feature == PERFABI_FEATURE_CPUID || feature == PERFABI_FEATURE_BUILD_ID ||
	       feature == PERFABI_FEATURE_DIR_FORMAT;
}

/*
 * The table of features lies right behind the data section. That of a file that was cut off may be
 * missing; the data do not depend on it.
 */
static int read_features(struct parser *p, const struct perfabi_header *header)
{
	uint64_t at = header->data.offset + header->data.size;
	struct perfabi_section section;
	struct cursor table, body;
	int r;

	if (at > p->size)
		return 0;
	table = cursor_from(p->bytes + at, p->size - at);

	for (unsigned int i = 0; i < 64 * ARRAY_LEN(header->features); i++) {
		if (!(header->features[i / 64] >> (i % 64) & 1))
			continue;
		if (cursor_get(&table, sizeof(section), &section) < 0 || section.offset > p->size ||
		    section.size > p->size - section.offset) {
			p->trace->truncated_at = p->size;
			return 0;
		}
		if (!feature_is_read(i))
			continue;
		r = get_section(p, "feature", section, &body) ?: read_feature(p, i, body);
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- records -----------------------------------------------------------------------------------
 */

static int on_attr(struct parser *p, const struct perfrec *rec)
{
	struct cursor c = rec->body;
	int r;

	if (!p->pipe)
		return 0;

	r = perfattrs_add(&p->attrs, &c) ?: perfattrs_add_ids(&p->attrs, c);
	return r < 0 ? complain_record(p, r, rec, "no event attribute of at least 64 bytes") : 0;
}

static int on_feature(struct parser *p, const struct perfrec *rec)
{
	struct cursor c = rec->body;
	uint64_t feature;

	if (cursor_get(&c, sizeof(feature), &feature) < 0)
		return complain_record(p, -EBADMSG, rec, "too short for the number of a feature");
	return read_feature(p, feature, c);
}

static int on_auxtrace_info(struct parser *p, const struct perfrec *rec)
{
	int r;

	r = auxtrace_info_read(rec->body, &p->info);
	if (r < 0)
		return complain_record(p, r, rec, "too short for the type of AUX trace");
	if (p->info.type != PERFABI_AUXTRACE_INTEL_PT)
		return complain_record(p, -EOPNOTSUPP, rec, "the AUX trace is no Intel PT");

	p->info_offset = offset_of(p, rec->body.pos) - sizeof(struct perf_event_header);
	return 0;
}

/*
 * The bytes of an AUXTRACE record follow it. Return: 0, PERFREC_TRUNCATED if they are not all
 * there, or negative errno.
 */
static int on_auxtrace(struct parser *p, const struct perfrec *rec, struct cursor *stream)
{
	struct perfabi_auxtrace a = {};
	struct cursor c = rec->body, bytes;
	int r;

	r = cursor_get(&c, sizeof(a) - sizeof(a.header), &a.size);
	if (r < 0)
		return complain_record(p, r, rec, "an AUXTRACE has 48 bytes");
	if (a.size > cursor_left(stream))
		return PERFREC_TRUNCATED;
	r = cursor_get_sub(stream, (size_t)a.size, &bytes);
	if (r < 0)
		return r;
	if (a.size == 0)
		return 0;

	r = vec_push(&p->pieces, { .idx = a.idx,
				   .cpu = a.cpu,
				   .tid = a.tid,
				   .span = { .bytes = bytes.pos,
					     .size = (size_t)a.size,
					     .offset = a.offset,
					     .reference = a.reference,
					     .file_offset = offset_of(p, bytes.pos) } });
	return r < 0 ? complain_memory(p) : 0;
}

static int on_record(struct parser *p, const struct perfrec *rec, struct cursor *stream)
{
	switch (rec->type) {
	case PERFABI_HEADER_ATTR:
		return on_attr(p, rec);
	case PERFABI_HEADER_FEATURE:
		return on_feature(p, rec);
	case PERFABI_AUXTRACE_INFO:
		return on_auxtrace_info(p, rec);
	case PERFABI_AUXTRACE:
		return on_auxtrace(p, rec, stream);
	case PERFABI_COMPRESSED:
	case PERFABI_COMPRESSED2:
		return complain_record(p, -EOPNOTSUPP, rec,
				       "compressed data (perf record -z): not supported yet");
	case PERF_RECORD_SAMPLE:
		return 0;
	case PERFABI_HEADER_BUILD_ID:
		return add_record(p, rec) < 0 ? complain_memory(p) : 0;
	default:
		if (rec->type >= PERF_RECORD_MAX)
			return 0;
		return add_record(p, rec) < 0 ? complain_memory(p) : 0;
	}
}

/* Walk the records in @stream, which is part of the file. */
static int read_records(struct parser *p, struct cursor stream)
{
	struct perfrec rec = {};
	uint64_t at;
	int r;

	for (;;) {
		at = offset_of(p, stream.pos);
		r = perfrec_next(&stream, &rec);
		if (r == 0)
			r = on_record(p, &rec, &stream);
		else if (r < 0)
			return complain(p, r,
					"the record at offset %" PRIu64
					" says that it is shorter than its header of 8 bytes: "
					"the file is damaged",
					at);

		if (r == PERFREC_END)
			return 0;
		if (r == PERFREC_TRUNCATED) {
			p->trace->truncated_at = at;
			return 0;
		}
		if (r < 0)
			return r;
	}
}

/* --- the two forms -----------------------------------------------------------------------------
 */

static int read_attrs(struct parser *p, const struct perfabi_header *header)
{
	uint64_t n_ids_left = p->size / sizeof(uint64_t);
	struct perfabi_section section;
	struct cursor attrs, ids;
	int r;

	r = get_section(p, "attr section", header->attrs, &attrs);
	if (r < 0)
		return r;

	while (cursor_left(&attrs) > 0) {
		const uint64_t at = offset_of(p, attrs.pos);

		r = perfattrs_add(&p->attrs, &attrs)
			?: cursor_get(&attrs, sizeof(section), &section);
		if (r == -ENOMEM)
			return complain_memory(p);
		if (r < 0)
			return complain(p, r,
					"the event attribute at offset %" PRIu64
					" has a size below 64 or goes beyond its section",
					at);

		r = get_section(p, "section of event ids", section, &ids);
		if (r < 0)
			return r;
		/* No two attrs share ids, so all of them together fit into the file. */
		if (section.size / sizeof(uint64_t) > n_ids_left)
			return complain(p, -EBADMSG,
					"the event attribute at offset %" PRIu64
					" names ids that are another's",
					at);
		n_ids_left -= section.size / sizeof(uint64_t);
		r = perfattrs_add_ids(&p->attrs, ids);
		if (r < 0)
			return complain_memory(p);
	}
	return 0;
}

/* Part of the data section may be missing at its end: the file was cut off. */
static int read_data(struct parser *p, const struct perfabi_header *header)
{
	const struct perfabi_section *data = &header->data;
	uint64_t size = data->size;
	int r;

	if (size == 0)
		return complain(p, -ENODATA,
				"the header says that there are no data: the recording was not "
				"finished");
	if (data->offset < sizeof(header->magic) || data->offset >= p->size)
		return complain(p, -EBADMSG,
				"the data section (offset %" PRIu64
				") lies outside of the file, which has %zu bytes",
				data->offset, p->size);
	if (size > p->size - data->offset) {
		size = p->size - data->offset;
		p->trace->truncated_at = p->size;
	} else {
		r = read_features(p, header);
		if (r < 0)
			return r;
	}

	return read_records(p, cursor_from(p->bytes + data->offset, (size_t)size));
}

static int read_file_form(struct parser *p)
{
	struct cursor c = cursor_from(p->bytes, p->size);
	struct perfabi_header header = {};
	int r;

	/* The oldest form of the header ends before the features. */
	memcpy(&header, c.pos, PERFABI_PIPE_HEADER);
	if (header.size != sizeof(header) &&
	    header.size != offsetof(struct perfabi_header, features))
		return complain(p, -EBADMSG,
				"the header says that it has %" PRIu64
				" bytes; 104 was expected, or 16 in the pipe form",
				header.size);
	r = cursor_get(&c, (size_t)header.size, &header);
	if (r < 0)
		return complain(p, r, "the header of %" PRIu64 " bytes is cut off at %zu",
				header.size, p->size);

	return read_attrs(p, &header) ?: read_data(p, &header);
}

static int read_pipe_form(struct parser *p)
{
	p->pipe = true;
	if (p->size == PERFABI_PIPE_HEADER)
		return complain(p, -ENODATA,
				"holds a header and no records: the recording was not "
				"finished");
	return read_records(
	    p, cursor_from(p->bytes + PERFABI_PIPE_HEADER, p->size - PERFABI_PIPE_HEADER));
}

static int read_magic(struct parser *p)
{
	struct cursor c = cursor_from(p->bytes, p->size);
	uint64_t magic, header_size;

	if (cursor_get(&c, sizeof(magic), &magic) < 0)
		return complain(p, -EBADMSG, "not a perf.data file: it has only %zu bytes",
				p->size);
	if (magic == PERFABI_MAGIC_SWAPPED)
		return complain(p, -EOPNOTSUPP,
				"recorded on a machine of the other byte order: not supported");
	if (magic != PERFABI_MAGIC)
		return complain(p, -EBADMSG,
				"not a perf.data file: it does not begin with PERFILE2");
	if (cursor_get(&c, sizeof(header_size), &header_size) < 0)
		return complain(p, -EBADMSG, "the header is cut off at %zu bytes", p->size);

	return header_size == PERFABI_PIPE_HEADER ? read_pipe_form(p) : read_file_form(p);
}

/* --- putting together --------------------------------------------------------------------------
 */

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
static int take_trailer(const struct parser *p, struct trace_record *record)
{
	struct cursor body = cursor_from(record->payload, record->payload_size);
	const struct perfattr *attr;
	struct perfrec_trailer t;
	int r;

	if (record->type >= PERF_RECORD_MAX)
		return 0;
	attr = perfattrs_of_record(&p->attrs, body);
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
static int finish_records(struct parser *p)
{
	size_t n_kept = 0;
	int r;

	for (size_t i = 0; i < p->records.n; i++) {
		if (take_trailer(p, &p->records.items[i]) < 0)
			p->trace->n_skipped++;
		else
			p->records.items[n_kept++] = p->records.items[i];
	}

	r = recsort(p->records.items, n_kept);
	if (r < 0)
		return complain_memory(p);
	p->trace->n_records = n_kept;
	p->trace->records = TAKE(p->records.items);
	return 0;
}

static int finish_pt(struct parser *p)
{
	int r;

	if (!p->info_offset)
		return complain(p, -ENODATA, "holds no Intel PT (no AUXTRACE_INFO record)");
	for (size_t i = 0; i < p->attrs.list.n; i++)
		if (p->attrs.list.items[i].sample_type & PERF_SAMPLE_AUX)
			return complain(p, -EOPNOTSUPP,
					"holds Intel PT in samples (perf record --aux-sample): not "
					"supported yet");

	r = auxtrace_facts(&p->info, &p->attrs, &p->trace->facts);
	if (r == -ENOENT)
		return complain(p, -EBADMSG,
				"no event attribute has the type %" PRIu64
				" that AUXTRACE_INFO (at offset %" PRIu64 ") says Intel PT has",
				p->info.slots[PERFABI_PT_PMU_TYPE], p->info_offset);
	if (r < 0)
		return complain(
		    p, r,
		    "AUXTRACE_INFO at offset %" PRIu64 ": time shift %" PRIu64
		    " and multiplier %" PRIu64
		    "; expected at most %u, and a number that is not 0 and fits 32 bits",
		    p->info_offset, p->info.slots[PERFABI_PT_TIME_SHIFT],
		    p->info.slots[PERFABI_PT_TIME_MULT], CLOCK_SHIFT_MAX);

	r = auxtrace_queues(p->pieces.items, p->pieces.n, &p->info, p->trace);
	return r < 0 ? complain_memory(p) : 0;
}

int perfdata_parse(const void *bytes, size_t size, const char *name, struct trace **ret_trace,
		   char **reterr_message)
{
	_cleanup_(parser_deinit) struct parser p = {
		.bytes = bytes,
		.size = size,
		.name = name,
		.reterr_message = reterr_message,
	};
	int r;

	p.trace = calloc(1, sizeof(*p.trace));
	if (!p.trace)
		return complain_memory(&p);

	r = read_magic(&p) ?: finish_pt(&p) ?: finish_records(&p);
	if (r < 0)
		return r;

	*ret_trace = TAKE(p.trace);
	return 0;
}
