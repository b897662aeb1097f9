/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Address filters: the text that perf leaves, and where the code is that it names. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>

#include "decoder/sideband/filtered.h"
#include "decoder/trace/trace.h"
#include "tests/unit/tracerecord.h"

static int read_text(const char *text, struct addrfilters *ret_filters)
{
	return addrfilter_read(text, strlen(text), ret_filters);
}

/* The parts of the text are those of perf: addr_filter__to_str() in its util/auxtrace.c. */
static void reads(void **state)
{
	static const struct {
		const char *text;
		size_t n;
		struct {
			bool stops;
			uint64_t address, size;
			const char *path;
		} parts[4];
	} rows[] = {
		{ "filter 0x1139/0x2a@/usr/bin/x", 1, { { false, 0x1139, 0x2a, "/usr/bin/x" } } },
		{ "tracestop 0x40/0x10", 1, { { true, 0x40, 0x10, NULL } } },
		{ "stop 0x0/0x1@/x", 1, { { true, 0, 1, "/x" } } },
		{ "filter 0xffffffff81000000/0x1000",
		  1,
		  { { false, 0xffffffff81000000, 0x1000, NULL } } },
		{ "filter 0x1/0x2@/a,stop 0x3/0x4@/b",
		  2,
		  { { false, 1, 2, "/a" }, { true, 3, 4, "/b" } } },
		{ " filter 0x1/0x2, \tfilter 0x3/0x4@/b\n filter 0x5/0x6 , stop 0x7/0x8,",
		  4,
		  { { false, 1, 2, NULL },
		    { false, 3, 4, "/b" },
		    { false, 5, 6, NULL },
		    { true, 7, 8, NULL } } },
		{ "filter 0xffffffffffffffff/0x1", 1, { { false, UINT64_MAX, 1, NULL } } },
		{ "filter 0x0/0xffffffffffffffff", 1, { { false, 0, UINT64_MAX, NULL } } },
		{ "filter 0x1/0x2@/a@b/c", 1, { { false, 1, 2, "/a@b/c" } } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct addrfilters filters;

		print_message("  %s\n", rows[i].text);
		assert_int_equal(read_text(rows[i].text, &filters), 0);
		assert_int_equal(filters.n, rows[i].n);
		for (size_t k = 0; k < filters.n; k++) {
			const struct addrfilter *f = &filters.parts[k];
			const char *path = rows[i].parts[k].path;

			assert_int_equal(f->stops, rows[i].parts[k].stops);
			assert_int_equal(f->address, rows[i].parts[k].address);
			assert_int_equal(f->size, rows[i].parts[k].size);
			assert_int_equal(f->path_size, path ? strlen(path) : 0);
			if (path)
				assert_memory_equal(f->path, path, strlen(path));
			else
				assert_null(f->path);
		}
	}
}

static void refuses(void **state)
{
	static const char *const rows[] = {
		"",
		" ,",
		"filter",
		"filter ",
		"filter 0x",
		"filter 0x1",
		"filter 0x1/",
		"filter 0x1/0x0",
		"filter 0x1/0x2@",
		"filter 0x1/0x2@,",
		"filter 0x1/0x2x",
		"filter 1/2",
		"filter 0x1/0x11111111111111111",
		"filter 0xffffffffffffffff/0x2",
		"start 0x1/0x2",
		"stop 0x1@/x",
		"filter main@/x",
		"Filter 0x1/0x2",
		"filter 0x1/0x2 and",
		"filter 0x1/0x2,filter 0x1/0x2,filter 0x1/0x2,filter 0x1/0x2,filter 0x1/0x2",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct addrfilters filters = { .n = 77 };

		print_message("  %s\n", rows[i]);
		assert_int_equal(read_text(rows[i], &filters), -EBADMSG);
		assert_int_equal(filters.n, 77);
	}
	assert_int_equal(addrfilter_read("filter 0x1/0x2@/x\0y", 19, &(struct addrfilters){}),
			 -EBADMSG);
}

/* As the kernel does it: perf_addr_filter_vma_adjust(). */
static void places(void **state)
{
	static const struct {
		uint64_t address, size;         /* of the filter */
		uint64_t start, mapped, offset; /* of the mapping */
		uint64_t first, last;           /* 0, 0: none */
	} rows[] = {
		{ 0x1100, 0x10, 0x401000, 0x1000, 0x1000, 0x401100, 0x40110f },
		{ 0x1000, 0x1000, 0x401000, 0x1000, 0x1000, 0x401000, 0x401fff },
		{ 0x800, 0x900, 0x401000, 0x1000, 0x1000, 0x401000, 0x4010ff },
		{ 0x1f00, 0x900, 0x401000, 0x1000, 0x1000, 0x401f00, 0x401fff },
		{ 0, UINT64_MAX, 0x401000, 0x1000, 0x1000, 0x401000, 0x401fff },
		{ 0xf00, 0x100, 0x401000, 0x1000, 0x1000, 0, 0 },
		{ 0x2000, 0x100, 0x401000, 0x1000, 0x1000, 0, 0 },
		{ 0x1000, 0x100, 0x401000, 0, 0x1000, 0, 0 },
		{ 0x1000, 0x100, UINT64_MAX - 10, 0x1000, 0x1000, 0, 0 },
		{ 0x1000, 0x100, UINT64_MAX - 0xffe, 0x1000, 0x1000, 0, 0 },
		{ 0x1000, 0x100, UINT64_MAX - 0xfff, 0x1000, 0x1000, UINT64_MAX - 0xfff,
		  UINT64_MAX - 0xf00 },
		{ UINT64_MAX, 1, 0x401000, 0x1000, UINT64_MAX - 0xffe, 0, 0 },
		{ UINT64_MAX, 1, 0x401000, 0x1000, UINT64_MAX - 0xfff, 0x401fff, 0x401fff },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct addrfilter filter = { .address = rows[i].address,
						   .size = rows[i].size };
		uint64_t first = 0, last = 0;

		print_message("  row %zu\n", i);
		assert_int_equal(addrfilter_place(&filter, rows[i].start, rows[i].mapped,
						  rows[i].offset, &first, &last),
				 rows[i].last != 0);
		assert_int_equal(first, rows[i].first);
		assert_int_equal(last, rows[i].last);
	}
}

/* In a trace of mappings of "/x", one for each start; @ret_filtered of "filter 0x10/0x10@/x". */
static int find(const struct record_mmap2 *maps, size_t n, const char *text,
		struct filtered *ret_filtered)
{
	const struct trailer trailer = {};
	uint8_t bytes[16][128];
	struct trace_record records[16] = {};
	struct trace trace = { .records = records, .n_records = n };

	assert_true(n <= ARRAY_LEN(records));
	for (size_t i = 0; i < n; i++)
		records[i] = tracerecord_from(
		    bytes[i], record_write_mmap2(&maps[i], &trailer, bytes[i], sizeof(bytes[i])));
	assert_int_equal(read_text(text, &trace.facts.filters), 0);
	return filtered_find(&trace, ret_filtered);
}

#define MAP(pid_, start_, offset_, prot_, path_)                                               \
	{                                                                                      \
		.misc = PERF_RECORD_MISC_USER, .pid = (pid_), .tid = (pid_), .addr = (start_), \
		.len = 0x1000, .pgoff = (offset_), .prot = (prot_), .name = path_,             \
	}

static void finds(void **state)
{
	static const struct record_mmap2 maps[] = {
		MAP(1, 0x10000, 0, PROT_READ | PROT_EXEC, "/x"),
		MAP(2, 0x10000, 0, PROT_READ | PROT_EXEC, "/x"), /* the same address */
		MAP(1, 0x20000, 0, PROT_READ, "/x"),             /* no code */
		MAP(1, 0x30000, 0, PROT_READ | PROT_EXEC, "/xy"),
		MAP(1, 0x40000, 0x1000, PROT_READ | PROT_EXEC, "/x"),
		MAP(2, 0x50000, 0, PROT_READ | PROT_EXEC, "/x"),
		MAP(UINT32_MAX, 0x60000, 0, PROT_READ | PROT_EXEC, "/x"), /* the kernel's */
		MAP(3, 0x70000, 0, PROT_READ | PROT_EXEC, "/x"),
		MAP(4, 0x80000, 0, PROT_READ | PROT_EXEC, "/x"),
		MAP(5, 0x90000, 0, PROT_READ | PROT_EXEC, "/x"),
	};
	struct filtered f = {};

	(void)state;
	assert_int_equal(find(maps, 6, "filter 0x10/0x10@/x,stop 0x5/0x6", &f), 0);
	assert_int_equal(f.n, 3);
	assert_true(f.ranges[0].first == 5 && f.ranges[0].last == 10 && f.ranges[0].stops);
	assert_true(f.ranges[1].first == 0x10010 && f.ranges[1].last == 0x1001f);
	assert_true(f.ranges[2].first == 0x50010 && f.ranges[2].last == 0x5001f);
	assert_false(f.ranges[1].stops || f.ranges[2].stops);

	f = (struct filtered){ .n = 77 };
	assert_int_equal(find(maps, 9, "filter 0x10/0x10@/x", &f), 0);
	assert_int_equal(f.n, 4);
	f.n = 77;
	assert_int_equal(find(maps, 9, "filter 0x10/0x10@/x,stop 0x5/0x6", &f), FILTERED_TOO_MANY);
	assert_int_equal(find(maps, 10, "filter 0x10/0x10@/x", &f), FILTERED_TOO_MANY);
	assert_int_equal(f.n, 77);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads),
		cmocka_unit_test(refuses),
		cmocka_unit_test(places),
		cmocka_unit_test(finds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
