/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/soft/poolrecords.h"

#include <string.h>

#include "base/cursor.h"
#include "daemon/plugin/coderecord.h"
#include "daemon/plugin/poolrecord.h"
#include "util/perf/codec.h"
#include "util/perf/record.h"

static bool is_number(uint32_t number)
{
	return number > 0 && number <= INT32_MAX;
}

static bool is_thread(uint32_t pid, uint32_t tid)
{
	return is_number(pid) && is_number(tid);
}

static bool is_cpu_ok(const struct poolrecords *r, uint32_t cpu)
{
	return cpu == POOLRECORD_NO_CPU || cpu < r->n_cpus;
}

/* --- tasks ------------------------------------------------------------------------------------ */

static bool is_task_ok(const struct poolrecords *r, const struct record *record)
{
	struct record_task task;

	return record_read_task(record->body, &task) == 0 && is_thread(task.pid, task.tid) &&
	       task.time <= r->now_ns;
}

static bool is_mapping_ok(const struct record *record)
{
	struct record_mmap2 mmap;

	return record_get_mmap2(record, &mmap) == 0 &&
	       (mmap.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER &&
	       is_thread(mmap.pid, mmap.tid);
}

static bool is_comm_ok(const struct record *record)
{
	struct record_comm comm;

	return record_read_comm(record->header.misc, record->body, &comm) == 0 &&
	       is_thread(comm.pid, comm.tid);
}

static bool is_task_record_ok(const struct poolrecords *r, const struct record *record)
{
	const struct trailer *t = &record->trailer;

	if (t->time > r->now_ns || !is_cpu_ok(r, t->cpu) || !is_thread(t->pid, t->tid))
		return false;
	switch (record->header.type) {
	case PERF_RECORD_COMM:
		return is_comm_ok(record);
	case PERF_RECORD_MMAP2:
		return is_mapping_ok(record);
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return is_task_ok(r, record);
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
		if (!is_task_record_ok(records, &record)) {
			records->n_refused++;
			continue;
		}
		records->note_record(records->userdata, &record);
		memmove(bytes + n, bytes + at, record.header.size);
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

static bool take_code(const struct poolrecords *r, struct coderecord *record)
{
	/* The code of its time is used, whenever it was handed over; but none that is to come. */
	if (!is_number(record->pid) || record->time > r->now_ns || record->start > r->now_ns)
		return false;
	if (record->kind != CODERECORD_START || !is_number(record->parent_pid))
		record->parent_pid = 0;
	record->uid = r->user_of(r->userdata, record->pid, record->parent_pid);
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
static bool is_runner(uint32_t pid, uint32_t tid)
{
	return (pid == 0 && tid == 0) || is_thread(pid, tid);
}

static bool is_switch_ok(const struct record *record)
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
	return is_runner(t->pid, t->tid) && is_runner(who.pid, who.tid) &&
	       is_runner(sw.other.pid, sw.other.tid);
}

size_t poolrecords_switches(struct poolrecords *records, uint8_t *bytes, size_t size)
{
	struct cursor c = cursor_from(bytes, size);
	struct record record;
	size_t n = 0, at = 0;

	for (; record_next(&c, &record) == 0; at += record.header.size) {
		if (!is_switch_ok(&record)) {
			records->n_refused++;
			continue;
		}
		memmove(bytes + n, bytes + at, record.header.size);
		n += record.header.size;
	}
	return n;
}
