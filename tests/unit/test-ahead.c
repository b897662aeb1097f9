/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Ahead: however many threads decode parts ahead of a lane, what comes out is the same. A row says
 * how many parts are begun, and how many of them join; the others are parts that do not know what
 * the lane knows, or that are not plain.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decoder/image/objects.h"
#include "decoder/image/view.h"
#include "decoder/sideband/timeline.h"
#include "decoder/stream/ahead.h"
#include "tests/lib/failing.h"
#include "tests/unit/smallside.h"

#define N_PARTS 3

/* 00 nop; 01 je 00; 03 jmp *%rax; 05 syscall */
static const uint8_t program[] = { 0x90, 0x74, 0xfd, 0xff, 0xe0, 0x0f, 0x05 };

#define PSB                                                                                       \
	0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, \
	    0x82
#define PSBEND 0x02, 0x23
#define TSC(n) 0x19, (n), 0, 0, 0, 0, 0, 0
#define MODE   0x99, 0x01
#define CBR(n) 0x02, 0x03, (n), 0
#define OVF    0x02, 0xf3
/* At an offset of the program. */
#define FUP(off) 0x7d, (off), 0x10, 0x40, 0, 0, 0
#define TIP(off) 0x6d, (off), 0x10, 0x40, 0, 0, 0
#define PGE(off) 0x71, (off), 0x10, 0x40, 0, 0, 0
#define PGD      0x01
#define NOWHERE  0x6d, 0, 0, 0x50, 0, 0, 0
#define TAKEN    0x06
#define FALLS    0x04

/* The loop is entered at time 1; a PSB+ in it; a PSB+ while packets are off; a system call. */
#define ENTER   PSB, TSC(1), PSBEND, MODE, PGE(0), TAKEN
#define ON(n)   PSB, TSC(n), MODE, FUP(0), PSBEND, TAKEN
#define OFF(n)  PSB, TSC(n), MODE, PSBEND
#define CALL(n) TSC(n), PGE(5), PGD
/* Control leaves the loop for the system call. */
#define LEAVE FALLS, TIP(5), PGD

struct row {
	const char *name;
	const char *expected; /* the beginning of the transcript; NULL: it says nothing new */
	size_t n_begun, n_used;
	uint64_t budget; /* what is left of the usual one; 0: all */
	struct switch_in switches[4];
	size_t size;
	uint8_t packets[480];
};

#define PACKETS(...) .size = sizeof((uint8_t[]){ __VA_ARGS__ }), .packets = { __VA_ARGS__ }

static const struct row rows[] = {
	{ "code that goes on", "[10/10 @1: 0,1 1,1 0,2 1,2 0,3 1,3 0,4 1,4\n", 2, 2,
	  .switches = { { 1, 10, 10 } }, PACKETS(ENTER, ON(2), ON(3), ON(4)) },
	{ "no cut but the first", NULL, 0, 0, .switches = { { 1, 10, 10 } }, PACKETS(ENTER) },
	{ "one cut, behind which is the end", NULL, 0, 0, .switches = { { 1, 10, 10 } },
	  PACKETS(ENTER, ON(2)) },
	{ "more parts than there may be at once", NULL, 7, 7, .switches = { { 1, 10, 10 } },
	  PACKETS(ENTER, ON(2), ON(3), ON(4), ON(5), ON(6), ON(7), ON(8), ON(9)) },
	{ "packets are off at cuts", "[10/10 @5: 5,5 off 5,7 off 5,9 off\n", 2, 2,
	  .switches = { { 2, 10, 10 } },
	  PACKETS(PSB, TSC(1), PSBEND, MODE, CALL(5), OFF(6), CALL(7), OFF(8), CALL(9), OFF(10)) },
	{ "a thread comes right behind a cut", "[10/10 @5: 5,5 off[10/11 @6: 5,7 off 5,9 off\n", 1,
	  1, .switches = { { 2, 10, 10 }, { 6, 10, 11 } },
	  PACKETS(PSB, TSC(1), PSBEND, MODE, CALL(5), OFF(6), CALL(7), OFF(8), CALL(9), OFF(10)) },
	{ "a thread comes inside of a part",
	  "[10/10 @5: 5,5 off 5,7 off[10/11 @9: 5,9 off 5,11 off\n", 2, 2,
	  .switches = { { 2, 10, 10 }, { 8, 10, 11 } },
	  PACKETS(PSB, TSC(1), PSBEND, MODE, CALL(5), OFF(6), CALL(7), CALL(9), OFF(10), CALL(11),
		  OFF(12)) },
	{ "away and back between two parts", "[10/10 @5: 5,5 off[10/10 @12: 5,12 off 5,14 off\n", 1,
	  1, .switches = { { 2, 10, 10 }, { 6, 0, 0 }, { 11, 10, 10 } },
	  PACKETS(PSB, TSC(1), PSBEND, MODE, CALL(5), OFF(7), TSC(8), OFF(10), CALL(12), OFF(13),
		  CALL(14)) },
	{ "a frequency that the PSB+ repeats", NULL, 2, 2, .switches = { { 1, 10, 10 } },
	  PACKETS(ENTER, CBR(7), PSB, TSC(2), MODE, CBR(7), FUP(0), PSBEND, TAKEN, PSB, TSC(3),
		  MODE, CBR(7), FUP(0), PSBEND, TAKEN, ON(4)) },
	{ "a frequency that the PSB+ does not repeat", NULL, 2, 0, .switches = { { 1, 10, 10 } },
	  PACKETS(ENTER, CBR(7), ON(2), ON(3), ON(4)) },
	{ "as many events in a PSB+ as there may be", NULL, 3, 3, .switches = { { 1, 10, 10 } },
	  PACKETS(ENTER, ON(2), PSB, TSC(3), MODE, MODE, MODE, MODE, MODE, MODE, MODE, MODE, FUP(0),
		  PSBEND, TAKEN, ON(4), ON(5)) },
	{ "a mode that the PSB+ does not repeat", NULL, 2, 1, .switches = { { 1, 10, 10 } },
	  PACKETS(ENTER, PSB, TSC(2), FUP(0), PSBEND, TAKEN, ON(3), ON(4)) },
	{ "a time that the PSB+ does not repeat", NULL, 2, 1, .switches = { { 1, 10, 10 } },
	  PACKETS(ENTER, PSB, MODE, FUP(0), PSBEND, TAKEN, ON(3), ON(4)) },
	{ "time goes back before the cut", NULL, 3, 1, .switches = { { 1, 10, 10 } },
	  PACKETS(ENTER, TSC(9), TAKEN, ON(5), ON(6), ON(10), ON(11)) },
	{ "execution is elsewhere than the PSB+ says", NULL, 3, 3, .switches = { { 1, 10, 10 } },
	  PACKETS(ENTER, PSB, TSC(2), MODE, FUP(5), PSBEND, PGD, PGE(0), TAKEN, ON(3), ON(4),
		  ON(5)) },
	{ "the code ends inside of a part", NULL, 3, 2, .switches = { { 1, 10, 10 } },
	  PACKETS(ENTER, ON(2), FALLS, NOWHERE, TAKEN, TAKEN, ON(3), ON(4), ON(5)) },
	{ "packets are lost inside of a part", NULL, 3, 2, .switches = { { 1, 10, 10 } },
	  PACKETS(ENTER, ON(2), OVF, FUP(0), TAKEN, ON(3), ON(4), ON(5)) },
	{ "bytes that are no packets inside of a part", NULL, 3, 2, .switches = { { 1, 10, 10 } },
	  PACKETS(ENTER, ON(2), 0x02, 0xff, TAKEN, ON(3), ON(4), ON(5)) },
	{ "cuts that the lane passes over behind errors", NULL, 0, 0, .switches = { { 1, 10, 10 } },
	  PACKETS(ENTER, 0x02, 0xff, PSB, 0x02, 0xff, ON(2), PSB, 0x02, 0xff, ON(3), ON(4)) },
	{ "a PSB+ that is a gap", NULL, 3, 0, .switches = { { 1, 10, 10 } },
	  PACKETS(ENTER, ON(2), PSB, TSC(3), 0x02, 0xff, ON(4), ON(5)) },
	{ "little is left of the budget", NULL, 2, 0, .budget = 1, .switches = { { 1, 10, 10 } },
	  PACKETS(ENTER, ON(2), ON(3), ON(4)) },
	{ "a thread that is not known runs", NULL, 2, 0,
	  PACKETS(ENTER, LEAVE, OFF(2), CALL(3), OFF(4), CALL(5), OFF(6), CALL(7)) },
};

/* What is decoded, and by what. */
struct setup {
	char path[32];
	struct sideband sideband;
	struct trace_span span;
	struct trace_queue queue;
	struct trace trace;
	struct objects *objects;
	struct timeline *timeline;
	struct cache *cache;
	struct engine_budget budget;
	struct ahead_counts counts;
	struct ptd_threads *threads;
	struct views *views, *part_views;
	uint64_t shown[8]; /* offsets of blocks, in the order in which they were shown */
	size_t n_shown;
	struct runpool *runs;
	struct ahead ahead;
	bool has_ahead;
	char *text;
};

static void set_input(struct setup *s, const struct switch_in switches[4], const uint8_t *packets,
		      size_t size)
{
	s->span = (struct trace_span){ .pt = fileparts_in_memory(packets, size) };
	s->queue =
	    (struct trace_queue){ .cpu = 0, .tid = TRACE_NONE, .spans = &s->span, .n_spans = 1 };
	s->sideband = (struct sideband){};
	add_program(&s->sideband, 9, 1, s->path);
	add_fork(&s->sideband, 1, 10, 11);
	for (size_t i = 0; i < 4 && switches[i].time; i++)
		add_switch(&s->sideband, &switches[i]);
	sort_sideband(&s->sideband);
	s->trace = (struct trace){
		.facts = { .clock = { .valid = true, .mult = 1 }, .has_tsc = true },
		.queues = &s->queue,
		.n_queues = 1,
		.records = s->sideband.records,
		.n_records = s->sideband.n,
	};
}

static void print_mark(FILE *f, const struct ptd_mark *mark)
{
	if (mark->kind == PTD_MARK_GAP)
		fprintf(f, " gap(%s, %" PRIu64 ", %" PRIu64 ")", ptd_gap_reason_name(mark->reason),
			mark->offset, mark->n_bytes);
	else
		fprintf(f, " %s", ptd_mark_kind_name(mark->kind));
}

/* Show the batch's new blocks. All its runs are of blocks that were shown then. */
static void show_blocks(struct setup *s)
{
	const struct ahead *a = &s->ahead;

	for (size_t i = 0; i < a->n_new_blocks; i++) {
		if (cache_has_shown(a->new_blocks[i]))
			continue;
		assert_int_equal(cache_show(s->cache, a->new_blocks[i]), 0);
		assert_true(s->n_shown < ARRAY_LEN(s->shown));
		s->shown[s->n_shown++] = a->new_blocks[i]->address;
	}
	for (size_t i = 0; i < a->n_runs; i++)
		assert_true(cache_has_shown(a->runs[i].block));
}

/* Each instruction's offset in the program, and its time. */
static void print_batch(FILE *f, const struct ahead *a)
{
	const struct ptd_slice *slice = &a->lane.slice;
	size_t mark = 0;

	if (a->new_slice)
		fprintf(f, "[%" PRId32 "/%" PRId32 " @%" PRIu64 ":", (int32_t)slice->pid,
			(int32_t)slice->tid, slice->t0);
	for (size_t i = 0; i <= a->n_runs; i++) {
		for (; mark < a->n_marks && a->marks[mark].run == i; mark++)
			print_mark(f, &a->marks[mark]);
		for (size_t k = 0; i < a->n_runs && k < a->runs[i].n; k++)
			fprintf(f, " %" PRIx64 ",%" PRIu64, ptd_run_ip(&a->runs[i], k) - BASE,
				a->runs[i].t);
	}
}

static void print_stats(FILE *f, const struct setup *s)
{
	const struct ptd_cpu_stats *stats = &s->ahead.lane.stats;

	fprintf(f,
		"\n%" PRIu64 " instructions, %" PRIu64 " bytes, %" PRIu64 " lost, %" PRIu64
		" gaps, from %" PRIu64 " to %" PRIu64 ", %" PRIu64 " left\n",
		stats->n_insns, stats->bytes_decoded, stats->bytes_lost, stats->n_gaps,
		stats->t_first, stats->t_last, s->budget.n_insns);
	fprintf(f, "blocks:");
	for (size_t i = 0; i < s->n_shown; i++)
		fprintf(f, " %" PRIx64, s->shown[i]);
	fprintf(f, "\n");
	assert_int_equal(stats->bytes_decoded + stats->bytes_lost, s->span.pt.size);
}

static int print_all(struct setup *s)
{
	size_t size;
	FILE *f = open_memstream(&s->text, &size);
	int r;

	assert_non_null(f);
	do {
		r = ahead_fill(&s->ahead);
		assert_true(s->ahead.parts.n <= N_PARTS);
		if (r == 0) {
			print_batch(f, &s->ahead);
			show_blocks(s);
		}
	} while (r == 0 && ahead_ready(&s->ahead));
	if (r == 0)
		print_stats(f, s);
	(void)fclose(f);
	return r;
}

/* Make what does not depend on the number of threads, and the threads. */
static void begin(struct setup *s, size_t n_threads)
{
	assert_int_equal(objects_new(NULL, &s->objects), 0);
	assert_int_equal(timeline_new(&s->trace, s->objects, &s->timeline), 0);
	assert_int_equal(ptd_threads_new(n_threads, &s->threads), 0);
}

static void end(struct setup *s)
{
	s->threads = ptd_threads_free(s->threads);
	s->timeline = timeline_free(s->timeline);
	s->objects = objects_free(s->objects);
}

static int start(struct setup *s)
{
	struct ahead_config config = { .threads = s->threads,
				       .counts = &s->counts,
				       .n_parts = N_PARTS };
	struct lane_config lane_config = { .trace = &s->trace,
					   .queue = &s->queue,
					   .timeline = s->timeline,
					   .engine = &engine_flow,
					   .engine_config = { .budget = &s->budget,
							      .has_threads = true },
					   .cut_size = 1 };
	int r;

	s->text = NULL;
	s->has_ahead = false;
	s->n_shown = 0;
	r = cache_new(NULL, NULL, &s->cache);
	if (r == 0)
		r = views_new(s->cache, &s->views);
	if (r == 0)
		r = views_new(s->cache, &s->part_views);
	if (r == 0)
		r = runpool_new(threads_n(s->threads), &s->runs);
	if (r < 0)
		return r;
	views_share(s->part_views);
	config.views = s->part_views;
	config.runs = s->runs;
	lane_config.engine_config.cache = s->cache;
	lane_config.engine_config.views = s->views;
	s->has_ahead = true;
	return ahead_init(&s->ahead, &config, &lane_config);
}

static void stop(struct setup *s)
{
	if (s->has_ahead)
		ahead_deinit(&s->ahead);
	s->has_ahead = false;
	s->part_views = views_free(s->part_views);
	s->views = views_free(s->views);
	/* All memory of runs has come back, or this stops. */
	s->runs = runpool_free(s->runs);
	s->cache = cache_free(s->cache);
	free(s->text);
	s->text = NULL;
}

/* Return: the transcript, to be freed, of decoding by @n_threads. */
static char *transcribe(struct setup *s, size_t n_threads, uint64_t budget)
{
	char *text;

	begin(s, n_threads);
	s->budget.n_insns = budget ?: ENGINE_INSNS_MIN;
	s->counts = (struct ahead_counts){};
	assert_int_equal(start(s), 0);
	assert_int_equal(print_all(s), 0);
	text = TAKE(s->text);
	stop(s);
	end(s);
	return text;
}

static void every_row(void **state)
{
	static const size_t counts[] = { 2, 3, 8 };
	struct setup *s = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *row = &rows[i];
		_cleanup_(freep) char *alone = NULL;

		set_input(s, row->switches, row->packets, row->size);
		alone = transcribe(s, 1, row->budget);
		print_message("  %s: %s", row->name, alone);
		assert_int_equal(s->counts.n_begun, 0);
		if (row->expected)
			assert_memory_equal(alone, row->expected, strlen(row->expected));
		for (size_t k = 0; k < ARRAY_LEN(counts); k++) {
			_cleanup_(freep) char *text = transcribe(s, counts[k], row->budget);

			assert_string_equal(text, alone);
			assert_int_equal(s->counts.n_begun, row->n_begun);
			assert_int_equal(s->counts.n_used, row->n_used);
		}
	}
}

/* A part that becomes too large is left to the lane, and those behind it join. */
static void too_large(void **state)
{
	static const uint8_t before[] = { ENTER, ON(2) }, behind[] = { ON(3), ON(4), ON(5) };
	const size_t n_tnt = 100000, size = sizeof(before) + n_tnt + sizeof(behind);
	struct setup *s = *state;
	uint8_t *packets = malloc(size);
	_cleanup_(freep) char *alone = NULL, *text = NULL;

	assert_non_null(packets);
	memcpy(packets, before, sizeof(before));
	memset(packets + sizeof(before), 0xfe, n_tnt); /* six branches that are taken */
	memcpy(packets + sizeof(before) + n_tnt, behind, sizeof(behind));
	set_input(s, (struct switch_in[4]){ { 1, 10, 10 } }, packets, size);
	alone = transcribe(s, 1, 0);
	text = transcribe(s, 2, 0);
	assert_string_equal(text, alone);
	assert_int_equal(s->counts.n_begun, 3);
	assert_int_equal(s->counts.n_used, 2);
	free(packets);
}

/* So does one with too many marks: each C-state that is entered while packets are off is one. */
static void too_many_marks(void **state)
{
	static const uint8_t before[] = { PSB, TSC(1), PSBEND, MODE, CALL(5), OFF(6) };
	static const uint8_t pwre[] = { 0x02, 0x22, 0x00, 0x10 };
	static const uint8_t behind[] = { OFF(8), CALL(9), OFF(10), CALL(11), OFF(12) };
	const size_t n_marks = ((size_t)1 << 16) + 1;
	const size_t size = sizeof(before) + n_marks * sizeof(pwre) + sizeof(behind);
	struct setup *s = *state;
	uint8_t *packets = malloc(size), *p = packets;
	_cleanup_(freep) char *alone = NULL, *text = NULL;

	assert_non_null(packets);
	p = mempcpy(p, before, sizeof(before));
	for (size_t i = 0; i < n_marks; i++)
		p = mempcpy(p, pwre, sizeof(pwre));
	memcpy(p, behind, sizeof(behind));
	set_input(s, (struct switch_in[4]){ { 2, 10, 10 } }, packets, size);
	alone = transcribe(s, 1, 0);
	text = transcribe(s, 2, 0);
	assert_string_equal(text, alone);
	assert_int_equal(s->counts.n_begun, 3);
	assert_int_equal(s->counts.n_used, 2);
	free(packets);
}

/*
 * While time is before a time that was already shown, no part fits. Threads do not decode all of it
 * in vain, and help again where parts fit.
 */
static void none_fits(void **state)
{
	static const uint8_t before[] = { ENTER, TSC(200), TAKEN }, back[] = { ON(100) };
	static const uint8_t behind[] = { ON(201) };
	const size_t n_back = 1000, n_behind = 200;
	const size_t size = sizeof(before) + n_back * sizeof(back) + n_behind * sizeof(behind);
	struct setup *s = *state;
	uint8_t *packets = malloc(size), *p = packets;
	_cleanup_(freep) char *alone = NULL, *text = NULL;

	assert_non_null(packets);
	p = mempcpy(p, before, sizeof(before));
	for (size_t i = 0; i < n_back; i++)
		p = mempcpy(p, back, sizeof(back));
	for (size_t i = 0; i < n_behind; i++)
		p = mempcpy(p, behind, sizeof(behind));
	set_input(s, (struct switch_in[4]){ { 1, 10, 10 } }, packets, size);
	alone = transcribe(s, 1, 0);
	text = transcribe(s, 2, 0);
	assert_string_equal(text, alone);
	assert_in_range(s->counts.n_begun - s->counts.n_used, N_PARTS, N_PARTS + n_back / 50);
	assert_in_range(s->counts.n_used, n_behind / 2, n_behind);
	free(packets);
}

/* A lane that is given up leaves no part behind. */
static void given_up(void **state)
{
	static const uint8_t packets[] = { ENTER, ON(2), ON(3), ON(4), ON(5), ON(6) };
	struct setup *s = *state;

	set_input(s, (struct switch_in[4]){ { 1, 10, 10 } }, packets, sizeof(packets));
	for (size_t n_batches = 0; n_batches < 5; n_batches++) {
		begin(s, 3);
		s->budget.n_insns = ENGINE_INSNS_MIN;
		assert_int_equal(start(s), 0);
		for (size_t i = 0; i < n_batches; i++)
			assert_int_equal(ahead_fill(&s->ahead), 0);
		stop(s);
		end(s);
	}
}

/* --- without memory --------------------------------------------------------------------------- */

/* A task that keeps a thread from running others. */
struct blocker {
	struct task task;
	bool runs, ends;
};

static void block(struct task *task, size_t thread)
{
	struct blocker *b = (struct blocker *)task;

	(void)thread;
	__atomic_store_n(&b->runs, true, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&b->ends, __ATOMIC_SEQ_CST))
		(void)sched_yield();
}

static int decode(void *userdata)
{
	struct setup *s = userdata;
	int r;

	s->budget.n_insns = ENGINE_INSNS_MIN;
	r = start(s);
	if (r == 0)
		r = print_all(s);
	if (r < 0)
		stop(s);
	return r;
}

static void check(void *userdata)
{
	struct setup *s = userdata;

	assert_non_null(strstr(s->text, "[10/10 @1: 0,1 1,1 0,2 1,2 0,3 1,3 0,4 1,4 0,5 1,5\n"));
	stop(s);
}

/*
 * The other thread is kept busy, so that this one decodes all parts, and its calls fail. Where
 * there is no memory for a part, the lane decodes it.
 */
static void nothing_left(void **state)
{
	static const uint8_t packets[] = { ENTER, ON(2), ON(3), ON(4), ON(5) };
	struct blocker blocker = { .task.run = block };
	struct setup *s = *state;

	set_input(s, (struct switch_in[4]){ { 1, 10, 10 } }, packets, sizeof(packets));
	begin(s, 2);
	threads_add(s->threads, &blocker.task);
	while (!__atomic_load_n(&blocker.runs, __ATOMIC_SEQ_CST))
		(void)sched_yield();
	/* The code is read once, and stays with the objects. */
	assert_int_equal(decode(s), 0);
	check(s);
	s->counts = (struct ahead_counts){};
	failing_each(decode, check, s);
	assert_true(s->counts.n_used > 0 && s->counts.n_used < s->counts.n_begun);
	__atomic_store_n(&blocker.ends, true, __ATOMIC_SEQ_CST);
	threads_wait(s->threads, &blocker.task);
	end(s);
}

static int set_up(void **state)
{
	struct setup *s = calloc(1, sizeof(*s));
	int fd;

	assert_non_null(s);
	strcpy(s->path, "/tmp/ptd-test-XXXXXX");
	fd = mkstemp(s->path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, program, sizeof(program)), sizeof(program));
	close(fd);
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct setup *s = *state;

	unlink(s->path);
	free(s);
	return 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row),      cmocka_unit_test(too_large),
		cmocka_unit_test(too_many_marks), cmocka_unit_test(none_fits),
		cmocka_unit_test(given_up),       cmocka_unit_test(nothing_left),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
