/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Recordings: real perf.data files of both forms, which lie outside of the project. What perf
 * script lists of each must be what we read, record by record.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decoder/file/input.h"
#include "decoder/sideband/timeline.h"
#include "ptd/record.h"
#include "util/perf/perfabi.h"

#define DATA      "../shared/data/perfdata/"
#define LIST      " --show-mmap-events --show-task-events --show-switch-events 2>/dev/null"
#define FILE_FORM DATA "perf.data.intel_pt-4.14"
#define PIPE_FORM DATA "perf.data.piped.intel_pt-4.14"

static const char *const files[] = { FILE_FORM, PIPE_FORM };

/* What one line of perf says, or one record of ours. */
struct line {
	uint32_t type;
	uint32_t tid; /* of the trailer */
	uint32_t cpu;
	uint64_t time_us;
	bool out;
	uint32_t other_tid;
};

static const struct {
	const char *name;
	uint32_t type;
} names[] = {
	{ "PERF_RECORD_MMAP ", PERF_RECORD_MMAP },
	{ "PERF_RECORD_MMAP2 ", PERF_RECORD_MMAP2 },
	{ "PERF_RECORD_COMM", PERF_RECORD_COMM },
	{ "PERF_RECORD_FORK", PERF_RECORD_FORK },
	{ "PERF_RECORD_EXIT", PERF_RECORD_EXIT },
	{ "PERF_RECORD_SWITCH_CPU_WIDE", PERF_RECORD_SWITCH_CPU_WIDE },
};

/* "   echo  3174 [003]   641.256876: PERF_RECORD_…". Return: whether the line is one of ours. */
static bool parse_line(const char *text, struct line *ret_line)
{
	const char *record = strstr(text, "PERF_RECORD_"), *next, *at;
	struct line line = {};
	uint64_t s, us;

	for (size_t i = 0; record && i < ARRAY_LEN(names); i++)
		if (strncmp(record, names[i].name, strlen(names[i].name)) == 0)
			line.type = names[i].type;
	if (!line.type)
		return false;

	at = strchr(text, '[');
	assert_non_null(at);
	while (at[-1] == ' ')
		at--;
	while (at[-1] != ' ' && at[-1] != ':')
		at--;
	assert_int_equal(sscanf(at, "%" SCNu32 " [%" SCNu32 "] %" SCNu64 ".%" SCNu64 ":", &line.tid,
				&line.cpu, &s, &us),
			 4);
	line.time_us = s * 1000000 + us;

	if (line.type == PERF_RECORD_SWITCH_CPU_WIDE) {
		line.out = strstr(record, " OUT ") != NULL;
		next = strstr(record, "pid/tid:");
		assert_non_null(next);
		next = strchr(next, '/') + 1;
		next = strchr(next, '/') + 1;
		line.other_tid = (uint32_t)strtoul(next, NULL, 10);
	}
	*ret_line = line;
	return true;
}

static struct line line_of(const struct trace_record *record)
{
	struct line line = {
		.type = record->type,
		.tid = record->tid,
		.cpu = record->cpu,
		.time_us = record->time / 1000,
	};

	if (record->type == PERF_RECORD_SWITCH_CPU_WIDE) {
		line.out = record->misc & PERF_RECORD_MISC_SWITCH_OUT;
		assert_int_equal(record->payload_size, 8);
		memcpy(&line.other_tid, record->payload + 4, 4);
	}
	return line;
}

static bool is_listed(uint32_t type)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (names[i].type == type)
			return true;
	return false;
}

/* The next record that perf lists, at or behind @at; the number of records if there is none. */
static size_t next_listed(const struct trace *trace, size_t at)
{
	while (at < trace->n_records && !is_listed(trace->records[at].type))
		at++;
	return at;
}

/*
 * perf shows the thread that a COMM, FORK or EXIT is about, not that of its trailer; and times
 * rounded down. Both list by time, and in the order of the file for one time.
 */
static void compare(const char *file, const char *command, size_t n_switches)
{
	_cleanup_(trace_freep) struct trace *trace = NULL;
	struct line ours, theirs;
	char *message = NULL;
	char text[4096];
	size_t at = 0;
	FILE *perf;

	if (input_open(file, false, NULL, &trace, &message) < 0)
		fail_msg("%s", message);
	perf = popen(command, "re");
	assert_non_null(perf);

	while (fgets(text, sizeof(text), perf)) {
		if (!parse_line(text, &theirs))
			continue;
		at = next_listed(trace, at);
		assert_true(at < trace->n_records);
		ours = line_of(&trace->records[at++]);
		assert_int_equal(ours.type, theirs.type);
		assert_int_equal(ours.cpu, theirs.cpu);
		assert_int_equal(ours.time_us, theirs.time_us);
		if (ours.type == PERF_RECORD_SWITCH_CPU_WIDE) {
			n_switches--;
			assert_int_equal(ours.tid, theirs.tid);
			assert_int_equal(ours.out, theirs.out);
			assert_int_equal(ours.other_tid, theirs.other_tid);
		}
	}
	assert_int_equal(pclose(perf), 0);
	assert_int_equal(next_listed(trace, at), trace->n_records);
	assert_int_equal(n_switches, 0);
}

static void same_as_perf(void **state)
{
	(void)state;
	compare(FILE_FORM, "perf script -i " FILE_FORM LIST, 152);
	compare(PIPE_FORM, "cat " PIPE_FORM " | perf script -i -" LIST, 552);
}

/* At each switch the timeline has who leaves before it, and who comes from it on. */
static void timeline_follows_switches(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		_cleanup_(timeline_freep) struct timeline *timeline = NULL;
		_cleanup_(objects_freep) struct objects *objects = NULL;
		_cleanup_(trace_freep) struct trace *trace = NULL;
		char *message = NULL;
		size_t n = 0;

		if (input_open(files[i], false, NULL, &trace, &message) < 0)
			fail_msg("%s", message);
		assert_int_equal(objects_new(NULL, &objects), 0);
		assert_int_equal(timeline_new(trace, objects, &timeline), 0);
		assert_int_equal(timeline_n_skipped(timeline), 0);

		for (size_t k = 0; k < trace->n_records; k++) {
			const struct trace_record *record = &trace->records[k];
			struct stay before, after;

			if (record->type != PERF_RECORD_SWITCH_CPU_WIDE)
				continue;
			timeline_at(timeline, record->cpu, record->time - 1, &before);
			timeline_at(timeline, record->cpu, record->time, &after);
			if (record->misc & PERF_RECORD_MISC_SWITCH_OUT) {
				assert_int_equal(before.tid, record->tid);
				assert_int_equal(after.tid, line_of(record).other_tid);
			} else {
				assert_int_equal(after.tid, record->tid);
			}
			n++;
		}
		assert_true(n > 100);
	}
}

/* The workload was run by perf: its exec, its ten mappings of code. */
static void space_of_the_workload(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		_cleanup_(timeline_freep) struct timeline *timeline = NULL;
		_cleanup_(objects_freep) struct objects *objects = NULL;
		_cleanup_(trace_freep) struct trace *trace = NULL;
		char *message = NULL;
		struct stay stay;

		if (input_open(files[i], false, NULL, &trace, &message) < 0)
			fail_msg("%s", message);
		assert_int_equal(objects_new(NULL, &objects), 0);
		assert_int_equal(timeline_new(trace, objects, &timeline), 0);

		timeline_at_tid(timeline, i == 0 ? 3174 : 3587, 0, &stay);
		assert_string_equal(stay.comm, "perf");
		assert_int_equal(space_generation(stay.space, UINT64_MAX), 0);
		timeline_at_tid(timeline, i == 0 ? 3174 : 3587, UINT64_MAX - 1, &stay);
		assert_string_equal(stay.comm, "echo");
		assert_int_equal(space_generation(stay.space, UINT64_MAX), 10);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_as_perf),
		cmocka_unit_test(timeline_follows_switches),
		cmocka_unit_test(space_of_the_workload),
	};

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		if (access(files[i], R_OK) < 0) {
			fprintf(stderr, "SKIP: no %s (not part of the project)\n", files[i]);
			return 77;
		}
	}
	if (system("perf version >/dev/null 2>&1") != 0) {
		fprintf(stderr, "SKIP: no perf (linux-perf) to judge by\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
