/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Lanes: PT bytes of a CPU and the sideband's records together give slices. Each row is a list of
 * records and of packets; the transcript says who ran what.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/image/cache.h"
#include "decoder/image/objects.h"
#include "decoder/image/view.h"
#include "decoder/sideband/timeline.h"
#include "decoder/stream/lane.h"
#include "tests/lib/jitbuild.h"
#include "tests/unit/smallside.h"

#define JIT 0x1000 /* from BASE: nop; je; jmp *%rax; jmp *%rax */

/* Two system calls, each behind a nop; the second file has them the other way round. */
static const uint8_t program[] = { 0x90, 0x0f, 0x05, 0x90, 0x90, 0x0f, 0x05 };
static const uint8_t other[] = { 0x90, 0x90, 0x90, 0x0f, 0x05, 0x0f, 0x05 };

#define PSB                                                                                       \
	0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, \
	    0x82
#define PSBEND 0x02, 0x23
#define TSC(n) 0x19, (n), 0, 0, 0, 0, 0, 0
#define START  PSB, TSC(1), PSBEND, 0x99, 0x01
/* From BASE + off to the next system call, at time n. */
#define CALL(n, off) TSC(n), 0x71, (off), 0x10, 0x40, 0x00, 0x00, 0x00, 0x01

#define PGE(low, high) 0x71, (low), (high), 0x40, 0x00, 0x00, 0x00
#define TIP(low, high) 0x6d, (low), (high), 0x40, 0x00, 0x00, 0x00

static const uint8_t jit_code[] = { 0x90, 0x74, 0x02, 0xff, 0xe0, 0xff, 0xe0 };

struct row {
	const char *name;
	const char *expected;
	struct switch_in switches[4];
	uint64_t since;        /* the sideband goes back to */
	uint32_t scope;        /* the process that was asked for; 0: all */
	uint64_t first, last;  /* time covered, if it was asked for */
	uint64_t out_of_scope; /* bytes */
	uint64_t exec_time;    /* process 10 executes the other file then */
	size_t size;
	uint8_t packets[160];
};

#define PACKETS(...) .size = sizeof((uint8_t[]){ __VA_ARGS__ }), .packets = { __VA_ARGS__ }

static const struct row rows[] = {
	{ "one thread", "[10/10 @5: 0 1 off 3 4 5 off]", .switches = { { 2, 10, 10 } },
	  PACKETS(START, CALL(5, 0), CALL(6, 3)) },
	{ "two threads on one cpu", "[10/10 @5: 0 1 off][10/11 @8: 3 4 5 off]",
	  .switches = { { 2, 10, 10 }, { 7, 10, 11 } }, PACKETS(START, CALL(5, 0), CALL(8, 3)) },
	{ "there and back", "[10/10 @5: 0 1 off][10/11 @8: 3 4 5 off][10/10 @20: 0 1 off]",
	  .switches = { { 2, 10, 10 }, { 7, 10, 11 }, { 15, 10, 10 } },
	  PACKETS(START, CALL(5, 0), CALL(8, 3), CALL(20, 0)) },
	{ "away and back, idle in between", "[10/10 @5: 0 1 off][10/10 @20: 0 1 off]",
	  .switches = { { 2, 10, 10 }, { 7, 0, 0 }, { 15, 10, 10 } },
	  PACKETS(START, CALL(5, 0), CALL(20, 0)) },
	{ "a switch at the very time", "[10/10 @5: 0 1 off][10/11 @7: 3 4 5 off]",
	  .switches = { { 2, 10, 10 }, { 7, 10, 11 } }, PACKETS(START, CALL(5, 0), CALL(7, 3)) },
	{ "nobody knows who runs", "[?/? @5: gap(thread unknown)]", PACKETS(START, CALL(5, 0)) },
	{ "from before the sideband on", "[?/? @5: gap(before the sideband)][10/10 @8: 3 4 5 off]",
	  .since = 7, .switches = { { 2, 10, 10 } }, PACKETS(START, CALL(5, 0), CALL(8, 3)) },
	{ "a thread whose code is not known", "[20/20 @5: gap(code not mapped)]",
	  .switches = { { 2, 20, 20 } }, PACKETS(START, CALL(5, 0)) },
	{ "of one process only", "[10/10 @8: 0 1 off][10/10 @15: 3 4 5 off]",
	  .switches = { { 2, 20, 20 }, { 7, 10, 10 }, { 10, 20, 20 }, { 14, 10, 10 } }, .scope = 10,
	  .first = 8, .last = 15, .out_of_scope = 14,
	  PACKETS(START, CALL(5, 0), CALL(8, 0), CALL(12, 0), CALL(15, 3), TSC(99)) },
	{ "the code of others is known, too", "", .switches = { { 2, 10, 10 } }, .scope = 20,
	  .out_of_scope = 7, PACKETS(START, CALL(5, 0), CALL(8, 0)) },
	{ "others take turns", "", .switches = { { 2, 10, 10 }, { 6, 30, 30 }, { 7, 0, 0 } },
	  .scope = 20, .out_of_scope = 7,
	  PACKETS(START, TSC(5), PGE(0x00, 0x10), 0x01, PGE(0x00, 0x10), 0x01, TSC(9)) },
	{ "perhaps one that was asked for", "[?/? @5: gap(thread unknown)]",
	  .switches = { { 2, 10, 10 }, { 6, 20, 20 }, { 7, 30, 30 } }, .scope = 20,
	  .out_of_scope = 7,
	  PACKETS(START, TSC(5), PGE(0x00, 0x10), 0x01, PGE(0x00, 0x10), 0x01, TSC(9)) },
	{ "an overflow while others ran", "[20/20 @5: gap(overflow)]",
	  .switches = { { 2, 20, 20 } }, .scope = 10,
	  PACKETS(START, TSC(5), 0x02, 0xf3, CALL(6, 0)) },
	{ "another program in the same process", "[10/10 @5: 0 1 off][10/10 @9: 0 1 2 3 off]",
	  .switches = { { 2, 10, 10 } }, .exec_time = 8, PACKETS(START, CALL(5, 0), CALL(9, 0)) },
	{ "a time in mid-stream, told by a PSB+ alone", "[10/11 @8: 0 1 off]",
	  .switches = { { 2, 10, 10 }, { 7, 10, 11 } },
	  PACKETS(START, TSC(5), 0x71, 0x00, 0x10, 0x40, 0x00, 0x00, 0x00, PSB, TSC(8), 0x99, 0x01,
		  0x7d, 0x00, 0x10, 0x40, 0x00, 0x00, 0x00, PSBEND, 0x01) },
	{ "a jit's code that runs as it was noted", "[10/10 @5: 1000 1001 1005 0 1 off]",
	  .switches = { { 2, 10, 10 } },
	  PACKETS(START, TSC(5), PGE(0x00, 0x20), 0x06, TIP(0x00, 0x10), 0x01) },
	{ "what was read in a jit's code that had changed",
	  "[10/10 @5: gap(packets contradict the code) 0 1 off]", .switches = { { 2, 10, 10 } },
	  PACKETS(START, TSC(5), PGE(0x00, 0x20), TIP(0x00, 0x10), 0x01) },
	{ "only what comes behind the last address that packets told",
	  "[10/10 @5: 1000 1001 1005 gap(packets contradict the code) 0 1 off]",
	  .switches = { { 2, 10, 10 } },
	  PACKETS(START, TSC(5), PGE(0x00, 0x20), 0x06, TIP(0x00, 0x20), TIP(0x00, 0x10), 0x01) },
};

/* Process 10 maps the jitdump that a JIT in it wrote. */
static void add_jit(struct sideband *s, const char *path)
{
	add_map(s, 9, 1, 0x1000, path);
}

static void build(struct sideband *s, const struct row *row, char paths[3][32])
{
	*s = (struct sideband){};
	/* On another CPU: an exec proves who runs on its own. */
	add_program(s, 9, 1, paths[0]);
	add_jit(s, paths[2]);
	add_fork(s, 1, 10, 11);
	if (row->exec_time)
		add_program(s, 0, row->exec_time, paths[1]);
	for (size_t i = 0; i < 4 && row->switches[i].time; i++)
		add_switch(s, &row->switches[i]);
	sort_sideband(s);
}

static void print_batch(FILE *f, const struct lane *lane)
{
	size_t mark = 0;

	if (lane->new_slice) {
		if (lane->slice.tid == PTD_ID_UNKNOWN)
			fprintf(f, "[?/? ");
		else
			fprintf(f, "[%" PRIu32 "/%" PRIu32 " ", lane->slice.pid, lane->slice.tid);
		fprintf(f, "@%" PRIu64 ":", lane->slice.t0);
	}
	for (size_t i = 0; i <= lane->n_runs; i++) {
		for (; mark < lane->marks.n && lane->marks.items[mark].run == i; mark++) {
			if (lane->marks.items[mark].kind == PTD_MARK_OFF)
				fprintf(f, " off");
			else
				fprintf(f, " gap(%s)",
					ptd_gap_reason_name(lane->marks.items[mark].reason));
		}
		for (size_t k = 0; i < lane->n_runs && k < lane->runs[i].n; k++)
			fprintf(f, " %" PRIx64, ptd_run_ip(&lane->runs[i], k) - BASE);
	}
	fprintf(f, "]");
}

static char *transcribe(const struct row *row, char paths[3][32])
{
	static struct sideband sideband;
	struct trace_span span = { .pt = fileparts_in_memory(row->packets, row->size) };
	struct trace_queue queue = {
		.cpu = 0,
		.tid = TRACE_NONE,
		.sideband_since = row->since,
		.spans = &span,
		.n_spans = 1,
	};
	struct trace trace = {
		.facts = { .clock = { .valid = true, .mult = 1 },
			   .has_tsc = true,
			   .has_scope = row->scope > 0 },
		.queues = &queue,
		.n_queues = 1,
	};
	_cleanup_(objects_freep) struct objects *objects = NULL;
	_cleanup_(timeline_freep) struct timeline *timeline = NULL;
	_cleanup_(cache_freep) struct cache *cache = NULL;
	struct engine_budget budget = { .n_insns = ENGINE_INSNS_MIN };
	_cleanup_(views_freep) struct views *views = NULL;
	struct lane lane;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	build(&sideband, row, paths);
	if (row->scope)
		assert_int_equal(map_put(&trace.facts.scope, row->scope, 1), 0);
	trace.records = sideband.records;
	trace.n_records = sideband.n;
	assert_int_equal(objects_new(NULL, &objects), 0);
	assert_int_equal(timeline_new(&trace, objects, &timeline), 0);
	assert_int_equal(cache_new(NULL, NULL, &cache), 0);
	assert_int_equal(views_new(cache, &views), 0);
	assert_int_equal(
	    lane_init(&lane, &(struct lane_config){ .trace = &trace,
						    .queue = &queue,
						    .timeline = timeline,
						    .engine = &engine_flow,
						    .engine_config = { .cache = cache,
								       .budget = &budget,
								       .views = views,
								       .has_threads = true } }),
	    0);
	do {
		assert_int_equal(lane_fill(&lane), 0);
		if (lane_ready(&lane))
			print_batch(f, &lane);
	} while (lane_ready(&lane));
	assert_int_equal(lane.stats.bytes_in, row->size);
	assert_int_equal(lane.stats.bytes_decoded + lane.stats.bytes_lost +
			     lane.stats.bytes_out_of_scope,
			 row->size);
	assert_int_equal(lane.stats.bytes_out_of_scope, row->out_of_scope);
	if (row->scope) {
		assert_int_equal(lane.stats.t_first, row->first);
		assert_int_equal(lane.stats.t_last, row->last);
	}
	map_deinit(&trace.facts.scope);
	fclose(f);
	lane_deinit(&lane);
	return text;
}

static void make_file(char path[32], const uint8_t *bytes, size_t size)
{
	int fd;

	snprintf(path, 32, "/tmp/ptd-test-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	close(fd);
}

static void make_jitdump(char path[32])
{
	struct jitbuild b;
	FILE *f;

	jitbuild_begin(&b, 0);
	(void)jitbuild_load(&b, 1, BASE + JIT, 1, "f", jit_code, sizeof(jit_code));
	snprintf(path, 32, "/tmp/jit-%d.dump", (int)getpid());
	f = fopen(path, "wx");
	assert_non_null(f);
	assert_int_equal(fwrite(b.bytes, b.size, 1, f), 1);
	fclose(f);
}

static void every_row(void **state)
{
	char paths[3][32];

	(void)state;
	make_file(paths[0], program, sizeof(program));
	make_file(paths[1], other, sizeof(other));
	make_jitdump(paths[2]);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_(freep) char *text = transcribe(&rows[i], paths);

		print_message("  %s: %s\n", rows[i].name, text);
		assert_string_equal(text, rows[i].expected);
	}
	unlink(paths[0]);
	unlink(paths[1]);
	unlink(paths[2]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
