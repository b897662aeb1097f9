/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sideband/sidebandrecord.h"

#include <linux/perf_event.h>
#include <string.h>

#include "base/cursor.h"
#include "util/perf/codec.h"

static bool read_mmap(const struct trace_record *record, struct cursor c, struct ptd_sideband *e)
{
	struct record_mmap2 map;

	if (record_read_mmap2(record->type, record->misc, c, &map) < 0)
		return false;
	e->kind = record->type == PERF_RECORD_MMAP ? PTD_SIDEBAND_MMAP : PTD_SIDEBAND_MMAP2;
	e->flags = map.misc & PERF_RECORD_MISC_MMAP_DATA ? PTD_SIDEBAND_DATA : 0;
	e->pid = map.pid;
	e->tid = map.tid;
	e->address = map.addr;
	e->size = map.len;
	e->offset = map.pgoff;
	e->name = map.name;
	e->prot = map.prot;
	e->map_flags = map.flags;
	e->build_id_size = map.build_id.size;
	memcpy(e->build_id, map.build_id.bytes, sizeof(e->build_id));
	e->major = map.maj;
	e->minor = map.min;
	e->inode = map.ino;
	e->inode_generation = map.ino_generation;
	return true;
}

static bool read_comm(const struct trace_record *record, struct cursor c, struct ptd_sideband *e)
{
	struct record_comm comm;

	if (record_read_comm(record->misc, c, &comm) < 0 || !comm.comm)
		return false;
	e->kind = PTD_SIDEBAND_COMM;
	e->flags = comm.exec ? PTD_SIDEBAND_EXEC : 0;
	e->pid = comm.pid;
	e->tid = comm.tid;
	e->name = comm.comm;
	return true;
}

static bool read_life(const struct trace_record *record, struct cursor c, struct ptd_sideband *e)
{
	struct record_task task;

	if (record_read_task(c, &task) < 0)
		return false;
	e->kind = record->type == PERF_RECORD_FORK ? PTD_SIDEBAND_FORK : PTD_SIDEBAND_EXIT;
	e->pid = task.pid;
	e->other_pid = task.ppid;
	e->tid = task.tid;
	e->other_tid = task.ptid;
	e->signal = e->kind == PTD_SIDEBAND_EXIT ? task.signal : 0;
	return true;
}

static bool read_switch(const struct trace_record *record, struct cursor c, struct ptd_sideband *e)
{
	struct record_switch sw;

	if (record_read_switch(record->type, record->misc, c, &sw) < 0)
		return false;
	e->kind =
	    record->type == PERF_RECORD_SWITCH ? PTD_SIDEBAND_SWITCH : PTD_SIDEBAND_SWITCH_CPU;
	e->flags = (sw.out ? PTD_SIDEBAND_OUT : 0) | (sw.preempt ? PTD_SIDEBAND_PREEMPT : 0);
	e->pid = e->current_pid;
	e->tid = e->current_tid;
	e->other_pid = sw.other.pid;
	e->other_tid = sw.other.tid;
	return true;
}

static bool read_aux(struct cursor c, struct ptd_sideband *e)
{
	struct record_aux aux;

	if (record_read_aux(c, &aux) < 0)
		return false;
	e->kind = PTD_SIDEBAND_AUX;
	e->offset = aux.offset;
	e->size = aux.size;
	e->aux_flags = aux.flags;
	return true;
}

static bool read_lost(struct cursor c, struct ptd_sideband *e)
{
	struct record_lost lost;

	if (record_read_lost(c, &lost) < 0)
		return false;
	e->kind = PTD_SIDEBAND_LOST;
	e->size = lost.lost;
	return true;
}

static bool read_lost_samples(struct cursor c, struct ptd_sideband *e)
{
	e->kind = PTD_SIDEBAND_LOST_SAMPLES;
	return record_read_lost_samples(c, &e->size) == 0;
}

static bool read_itrace_start(struct cursor c, struct ptd_sideband *e)
{
	struct record_ids who;

	if (record_read_itrace_start(c, &who) < 0)
		return false;
	e->kind = PTD_SIDEBAND_ITRACE_START;
	e->pid = who.pid;
	e->tid = who.tid;
	return true;
}

static bool read_signal(struct cursor c, struct ptd_sideband *e)
{
	struct trace_signal signal;

	if (cursor_get(&c, sizeof(signal), &signal) < 0)
		return false;
	e->kind = PTD_SIDEBAND_SIGNAL;
	e->pid = e->current_pid;
	e->tid = e->current_tid;
	e->signal = signal.signal;
	e->code = signal.code;
	e->address = signal.handler;
	return true;
}

static bool read_syscall(struct cursor c, struct ptd_sideband *e)
{
	struct trace_syscall syscall;

	if (cursor_get(&c, sizeof(syscall), &syscall) < 0)
		return false;
	e->kind = PTD_SIDEBAND_SYSCALL;
	e->pid = e->current_pid;
	e->tid = e->current_tid;
	e->number = syscall.number;
	return true;
}

static bool read_record(const struct trace_record *record, struct ptd_sideband *e)
{
	const struct cursor c = trace_record_body(record);

	switch (record->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return read_mmap(record, c, e);
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
		return read_lost(c, e);
	case PERF_RECORD_LOST_SAMPLES:
		return read_lost_samples(c, e);
	case TRACE_RECORD_SIGNAL:
		return read_signal(c, e);
	case TRACE_RECORD_SYSCALL:
		return read_syscall(c, e);
	default:
		return false;
	}
}

bool sidebandrecord_read(const struct trace_record *record, struct ptd_sideband *ret_shown)
{
	struct ptd_sideband shown = {
		.t = record->time,
		.cpu = record->cpu,
		.current_pid = record->pid,
		.current_tid = record->tid,
	};

	if (!read_record(record, &shown))
		return false;
	*ret_shown = shown;
	return true;
}
