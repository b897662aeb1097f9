/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/soft/poolrecords.h"

#include <string.h>

#include "base/cursor.h"
#include "daemon/emu/coderecord.h"
#include "daemon/emu/poolrecord.h"
#include "daemon/source/source.h"
#include "record/codec.h"
#include "record/record.h"

static bool believe(struct poolrecords *r, uint32_t number)
{
	return poolclaims_believe(&r->walk, number);
}

/* Return: whether both the process and its thread are believed to be the user's. */
static bool believe_thread(struct poolrecords *r, uint32_t pid, uint32_t tid)
{
	return believe(r, pid) && (tid == pid || believe(r, tid));
}

/* Root may write what it likes, since nobody else can. */
static bool is_root(const struct poolrecords *r)
{
	return r->walk.uid == 0;
}

static bool is_time_ok(const struct poolrecords *r, uint64_t time)
{
	const uint64_t late = POOLRECORDS_LATE_NS;

	return is_root(r) ||
	       (time <= r->now_ns && time >= (r->since_ns > late ? r->since_ns - late : 0));
}

static bool is_cpu_ok(const struct poolrecords *r, uint32_t cpu)
{
	return is_root(r) || cpu == POOLRECORD_NO_CPU || cpu - r->first_cpu < r->n_cpus;
}

/* --- tasks ------------------------------------------------------------------------------------ */

/* pid, ppid, tid and ptid follow the header. */
enum { PPID = 1, PTID = 3 };

static void set_id(uint8_t *bytes, size_t i, uint32_t id)
{
	memcpy(bytes + sizeof(struct perf_event_header) + i * sizeof(id), &id, sizeof(id));
}

/* The parent of the first program is not recorded, and may be another user's: then nothing is said
 * about it. */
static bool take_task(struct poolrecords *r, const struct record *record, uint8_t *bytes)
{
	struct record_task task;

	if (record_read_task(record->body, &task) < 0 || !believe_thread(r, task.pid, task.tid) ||
	    !is_time_ok(r, task.time))
		return false;
	if (!believe(r, task.ppid))
		set_id(bytes, PPID, 0);
	if (!believe(r, task.ptid))
		set_id(bytes, PTID, task.ppid == task.pid ? task.pid : 0);
	return true;
}

static bool take_mapping(struct poolrecords *r, const struct record *record)
{
	struct record_mmap2 mmap;

	return record_get_mmap2(record, &mmap) == 0 &&
	       (mmap.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER &&
	       believe_thread(r, mmap.pid, mmap.tid);
}

static bool take_comm(struct poolrecords *r, const struct record *record)
{
	struct record_comm comm;

	return record_read_comm(record->header.misc, record->body, &comm) == 0 &&
	       believe_thread(r, comm.pid, comm.tid);
}

/* @bytes: of the record, which may be changed */
static bool take_task_record(struct poolrecords *r, const struct record *record, uint8_t *bytes)
{
	const struct trailer *t = &record->trailer;

	if (!is_time_ok(r, t->time) || !is_cpu_ok(r, t->cpu) || !believe_thread(r, t->pid, t->tid))
		return false;
	switch (record->header.type) {
	case PERF_RECORD_COMM:
		return take_comm(r, record);
	case PERF_RECORD_MMAP2:
		return take_mapping(r, record);
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return take_task(r, record, bytes);
	default:
		return false;
	}
}

static void lose_tasks(struct poolrecords *r, uint64_t n, uint64_t time)
{
	r->n_lost = n < UINT64_MAX - r->n_lost ? r->n_lost + n : UINT64_MAX;
	r->lost_ns = time < r->now_ns ? time : r->now_ns;
}

size_t poolrecords_tasks(struct poolrecords *records, uint8_t *bytes, size_t size)
{
	struct cursor c = cursor_from(bytes, size);
	struct record_lost lost;
	struct record record;
	size_t n = 0, at = 0;
	int r;

	for (; (r = record_next(&c, &record)) == 0; at += record.header.size) {
		if (record.header.type == PERF_RECORD_LOST) {
			if (record_read_lost(record.body, &lost) == 0 && lost.lost > 0)
				lose_tasks(records, lost.lost, record.trailer.time);
			continue;
		}
		if (!take_task_record(records, &record, bytes + at)) {
			records->n_refused++;
			continue;
		}
		if (records->note_writer)
			records->note_writer(records->userdata, record.trailer.pid);
		memmove(bytes + n, bytes + at, record.header.size);
		record_set_writer(bytes + n, record.header.size, RECORD_OF_USER(records->walk.uid));
		n += record.header.size;
	}
	if (r < 0)
		lose_tasks(records, 1, records->now_ns);
	return n;
}

/* --- code ------------------------------------------------------------------------------------- */

/* Read the record at the cursor. Return: whether it makes sense. */
static bool next_code(struct cursor *c, struct coderecord *ret_record)
{
	struct cursor code;

	return cursor_get(c, sizeof(*ret_record), ret_record) == 0 &&
	       coderecord_makes_sense(ret_record) &&
	       (ret_record->kind == CODERECORD_START || ret_record->kind == CODERECORD_NEW ||
		ret_record->kind == CODERECORD_CHANGED) &&
	       cursor_get_sub(c, ret_record->size - sizeof(*ret_record), &code) == 0;
}

static bool take_code(struct poolrecords *r, struct coderecord *record)
{
	/* The code of its time is used, whenever it was handed over; but none that is to come. */
	if (!is_root(r) && (record->time > r->now_ns || record->start > r->now_ns))
		return false;
	if (!believe(r, record->pid))
		return false;
	if (record->kind != CODERECORD_START || !believe(r, record->parent_pid))
		record->parent_pid = 0;
	record->uid = r->walk.uid;
	return true;
}

size_t poolrecords_code(struct poolrecords *records, uint8_t *bytes, size_t size, bool *ret_torn)
{
	struct cursor c = cursor_from(bytes, size);
	struct coderecord record;
	size_t n = 0, at = 0;

	*ret_torn = false;
	for (; cursor_left(&c) > 0; at = size - cursor_left(&c)) {
		if (!next_code(&c, &record)) {
			*ret_torn = true;
			break;
		}
		if (!take_code(records, &record)) {
			records->n_refused++;
			continue;
		}
		memmove(bytes + n, bytes + at, record.size);
		memcpy(bytes + n, &record, sizeof(record));
		n += record.size;
	}
	return n;
}

/* --- who ran ---------------------------------------------------------------------------------- */

/* 0/0 is the idle CPU. */
static bool believe_runner(struct poolrecords *r, uint32_t pid, uint32_t tid)
{
	return (pid == 0 && tid == 0) || believe_thread(r, pid, tid);
}

static bool take_switch(struct poolrecords *r, const struct record *record)
{
	const struct trailer *t = &record->trailer;
	struct record_switch sw = {};
	struct record_ids who = {};

	switch (record->header.type) {
	case PERF_RECORD_ITRACE_START:
		if (record_read_itrace_start(record->body, &who) < 0)
			return false;
		break;
	case PERF_RECORD_SWITCH_CPU_WIDE:
		if (record_read_switch(record->header.type, record->header.misc, record->body,
				       &sw) < 0)
			return false;
		break;
	default:
		return false;
	}
	/* Switch records go to a snapshot as they are, and only ptd notes whose program wrote a
	 * record: one that says so itself is forged. */
	return record->writer == RECORD_TRUE && believe_runner(r, t->pid, t->tid) &&
	       believe_runner(r, who.pid, who.tid) && believe_runner(r, sw.other.pid, sw.other.tid);
}

size_t poolrecords_switches(struct poolrecords *records, uint8_t *bytes, size_t size)
{
	struct cursor c = cursor_from(bytes, size);
	struct record record;
	size_t n = 0, at = 0;

	for (; record_next(&c, &record) == 0; at += record.header.size) {
		if (!take_switch(records, &record)) {
			records->n_refused++;
			continue;
		}
		memmove(bytes + n, bytes + at, record.header.size);
		n += record.header.size;
	}
	return n;
}

size_t poolrecords_events(struct poolrecords *records, struct source_event *events, size_t n)
{
	size_t n_taken = 0;

	for (size_t i = 0; i < n; i++) {
		if (believe_thread(records, events[i].pid, events[i].tid))
			events[n_taken++] = events[i];
		else
			records->n_refused++;
	}
	return n_taken;
}
