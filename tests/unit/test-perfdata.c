/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Perf data: a good file in both forms and what must come out of it; then the same file, spoiled
 * one field at a time, and what the user must be told.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "decoder/file/auxtrace.h"
#include "decoder/file/perfdata.h"
#include "tests/lib/perfbpf.h"
#include "tests/lib/perfbuild.h"
#include "tests/lib/perfbytes.h"
#include "tests/lib/perfsched.h"

#define NO UINT32_MAX

static struct perfbuild b;

static int parse(struct trace **ret_trace, char **reterr_message)
{
	return perfbytes_parse(b.bytes, b.size, "FILE", ret_trace, reterr_message);
}

static struct trace *parse_good(void)
{
	struct trace *trace = NULL;
	char *message = NULL;

	if (parse(&trace, &message) < 0)
		fail_msg("%s", message);
	assert_null(message);
	return trace;
}

static void check_example(const struct trace *trace)
{
	static const struct {
		uint64_t time;
		uint32_t type, cpu, pid, tid;
		size_t payload_size;
	} records[] = {
		{ 0, PERF_RECORD_COMM, 0, 0, 0, 16 },
		{ 0, PERF_RECORD_MMAP2, 0, 0, 0, 64 + 16 },
		{ 100, PERF_RECORD_ITRACE_START, 0, 10, 10, 8 },
		{ 200, PERF_RECORD_FORK, 0, 10, 10, 24 },
		{ 300, PERF_RECORD_SWITCH_CPU_WIDE, 1, 10, 11, 8 },
		{ 350, PERF_RECORD_SWITCH_CPU_WIDE, 1, 0, 0, 8 },
		{ 400, PERF_RECORD_COMM, 0, 10, 10, 16 },
		{ 500, PERF_RECORD_EXIT, 0, 10, 10, 24 },
	};
	const struct trace_facts *f = &trace->facts;

	assert_int_equal(trace->n_records, ARRAY_LEN(records));
	for (size_t i = 0; i < ARRAY_LEN(records); i++) {
		assert_int_equal(trace->records[i].time, records[i].time);
		assert_int_equal(trace->records[i].type, records[i].type);
		assert_int_equal(trace->records[i].cpu, records[i].cpu);
		assert_int_equal(trace->records[i].pid, records[i].pid);
		assert_int_equal(trace->records[i].tid, records[i].tid);
		assert_int_equal(trace->records[i].payload_size, records[i].payload_size);
	}
	assert_int_equal(trace->n_skipped, 0);
	assert_int_equal(trace->truncated_at, 0);

	assert_true(f->clock.valid && f->has_tsc && f->has_mtc && !f->has_cyc);
	assert_true(f->return_compression && !f->snapshot_mode);
	assert_int_equal(f->clock.shift, PERFBUILD_SHIFT);
	assert_int_equal(f->clock.mult, PERFBUILD_MULT);
	assert_int_equal(f->clock.zero, PERFBUILD_ZERO);
	assert_int_equal(f->mtc_freq, 3);
	assert_int_equal(f->nom_freq, 37);
	assert_int_equal(f->tsc_ctc_n, 308);
	assert_int_equal(f->tsc_ctc_d, 2);
	assert_int_equal(f->cpu_family, 6);
	assert_int_equal(f->cpu_model, 85);
	assert_int_equal(f->cpu_stepping, 4);

	assert_int_equal(trace->n_queues, 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(trace->queues[i].cpu, i);
		assert_int_equal(trace->queues[i].tid, TRACE_NONE);
		assert_int_equal(trace->queues[i].n_spans, 1);
		assert_int_equal(trace->queues[i].spans[0].pt.size, 8);
		assert_true(perfbytes_has(&trace->queues[i].spans[0], 0, "\x02", 1));
		assert_int_equal(trace->queues[i].spans[0].offset, i == 0 ? 0 : 64);
	}
}

static void both_forms(void **state)
{
	(void)state;
	for (int pipe = 0; pipe < 2; pipe++) {
		_cleanup_(trace_freep) struct trace *trace = NULL;

		perfbuild_example(&b, pipe);
		trace = parse_good();
		check_example(trace);
	}
}

#define H(field) offsetof(struct perfabi_header, field)
#define SLOT(i)  (PERFBUILD_SLOTS + 8 * (i))
#define FIRST    PERFBUILD_FIRST

static void spoiled(void **state)
{
	static const struct {
		const char *message; /* part of it */
		size_t offset;
		size_t size;
		uint64_t value;
		int expected;
	} rows[] = {
		{ "does not begin with PERFILE2", 0, 1, 'p', -EBADMSG },
		{ "other byte order", 0, 8, PERFABI_MAGIC_SWAPPED, -EOPNOTSUPP },
		{ "says that it has 105 bytes; 104 was expected", H(size), 8, 105, -EBADMSG },
		{ "attr section (256 bytes at offset 99999) lies outside", H(attrs.offset), 8,
		  99999, -EBADMSG },
		{ "attr section (99999 bytes at offset 120) lies outside", H(attrs.size), 8, 99999,
		  -EBADMSG },
		{ "lies outside", H(attrs.size), 8, UINT64_MAX, -EBADMSG },
		{ "attribute at offset 248 has a size below 64 or goes beyond", H(attrs.size), 8,
		  255, -EBADMSG },
		{ "data section (offset 99999) lies outside", H(data.offset), 8, 99999, -EBADMSG },
		{ "data section (offset 0) lies outside", H(data.offset), 8, 0, -EBADMSG },
		{ "attribute at offset 120 has a size below 64", PERFBUILD_ATTR + 4, 4, 63,
		  -EBADMSG },
		{ "attribute at offset 120 has a size below 64 or goes", PERFBUILD_ATTR + 4, 4,
		  UINT32_MAX, -EBADMSG },
		{ "event ids (8 bytes at offset 99999) lies", PERFBUILD_ATTR + 112, 8, 99999,
		  -EBADMSG },
		{ "event ids (99999 bytes at offset 104) lies", PERFBUILD_ATTR + 120, 8, 99999,
		  -EBADMSG },
		{ "no event attribute has the type 6", PERFBUILD_ATTR, 4, 7, -EBADMSG },
		{ "holds no Intel PT", PERFBUILD_DATA, 4, 200, -ENODATA },
		{ "type 70 at offset 376: the AUX trace is no Intel PT", PERFBUILD_DATA + 8, 4, 2,
		  -EOPNOTSUPP },
		{ "type 70 at offset 376: too short", PERFBUILD_DATA + 6, 2, 12, -EBADMSG },
		{ "record at offset 376 says that it is shorter", PERFBUILD_DATA + 6, 2, 7,
		  -EBADMSG },
		{ "record at offset 528 says that it is shorter", FIRST + 6, 2, 0, -EBADMSG },
		{ "no event attribute has the type 9", SLOT(PERFABI_PT_PMU_TYPE), 8, 9, -EBADMSG },
		{ "time shift 33 and", SLOT(PERFABI_PT_TIME_SHIFT), 8, 33, -EBADMSG },
		{ "and multiplier 0;", SLOT(PERFABI_PT_TIME_MULT), 8, 0, -EBADMSG },
		{ "and multiplier 4294967296;", SLOT(PERFABI_PT_TIME_MULT), 8, UINT64_C(1) << 32,
		  -EBADMSG },
		{ "type 81 at offset 528: its bytes do not go on", FIRST, 4, PERFABI_COMPRESSED,
		  -EBADMSG },
		{ "type 83 at offset 528: states more bytes", FIRST, 4, PERFABI_COMPRESSED2,
		  -EBADMSG },
		{ "type 71 at offset 528: an AUXTRACE has 48 bytes", FIRST, 8,
		  PERFABI_AUXTRACE | UINT64_C(40) << 48, -EBADMSG },
		{ "type 80 at offset 528: too short", FIRST, 8,
		  PERFABI_HEADER_FEATURE | UINT64_C(8) << 48, -EBADMSG },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_(freep) char *message = NULL;
		struct trace *trace = (struct trace *)0x1;

		print_message("  %s\n", rows[i].message);
		perfbuild_begin(&b, false);
		perfbuild_comm(&b, false, 10, 10, "demo");
		perfbuild_end(&b);
		memcpy(b.bytes + rows[i].offset, &rows[i].value, rows[i].size);

		assert_int_equal(parse(&trace, &message), rows[i].expected);
		assert_ptr_equal(trace, (struct trace *)0x1);
		assert_non_null(message);
		if (strncmp(message, "FILE: ", 6) != 0 || !strstr(message, rows[i].message))
			fail_msg("%s", message);
	}
}

/* What is unusual, but no reason to refuse the file. */
static void tolerated(void **state)
{
	static const struct {
		const char *name;
		size_t offset;
		size_t size;
		uint64_t value;
		size_t n_records, n_skipped, n_unknown;
	} rows[] = {
		{ "an unknown record of perf", FIRST, 4, 200, 1, 0, 1 },
		{ "an unknown record of the kernel", FIRST, 4, 60, 1, 0, 1 },
		{ "a record that is not needed", FIRST, 4, PERFABI_THREAD_MAP, 1, 0, 0 },
		{ "a sample", FIRST, 4, PERF_RECORD_SAMPLE, 1, 0, 0 },
		{ "an id of nobody", FIRST + 48, 8, 99, 2, 0, 0 },
		{ "attr size 0 is the first version", PERFBUILD_ATTR + 4, 4, 0, 2, 0, 0 },
		{ "a header without features", H(size), 8, H(features), 2, 0, 0 },
		{ "no clock", SLOT(PERFABI_PT_CAP_USER_TIME_ZERO), 8, 0, 2, 0, 0 },
		{ "a feature that lies outside", H(features), 8, 0x204, 2, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_(trace_freep) struct trace *trace = NULL;

		print_message("  %s\n", rows[i].name);
		perfbuild_begin(&b, false);
		perfbuild_comm(&b, false, 10, 10, "demo");
		perfbuild_exit(&b, 10, 10);
		perfbuild_end(&b);
		if (rows[i].offset == PERFBUILD_ATTR + 4) {
			/* Its ids section then stands at 64. */
			memcpy(b.bytes + PERFBUILD_ATTR + 64, b.bytes + PERFBUILD_ATTR + 112, 16);
			memmove(b.bytes + PERFBUILD_ATTR + 80, b.bytes + PERFBUILD_ATTR1, 128);
			b.bytes[H(attrs.size)] = 80 + 128;
			b.bytes[H(attrs.size) + 1] = 0;
		}
		memcpy(b.bytes + rows[i].offset, &rows[i].value, rows[i].size);

		trace = parse_good();
		assert_int_equal(trace->n_records, rows[i].n_records);
		assert_int_equal(trace->n_skipped, rows[i].n_skipped);
		assert_int_equal(trace->n_unknown, rows[i].n_unknown);
	}
}

static void attrs_of_all_sizes(void **state)
{
	static const uint32_t sizes[] = { 64, 72, 96, 112, 120, 128, 136, 144, 4096 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		struct perfattrs attrs = {};
		uint8_t *bytes = calloc(1, sizes[i]);
		struct perf_event_attr attr = { .type = 6,
						.size = sizes[i],
						.config = 77,
						.sample_type = 0x10087,
						.sample_id_all = 1 };
		struct cursor c = cursor_from(bytes, sizes[i]);

		assert_non_null(bytes);
		memcpy(bytes, &attr, sizes[i] < sizeof(attr) ? sizes[i] : sizeof(attr));
		assert_int_equal(perfattrs_add(&attrs, &c), 0);
		assert_int_equal(cursor_left(&c), 0);
		assert_int_equal(attrs.list.items[0].config, 77);
		assert_int_equal(attrs.list.items[0].sample_type, 0x10087);
		assert_true(attrs.list.items[0].sample_id_all);

		c = cursor_from(bytes, sizes[i] - 1);
		assert_int_equal(perfattrs_add(&attrs, &c), -EBADMSG);
		assert_int_equal(attrs.list.n, 1);
		free(bytes);
		perfattrs_deinit(&attrs);
	}
}

/* A record's trailer is laid out as the attr of its id says. */
static void two_layouts(void **state)
{
	const uint64_t without_cpu = PERFABI_SAMPLE_TYPE & ~(uint64_t)PERF_SAMPLE_CPU;
	_cleanup_(trace_freep) struct trace *trace = NULL;

	(void)state;
	perfbuild_begin(&b, false);
	memcpy(b.bytes + PERFBUILD_ATTR1 + 24, &without_cpu, sizeof(without_cpu));
	perfbuild_at(&b, 5, 3, 10, 11);
	b.trailer.id = 1;
	perfbuild_itrace(&b, 10, 11);
	b.trailer.id = 0;
	perfbuild_itrace(&b, 10, 11);
	/* This one's time stands where the others have their cpu. */
	perfbuild_at(&b, 4096, 8, 10, 11);
	b.trailer.id = 2;
	perfbuild_itrace(&b, 10, 11);
	perfbuild_end(&b);

	trace = parse_good();
	assert_int_equal(trace->n_records, 3);
	assert_int_equal(trace->records[0].cpu, 3);
	assert_int_equal(trace->records[1].cpu, 3);
	assert_int_equal(trace->records[2].cpu, TRACE_NONE);
	assert_int_equal(trace->records[2].time, 8);
	assert_int_equal(trace->records[2].payload_size, 16);
}

static void no_trailers(void **state)
{
	_cleanup_(trace_freep) struct trace *trace = NULL;

	(void)state;
	perfbuild_begin(&b, false);
	perfbuild_at(&b, 70, 3, 10, 11);
	perfbuild_fork(&b, 12, 10, 12, 10);
	perfbuild_comm(&b, false, 10, 10, "demo");
	perfbuild_end(&b);
	/* sample_id_all is bit 18 of the flags. */
	b.bytes[PERFBUILD_ATTR + 42] = b.bytes[PERFBUILD_ATTR1 + 42] = 0;

	trace = parse_good();
	assert_int_equal(trace->n_records, 2);
	assert_int_equal(trace->records[0].type, PERF_RECORD_COMM);
	assert_int_equal(trace->records[0].time, 0);
	assert_int_equal(trace->records[0].cpu, TRACE_NONE);
	assert_int_equal(trace->records[1].type, PERF_RECORD_FORK);
	assert_int_equal(trace->records[1].time, 70);
}

static void record_shorter_than_its_trailer(void **state)
{
	_cleanup_(trace_freep) struct trace *trace = NULL;
	const uint16_t size = 16;
	size_t at;

	(void)state;
	perfbuild_begin(&b, false);
	at = perfbuild_record(&b, PERFABI_FINISHED_ROUND, 0, "12345678", 8, NULL);
	b.bytes[at] = PERF_RECORD_ITRACE_START;
	memcpy(b.bytes + at + 6, &size, sizeof(size));
	perfbuild_itrace(&b, 1, 1);
	perfbuild_end(&b);

	trace = parse_good();
	assert_int_equal(trace->n_records, 1);
	assert_int_equal(trace->n_skipped, 1);
}

/* @part: of what is said of it; NULL: nothing is */
static void check_complaint(const struct trace *trace, enum trace_complaint which, const char *part)
{
	const char *complaint = trace->complaints[which];

	if (part)
		assert_true(complaint && strstr(complaint, part));
	else
		assert_null(complaint);
}

/* Samples of sched_switch: what becomes of them, and what the user is told. */
static void switch_samples(void **state)
{
	static const struct {
		const char *name;
		bool pipe, has_formats, has_switch;
		uint32_t prev, tid;
		size_t raw_size; /* as stated */
		size_t n_samples, n_skipped;
		const char *complaint; /* part of it */
	} rows[] = {
		{ "file form", false, true, false, 11, 11, 68, 1, 0, NULL },
		{ "pipe form", true, true, false, 11, 11, 68, 1, 0, NULL },
		{ "its last run has no number", false, true, false, 11, NO, 68, 1, 0, NULL },
		{ "beside a switch record", false, true, true, 11, 11, 68, 0, 0, NULL },
		{ "no formats", false, false, false, 11, 11, 68, 0, 0, "what sched_switch" },
		{ "nor needed", false, false, true, 11, 11, 68, 0, 0, NULL },
		{ "of another namespace", false, true, false, 5011, 11, 68, 0, 0, "namespace" },
		{ "too short", false, true, false, 11, 11, 59, 0, 1, NULL },
		{ "beyond its record", false, true, false, 11, 11, 69, 0, 1, NULL },
	};
	uint8_t formats[4096];
	const size_t size = perfsched_formats(formats);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_(trace_freep) struct trace *trace = NULL;
		size_t n = 0, at;
		uint32_t next;

		print_message("  %s\n", rows[i].name);
		perfbuild_begin(&b, rows[i].pipe);
		perfsched_begin(&b, rows[i].has_formats ? formats : NULL, size);
		perfbuild_at(&b, 70, 3, 10, rows[i].tid);
		at = b.size;
		perfsched_sample(&b, rows[i].prev, 12);
		b.bytes[at + 48] = (uint8_t)rows[i].raw_size;
		if (rows[i].has_switch)
			perfbuild_switch(&b, true);
		perfbuild_end(&b);

		trace = parse_good();
		for (size_t k = 0; k < trace->n_records; k++) {
			const struct trace_record *r = &trace->records[k];

			if (r->type != PERF_RECORD_SAMPLE)
				continue;
			n++;
			assert_true(r->time == 70 && r->cpu == 3 && r->pid == 10);
			assert_int_equal(r->tid, rows[i].tid);
			assert_int_equal(r->payload_size, 4);
			memcpy(&next, r->payload, 4);
			assert_int_equal(next, 12);
		}
		assert_int_equal(n, rows[i].n_samples);
		assert_int_equal(trace->n_switch_samples, rows[i].n_samples);
		assert_int_equal(trace->n_skipped, rows[i].n_skipped);
		check_complaint(trace, TRACE_COMPLAINT_SWITCHES, rows[i].complaint);
	}
}

/* Put an ID_INDEX of the host's event 1 and @guest, a guest's; 0: event 3 is the host's. */
static void put_id_index(uint64_t guest)
{
	const uint64_t index[] = { 2, 1, 0, 0, NO, guest ?: 3, 0, 0, NO, 0, 0, 500, 1 };

	(void)perfbuild_record(&b, PERFABI_ID_INDEX, 0, index, sizeof(uint64_t) * (guest ? 13 : 9),
			       NULL);
}

/* What a guest's kernel recorded is left out, whatever it is, and counted. */
static void guest_records(void **state)
{
	static const uint64_t payload[8] = { 0x1400000014, 0x1400000014, 0x1000, 0x1000, 0x1000 };

	(void)state;
	for (uint32_t type = PERF_RECORD_MMAP; type < PERF_RECORD_MAX; type++) {
		if (type == PERF_RECORD_SAMPLE)
			continue;
		for (int i = 0; i < 4; i++) {
			static const uint16_t modes[] = { PERF_RECORD_MISC_GUEST_KERNEL,
							  PERF_RECORD_MISC_GUEST_USER,
							  PERF_RECORD_MISC_KERNEL, 0 };
			_cleanup_(trace_freep) struct trace *trace = NULL;
			const bool is_guest = i < 3;

			print_message("  record %u, %d\n", type, i);
			perfbuild_begin(&b, false);
			put_id_index(i < 3 ? 3 : 0);
			perfbuild_at(&b, 10, 0, 10, 10);
			perfbuild_comm(&b, false, 10, 10, "host");
			b.trailer.id = i < 2 ? 2 : 3;
			(void)perfbuild_record(&b, type, modes[i], payload, sizeof(payload), "x");
			perfbuild_end(&b);

			trace = parse_good();
			assert_int_equal(trace->n_records, is_guest ? 1 : 2);
			assert_int_equal(trace->n_guest, is_guest);
			check_complaint(trace, TRACE_COMPLAINT_GUESTS,
					is_guest ? "machine's processes: 1 are left out" : NULL);
		}
	}
}

/* Switches of a guest say nothing of the host's, which samples state. */
/* perf record was killed: it has not written how much data there are. All of them are read. */
static void not_finished(void **state)
{
	_cleanup_(trace_freep) struct trace *whole = NULL, *trace = NULL;
	struct perfabi_section data;

	(void)state;
	perfbuild_begin(&b, false);
	perfbuild_comm(&b, false, 10, 10, "demo");
	perfbuild_end(&b);
	whole = parse_good();
	/* Nor has it written the features behind them. */
	memcpy(&data, b.bytes + H(data), sizeof(data));
	b.size = data.offset + data.size;
	data.size = 0;
	memcpy(b.bytes + H(data), &data, sizeof(data));
	trace = parse_good();
	assert_int_equal(trace->n_records, whole->n_records);
	assert_int_equal(trace->n_queues, whole->n_queues);
	assert_null(whole->complaints[TRACE_COMPLAINT_END]);
	assert_non_null(strstr(trace->complaints[TRACE_COMPLAINT_END], "was not finished"));
}

/* Without a relation between TSC and clock, the message says why nothing can be placed. */
static void other_clock(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		_cleanup_(trace_freep) struct trace *trace = NULL;
		const uint64_t cap = i;

		perfbuild_begin(&b, false);
		memcpy(b.bytes + SLOT(PERFABI_PT_CAP_USER_TIME_ZERO), &cap, sizeof(cap));
		perfbuild_comm(&b, false, 10, 10, "demo");
		perfbuild_end(&b);
		trace = parse_good();
		assert_int_equal(trace->complaints[TRACE_COMPLAINT_CLOCK] == NULL, i);
	}
}

static void guest_switches(void **state)
{
	uint8_t formats[4096];
	const size_t size = perfsched_formats(formats);

	(void)state;
	for (int i = 0; i < 2; i++) {
		_cleanup_(trace_freep) struct trace *trace = NULL;
		const uint64_t other = 0;
		size_t at;

		perfbuild_begin(&b, false);
		put_id_index(3);
		perfsched_begin(&b, formats, size);
		perfbuild_at(&b, 70, 3, 10, 11);
		perfsched_sample(&b, 11, 12);
		(void)perfbuild_record(&b, PERF_RECORD_SWITCH_CPU_WIDE,
				       PERF_RECORD_MISC_GUEST_KERNEL, &other, sizeof(other), NULL);
		at = b.size;
		perfsched_sample(&b, 11, 12);
		/* A sample of the guest's, too, if it says so. */
		b.bytes[at + 4] = i ? PERF_RECORD_MISC_GUEST_KERNEL : PERF_RECORD_MISC_KERNEL;
		perfbuild_end(&b);

		trace = parse_good();
		assert_int_equal(trace->n_switch_samples, 2 - i);
		assert_int_equal(trace->n_guest, 1 + i);
	}
}

/* PT that was sampled while the host's CPU ran a guest is the host's; a guest has its own. */
static void guest_samples(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		_cleanup_(trace_freep) struct trace *trace = NULL;
		size_t at;

		perfbuild_begin(&b, false);
		put_id_index(i ? 2 : 3);
		perfbuild_sampling(&b);
		perfbuild_at(&b, 70, 1, 10, 11);
		at = b.size;
		perfbuild_sample(&b, "12345678", 8);
		b.bytes[at + 4] = PERF_RECORD_MISC_GUEST_USER;
		perfbuild_end(&b);

		trace = parse_good();
		assert_int_equal(trace->n_queues, 1 - i);
		assert_int_equal(trace->n_guest, i);
	}
}

/* Samples of other tracepoints, which are used beside switch records, too. */
static void signal_samples(void **state)
{
	uint8_t formats[4096];
	const size_t size = perfsched_formats(formats);

	(void)state;
	for (int i = 0; i < 8; i++) {
		const bool pipe = i & 1, is_syscall = i & 2, is_cut = i & 4;
		_cleanup_(trace_freep) struct trace *trace = NULL;
		struct trace_syscall syscall;
		struct trace_signal signal;
		size_t n = 0, at;

		perfbuild_begin(&b, pipe);
		perfsched_begin(&b, formats, size);
		perfsched_make(&b, is_syscall ? PERFSCHED_SYSCALL_ID : PERFSCHED_SIGNAL_ID);
		perfbuild_at(&b, 70, 3, 10, 11);
		at = b.size;
		if (is_syscall)
			perfsched_syscall(&b, 202);
		else
			perfsched_signal(&b, 11, -6, 0x401000);
		/* The last field is not all there. */
		if (is_cut)
			b.bytes[at + 48] = is_syscall ? 15 : 31;
		perfbuild_switch(&b, true);
		perfbuild_end(&b);

		trace = parse_good();
		assert_int_equal(trace->n_skipped, is_cut);
		check_complaint(trace, TRACE_COMPLAINT_SWITCHES, NULL);
		for (size_t k = 0; k < trace->n_records; k++) {
			const struct trace_record *r = &trace->records[k];

			if (r->type < TRACE_RECORD_SIGNAL)
				continue;
			n++;
			assert_true(r->time == 70 && r->cpu == 3 && r->pid == 10 && r->tid == 11);
			if (is_syscall) {
				assert_int_equal(r->type, TRACE_RECORD_SYSCALL);
				assert_int_equal(r->payload_size, sizeof(syscall));
				memcpy(&syscall, r->payload, sizeof(syscall));
				assert_int_equal(syscall.number, 202);
				continue;
			}
			assert_int_equal(r->type, TRACE_RECORD_SIGNAL);
			assert_int_equal(r->payload_size, sizeof(signal));
			memcpy(&signal, r->payload, sizeof(signal));
			assert_true(signal.signal == 11 && signal.code == -6 &&
				    signal.handler == 0x401000);
		}
		assert_int_equal(n, !is_cut);
		assert_int_equal(trace->n_switch_samples, 0);
	}
}

/* At whatever byte the file is cut off: an error that says so, or what was whole. */
static void cut_off(void **state)
{
	size_t n_whole = 0, whole_size;

	(void)state;
	for (int pipe = 0; pipe < 2; pipe++) {
		perfbuild_example(&b, pipe);
		whole_size = b.size;
		for (size_t size = 0; size < whole_size; size++) {
			_cleanup_(trace_freep) struct trace *trace = NULL;
			_cleanup_(freep) char *message = NULL;

			b.size = size;
			if (parse(&trace, &message) < 0) {
				assert_null(trace);
				assert_non_null(message);
				continue;
			}
			n_whole++;
			assert_null(message);
			assert_true(trace->n_records <= 8);
			/* Only the pipe form does not say how long it should have been. */
			if (!pipe)
				assert_true(trace->truncated_at > 0);
			assert_true(trace->truncated_at <= size);
		}
	}
	assert_true(n_whole > 1000);
}

/* What is there of a piece that is cut off is kept; but a whole file's piece only says so. */
static void cut_off_in_a_piece(void **state)
{
	const uint64_t too_much = 9;

	(void)state;
	for (int whole = 0; whole < 2; whole++) {
		_cleanup_(trace_freep) struct trace *trace = NULL;
		size_t at;

		perfbuild_begin(&b, false);
		perfbuild_comm(&b, false, 10, 10, "demo");
		perfbuild_auxtrace(&b, 0, 0, -1, 0, "abcdefgh", 8);
		at = perfbuild_auxtrace(&b, 0, 0, -1, 8, "ijklmnop", 8);
		perfbuild_end(&b);
		if (whole)
			memcpy(b.bytes + at + 8, &too_much, sizeof(too_much));
		else
			b.size = at + 48 + 7;

		trace = parse_good();
		assert_int_equal(trace->truncated_at, at);
		assert_int_equal(trace->n_records, 1);
		assert_int_equal(trace->n_queues, 1);
		assert_int_equal(trace->queues[0].n_spans, 1);
		assert_int_equal(trace->queues[0].spans[0].pt.size, whole ? 8 : 15);
		assert_true(perfbytes_has(&trace->queues[0].spans[0], 0, "abcdefghijklmno",
					  whole ? 8 : 15));
	}
}

/* Pieces, in the order of the file, and the spans they must become: "cpu:bytes@offset …". */
static void spans(void **state)
{
	static const struct {
		const char *name;
		bool snapshot;
		struct {
			uint32_t idx;
			int32_t cpu, tid;
			uint64_t offset;
			const char *bytes; /* a '.' is a zero */
		} pieces[4];
		const char *expected;
	} rows[] = {
		{ "joined",
		  false,
		  { { 0, 0, -1, 0, "abc" }, { 0, 0, -1, 3, "def" } },
		  "0:abcdef@0 " },
		{ "of two buffers",
		  false,
		  { { 5, 1, -1, 0, "abc" }, { 0, 0, -1, 0, "xyz" }, { 5, 1, -1, 3, "def" } },
		  "0:xyz@0 1:abcdef@0 " },
		{ "a hole",
		  false,
		  { { 0, 0, -1, 0, "abc" }, { 0, 0, -1, 4, "def" }, { 0, 0, -1, 7, "gh" } },
		  "0:abc@0 0:defgh@4 " },
		{ "padding is left out",
		  false,
		  { { 0, 0, -1, 0, "abcde..." }, { 0, 0, -1, 5, "f" } },
		  "0:abcdef@0 " },
		{ "what is not zero is no padding",
		  false,
		  { { 0, 0, -1, 0, "abcdef.." }, { 0, 0, -1, 5, "g" } },
		  "0:abcdef..g@0 " },
		{ "padding at the end stays",
		  false,
		  { { 0, 0, -1, 0, "a......." } },
		  "0:a.......@0 " },
		{ "no offsets",
		  false,
		  { { 0, 0, -1, 0, "abcdefghi" }, { 0, 0, -1, 0, "j" } },
		  "0:abcdefghij@0 " },
		{ "snapshots stay apart",
		  true,
		  { { 0, 0, -1, 0, "abc" }, { 0, 0, -1, 3, "def" } },
		  "0:abc@0 0:def@3 " },
		{ "an empty piece",
		  false,
		  { { 0, 0, -1, 0, "" }, { 0, 0, -1, 3, "def" } },
		  "0:def@3 " },
		{ "per-cpu pieces that name a task",
		  false,
		  { { 0, 0, 7, 0, "abc" }, { 0, 0, 8, 3, "def" } },
		  "0:abcdef@0 " },
		{ "per-thread pieces",
		  false,
		  { { 0, -1, 8, 0, "abc" }, { 1, -1, 7, 0, "def" } },
		  "t7:def@0 t8:abc@0 " },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_(trace_freep) struct trace *trace = NULL;
		char got[256] = "";
		size_t n = 0;

		print_message("  %s\n", rows[i].name);
		perfbuild_begin(&b, false);
		b.bytes[SLOT(PERFABI_PT_SNAPSHOT_MODE)] = rows[i].snapshot;
		for (size_t j = 0; j < 4 && rows[i].pieces[j].bytes; j++) {
			const size_t size = strlen(rows[i].pieces[j].bytes);

			perfbuild_auxtrace(&b, rows[i].pieces[j].idx, rows[i].pieces[j].cpu,
					   rows[i].pieces[j].tid, rows[i].pieces[j].offset,
					   rows[i].pieces[j].bytes, size);
			for (uint8_t *p = b.bytes + b.size - size; p < b.bytes + b.size; p++)
				*p = *p == '.' ? 0 : *p;
		}
		perfbuild_end(&b);

		trace = parse_good();
		for (size_t q = 0; q < trace->n_queues; q++) {
			const struct trace_queue *queue = &trace->queues[q];

			for (size_t s = 0; s < queue->n_spans; s++) {
				_cleanup_(freep) uint8_t *pt = perfbytes_span(&queue->spans[s]);

				assert_non_null(pt);
				n += (size_t)sprintf(
				    got + n, queue->cpu == TRACE_NONE ? "t%u:" : "%u:",
				    queue->cpu == TRACE_NONE ? queue->tid : queue->cpu);
				for (size_t k = 0; k < queue->spans[s].pt.size; k++)
					got[n++] = (char)(pt[k] ?: '.');
				n += (size_t)sprintf(got + n, "@%u ",
						     (unsigned int)queue->spans[s].offset);
			}
		}
		assert_string_equal(got, rows[i].expected);
	}
}

static void cpuid(void **state)
{
	static const struct {
		const char *text;
		uint16_t family;
		uint8_t model, stepping;
	} rows[] = {
		{ "GenuineIntel,6,94,3", 6, 94, 3 }, { "GenuineIntel,6,143,8", 6, 143, 8 },
		{ "AuthenticAMD,25,1,1", 0, 0, 0 },  { "GenuineIntel,6,94", 0, 0, 0 },
		{ "GenuineIntel,6,256,3", 0, 0, 0 }, { "GenuineIntel,6,94,3,4", 0, 0, 0 },
		{ "GenuineIntel", 0, 0, 0 },         { "", 0, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct trace_facts facts = {};

		print_message("  \"%s\"\n", rows[i].text);
		auxtrace_cpuid(rows[i].text, &facts);
		assert_int_equal(facts.cpu_family, rows[i].family);
		assert_int_equal(facts.cpu_model, rows[i].model);
		assert_int_equal(facts.cpu_stepping, rows[i].stepping);
	}
}

/* An AUXTRACE_INFO may have fewer slots than are known: the rest is as the hardware has it. */
static void short_info(void **state)
{
	_cleanup_(trace_freep) struct trace *trace = NULL;
	const uint16_t size = 16 + 8 * (PERFABI_PT_PER_CPU_MMAPS + 1);
	const uint64_t filler =
	    PERFABI_FINISHED_ROUND | (uint64_t)(PERFBUILD_FIRST - PERFBUILD_DATA - size) << 48;

	(void)state;
	perfbuild_begin(&b, false);
	memcpy(b.bytes + PERFBUILD_DATA + 6, &size, sizeof(size));
	memcpy(b.bytes + PERFBUILD_DATA + size, &filler, sizeof(filler));
	perfbuild_end(&b);

	trace = parse_good();
	assert_true(trace->facts.clock.valid);
	assert_true(trace->facts.has_mtc);
	assert_int_equal(trace->facts.mtc_freq, 3);
	assert_int_equal(trace->facts.nom_freq, 0);
	assert_int_equal(trace->facts.tsc_ctc_n, 0);
}

/* Of a file with an address filter: how long AUXTRACE_INFO says that it is. */
static void address_filter(void **state)
{
	static const char text[] = "filter 0x1/0x2@/a b";
	static const struct {
		uint64_t size;
		bool is_good;
	} rows[] = {
		{ sizeof(text) - 3, true },
		{ sizeof(text) - 1, false }, /* what is behind the path is no filter */
		{ 4096, false },
		{ UINT64_MAX, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_(trace_freep) struct trace *trace = NULL;

		perfbuild_begin(&b, false);
		perfbuild_filter(&b, text);
		memcpy(b.bytes + PERFBUILD_SLOTS + 8 * PERFABI_PT_FILTER_STR_LEN, &rows[i].size,
		       sizeof(rows[i].size));
		perfbuild_end(&b);
		trace = parse_good();
		assert_int_equal(trace->facts.filters.n, rows[i].is_good);
		if (rows[i].is_good)
			assert_int_equal(trace->facts.filters.parts[0].path_size, 2);
		check_complaint(trace, TRACE_COMPLAINT_FILTER,
				rows[i].is_good ? NULL : "its address filter is not used");
	}
}

static void shared_ids_are_refused(void **state)
{
	_cleanup_(freep) char *message = NULL;
	struct perfabi_section section = { 0, 0 };
	struct trace *trace = NULL;

	(void)state;
	perfbuild_example(&b, false);
	section.size = b.size;
	memcpy(b.bytes + PERFBUILD_ATTR + 112, &section, sizeof(section));
	memcpy(b.bytes + PERFBUILD_ATTR1 + 112, &section, sizeof(section));
	assert_int_equal(parse(&trace, &message), -EBADMSG);
	assert_non_null(strstr(message, "names ids that are another's"));
}

/* Let what was built be the first of the files. */
static void first_of(struct perfstream_file *files)
{
	if (files[0].size > 0)
		close(files[0].fd);
	files[0].fd = perfbytes_open(b.bytes, b.size);
	files[0].size = b.size;
	assert_true(files[0].fd >= 0);
}

/* The records of the example, from @from on, move to other files, a part of them to each. */
static void several_files(void **state)
{
	static const size_t ends[] = { 2, 5, 5, 99 }; /* records in each file */
	static uint8_t moved[sizeof(b.bytes)];
	struct perfstream_file files[5] = { { .name = "FILE" } };
	_cleanup_(trace_freep) struct trace *trace = NULL;
	_cleanup_(freep) char *message = NULL;
	const uint64_t feature[] = { PERFABI_FEATURE_DIR_FORMAT, 1 };
	const size_t first = PERFBUILD_FIRST;
	size_t at = 0, n, n_moved, part = 1;
	int fd;

	(void)state;
	perfbuild_example(&b, false);
	n_moved = b.size - first - 16 - 24; /* without the features */
	memcpy(moved, b.bytes + first, n_moved);
	fd = perfbytes_open(moved, n_moved);
	assert_true(fd >= 0);
	for (n = 0; at < n_moved && part < 4; n++) {
		uint16_t size;

		if (n == ends[part - 1]) {
			files[part].size = at - files[part].offset;
			files[++part].offset = at;
			n--;
			continue;
		}
		memcpy(&size, moved + at + 6, sizeof(size));
		at += size;
	}
	files[4].size = n_moved - files[4].offset;
	for (n = 1; n < ARRAY_LEN(files); n++)
		files[n].fd = fd;

	perfbuild_begin(&b, false);
	perfbuild_record(&b, PERFABI_HEADER_FEATURE, 0, feature, sizeof(feature), NULL);
	perfbuild_end(&b);
	first_of(files);
	if (perfdata_parse(files, ARRAY_LEN(files), NULL, &trace, &message) < 0)
		fail_msg("%s", message);
	check_example(trace);

	/* Alone it is nothing; a version that is not known is none at all. */
	trace = trace_free(trace);
	assert_int_equal(perfdata_parse(files, 1, NULL, &trace, &message), -ENODATA);
	assert_non_null(strstr(message, "FILE: recorded by several threads"));
	free(message);
	b.bytes[FIRST + 16] = 2;
	first_of(files);
	assert_int_equal(perfdata_parse(files, 5, NULL, &trace, &message), -EOPNOTSUPP);
	assert_non_null(strstr(message, "version 2; 1 was expected"));
	free(message);
	message = NULL;

	/* One that is not part of several ignores what lies beside it. */
	perfbuild_example(&b, false);
	first_of(files);
	files[1].size = 4;
	assert_int_equal(perfdata_parse(files, 5, NULL, &trace, &message), 0);
	check_example(trace);
	close(files[0].fd);
	close(fd);
}

/* The file has less than it had when it was opened: wherever it ends now, that is an error. */
static void becomes_shorter(void **state)
{
	(void)state;
	perfbuild_example(&b, false);
	for (size_t size = 0; size < b.size; size += 8) {
		const int fd = perfbytes_open(b.bytes, size);
		const struct perfstream_file file = { .fd = fd, .size = b.size, .name = "FILE" };
		_cleanup_(trace_freep) struct trace *trace = NULL;
		_cleanup_(freep) char *message = NULL;

		assert_true(fd >= 0);
		assert_int_equal(perfdata_parse(&file, 1, NULL, &trace, &message), -ESTALE);
		assert_string_equal(message, "FILE: became shorter while it was read");
		close(fd);
	}
}

/* The records of the example, compressed in parts that end anywhere. */
static void compressed(void **state)
{
	static const size_t parts[] = { 1, 7, 50, 300 };

	(void)state;
	for (int two = 0; two < 2; two++) {
		_cleanup_(trace_freep) struct trace *trace = NULL;
		ZSTD_CCtx *stream = ZSTD_createCCtx();
		size_t at = PERFBUILD_FIRST, end;

		perfbuild_example(&b, false);
		/* The AUXTRACEs and what is between them, and the features, are left as they
		 * are. */
		end = b.size - 16 - 24 - 2 * (48 + 8) - 8;
		b.size -= 16 + 24;
		for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
			const size_t left = b.size - at - 2 * (48 + 8) - 8;

			at = perfbuild_compress(&b, stream, at, i == 3 ? left : parts[i], two);
		}
		perfbuild_end(&b);
		ZSTD_freeCCtx(stream);

		trace = parse_good();
		check_example(trace);
		assert_in_range(trace->records[0].file_offset, PERFBUILD_FIRST, end);
	}
}

/* A record of almost nothing that would become gigabytes. */
static void compressed_too_well(void **state)
{
	static uint8_t zeros[1 << 20], packed[1 << 14];
	ZSTD_CCtx *stream = ZSTD_createCCtx();
	_cleanup_(freep) char *message = NULL;
	struct trace *trace = NULL;
	ZSTD_outBuffer out = { .dst = packed, .size = sizeof(packed) };

	(void)state;
	for (int i = 0; i < 64; i++) {
		ZSTD_inBuffer in = { .src = zeros, .size = sizeof(zeros) };

		while (in.pos < in.size)
			assert_false(
			    ZSTD_isError(ZSTD_compressStream2(stream, &out, &in, ZSTD_e_flush)));
	}
	ZSTD_freeCCtx(stream);
	perfbuild_begin(&b, false);
	perfbuild_record(&b, PERFABI_COMPRESSED, 0, packed, out.pos, NULL);
	perfbuild_end(&b);
	assert_int_equal(parse(&trace, &message), -EFBIG);
	assert_non_null(strstr(message, "type 81 at offset 528: expands to more"));
}

/* PT in samples: pieces that may overlap, behind all fields that a sample can have. */
static void samples(void **state)
{
	_cleanup_(trace_freep) struct trace *trace = NULL;

	(void)state;
	perfbuild_begin(&b, false);
	perfbuild_sampling(&b);
	perfbuild_at(&b, 100, 3, 10, 11);
	perfbuild_sample(&b, "abcdefgh", 8);
	perfbuild_at(&b, 110, 3, 10, 11);
	perfbuild_sample(&b, "", 0);
	perfbuild_at(&b, 120, 3, 10, 11);
	perfbuild_sample(&b, "ijklmnop", 8);
	perfbuild_end(&b);

	trace = parse_good();
	assert_true(trace->facts.snapshot_mode);
	assert_int_equal(trace->n_skipped, 0);
	assert_int_equal(trace->n_queues, 1);
	assert_int_equal(trace->queues[0].cpu, 3);
	assert_int_equal(trace->queues[0].n_spans, 2);
	assert_true(perfbytes_has(&trace->queues[0].spans[0], 0, "abcdefgh", 8));
	assert_true(perfbytes_has(&trace->queues[0].spans[1], 0, "ijklmnop", 8));
}

/* Whatever a sample's fields say, it is taken or skipped. */
static void samples_spoiled(void **state)
{
	size_t n_skipped = 0, n_taken = 0;

	(void)state;
	for (size_t at = 8; at < 8 + 44 * 8; at += 4) {
		_cleanup_(trace_freep) struct trace *trace = NULL;
		size_t sample;

		perfbuild_begin(&b, false);
		perfbuild_sampling(&b);
		perfbuild_at(&b, 100, 3, 10, 11);
		sample = perfbuild_sample(&b, "abcdefgh", 8);
		perfbuild_end(&b);
		memset(b.bytes + sample + at, 0xff, 4);
		trace = parse_good();
		n_skipped += trace->n_skipped;
		n_taken += trace->n_queues;
	}
	assert_true(n_skipped > 5 && n_taken > 30);
}

/* The feature of BPF programs, in both forms; and damaged. */
static void programs(void **state)
{
	static struct perfbpf section;
	static const struct {
		bool pipe, has_samples; /* of tracepoints, of which nothing is known */
		uint32_t n;             /* as stated */
		size_t n_programs;
		const char *complaint; /* part of it */
	} rows[] = {
		{ false, false, 3, 2, NULL },
		{ true, false, 3, 2, NULL },
		{ false, false, 4, 2, "BPF programs is damaged" },
		{ true, false, 4, 2, "BPF programs is damaged" },
		{ false, false, 1, 1, NULL },
		{ false, false, UINT32_MAX, 2, "BPF programs is damaged" },
		{ false, true, 4, 2, "BPF programs is damaged" },
		{ true, true, 4, 2, "BPF programs is damaged" },
		{ false, true, 3, 2, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct perfbpf_function function = { 0xffffffffc0001000, "abc", 3 };
		struct trace *trace;

		perfbpf_begin(&section);
		(void)perfbpf_add(&section, 5, 1, &function, 1);
		(void)perfbpf_add(&section, 6, 2, NULL, 0);
		(void)perfbpf_add(&section, 7, 3, &function, 1);
		memcpy(section.bytes, &rows[i].n, sizeof(rows[i].n));
		perfbuild_begin(&b, rows[i].pipe);
		if (rows[i].has_samples) {
			perfsched_begin(&b, NULL, 0);
			perfsched_sample(&b, 11, 12);
		}
		perfbpf_end(&b, &section);
		perfbuild_auxtrace(&b, 0, 0, -1, 0, "abcdefgh", 8);
		perfbuild_end(&b);
		trace = parse_good();
		assert_int_equal(trace->programs.n, rows[i].n_programs);
		assert_int_equal(trace->programs.items[0].id, 5);
		if (rows[i].n_programs > 1)
			assert_int_equal(trace->programs.items[1].id, 7);
		check_complaint(trace, TRACE_COMPLAINT_PROGRAMS, rows[i].complaint);
		check_complaint(trace, TRACE_COMPLAINT_SWITCHES,
				rows[i].has_samples ? "what sched_switch" : NULL);
		trace_free(trace);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_forms),
		cmocka_unit_test(spoiled),
		cmocka_unit_test(tolerated),
		cmocka_unit_test(attrs_of_all_sizes),
		cmocka_unit_test(two_layouts),
		cmocka_unit_test(no_trailers),
		cmocka_unit_test(record_shorter_than_its_trailer),
		cmocka_unit_test(cut_off),
		cmocka_unit_test(cut_off_in_a_piece),
		cmocka_unit_test(spans),
		cmocka_unit_test(cpuid),
		cmocka_unit_test(short_info),
		cmocka_unit_test(address_filter),
		cmocka_unit_test(shared_ids_are_refused),
		cmocka_unit_test(several_files),
		cmocka_unit_test(becomes_shorter),
		cmocka_unit_test(compressed),
		cmocka_unit_test(compressed_too_well),
		cmocka_unit_test(samples),
		cmocka_unit_test(samples_spoiled),
		cmocka_unit_test(switch_samples),
		cmocka_unit_test(guest_records),
		cmocka_unit_test(not_finished),
		cmocka_unit_test(other_clock),
		cmocka_unit_test(guest_switches),
		cmocka_unit_test(guest_samples),
		cmocka_unit_test(signal_samples),
		cmocka_unit_test(programs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
