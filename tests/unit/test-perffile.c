/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the file says is read back by the decoder's reader, which was written for perf's files; that
 * perf itself reads it is test-snapshot's. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/snapshot/perffile.h"
#include "daemon/source/source.h"
#include "decoder/file/input.h"
#include "ptd/sideband.h"
#include "tests/lib/failing.h"
#include "tests/lib/perfbytes.h"
#include "tests/lib/tempdir.h"
#include "tests/unit/records.h"
#include "util/buildid.h"
#include "util/mapfile.h"
#include "util/perf/codec.h"
#include "util/perf/perfabi.h"

#define NAME "data"

struct fixture {
	char dir[TEMPDIR_SIZE], path[128];
	int dir_fd;
	struct source_facts facts;
	struct perffile_about about;
	struct records records;
	struct mapfile file;
};

static const struct buildid libc_id = { .bytes = { 0xab, 0xcd, 0xef }, .size = 20 };
static const struct buildid no_id = {};
static const struct perffile_object objects[] = {
	{ "/usr/lib/libc.so.6", &libc_id },
	{ "/no/build-id", &no_id },
	{ "/short", &(const struct buildid){ .bytes = { 1, 2 }, .size = 8 } },
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	tempdir_make("perffile", f->dir);
	(void)snprintf(f->path, sizeof(f->path), "%s/" NAME, f->dir);
	f->dir_fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	f->facts = (struct source_facts){ .pmu_type = 8,
					  .attr_config = 0x2e03,
					  .mask_tsc = 0x400,
					  .mask_noretcomp = 0x800,
					  .mask_mtc = 0x200,
					  .mask_mtc_period = 0x3c000,
					  .mask_cyc = 0x2,
					  .tsc = { .valid = true,
						   .shift = 31,
						   .mult = 581029125u,
						   .zero = UINT64_C(18444502336406842448) },
					  .tsc_ctc_numerator = 168,
					  .tsc_ctc_denominator = 2,
					  .max_nonturbo_ratio = 21,
					  .user = true };
	f->about = (struct perffile_about){ .host = "host",
					    .release = "6.1.0",
					    .machine = "x86_64",
					    .version = "ptd-1",
					    .cpuid = "GenuineIntel,6,85,4",
					    .n_cpus = 4,
					    .time_first = 5,
					    .time_last = 99,
					    .objects = objects,
					    .n_objects = ARRAY_LEN(objects) };
	records_comm(&f->records, 7, "demo", 5);
	records_mmap2(&f->records, 7, "/usr/lib/libc.so.6", &libc_id, 6);
	records_switch(&f->records, 7, false, 8, 1);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	mapfile_deinit(&f->file);
	records_deinit(&f->records);
	(void)close(f->dir_fd);
	tempdir_remove(f->dir);
	free(f);
	return 0;
}

/* 100 bytes that do not end at a word, and none. */
static const uint8_t pt[101] = { 0x02, 0x82, 0x02, 0x82, [100] = 0x77 };

static int write_file(void *userdata)
{
	struct fixture *f = userdata;
	struct perffile *file = (struct perffile *)0x1;
	int r;

	r = perffile_new(f->dir_fd, NAME, &f->facts, &file);
	if (r < 0) {
		assert_ptr_equal(file, 0x1);
		(void)unlink(f->path);
		return r;
	}
	perffile_write(file, f->records.bytes, f->records.size);
	r = perffile_write_aux(file, 1, 0x1000, 77, pt, sizeof(pt));
	if (r == 0)
		r = perffile_write_aux(file, 3, 0, 78, pt, 0);
	if (r == 0)
		r = perffile_finish(file, &f->about);
	(void)perffile_free(file);
	if (r < 0)
		(void)unlink(f->path);
	return r;
}

static const struct trace_queue *queue_of(const struct trace *trace, uint32_t cpu)
{
	for (size_t i = 0; i < trace->n_queues; i++)
		if (trace->queues[i].cpu == cpu)
			return &trace->queues[i];
	return NULL;
}

static void is_read_back(void *userdata)
{
	const struct fixture *f = userdata;
	struct trace *trace;
	char *message = NULL;
	const struct trace_queue *queue;
	size_t n_ids = 0, n_others = 0;

	assert_int_equal(input_open(f->path, false, NULL, &trace, &message), 0);
	assert_int_equal(trace->truncated_at, 0);
	assert_int_equal(trace->n_skipped, 0);
	assert_int_equal(trace->n_unknown, 0);

	assert_int_equal(trace->facts.clock.shift, 31);
	assert_int_equal(trace->facts.clock.mult, 581029125u);
	assert_int_equal(trace->facts.clock.zero, UINT64_C(18444502336406842448));
	assert_true(trace->facts.snapshot_mode);
	assert_true(trace->facts.has_tsc);
	assert_true(trace->facts.has_mtc);
	assert_true(trace->facts.has_cyc);
	assert_false(trace->facts.has_events);
	assert_false(trace->facts.return_compression);
	assert_int_equal(trace->facts.mtc_freq, 0);
	assert_int_equal(trace->facts.nom_freq, 21);
	assert_int_equal(trace->facts.tsc_ctc_n, 168);
	assert_int_equal(trace->facts.tsc_ctc_d, 2);
	assert_int_equal(trace->facts.cpu_family, 6);
	assert_int_equal(trace->facts.cpu_model, 85);
	assert_int_equal(trace->facts.cpu_stepping, 4);

	queue = queue_of(trace, 1);
	assert_non_null(queue);
	assert_int_equal(queue->n_spans, 1);
	assert_int_equal(queue->spans[0].offset, 0x1000);
	/* Filled up with PAD packets to whole words, after which the next record begins. */
	assert_int_equal(queue->spans[0].pt.size, 104);
	assert_true(perfbytes_has(&queue->spans[0], 0, pt, sizeof(pt)));
	assert_true(perfbytes_has(&queue->spans[0], sizeof(pt), "\0\0\0", 3));
	assert_int_equal(queue->spans[0].file_offset % 8, 0);

	for (size_t i = 0; i < trace->n_records; i++) {
		const struct trace_record *r = &trace->records[i];

		if (r->type == PERFABI_HEADER_BUILD_ID) {
			assert_memory_equal(r->payload + 4,
					    n_ids == 0 ? libc_id.bytes : objects[2].build_id->bytes,
					    n_ids == 0 ? 20 : 8);
			assert_int_equal(r->payload[24], n_ids == 0 ? 20 : 8);
			assert_string_equal((const char *)r->payload + 28,
					    n_ids == 0 ? "/usr/lib/libc.so.6" : "/short");
			n_ids++;
			continue;
		}
		n_others += r->type == PERF_RECORD_COMM || r->type == PERF_RECORD_MMAP2 ||
			    r->type == PERF_RECORD_SWITCH_CPU_WIDE;
	}
	assert_int_equal(n_ids, 2);
	assert_int_equal(n_others, 3);
	(void)trace_free(trace);
	assert_int_equal(unlink(f->path), 0);
}

static void whole(void **state)
{
	struct fixture *f = *state;
	struct stat st;

	assert_int_equal(write_file(f), 0);
	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	is_read_back(f);
}

static void calls_that_fail(void **state)
{
	failing_each(write_file, is_read_back, *state);
}

/* Never over what is there. */
static void another(void **state)
{
	struct fixture *f = *state;
	struct perffile *file = (struct perffile *)0x1;

	tempdir_put_text(f->dir, NAME, "something");
	assert_int_equal(perffile_new(f->dir_fd, NAME, &f->facts, &file), -EEXIST);
	assert_ptr_equal(file, 0x1);
	assert_null(perffile_free(NULL));
}

/* The feature's section, by the header's bits. */
static struct perfabi_section feature(const struct fixture *f, unsigned wanted)
{
	struct perfabi_header header;
	struct perfabi_section section;
	uint64_t at;

	memcpy(&header, f->file.bytes, sizeof(header));
	assert_true(header.features[wanted / 64] >> wanted % 64 & 1);
	at = header.data.offset + header.data.size;
	for (unsigned i = 0; i < wanted; i++)
		at += header.features[i / 64] >> i % 64 & 1 ? sizeof(section) : 0;
	memcpy(&section, f->file.bytes + at, sizeof(section));
	assert_true(section.offset + section.size <= f->file.size);
	return section;
}

static void assert_string(const struct fixture *f, unsigned wanted, const char *expected)
{
	const struct perfabi_section s = feature(f, wanted);
	uint32_t size;

	memcpy(&size, f->file.bytes + s.offset, sizeof(size));
	assert_int_equal(size % 64, 0);
	assert_int_equal(s.size, sizeof(size) + size);
	assert_string_equal((const char *)f->file.bytes + s.offset + sizeof(size), expected);
}

static void assert_u64s(const struct fixture *f, unsigned wanted, uint64_t first, uint64_t second)
{
	const struct perfabi_section s = feature(f, wanted);
	uint64_t values[2];

	assert_true(s.size >= sizeof(values));
	memcpy(values, f->file.bytes + s.offset, sizeof(values));
	assert_int_equal(values[0], first);
	assert_int_equal(values[1], second);
}

/* What perf shows of a file's header, and where it finds the PT. */
static void features(void **state)
{
	struct fixture *f = *state;
	struct perfabi_section s;
	struct perfabi_header header;
	struct perf_event_attr attr;
	uint64_t where, reference;

	assert_int_equal(write_file(f), 0);
	assert_int_equal(mapfile_read(&f->file, AT_FDCWD, f->path), 0);
	assert_string(f, PERFABI_FEATURE_HOSTNAME, "host");
	assert_string(f, PERFABI_FEATURE_OSRELEASE, "6.1.0");
	assert_string(f, PERFABI_FEATURE_VERSION, "ptd-1");
	assert_string(f, PERFABI_FEATURE_ARCH, "x86_64");
	assert_string(f, PERFABI_FEATURE_CPUID, "GenuineIntel,6,85,4");
	assert_u64s(f, PERFABI_FEATURE_SAMPLE_TIME, 5, 99);
	s = feature(f, PERFABI_FEATURE_NRCPUS);
	assert_memory_equal(f->file.bytes + s.offset, ((uint32_t[]){ 4, 4 }), 8);

	/* Two pieces of PT; the first is where it says. */
	s = feature(f, PERFABI_FEATURE_AUXTRACE);
	assert_int_equal(s.size, 8 + 2 * 16);
	memcpy(&where, f->file.bytes + s.offset + 8, sizeof(where));
	assert_int_equal(*(const uint32_t *)(const void *)(f->file.bytes + where),
			 PERFABI_AUXTRACE);
	memcpy(&reference, f->file.bytes + where + 24, sizeof(reference));
	assert_int_equal(reference, 77);

	/* What was recorded: the PT of users' code, and the records beside it. */
	memcpy(&header, f->file.bytes, sizeof(header));
	assert_int_equal(header.attrs.size, 2 * header.attr_size);
	memset(&attr, 0, sizeof(attr));
	memcpy(&attr, f->file.bytes + header.attrs.offset, PERF_ATTR_SIZE_VER5);
	assert_int_equal(attr.type, 8);
	assert_int_equal(attr.config, 0x2e03);
	assert_false(attr.exclude_user);
	assert_true(attr.exclude_kernel);
	assert_true(attr.exclude_hv);
	assert_true(attr.sample_id_all);
	memcpy(&attr, f->file.bytes + header.attrs.offset + header.attr_size, PERF_ATTR_SIZE_VER5);
	assert_int_equal(attr.type, PERF_TYPE_SOFTWARE);
	assert_true(attr.mmap && attr.mmap2 && attr.comm && attr.comm_exec && attr.task);
	assert_true(attr.context_switch && attr.build_id);
	assert_false(attr.ksymbol || attr.bpf_event || attr.text_poke);
}

/* Samples of tracepoints: perf and ptdecode find in the file how to read them. */
static void tracepoints(void **state)
{
	struct fixture *f = *state;
	const struct trailer who = { .pid = 7, .tid = 8, .time = 9, .cpu = 1 };
	uint8_t sample[RECORD_OWN_MAX];
	struct perffile *file;
	struct trace *trace;
	char *message = NULL;
	size_t n_found = 0;

	f->facts.gives_events = true;
	assert_int_equal(perffile_new(f->dir_fd, NAME, &f->facts, &file), 0);
	perffile_write(file, f->records.bytes, f->records.size);
	perffile_write(file, sample, record_write_sys_enter(231, &who, sample, sizeof(sample)));
	perffile_write(file, sample,
		       record_write_signal_deliver(11, 0x401000, &who, sample, sizeof(sample)));
	assert_int_equal(perffile_write_aux(file, 1, 0, 77, pt, sizeof(pt)), 0);
	assert_int_equal(perffile_finish(file, &f->about), 0);
	(void)perffile_free(file);

	assert_int_equal(input_open(f->path, false, NULL, &trace, &message), 0);
	assert_int_equal(trace->n_skipped + trace->n_unknown, 0);
	for (size_t i = 0; i < trace->n_records; i++) {
		const struct trace_record *r = &trace->records[i];
		struct trace_syscall call;
		struct trace_signal taken;

		if (r->type != TRACE_RECORD_SYSCALL && r->type != TRACE_RECORD_SIGNAL)
			continue;
		n_found++;
		assert_int_equal(r->pid, 7);
		assert_int_equal(r->tid, 8);
		assert_int_equal(r->time, 9);
		assert_int_equal(r->cpu, 1);
		if (r->type == TRACE_RECORD_SYSCALL) {
			memcpy(&call, r->payload, sizeof(call));
			assert_int_equal(call.number, 231);
		} else {
			memcpy(&taken, r->payload, sizeof(taken));
			assert_int_equal(taken.signal, 11);
			assert_int_equal(taken.code, PTD_SIDEBAND_NO_CODE);
			assert_int_equal(taken.handler, 0x401000);
		}
	}
	assert_int_equal(n_found, 2);
	(void)trace_free(trace);

	assert_int_equal(mapfile_read(&f->file, AT_FDCWD, f->path), 0);
	assert_string(f, PERFABI_FEATURE_HOSTNAME, "host");
}

static void name_of_event(struct fixture *f, bool user, bool kernel, const char *expected)
{
	struct perfabi_section s;

	f->facts.user = user;
	f->facts.kernel = kernel;
	assert_int_equal(write_file(f), 0);
	assert_int_equal(mapfile_read(&f->file, AT_FDCWD, f->path), 0);
	s = feature(f, PERFABI_FEATURE_EVENT_DESC);
	assert_string_equal((const char *)f->file.bytes + s.offset + 8 + PERF_ATTR_SIZE_VER5 + 8,
			    expected);
	mapfile_deinit(&f->file);
	assert_int_equal(unlink(f->path), 0);
}

static void whose_code(void **state)
{
	name_of_event(*state, true, false, "intel_pt//u");
	name_of_event(*state, false, true, "intel_pt//k");
	name_of_event(*state, true, true, "intel_pt//");
}

/* A full disk: what fails is said at the end, once, whichever write it was. */
static void full(void **state)
{
	static const size_t sizes[] = { 0, 100, 1 << 20, 5 << 20 };
	struct fixture *f = *state;
	_cleanup_(freep) uint8_t *bytes = calloc(1, 5 << 20);

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		struct perffile *file;

		assert_int_equal(perffile_new(f->dir_fd, NAME, &f->facts, &file), 0);
		/* Whatever is written goes to a device that is always full. */
		assert_true(dup2(open("/dev/full", O_RDWR | O_CLOEXEC), 99) == 99);
		for (int fd = 3; fd < 99; fd++) {
			struct stat a, b;

			if (fstat(fd, &a) == 0 && fstatat(f->dir_fd, NAME, &b, 0) == 0 &&
			    a.st_ino == b.st_ino && a.st_dev == b.st_dev)
				assert_int_equal(dup2(99, fd), fd);
		}
		(void)close(99);
		perffile_write(file, bytes, sizes[i]);
		assert_int_equal(perffile_finish(file, &f->about), -ENOSPC);
		(void)perffile_free(file);
		assert_int_equal(unlink(f->path), 0);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(whole, set_up, tear_down),
		cmocka_unit_test_setup_teardown(calls_that_fail, set_up, tear_down),
		cmocka_unit_test_setup_teardown(another, set_up, tear_down),
		cmocka_unit_test_setup_teardown(features, set_up, tear_down),
		cmocka_unit_test_setup_teardown(tracepoints, set_up, tear_down),
		cmocka_unit_test_setup_teardown(whose_code, set_up, tear_down),
		cmocka_unit_test_setup_teardown(full, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
