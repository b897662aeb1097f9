/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/file/perfstream.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/file/perfsample.h"
#include "decoder/trace/bpfprog.h"
#include "decoder/trace/recsort.h"
#include "record/codec.h"
#include "record/perfabi.h"
#include "record/perfrec.h"

#define CPUID_SIZE_MAX 64

/* Records that have been walked over are evicted from memory in steps of so many bytes. */
#define EVICT_SIZE (ptrdiff_t)(1 << 18)

#define complain perfstream_complain

int perfstream_init(struct perfstream *s, const struct perfstream_file *file,
		    struct reading *reading, char **reterr_message)
{
	struct spills *spills = reading_spills(reading);

	*s = (struct perfstream){
		.file = *file,
		.reading = reading,
		.reterr_message = reterr_message,
		.bytes = file->bytes,
		.expand.out.spills = spills,
		.trace = calloc(1, sizeof(*s->trace)),
	};
	table_init(&s->records, sizeof(struct trace_record), spills);
	if (s->trace) {
		s->trace->spills = spills;
		table_init(&s->trace->record_table, sizeof(struct trace_record), spills);
	}
	return s->trace ? 0 : complain(s, -ENOMEM, "out of memory");
}

void perfstream_deinit(struct perfstream *s)
{
	expand_deinit(&s->expand);
	perfattrs_deinit(&s->attrs);
	vec_deinit(&s->pieces);
	table_deinit(&s->records);
	if (s->trace)
		s->trace = trace_free(s->trace);
}

void perfstream_next_file(struct perfstream *s, const struct perfstream_file *file)
{
	s->file = *file;
	s->bytes = file->bytes;
	s->is_endless = true;
}

uint64_t perfstream_offset(const struct perfstream *s, const void *position)
{
	const uint64_t offset = (uint64_t)((const uint8_t *)position - s->bytes);

	return s->expanded ? expand_file_offset(&s->expand, offset) : offset;
}

static int complain_memory(struct perfstream *s)
{
	return complain(s, -ENOMEM, "out of memory");
}

static uint64_t offset_of(const struct perfstream *s, const struct perfrec *rec)
{
	return perfstream_offset(s, rec->body.pos - sizeof(struct perf_event_header));
}

static int complain_record(struct perfstream *s, int r, const struct perfrec *rec, const char *what)
{
	if (r == -ENOMEM)
		return complain_memory(s);
	return complain(s, r, "the %srecord of type %" PRIu32 " at offset %" PRIu64 ": %s",
			s->expanded ? "compressed " : "", rec->type, offset_of(s, rec), what);
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
	const struct trace_record record = {
		.type = rec->type,
		.misc = rec->misc,
		.cpu = TRACE_NONE,
		.pid = TRACE_NONE,
		.tid = TRACE_NONE,
		.file_offset = offset_of(s, rec),
		.payload = rec->body.pos,
		.payload_size = cursor_left(&rec->body),
	};

	return table_push(&s->records, &record);
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

static void read_tracepoints(struct perfstream *s, struct cursor body)
{
	/* What is missing is said if it is needed. */
	if (!s->sched_switch.is_known)
		(void)!tracepoint_find(body, &s->sched_switch);
}

static int read_programs(struct perfstream *s, struct cursor body)
{
	uint32_t n = 0;
	int r;

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

int perfstream_feature(struct perfstream *s, uint64_t feature, struct cursor body)
{
	switch (feature) {
	case PERFABI_FEATURE_TRACING_DATA:
		read_tracepoints(s, body);
		return 0;
	case PERFABI_FEATURE_CPUID:
		read_cpuid(s, body);
		return 0;
	case PERFABI_FEATURE_BUILD_ID:
		return read_build_ids(s, body);
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

	r = record_read_auxtrace_info(rec->body, &s->info);
	if (r < 0)
		return complain_record(s, r, rec, "too short for the type of AUX trace");
	if (s->info.type != PERFABI_AUXTRACE_INTEL_PT)
		return complain_record(s, -EOPNOTSUPP, rec, "the AUX trace is no Intel PT");

	s->info_offset = offset_of(s, rec);
	return 0;
}

static int add_piece(struct perfstream *s, uint32_t idx, int32_t cpu, int32_t tid,
		     const struct trace_span *span)
{
	const int r =
	    vec_push(&s->pieces,
		     { .order = s->pieces.n, .idx = idx, .cpu = cpu, .tid = tid, .span = *span });

	return r < 0 ? complain_memory(s) : 0;
}

/*
 * The bytes of an AUXTRACE record follow it. Return: 0, PERFREC_TRUNCATED if they are not all
 * there, or negative errno.
 */
static int on_auxtrace(struct perfstream *s, const struct perfrec *rec, struct cursor *stream)
{
	/* What is left of a file that was cut off is this record's, as far as it goes. In one that
	 * is whole, a record that wants more than there is lies about its size. */
	const bool is_cut = s->is_endless || s->trace->truncated_at;
	struct record_auxtrace a;
	struct cursor bytes;
	bool truncated;
	int r;

	r = record_read_auxtrace(rec->body, &a);
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
		r = add_piece(s, a.idx, a.cpu, a.tid,
			      &(struct trace_span){
				  .bytes = bytes.pos,
				  .size = (size_t)a.size,
				  .offset = a.offset,
				  .reference = a.reference,
				  .file_offset = perfstream_offset(s, bytes.pos),
			      });
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

	if (attr && attr->type == PERF_TYPE_TRACEPOINT) {
		s->has_tracepoints = true;
		if (add_record(s, rec) < 0)
			return complain_memory(s);
	}
	if (!attr || !(attr->sample_type & PERF_SAMPLE_AUX))
		return 0;
	if (perfsample_read(rec->body, attr, &sample) < 0) {
		s->trace->n_skipped++;
		return 0;
	}
	s->has_samples = true;
	if (cursor_left(&sample.aux) == 0)
		return 0;
	return add_piece(s, sample.cpu != UINT32_MAX ? sample.cpu : sample.tid, (int32_t)sample.cpu,
			 (int32_t)sample.tid,
			 &(struct trace_span){
			     .bytes = sample.aux.pos,
			     .size = cursor_left(&sample.aux),
			     .file_offset = perfstream_offset(s, sample.aux.pos),
			 });
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

	r = expand_add(&s->expand, bytes, offset_of(s, rec));
	if (r == -EBADMSG)
		return complain_record(s, r, rec, "its bytes do not go on the zstd stream");
	if (r == -EFBIG)
		return complain_record(s, r, rec,
				       "expands to more than any recording would: the file is "
				       "damaged");
	return r < 0 ? complain_record(s, r, rec, strerror(-r)) : 0;
}

/* The bytes of what perf knows of tracepoints follow the record. */
static int on_tracing_data(struct perfstream *s, struct cursor *stream, const struct perfrec *rec)
{
	struct cursor c = rec->body, body;
	uint32_t size;

	if (cursor_get(&c, sizeof(size), &size) < 0)
		return 0;
	if (cursor_get_sub(stream, size, &body) < 0)
		return PERFREC_TRUNCATED;
	read_tracepoints(s, body);
	return 0;
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
		return on_compressed(s, rec);
	case PERFABI_HEADER_TRACING_DATA:
		return on_tracing_data(s, stream, rec);
	case PERF_RECORD_SAMPLE:
		return on_sample(s, rec);
	case PERFABI_HEADER_BUILD_ID:
		return add_record(s, rec) < 0 ? complain_memory(s) : 0;
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		s->has_switches = true;
		return add_record(s, rec) < 0 ? complain_memory(s) : 0;
	default:
		if (rec->type < PERF_RECORD_MAX)
			return add_record(s, rec) < 0 ? complain_memory(s) : 0;
		s->trace->n_unknown +=
		    rec->type < PERFABI_HEADER_ATTR || rec->type >= _PERFABI_TYPE_END;
		return 0;
	}
}

/* The bytes up to @end were read. Return: 0 or -ECANCELED, with a message. */
static int count_progress(struct perfstream *s, const uint8_t *start, const uint8_t *end)
{
	const int r = progress_add(reading_progress(s->reading), (uint64_t)(end - start));

	return r < 0 ? complain(s, r, "was not read to its end, since that was canceled") : 0;
}

static int walk_records(struct perfstream *s, struct cursor records)
{
	const uint8_t *evicted = records.pos;
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
			return count_progress(s, evicted, records.pos);
		if (r == PERFREC_TRUNCATED) {
			s->trace->truncated_at = at;
			return 0;
		}
		if (r < 0)
			return r;
		if (records.pos - evicted >= EVICT_SIZE) {
			r = count_progress(s, evicted, records.pos);
			if (r < 0)
				return r;
			trace_evict(s->trace, evicted, (size_t)(records.pos - evicted));
			evicted = records.pos;
		}
	}
}

static int walk_expanded(struct perfstream *s)
{
	struct mapfile map;
	int r;

	r = vec_reserve(&s->trace->files, 1);
	if (r == 0)
		r = expand_finish(&s->expand, &map);
	if (r < 0)
		return complain(s, r, "cannot expand the compressed records: %s", strerror(-r));
	s->trace->files.items[s->trace->files.n++] = map;

	s->bytes = map.bytes;
	s->expanded = true;
	r = walk_records(s, cursor_from(map.bytes, map.size));
	s->expanded = false;
	s->bytes = s->file.bytes;
	return r;
}

int perfstream_read(struct perfstream *s, struct cursor records)
{
	int r;

	r = walk_records(s, records);
	if (r == 0 && expand_used(&s->expand))
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

/*
 * Make of a tracepoint's sample what struct trace_record says of those of sched_switch. Who leaves
 * is told twice: as the recorder sees the thread, and by its number for the kernel. If the two
 * differ, the recorder is in a pid namespace, and then the number of who comes says nothing. (What
 * runs last of a thread has no number for the recorder.)
 *
 * Return: 0; PERFREC_END if it is not used; -EBADMSG if it is too short.
 */
static int take_switch(const struct perfstream *s, struct trace_record *record,
		       bool *ret_is_foreign)
{
	const struct cursor body = cursor_from(record->payload, record->payload_size);
	const struct perfattr *attr = perfsample_attr(&s->attrs, body);
	struct perfsample sample;
	struct cursor next;
	uint32_t prev;
	int r;

	if (s->has_switches || !s->sched_switch.is_known || attr->config != s->sched_switch.id)
		return PERFREC_END;
	r = perfsample_read(body, attr, &sample);
	if (r == 0)
		r = tracepoint_read(&s->sched_switch, sample.raw, &prev, &next);
	if (r < 0)
		return r;

	*ret_is_foreign = sample.tid != TRACE_NONE && sample.tid != prev;
	record->time = sample.time;
	record->cpu = sample.cpu;
	record->pid = sample.pid;
	record->tid = sample.tid;
	record->payload = next.pos;
	record->payload_size = cursor_left(&next);
	return 0;
}

/* Return: 0, or -EBADMSG if the record is too short for its trailer. */
static int take_trailer(const struct perfstream *s, struct trace_record *record)
{
	struct cursor body = cursor_from(record->payload, record->payload_size);
	const struct perfattr *attr;
	struct trailer t;
	int r;

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
	size_t n_kept = 0;

	for (size_t i = 0; i < s->records.n; i++) {
		const bool is_switch = records[i].type == PERF_RECORD_SAMPLE;
		bool is_foreign = false;
		const int r = is_switch ? take_switch(s, &records[i], &is_foreign)
					: take_trailer(s, &records[i]);

		*ret_is_foreign = *ret_is_foreign || is_foreign;
		trace->n_skipped += r < 0;
		trace->n_switch_samples += is_switch && r == 0;
		if (r == 0)
			records[n_kept++] = records[i];
		if (i % TRACE_EVICT_RECORDS == 0) {
			trace_evict_all(trace);
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

static int finish_records(struct perfstream *s)
{
	struct trace *trace = s->trace;
	bool is_foreign = false;
	size_t n_kept = 0;
	int r;

	r = table_finish(&s->records);
	if (r == 0)
		n_kept = read_records(s, s->records.items, &is_foreign);
	if (is_foreign) {
		n_kept = drop_switches(trace, s->records.items, n_kept);
		trace->complaints[TRACE_COMPLAINT_SWITCHES] =
		    "its samples of sched_switch are not used: they have the threads' "
		    "numbers in another pid namespace than the recorder's";
	} else if (s->has_tracepoints && !s->has_switches && !s->sched_switch.is_known) {
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

	r = finish_facts(s) ?: finish_records(s) ?: finish_queues(s);
	if (r < 0)
		return r;
	*ret_trace = TAKE(s->trace);
	return 0;
}
