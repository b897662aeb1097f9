/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/file/perftrace.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "decoder/file/perfrec.h"
#include "decoder/file/perfsample.h"
#include "decoder/file/perfstream.h"
#include "decoder/trace/recsort.h"
#include "util/perfabi.h"

#define complain perfstream_complain

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
	const struct perfattr *attr = perfattrs_of_sample(&s->attrs, body);
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
		if (i % TRACE_RECORDS_REST == 0) {
			trace_rest_all(trace);
			table_rest(&s->records);
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
		    s->info.slots[PERFABI_PT_TIME_MULT], CLOCK_SHIFT_MAX);

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

int perftrace_make(struct perfstream *s, struct trace **ret_trace)
{
	int r;

	r = finish_facts(s) ?: finish_records(s) ?: finish_queues(s);
	if (r < 0)
		return r;
	*ret_trace = TAKE(s->trace);
	return 0;
}
