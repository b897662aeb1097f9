/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/file/perfstream.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "decoder/file/perfsample.h"
#include "decoder/trace/bpfprog.h"
#include "decoder/trace/recsort.h"
#include "ptd/sideband.h"
#include "ptd/snapshot.h"
#include "util/perf/codec.h"
#include "util/perf/perfabi.h"
#include "util/perf/perfrec.h"

#define CPUID_SIZE_MAX 64

/* A record has at most 64 KiB. */
#define RECORDS_WINDOW (size_t)(1 << 17)

/* Progress is reported each time after this number of bytes. */
#define COUNTED_STEP (UINT64_C(1) << 18)

#define complain perfstream_complain

/* --- expand ----------------------------------------------------------------------------------- */

#define BUFFER_SIZE (size_t)(1 << 17)

/* A window of perf's compression levels, up to 22: no stream needs more memory. */
#define WINDOW_LOG_MAX 27

static void expand_deinit(struct expand *expand)
{
	ZSTD_freeDStream(expand->stream);
	free(expand->buffer);
	spill_deinit(&expand->out);
	vec_deinit(&expand->parts);
	*expand = (struct expand){ .out.spills = expand->out.spills };
}

static int start_stream(struct expand *expand)
{
	expand->stream = ZSTD_createDStream();
	expand->buffer = malloc(BUFFER_SIZE);
	if (!expand->stream || !expand->buffer)
		return -ENOMEM;
	if (ZSTD_isError(
		ZSTD_DCtx_setParameter(expand->stream, ZSTD_d_windowLogMax, WINDOW_LOG_MAX)))
		return -ENOMEM;
	return 0;
}

/*
 * Expand the compressed bytes of the record at @file_offset.
 *
 * Return: 0; -EBADMSG if the bytes do not continue the zstd stream; -EFBIG if the limit is reached;
 *         or another negative errno.
 */
static int expand_add(struct expand *expand, struct cursor bytes, uint64_t file_offset)
{
	ZSTD_inBuffer in = { .src = bytes.pos, .size = cursor_left(&bytes) };
	ZSTD_outBuffer out;
	int r = 0;

	if (!expand->stream)
		r = start_stream(expand);
	if (r == 0)
		r = vec_push(&expand->parts,
			     { .start = expand->out.size, .file_offset = file_offset });
	if (r < 0)
		return r;

	expand->n_in += in.size;
	do {
		out = (ZSTD_outBuffer){ .dst = expand->buffer, .size = BUFFER_SIZE };
		if (ZSTD_isError(ZSTD_decompressStream(expand->stream, &out, &in)))
			return -EBADMSG;
		if (expand->out.size + out.pos > EXPAND_MIN + expand->n_in * EXPAND_RATIO_MAX)
			return -EFBIG;
		r = spill_write(&expand->out, expand->buffer, out.pos);
		if (r < 0)
			return r;
		/* A full buffer may have more behind it. */
	} while (in.pos < in.size || out.pos == out.size);
	return 0;
}

/* Return: where all expanded bytes are; the caller owns the descriptor if it says so. */
static struct spillfile expand_finish(struct expand *expand)
{
	ZSTD_freeDStream(expand->stream);
	expand->stream = NULL;
	return spill_finish(&expand->out);
}

/* Return: the file offset of the compressed record that has the expanded byte at @position. */
static uint64_t expand_file_offset(const struct expand *expand, uint64_t position)
{
	const size_t n = vec_bisect(&expand->parts, part, part->start <= position);

	return expand->parts.n ? expand->parts.items[n > 0 ? n - 1 : 0].file_offset : 0;
}

/* --- its life --------------------------------------------------------------------------------- */

int perfstream_init(struct perfstream *s, const struct perfstream_file *file,
		    struct reading *reading, char **reterr_message)
{
	struct spills *spills = reading_spills(reading);

	*s = (struct perfstream){
		.file = *file,
		.reading = reading,
		.reterr_message = reterr_message,
		.expand.out.spills = spills,
		.trace = calloc(1, sizeof(*s->trace)),
	};
	table_init(&s->records, sizeof(struct trace_record), spills);
	if (s->trace) {
		s->trace->spills = spills;
		table_init(&s->trace->record_table, sizeof(struct trace_record), spills);
		table_init(&s->trace->payloads, 1, spills);
	}
	return s->trace ? 0 : complain(s, -ENOMEM, "out of memory");
}

void perfstream_deinit(struct perfstream *s)
{
	expand_deinit(&s->expand);
	window_deinit(&s->window);
	perfattrs_deinit(&s->attrs);
	map_deinit(&s->guest_ids);
	vec_deinit(&s->pieces);
	table_deinit(&s->records);
	if (s->trace)
		s->trace = trace_free(s->trace);
}

void perfstream_next_file(struct perfstream *s, const struct perfstream_file *file)
{
	s->file = *file;
	s->is_endless = true;
}

static int complain_memory(struct perfstream *s)
{
	return complain(s, -ENOMEM, "out of memory");
}

static int complain_reading(struct perfstream *s, int r)
{
	if (r == -ENOMEM)
		return complain_memory(s);
	return complain(s, r, "%s",
			r == -ESTALE         ? "became shorter while it was read"
			: r == -EKEYREJECTED ? "is not the file that was written: its hashes "
					       "differ from those in " PTD_SNAPSHOT_PIECES
					       " (--force decodes it all the same)"
					     : strerror(-r));
}

/* The whole file as a part. */
static struct filepart file_part(const struct perfstream *s)
{
	return (struct filepart){ .offset = s->file.offset,
				  .fd = s->file.fd,
				  .pieces = s->file.pieces };
}

int perfstream_bytes(struct perfstream *s, uint64_t offset, void *ret_bytes, size_t size)
{
	const struct filepart part = file_part(s);
	const int r = filepart_read(&part, offset, ret_bytes, size);

	return r < 0 ? complain_reading(s, r) : 0;
}

/* Return: the offset in the file of what is at @at of the records that are being read. */
static uint64_t file_offset(const struct perfstream *s, uint64_t at)
{
	return s->expanded ? expand_file_offset(&s->expand, at) : at;
}

static int complain_record(struct perfstream *s, int r, const struct perfrec *rec, const char *what)
{
	if (r == -ENOMEM)
		return complain_memory(s);
	return complain(s, r, "the %srecord of type %" PRIu32 " at offset %" PRIu64 ": %s",
			s->expanded ? "compressed " : "", rec->type, file_offset(s, s->at), what);
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

static int add_record_at(struct perfstream *s, const struct perfrec *rec, uint64_t offset)
{
	struct table *payloads = &s->trace->payloads;
	const size_t size = cursor_left(&rec->body);
	const struct trace_record record = {
		.type = rec->type,
		.misc = rec->misc,
		.cpu = TRACE_NONE,
		.pid = TRACE_NONE,
		.tid = TRACE_NONE,
		.file_offset = offset,
		.payload_at = payloads->n,
		.payload_size = size,
	};

	return table_push_many(payloads, rec->body.pos, size) ?: table_push(&s->records, &record);
}

static int add_record(struct perfstream *s, const struct perfrec *rec)
{
	return add_record_at(s, rec, file_offset(s, s->at));
}

/* The table is made of records whose type does not count. */
static int read_build_ids(struct perfstream *s, struct cursor body, uint64_t offset)
{
	const uint8_t *start = body.pos;

	for (;;) {
		const uint64_t at = offset + (uint64_t)(body.pos - start);
		struct perfrec rec;

		if (perfrec_next(&body, &rec) != 0)
			return 0;
		rec.type = PERFABI_HEADER_BUILD_ID;
		if (add_record_at(s, &rec, at) < 0)
			return complain_memory(s);
	}
}

static void read_tracepoints(struct perfstream *s, struct cursor body)
{
	/* What is missing is said if it is needed. */
	(void)!tracepoints_find(body, s->tracepoints);
}

/* Let the trace have a copy of the bytes, and @body be that. Return: 0 or -ENOMEM. */
static int keep_bytes(struct perfstream *s, struct cursor *body)
{
	_cleanup_(freep) uint8_t *bytes = malloc(cursor_left(body) ?: 1);

	if (!bytes || vec_push(&s->trace->bytes, bytes) < 0)
		return -ENOMEM;
	memcpy(bytes, body->pos, cursor_left(body));
	*body = cursor_from(TAKE(bytes), cursor_left(body));
	return 0;
}

static int read_programs(struct perfstream *s, struct cursor body)
{
	uint32_t n = 0;
	int r;

	if (keep_bytes(s, &body) < 0)
		return complain_memory(s);
	r = cursor_get(&body, sizeof(n), &n);
	for (uint32_t i = 0; r == 0 && i < n; i++) {
		struct bpfprog program;

		r = bpfprog_next(&body, &program);
		/* Others would be many in few bytes. */
		if (r == 0 && cursor_left(&program.addresses) > 0)
			r = vec_push(&s->trace->programs, program);
	}
	if (r == -EBADMSG)
		s->trace->complaints[TRACE_COMPLAINT_PROGRAMS] =
		    "its section of BPF programs is damaged: of those behind that the code is not "
		    "known";
	return r == -ENOMEM ? complain_memory(s) : 0;
}

int perfstream_feature(struct perfstream *s, uint64_t feature, struct cursor body, uint64_t offset)
{
	switch (feature) {
	case PERFABI_FEATURE_TRACING_DATA:
		read_tracepoints(s, body);
		return 0;
	case PERFABI_FEATURE_CPUID:
		read_cpuid(s, body);
		return 0;
	case PERFABI_FEATURE_BUILD_ID:
		return read_build_ids(s, body, offset);
	case PERFABI_FEATURE_BPF_PROG_INFO:
		return read_programs(s, body);
	case PERFABI_FEATURE_DIR_FORMAT:
		(void)!cursor_get(&body, sizeof(s->dir_format), &s->dir_format);
		return 0;
	default:
		return 0;
	}
}

/* Records. */

/*
 * Guests
 *
 * perf inject --guest-data puts records that a guest's kernel made among those of the host. Their
 * pids, addresses and paths are the guest's: nothing in them is true of the host's processes, which
 * have the same numbers. Such a record says so itself (cpumode), and ID_INDEX says so of its event.
 * They are left out.
 */

static bool is_guest_mode(uint16_t misc)
{
	const uint16_t mode = misc & PERF_RECORD_MISC_CPUMODE_MASK;

	return mode == PERF_RECORD_MISC_GUEST_KERNEL || mode == PERF_RECORD_MISC_GUEST_USER;
}

static bool is_guest_id(const struct perfstream *s, uint64_t id)
{
	return id && map_get(&s->guest_ids, id);
}

static int on_id_index(struct perfstream *s, const struct perfrec *rec)
{
	struct record_id_index_machine machine;
	struct record_id_index_entry entry;
	struct cursor entries, machines;

	if (record_read_id_index(rec->body, &entries, &machines) < 0)
		return 0;
	while (cursor_get(&entries, sizeof(entry), &entry) == 0 &&
	       cursor_get(&machines, sizeof(machine), &machine) == 0)
		if (machine.pid && map_put(&s->guest_ids, entry.id, machine.pid) < 0)
			return complain_memory(s);
	return 0;
}

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
	return perfstream_feature(s, feature, c, file_offset(s, s->at));
}

static int on_auxtrace_info(struct perfstream *s, const struct perfrec *rec)
{
	struct cursor filter;
	int r;

	r = record_read_auxtrace_info(rec->body, &s->info);
	if (r < 0)
		return complain_record(s, r, rec, "too short for the type of AUX trace");
	if (s->info.type != PERFABI_AUXTRACE_INTEL_PT)
		return complain_record(s, -EOPNOTSUPP, rec, "the AUX trace is no Intel PT");

	s->info_offset = file_offset(s, s->at);
	/* The record's bytes do not stay. */
	filter = cursor_from(s->info.filter,
			     s->info.filter ? s->info.slots[PERFABI_PT_FILTER_STR_LEN] : 0);
	if (cursor_left(&filter) > 0 && keep_bytes(s, &filter) < 0)
		return complain_memory(s);
	s->info.filter = (const char *)filter.pos;
	return 0;
}

/* Add the PT of @size bytes at @at of the records that are being read. */
static int add_piece(struct perfstream *s, struct auxpiece piece, uint64_t at, uint64_t size)
{
	piece.order = s->pieces.n;
	piece.bytes.fd = s->part.fd;
	piece.bytes.pieces = s->part.pieces;
	piece.bytes.at = s->part.offset + at;
	piece.bytes.size = size;
	piece.bytes.file_offset = file_offset(s, at);
	return vec_push(&s->pieces, piece) < 0 ? complain_memory(s) : 0;
}

/*
 * The bytes of an AUXTRACE record follow it. Return: 0, PERFREC_TRUNCATED if they are not all
 * there, or negative errno.
 */
static int on_auxtrace(struct perfstream *s, const struct perfrec *rec)
{
	/* What is left of a file that was cut off is this record's, as far as it goes. In one that
	 * is whole, a record that wants more than there is lies about its size. */
	const bool is_cut = s->is_endless || s->trace->truncated_at;
	const uint64_t at = s->next, left = s->end - at;
	struct record_auxtrace a;
	bool truncated;
	int r;

	r = record_read_auxtrace(rec->body, &a);
	if (r < 0)
		return complain_record(s, r, rec, "an AUXTRACE has 48 bytes");
	truncated = a.size > left;
	if (truncated && !is_cut)
		return PERFREC_TRUNCATED;
	if (truncated)
		a.size = left;
	s->next += a.size;
	if (a.size > 0)
		r = add_piece(s,
			      (struct auxpiece){
				  .idx = a.idx,
				  .cpu = a.cpu,
				  .tid = a.tid,
				  .bytes = { .offset = a.offset },
			      },
			      at, a.size);
	if (r < 0)
		return r;
	return truncated ? PERFREC_TRUNCATED : 0;
}

/* One that carries PT is a piece of its CPU's; what one of a tracepoint says is looked at in the
 * end. */
static int on_sample(struct perfstream *s, const struct perfrec *rec)
{
	const struct perfattr *attr = perfsample_attr(&s->attrs, rec->body);
	struct perfsample sample;

	if (attr && attr->type == PERF_TYPE_TRACEPOINT && add_record(s, rec) < 0)
		return complain_memory(s);
	if (!attr || !(attr->sample_type & PERF_SAMPLE_AUX))
		return 0;
	/* The mode does not count: the host's CPU may have run a guest when it took the sample. */
	if (is_guest_id(s, perfsample_id(&s->attrs, rec->body))) {
		s->trace->n_guest++;
		return 0;
	}
	if (perfsample_read(rec->body, attr, &sample) < 0) {
		s->trace->n_skipped++;
		return 0;
	}
	s->has_samples = true;
	if (cursor_left(&sample.aux) == 0)
		return 0;
	return add_piece(s,
			 (struct auxpiece){
			     .idx = sample.cpu != UINT32_MAX ? sample.cpu : sample.tid,
			     .cpu = (int32_t)sample.cpu,
			     .tid = (int32_t)sample.tid,
			 },
			 s->at + sizeof(struct perf_event_header) +
			     (uint64_t)(sample.aux.pos - rec->body.pos),
			 cursor_left(&sample.aux));
}

static int on_compressed(struct perfstream *s, const struct perfrec *rec)
{
	struct cursor c = rec->body, bytes = rec->body;
	uint64_t size;
	int r;

	if (s->expanded)
		return complain_record(s, -EBADMSG, rec, "was compressed twice");
	if (rec->type == PERFABI_COMPRESSED2 &&
	    (cursor_get(&c, sizeof(size), &size) < 0 || size > cursor_left(&c) ||
	     cursor_get_sub(&c, (size_t)size, &bytes) < 0))
		return complain_record(s, -EBADMSG, rec, "states more bytes than it has");

	r = expand_add(&s->expand, bytes, s->at);
	if (r == -EBADMSG)
		return complain_record(s, r, rec, "its bytes do not go on the zstd stream");
	if (r == -EFBIG)
		return complain_record(s, r, rec,
				       "expands to more than any recording would: the file is "
				       "damaged");
	return r < 0 ? complain_record(s, r, rec, strerror(-r)) : 0;
}

/* The bytes of what perf knows of tracepoints follow the record. */
static int on_tracing_data(struct perfstream *s, const struct perfrec *rec)
{
	_cleanup_(freep) uint8_t *bytes = NULL;
	struct cursor c = rec->body;
	uint32_t size;
	int r;

	if (cursor_get(&c, sizeof(size), &size) < 0 || size == 0)
		return 0;
	if (size > s->end - s->next)
		return PERFREC_TRUNCATED;
	if (size > PERFSTREAM_BYTES_MAX)
		return complain_record(s, -EFBIG, rec, "more than 64 MiB follow it");
	bytes = malloc(size);
	r = bytes ? fileparts_read(&s->window.all, s->next, bytes, size) : -ENOMEM;
	if (r < 0)
		return complain_reading(s, r);
	s->next += size;
	read_tracepoints(s, cursor_from(bytes, size));
	return 0;
}

static int on_record(struct perfstream *s, const struct perfrec *rec)
{
	switch (rec->type) {
	case PERFABI_HEADER_ATTR:
		return on_attr(s, rec);
	case PERFABI_HEADER_FEATURE:
		return on_feature(s, rec);
	case PERFABI_AUXTRACE_INFO:
		return on_auxtrace_info(s, rec);
	case PERFABI_AUXTRACE:
		return on_auxtrace(s, rec);
	case PERFABI_COMPRESSED:
	case PERFABI_COMPRESSED2:
		return on_compressed(s, rec);
	case PERFABI_HEADER_TRACING_DATA:
		return on_tracing_data(s, rec);
	case PERFABI_ID_INDEX:
		return on_id_index(s, rec);
	case PERF_RECORD_SAMPLE:
		return on_sample(s, rec);
	case PERFABI_HEADER_BUILD_ID:
		return add_record(s, rec) < 0 ? complain_memory(s) : 0;
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		s->has_switches = s->has_switches || !is_guest_mode(rec->misc);
		return add_record(s, rec) < 0 ? complain_memory(s) : 0;
	default:
		if (rec->type < PERF_RECORD_MAX)
			return add_record(s, rec) < 0 ? complain_memory(s) : 0;
		s->trace->n_unknown +=
		    rec->type < PERFABI_HEADER_ATTR || rec->type >= _PERFABI_TYPE_END;
		return 0;
	}
}

/* The @n bytes more were read. Return: 0 or -ECANCELED, with a message. */
static int count_progress(struct perfstream *s, uint64_t n)
{
	const int r = progress_add(reading_progress(s->reading), n);

	return r < 0 ? complain(s, r, "was not read to its end, since that was canceled") : 0;
}

/*
 * Get the record at s->next, whose bytes are valid until the next call.
 *
 * Return: as perfrec_next(); or another negative errno.
 */
static int next_record(struct perfstream *s, struct perfrec *ret_rec)
{
	struct perf_event_header header;
	struct cursor c;
	const uint8_t *bytes;
	size_t n;
	int r;

	s->at = s->next;
	bytes = window_at(&s->window, s->at, sizeof(header), &n);
	c = cursor_from(bytes, n);
	if (cursor_get(&c, sizeof(header), &header) == 0)
		bytes = window_at(&s->window, s->at, header.size, &n);
	c = cursor_from(bytes, n);
	if (s->window.error < 0)
		return s->window.error;
	r = perfrec_next(&c, ret_rec);
	s->next += n - cursor_left(&c);
	return r;
}

static int walk_records(struct perfstream *s, uint64_t offset, uint64_t size)
{
	uint64_t counted = offset;
	struct perfrec rec = {};
	int r;

	for (s->next = offset, s->end = offset + size;;) {
		r = next_record(s, &rec);
		if (r == -EBADMSG)
			return complain(s, r,
					"the record at offset %" PRIu64
					" says that it is shorter than its header of 8 bytes: "
					"the file is damaged",
					file_offset(s, s->at));
		if (r < 0)
			return complain_reading(s, r);
		if (r == 0)
			r = on_record(s, &rec);

		if (r == PERFREC_END)
			return count_progress(s, s->next - counted);
		if (r == PERFREC_TRUNCATED) {
			s->trace->truncated_at = file_offset(s, s->at);
			return 0;
		}
		if (r < 0)
			return r;
		if (s->next - counted >= COUNTED_STEP) {
			r = count_progress(s, s->next - counted);
			if (r < 0)
				return r;
			counted = s->next;
		}
	}
}

/* Walk over the records in @size bytes, in which offsets are as in the bytes of @part's file. */
static int walk_part(struct perfstream *s, const struct filepart *part, uint64_t offset,
		     uint64_t size)
{
	const struct fileparts all = { .size = offset + size, .parts = &s->part, .n = 1 };
	int r;

	s->part = *part;
	window_init(&s->window, &all, RECORDS_WINDOW);
	r = walk_records(s, offset, size);
	window_deinit(&s->window);
	return r;
}

static int walk_expanded(struct perfstream *s)
{
	const struct spillfile file = expand_finish(&s->expand);
	int r;

	if (file.is_owned && vec_push(&s->trace->fds, file.fd) < 0) {
		(void)fd_close(file.fd);
		return complain_memory(s);
	}
	s->expanded = true;
	r = walk_part(s, &(struct filepart){ .offset = file.offset, .fd = file.fd }, 0, file.size);
	s->expanded = false;
	return r;
}

int perfstream_read(struct perfstream *s, uint64_t offset, uint64_t size)
{
	const struct filepart part = file_part(s);
	int r;

	r = walk_part(s, &part, offset, size);
	if (r == 0 && s->expand.stream)
		r = walk_expanded(s);
	expand_deinit(&s->expand);
	return r;
}

/* The trace, once all records were seen. */

/* FORK and EXIT state their time in the payload, too: for recordings without trailers. */
static uint64_t time_of_task_record(const struct trace_record *record)
{
	struct record_task task;

	if (record->type != PERF_RECORD_FORK && record->type != PERF_RECORD_EXIT)
		return 0;
	return record_read_task(trace_record_body(record), &task) < 0 ? 0 : task.time;
}

/* Exchange the payload, whose bytes are at @bytes, for another one, which must not be longer. */
static int replace_payload(struct trace_record *record, uint8_t *bytes, const void *payload,
			   size_t size)
{
	if (record->payload_size < size)
		return -EBADMSG;
	memcpy(bytes, payload, size);
	record->payload_size = size;
	return 0;
}

/*
 * Who leaves is told twice: as the recorder sees the thread, and by its number for the kernel. If
 * the two differ, the recorder is in a pid namespace, and then the number of who comes says
 * nothing. (What runs last of a thread has no number for the recorder.)
 */
static int take_switch(const struct tracepoint *tracepoint, const struct perfsample *sample,
		       struct trace_record *record, uint8_t *bytes, bool *ret_is_foreign)
{
	uint64_t prev, next;
	uint32_t tid;
	int r;

	r = tracepoint_read(tracepoint, TRACEPOINT_SCHED_SWITCH, TRACEPOINT_PREV_PID, sample->raw,
			    &prev)
		?: tracepoint_read(tracepoint, TRACEPOINT_SCHED_SWITCH, TRACEPOINT_NEXT_PID,
				   sample->raw, &next);
	if (r < 0)
		return r;
	*ret_is_foreign = sample->tid != TRACE_NONE && sample->tid != prev;
	tid = (uint32_t)next;
	return replace_payload(record, bytes, &tid, sizeof(tid));
}

static int take_signal(const struct tracepoint *tracepoint, const struct perfsample *sample,
		       struct trace_record *record, uint8_t *bytes)
{
	struct trace_signal signal = {};
	uint64_t number, code = (uint32_t)PTD_SIDEBAND_NO_CODE;
	int r;

	r = tracepoint_read(tracepoint, TRACEPOINT_SIGNAL_DELIVER, TRACEPOINT_SIGNAL, sample->raw,
			    &number)
		?: tracepoint_read(tracepoint, TRACEPOINT_SIGNAL_DELIVER, TRACEPOINT_HANDLER,
				   sample->raw, &signal.handler);
	if (r == 0 && tracepoint->offsets[TRACEPOINT_CODE] != TRACEPOINT_NO_FIELD)
		r = tracepoint_read(tracepoint, TRACEPOINT_SIGNAL_DELIVER, TRACEPOINT_CODE,
				    sample->raw, &code);
	if (r < 0)
		return r;
	signal.signal = (uint32_t)number;
	signal.code = (int32_t)(uint32_t)code;
	record->type = TRACE_RECORD_SIGNAL;
	return replace_payload(record, bytes, &signal, sizeof(signal));
}

static int take_syscall(const struct tracepoint *tracepoint, const struct perfsample *sample,
			struct trace_record *record, uint8_t *bytes)
{
	struct trace_syscall syscall;
	int r;

	r = tracepoint_read(tracepoint, TRACEPOINT_SYS_ENTER, TRACEPOINT_NUMBER, sample->raw,
			    &syscall.number);
	if (r < 0)
		return r;
	record->type = TRACE_RECORD_SYSCALL;
	return replace_payload(record, bytes, &syscall, sizeof(syscall));
}

/*
 * Make of a tracepoint's sample, whose bytes are at @bytes, what struct trace_record says of it.
 *
 * Return: 0; PERFREC_END if it is not used; -EBADMSG if it is too short.
 */
static int take_sample(struct perfstream *s, struct trace_record *record, uint8_t *bytes,
		       bool *ret_is_foreign)
{
	const struct cursor body = cursor_from(record->payload, record->payload_size);
	const struct perfattr *attr = perfsample_attr(&s->attrs, body);
	const enum tracepoint_kind kind = tracepoints_kind(s->tracepoints, attr->config);
	const struct tracepoint *tracepoint = &s->tracepoints[kind % _TRACEPOINT_KINDS];
	struct perfsample sample;
	int r;

	if (is_guest_mode(record->misc) || is_guest_id(s, perfsample_id(&s->attrs, body))) {
		s->trace->n_guest++;
		return PERFREC_END;
	}
	s->has_unknown_samples = s->has_unknown_samples || kind == _TRACEPOINT_KINDS;
	if (kind == _TRACEPOINT_KINDS || (kind == TRACEPOINT_SCHED_SWITCH && s->has_switches))
		return PERFREC_END;
	r = perfsample_read(body, attr, &sample);
	if (r < 0)
		return r;
	record->time = sample.time;
	record->cpu = sample.cpu;
	record->pid = sample.pid;
	record->tid = sample.tid;
	switch (kind) {
	case TRACEPOINT_SIGNAL_DELIVER:
		return take_signal(tracepoint, &sample, record, bytes);
	case TRACEPOINT_SYS_ENTER:
		return take_syscall(tracepoint, &sample, record, bytes);
	default:
		return take_switch(tracepoint, &sample, record, bytes, ret_is_foreign);
	}
}

/* Return: 0; PERFREC_END if it is a guest's; -EBADMSG if it is too short for its trailer. */
static int take_trailer(const struct perfstream *s, struct trace_record *record)
{
	struct cursor body = cursor_from(record->payload, record->payload_size);
	const struct perfattr *attr;
	struct trailer t;
	int r;

	if (is_guest_mode(record->misc))
		return PERFREC_END;
	if (record->type >= PERF_RECORD_MAX)
		return 0;
	attr = perfattrs_of_record(&s->attrs, body);
	if (!attr || !attr->sample_id_all) {
		record->time = time_of_task_record(record);
		return 0;
	}

	r = trailer_take(&body, attr->sample_type, &t);
	if (r < 0)
		return r;
	if (is_guest_id(s, t.id))
		return PERFREC_END;
	record->time = t.time;
	record->cpu = t.cpu;
	record->pid = t.pid;
	record->tid = t.tid;
	record->payload_size = cursor_left(&body);
	return 0;
}

/*
 * The attrs, and what tracepoints there are, are all known only now: in the pipe form they come as
 * records.
 *
 * Return: how many records are left.
 */
static size_t read_records(struct perfstream *s, struct trace_record *records, bool *ret_is_foreign)
{
	struct trace *trace = s->trace;
	static uint8_t none[1];
	uint8_t *payloads = trace->payloads.items ?: none;
	size_t n_kept = 0;

	for (size_t i = 0; i < s->records.n; i++) {
		uint8_t *payload = payloads + records[i].payload_at;
		bool is_foreign = false;
		int r;

		records[i].payload = payload;
		r = records[i].type == PERF_RECORD_SAMPLE
			? take_sample(s, &records[i], payload, &is_foreign)
			: take_trailer(s, &records[i]);
		*ret_is_foreign = *ret_is_foreign || is_foreign;
		trace->n_skipped += r < 0;
		trace->n_guest += r == PERFREC_END && records[i].type != PERF_RECORD_SAMPLE;
		trace->n_switch_samples += records[i].type == PERF_RECORD_SAMPLE && r == 0;
		if (r == 0)
			records[n_kept++] = records[i];
		if (i % TRACE_EVICT_RECORDS == 0) {
			trace_evict(trace);
			table_evict(&s->records);
		}
	}
	return n_kept;
}

static size_t drop_switches(struct trace *trace, struct trace_record *records, size_t n)
{
	size_t n_kept = 0;

	for (size_t i = 0; i < n; i++)
		if (records[i].type != PERF_RECORD_SAMPLE)
			records[n_kept++] = records[i];
	trace->n_switch_samples = 0;
	return n_kept;
}

static int complain_of_guests(struct perfstream *s)
{
	char *text;

	if (s->trace->n_guest == 0)
		return 0;
	if (vec_reserve(&s->trace->bytes, 1) < 0 ||
	    asprintf(&text,
		     "its records of guests are not used, since they state nothing of this "
		     "machine's processes: %zu are left out",
		     s->trace->n_guest) < 0)
		return complain_memory(s);
	s->trace->complaints[TRACE_COMPLAINT_GUESTS] = text;
	s->trace->bytes.items[s->trace->bytes.n++] = (uint8_t *)text;
	return 0;
}

static int finish_records(struct perfstream *s)
{
	struct trace *trace = s->trace;
	bool is_foreign = false;
	size_t n_kept = 0;
	int r;

	r = table_finish(&s->records) ?: table_finish(&trace->payloads);
	if (r == 0)
		n_kept = read_records(s, s->records.items, &is_foreign);
	if (is_foreign) {
		n_kept = drop_switches(trace, s->records.items, n_kept);
		trace->complaints[TRACE_COMPLAINT_SWITCHES] =
		    "its samples of sched_switch are not used: they have the threads' "
		    "numbers in another pid namespace than the recorder's";
	} else if (s->has_unknown_samples && !s->has_switches &&
		   !s->tracepoints[TRACEPOINT_SCHED_SWITCH].is_known) {
		trace->complaints[TRACE_COMPLAINT_SWITCHES] =
		    "its samples of tracepoints are not used: it does not say what sched_switch, "
		    "which tells who runs, looks like";
	}
	if (r == 0)
		r = recsort(&s->records, n_kept, &trace->record_table);
	if (r < 0)
		return complain(s, r, "cannot sort the records: %s", strerror(-r));
	trace->records = trace->record_table.items;
	trace->n_records = n_kept;
	return 0;
}

/* Without a relation between the clocks, nothing says when a packet was written. */
static void complain_of_clock(struct perfstream *s)
{
	const struct perfattrs *attrs = &s->attrs;
	bool is_chosen = false;

	if (s->trace->facts.clock.valid)
		return;
	for (size_t i = 0; i < attrs->list.n; i++)
		is_chosen = is_chosen || attrs->list.items[i].use_clockid;
	s->trace->complaints[TRACE_COMPLAINT_CLOCK] =
	    is_chosen ? "its records have the times of a clock that perf record -k chose, and "
			"AUXTRACE_INFO does not relate the TSC to it: which thread ran when is "
			"not known. Record without -k"
		      : "AUXTRACE_INFO does not say how the TSC relates to the clock of the "
			"records: which thread ran when is not known";
}

static int finish_facts(struct perfstream *s)
{
	int r;

	if (!s->info_offset)
		return complain(s, -ENODATA, "holds no Intel PT (no AUXTRACE_INFO record)");
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
		    s->info.slots[PERFABI_PT_TIME_MULT], TSC_SHIFT_MAX);

	if (s->info.slots[PERFABI_PT_FILTER_STR_LEN] > 0 &&
	    (!s->info.filter ||
	     addrfilter_read(s->info.filter, s->info.slots[PERFABI_PT_FILTER_STR_LEN],
			     &s->trace->facts.filters) < 0))
		s->trace->complaints[TRACE_COMPLAINT_FILTER] =
		    "its address filter is not used: it is none that perf record writes";
	s->trace->facts.snapshot_mode = s->trace->facts.snapshot_mode || s->has_samples;
	complain_of_clock(s);
	return 0;
}

static int finish_queues(struct perfstream *s)
{
	int r;

	r = auxqueues_make(s->pieces.items, s->pieces.n,
			   s->info.slots[PERFABI_PT_PER_CPU_MMAPS] != 0, s->trace);
	return r < 0 ? complain(s, r, "cannot put the PT together: %s", strerror(-r)) : 0;
}

int perfstream_finish(struct perfstream *s, struct trace **ret_trace)
{
	int r;

	r = finish_facts(s) ?: finish_records(s) ?: complain_of_guests(s) ?: finish_queues(s);
	if (r < 0)
		return r;
	*ret_trace = TAKE(s->trace);
	return 0;
}
