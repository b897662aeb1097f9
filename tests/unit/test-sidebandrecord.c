/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Events: each kind of record, through the sink that lists them: the line it must give. Then the
 * same records cut short, which give none.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "decoder/sideband/sidebandrecord.h"
#include "decoder/sink/sinks.h"
#include "tests/lib/kinds.h"

#define WORDS(...) .size = sizeof((uint64_t[]){ __VA_ARGS__ }), .words = { __VA_ARGS__ }
#define IDS(a, b)  ((uint64_t)(a) | (uint64_t)(b) << 32)
#define RXP        IDS(PROT_READ | PROT_EXEC, MAP_PRIVATE)
#define HEAD       "       11/12 [003]     77.000000005: "

static const struct {
	uint32_t type;
	uint16_t misc;
	const char *line;
	const char *name; /* behind the words */
	size_t size;
	uint64_t words[9];
} rows[] = {
	{ PERF_RECORD_MMAP, 0,
	  "PERF_RECORD_MMAP -1/0: [0xffffffff81000000(0x1000) @ 0]: x [kernel]\n", "[kernel]",
	  WORDS(IDS(UINT32_MAX, 0), 0xffffffff81000000, 0x1000, 0) },
	{ PERF_RECORD_MMAP, PERF_RECORD_MISC_MMAP_DATA,
	  "PERF_RECORD_MMAP 1/2: [0x10(0x20) @ 0x30]: r a b\n", "a b",
	  WORDS(IDS(1, 2), 0x10, 0x20, 0x30) },
	{ PERF_RECORD_MMAP2, 0, "PERF_RECORD_MMAP2 1/2: [0x10(0x20) @ 0x30 08:11 55 66]: r-xp /a\n",
	  "/a", WORDS(IDS(1, 2), 0x10, 0x20, 0x30, IDS(8, 0x11), 55, 66, RXP) },
	{ PERF_RECORD_MMAP2, 0, "PERF_RECORD_MMAP2 1/2: [0x10(0x20) @ 0 00:00 0 0]: -w-s ?[31m\n",
	  "\033[31m", WORDS(IDS(1, 2), 0x10, 0x20, 0, 0, 0, 0, IDS(PROT_WRITE, MAP_SHARED)) },
	{ PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID,
	  "PERF_RECORD_MMAP2 1/2: [0x10(0x20) @ 0 <abcd>]: r-xp /a\n", "/a",
	  WORDS(IDS(1, 2), 0x10, 0x20, 0, IDS(2, 0xcdab), 0, 0, RXP) },
	{ PERF_RECORD_COMM, 0, "PERF_RECORD_COMM: me:1/2\n", "me", WORDS(IDS(1, 2)) },
	{ PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, "PERF_RECORD_COMM exec: me:1/2\n", "me",
	  WORDS(IDS(1, 2)) },
	{ PERF_RECORD_FORK, 0, "PERF_RECORD_FORK(1:3):(2:4)\n", NULL,
	  WORDS(IDS(1, 2), IDS(3, 4), 9) },
	{ PERF_RECORD_EXIT, 0, "PERF_RECORD_EXIT(1:3):(2:4)\n", NULL,
	  WORDS(IDS(1, 2), IDS(3, 4), 9) },
	{ PERF_RECORD_EXIT, 0, "PERF_RECORD_EXIT(1:3):(2:4) signal: 11\n", NULL,
	  WORDS(IDS(1, 2), IDS(3, 4), 9, IDS(0x67695364, 11)) },
	{ PERF_RECORD_ITRACE_START, 0, "PERF_RECORD_ITRACE_START pid: 1 tid: 2\n", NULL,
	  WORDS(IDS(1, 2)) },
	{ PERF_RECORD_SWITCH, 0, "PERF_RECORD_SWITCH IN\n", NULL, .size = 0 },
	{ PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT, "PERF_RECORD_SWITCH OUT\n", NULL,
	  .size = 0 },
	{ PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT,
	  "PERF_RECORD_SWITCH OUT preempt\n", NULL, .size = 0 },
	{ PERF_RECORD_SWITCH_CPU_WIDE, 0,
	  "PERF_RECORD_SWITCH_CPU_WIDE IN          prev pid/tid:     1/2\n", NULL,
	  WORDS(IDS(1, 2)) },
	{ PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_MISC_SWITCH_OUT,
	  "PERF_RECORD_SWITCH_CPU_WIDE OUT         next pid/tid:     1/2\n", NULL,
	  WORDS(IDS(1, 2)) },
	{ PERF_RECORD_AUX, 0, "PERF_RECORD_AUX offset: 0x10 size: 0x20 flags: 0x5 [TP]\n", NULL,
	  WORDS(0x10, 0x20, PERF_AUX_FLAG_TRUNCATED | PERF_AUX_FLAG_PARTIAL) },
	{ PERF_RECORD_AUX, 0, "PERF_RECORD_AUX offset: 0 size: 0 flags: 0xa [OC]\n", NULL,
	  WORDS(0, 0, PERF_AUX_FLAG_OVERWRITE | PERF_AUX_FLAG_COLLISION) },
	{ PERF_RECORD_LOST, 0, "PERF_RECORD_LOST lost 7\n", NULL, WORDS(1, 7) },
	{ PERF_RECORD_LOST_SAMPLES, 0, "PERF_RECORD_LOST_SAMPLES lost 7\n", NULL, WORDS(7) },
	{ TRACE_RECORD_SIGNAL, 0, "signal:signal_deliver: sig=11 code=-6 sa_handler=401000\n", NULL,
	  WORDS(IDS(11, -6u), 0x401000) },
	{ TRACE_RECORD_SYSCALL, 0, "raw_syscalls:sys_enter: NR 202\n", NULL, WORDS(202) },
};

static size_t make(size_t row, uint8_t payload[static 128], struct trace_record *record)
{
	size_t size = rows[row].size;

	if (size)
		memcpy(payload, rows[row].words, size);
	if (rows[row].name) {
		memcpy(payload + size, rows[row].name, strlen(rows[row].name) + 1);
		size += strlen(rows[row].name) + 1;
	}
	*record = (struct trace_record){
		.type = rows[row].type,
		.misc = rows[row].misc | PERF_RECORD_MISC_USER,
		.time = 77000000005,
		.cpu = 3,
		.pid = 11,
		.tid = 12,
		.payload = payload,
		.payload_size = size,
	};
	return size;
}

static void every_kind(void **state)
{
	const struct ptd_info info = { .clock = PTD_CLOCK_NS };
	const struct ptd_stats stats = {};
	char path[] = "/tmp/ptd-test-sidebandrecord-XXXXXX";
	_cleanup_(fd_closep) int fd = mkstemp(path);
	ssize_t n;

	(void)state;
	assert_true(fd >= 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint8_t payload[128];
		struct trace_record record;
		struct ptd_sideband shown;
		struct sink *sink;
		char line[256];

		(void)make(i, payload, &record);
		assert_true(sidebandrecord_read(&record, &shown));
		assert_int_equal(sink_open(&sink_sideband, path, &info, NULL, &sink), 0);
		assert_int_equal(sink_take_sideband(sink, &shown), 0);
		assert_int_equal(sink_finish(sink, &stats), 0);
		assert_null(sink_free(sink));

		n = pread(fd, line, sizeof(line) - 1, 0);
		assert_true(n > 0);
		line[n] = '\0';
		if (strncmp(line, HEAD, strlen(HEAD)) != 0 ||
		    strcmp(line + strlen(HEAD), rows[i].line) != 0)
			fail_msg("%s%s%s", line, HEAD, rows[i].line);
	}
	unlink(path);
}

/* One byte less than the record needs, and all shorter ones. */
static void cut_short(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint8_t payload[128];
		struct trace_record record;
		struct ptd_sideband shown;
		size_t size = make(i, payload, &record);

		/* That of a task's life is not needed for what is shown. */
		if (record.type == PERF_RECORD_FORK || record.type == PERF_RECORD_EXIT)
			size -= 8;
		while (size-- > 0) {
			record.payload_size = size;
			assert_false(sidebandrecord_read(&record, &shown));
		}
	}
}

static void other_records(void **state)
{
	const struct trace_record record = { .type = PERF_RECORD_THROTTLE };
	struct ptd_sideband shown;

	(void)state;
	assert_false(sidebandrecord_read(&record, &shown));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind),
		cmocka_unit_test(cut_short),
		cmocka_unit_test(other_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
