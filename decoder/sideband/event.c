/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sideband/event.h"

#include <linux/perf_event.h>
#include <string.h>

#include "base/cursor.h"
#include "decoder/file/mmaprec.h"
#include "decoder/file/perfrec.h"

/* Read the pid and the tid of a task. */
static bool read_task(struct cursor *c, uint32_t *ret_pid, uint32_t *ret_tid)
{
	return cursor_get(c, sizeof(*ret_pid), ret_pid) == 0 &&
	       cursor_get(c, sizeof(*ret_tid), ret_tid) == 0;
}

static bool read_mmap(const struct trace_record *record, struct ptd_event *e)
{
	struct mmaprec map;

	if (mmaprec_read(record, &map) < 0)
		return false;
	e->kind = record->type == PERF_RECORD_MMAP ? PTD_EVENT_MMAP : PTD_EVENT_MMAP2;
	e->flags = record->misc & PERF_RECORD_MISC_MMAP_DATA ? PTD_EVENT_DATA : 0;
	e->pid = map.pid;
	e->tid = map.tid;
	e->address = map.start;
	e->size = map.size;
	e->offset = map.offset;
	e->name = map.path;
	e->prot = map.prot;
	e->map_flags = map.flags;
	e->build_id_size = map.build_id.size;
	memcpy(e->build_id, map.build_id.bytes, sizeof(e->build_id));
	e->major = map.major;
	e->minor = map.minor;
	e->inode = map.inode;
	e->inode_generation = map.inode_generation;
	return true;
}

static bool read_comm(const struct trace_record *record, struct cursor c, struct ptd_event *e)
{
	e->kind = PTD_EVENT_COMM;
	e->flags = record->misc & PERF_RECORD_MISC_COMM_EXEC ? PTD_EVENT_EXEC : 0;
	return read_task(&c, &e->pid, &e->tid) && perfrec_get_string(&c, &e->name) == 0;
}

static bool read_life(const struct trace_record *record, struct cursor c, struct ptd_event *e)
{
	uint32_t ids[4]; /* pid, parent's, tid, parent's */

	if (cursor_get(&c, sizeof(ids), ids) < 0)
		return false;
	e->kind = record->type == PERF_RECORD_FORK ? PTD_EVENT_FORK : PTD_EVENT_EXIT;
	e->pid = ids[0];
	e->other_pid = ids[1];
	e->tid = ids[2];
	e->other_tid = ids[3];
	return true;
}

static bool read_switch(const struct trace_record *record, struct cursor c, struct ptd_event *e)
{
	const bool out = record->misc & PERF_RECORD_MISC_SWITCH_OUT;

	e->kind = record->type == PERF_RECORD_SWITCH ? PTD_EVENT_SWITCH : PTD_EVENT_SWITCH_CPU;
	e->flags = out ? PTD_EVENT_OUT : 0;
	if (out && record->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT)
		e->flags |= PTD_EVENT_PREEMPT;
	e->pid = e->current_pid;
	e->tid = e->current_tid;
	return e->kind == PTD_EVENT_SWITCH || read_task(&c, &e->other_pid, &e->other_tid);
}

static bool read_aux(struct cursor c, struct ptd_event *e)
{
	e->kind = PTD_EVENT_AUX;
	return cursor_get(&c, sizeof(e->offset), &e->offset) == 0 &&
	       cursor_get(&c, sizeof(e->size), &e->size) == 0 &&
	       cursor_get(&c, sizeof(e->aux_flags), &e->aux_flags) == 0;
}

static bool read_lost(const struct trace_record *record, struct cursor c, struct ptd_event *e)
{
	uint64_t id;

	e->kind = record->type == PERF_RECORD_LOST ? PTD_EVENT_LOST : PTD_EVENT_LOST_SAMPLES;
	if (e->kind == PTD_EVENT_LOST && cursor_get(&c, sizeof(id), &id) < 0)
		return false;
	return cursor_get(&c, sizeof(e->size), &e->size) == 0;
}

static bool read_itrace_start(struct cursor c, struct ptd_event *e)
{
	e->kind = PTD_EVENT_ITRACE_START;
	return read_task(&c, &e->pid, &e->tid);
}

static bool read_record(const struct trace_record *record, struct ptd_event *e)
{
	const struct cursor c = cursor_from(record->payload, record->payload_size);

	switch (record->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return read_mmap(record, e);
	case PERF_RECORD_COMM:
		return read_comm(record, c, e);
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return read_life(record, c, e);
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		return read_switch(record, c, e);
	case PERF_RECORD_AUX:
		return read_aux(c, e);
	case PERF_RECORD_ITRACE_START:
		return read_itrace_start(c, e);
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		return read_lost(record, c, e);
	default:
		return false;
	}
}

bool event_read(const struct trace_record *record, struct ptd_event *ret_event)
{
	struct ptd_event event = {
		.t = record->time,
		.cpu = record->cpu,
		.current_pid = record->pid,
		.current_tid = record->tid,
	};

	if (!read_record(record, &event))
		return false;
	*ret_event = event;
	return true;
}
