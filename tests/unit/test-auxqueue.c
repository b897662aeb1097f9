/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * AUX queues: pieces of one stream of packets, taken at any places of it, and the spans that they
 * must become, as ranges of that stream; then what the recorder says that it lost, and where in the
 * queues it must be.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/file/perfdata.h"
#include "decoder/trace/overlap.h"
#include "tests/lib/perfbuild.h"
#include "tests/lib/perfbytes.h"
#include "util/window.h"

#define SECTION 40 /* bytes from one PSB to the next */
#define STREAM  (10 * SECTION)

static struct perfbuild b;
static uint8_t stream[STREAM];

/* PSBs with a time (or without), and bytes that are nothing else's. */
static void make_stream(bool tsc)
{
	for (size_t i = 0; i < STREAM; i++) {
		const size_t at = i % SECTION, n = i / SECTION;

		if (at < 16)
			stream[i] = at % 2 ? 0x82 : 0x02;
		else if (at < 24 && tsc)
			stream[i] = (uint8_t)(at == 16 ? 0x19 : at == 17 ? n + 1 : 0);
		else
			stream[i] = (uint8_t)(0x40 + (i * 7 + n) % 64);
	}
}

static struct trace *parse(void)
{
	struct trace *trace = NULL;
	char *message = NULL;

	if (perfbytes_parse(b.bytes, b.size, "FILE", &trace, &message) < 0)
		fail_msg("%s", message);
	return trace;
}

/* "FROM-TO" of the stream for each span; a span of other bytes is "?". */
static void transcribe(const struct trace_queue *queue, char *text)
{
	*text = '\0';
	for (size_t i = 0; i < queue->n_spans; i++) {
		const struct trace_span *s = &queue->spans[i];
		_cleanup_(freep) uint8_t *pt = perfbytes_span(s);
		const uint8_t *at = pt ? memmem(stream, STREAM, pt, s->pt.size) : NULL;
		const size_t from = at ? (size_t)(at - stream) : 0;

		if (at)
			text += sprintf(text, "%zu-%zu ", from, from + (size_t)s->pt.size);
		else
			text += sprintf(text, "? ");
	}
}

static void snapshots(void **state)
{
	static const struct {
		const char *name;
		const char *expected;
		size_t pieces[5][2];
		size_t spoil;   /* this byte of the second piece is another's; 0: none */
		size_t padding; /* the first piece ends in so many zeros */
	} rows[] = {
		{ "overlap", "0-200 ", { { 0, 120 }, { 60, 200 } }, 0, 0 },
		{ "three", "10-390 ", { { 10, 120 }, { 60, 200 }, { 130, 390 } }, 0, 0 },
		{ "the next begins at the very PSB", "0-200 ", { { 0, 118 }, { 80, 200 } }, 0, 0 },
		{ "none", "0-120 160-200 ", { { 0, 120 }, { 160, 200 } }, 0, 0 },
		{ "they touch, and nothing proves it",
		  "0-120 120-200 ",
		  { { 0, 120 }, { 120, 200 } },
		  0,
		  0 },
		{ "only bytes without a PSB",
		  "0-120 110-200 ",
		  { { 0, 120 }, { 110, 200 } },
		  0,
		  0 },
		{ "a PSB without its time", "0-57 0-16 ", { { 0, 57 }, { 40, 56 } }, 0, 0 },
		{ "the same twice", "0-120 ", { { 0, 120 }, { 0, 120 } }, 0, 0 },
		{ "nothing new", "0-120 ", { { 0, 120 }, { 30, 110 } }, 0, 0 },
		{ "more on both sides", "0-200 ", { { 50, 130 }, { 0, 200 } }, 0, 0 },
		{ "more on both sides of the second",
		  "0-100 140-300 ",
		  { { 0, 100 }, { 160, 240 }, { 140, 300 } },
		  0,
		  0 },
		{ "not the same bytes", "0-120 ? ", { { 0, 120 }, { 60, 200 } }, 105, 0 },
		{ "a hole between two pairs",
		  "0-160 240-400 ",
		  { { 0, 120 }, { 40, 160 }, { 240, 360 }, { 280, 400 } },
		  0,
		  0 },
		{ "padded", "0-200 ", { { 0, 120 }, { 60, 200 } }, 0, 7 },
		{ "padded to more than a unit", "? 60-200 ", { { 0, 120 }, { 60, 200 } }, 0, 8 },
	};

	(void)state;
	for (int tsc = 0; tsc < 2; tsc++) {
		make_stream(tsc);
		for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
			_cleanup_(trace_freep) struct trace *trace = NULL;
			uint8_t padded[STREAM + 8];
			char got[256];

			/* Without times, other PSBs will do. */
			if (!tsc && strcmp(rows[i].name, "a PSB without its time") == 0)
				continue;
			print_message("  %s\n", rows[i].name);
			perfbuild_begin(&b, false);
			b.bytes[PERFBUILD_SLOTS + 8 * PERFABI_PT_SNAPSHOT_MODE] = 1;
			if (!tsc)
				b.bytes[PERFBUILD_ATTR + 9] &= (uint8_t)~4;
			for (size_t k = 0; k < 5 && rows[i].pieces[k][1]; k++) {
				const size_t from = rows[i].pieces[k][0];
				const size_t size = rows[i].pieces[k][1] - from;
				const size_t padding = k == 0 ? rows[i].padding : 0;

				/* The offsets say nothing. */
				memcpy(padded, stream + from, size);
				memset(padded + size, 0, padding);
				perfbuild_auxtrace(&b, 0, 0, -1, 77 * k % 100, padded,
						   size + padding);
				if (k == 1 && rows[i].spoil)
					b.bytes[b.size - size + rows[i].spoil - from] ^= 1;
			}
			perfbuild_end(&b);
			trace = parse();
			assert_int_equal(trace->n_queues, 1);
			assert_int_equal(trace->facts.has_tsc, tsc);
			transcribe(&trace->queues[0], got);
			assert_string_equal(got, rows[i].expected);
		}
	}
}

static bool overlaps(const uint8_t *earlier, size_t earlier_size, const uint8_t *later,
		     size_t later_size, size_t window)
{
	const struct fileparts parts[] = { fileparts_in_memory(earlier, earlier_size),
					   fileparts_in_memory(later, later_size) };
	uint64_t before, repeated, padding;
	struct window a, b_window;
	bool found;

	window_init(&a, &parts[0], window);
	window_init(&b_window, &parts[1], window);
	found = overlap_find(&a, &b_window, true, &before, &repeated, &padding);
	window_deinit(&a);
	window_deinit(&b_window);
	return found;
}

/* A stream that repeats itself for ever takes no quadratic time. */
static void repetitive(void **state)
{
	const size_t size = 1 << 20;
	_cleanup_(freep) uint8_t *bytes = malloc(size);

	(void)state;
	make_stream(true);
	for (size_t i = 0; i < size; i++)
		bytes[i] = stream[i % SECTION];
	bytes[1] = 0;
	for (size_t window = 0; window <= WINDOW_SIZE; window += WINDOW_SIZE) {
		assert_false(overlaps(bytes, size - 1, bytes + 1, size - 2, window));
		assert_false(overlaps(bytes, 0, bytes, size, window));
		assert_false(overlaps(bytes, size, bytes, 0, window));
		assert_false(overlaps(bytes, 20, bytes, size, window));
	}
}

static void transcribe_losses(const struct trace_queue *queue, char *text)
{
	*text = '\0';
	for (size_t i = 0; i < queue->n_losses; i++) {
		const struct trace_loss *l = &queue->losses[i];

		text += sprintf(text, i < queue->n_losses_at ? "%s at %u, " : "%s at time %u, ",
				ptd_gap_reason_name(l->reason),
				(unsigned int)(i < queue->n_losses_at ? l->offset : l->time));
	}
	if (queue->overwritten)
		strcpy(text, "overwritten");
}

/* What AUX records say of a stream of two pieces, 0-200 and 200-400. */
static void losses(void **state)
{
	static const struct {
		const char *name;
		uint64_t offset, size, flags;
		bool snapshot;
		const char *spans;
		const char *losses;
	} rows[] = {
		{ "nothing", 0, 300, 0, false, "0-400 ", "" },
		{ "no room within a piece", 40, 60, 1, false, "0-100 100-400 ",
		  "AUX buffer full at 100, " },
		{ "no room between pieces", 0, 200, 1, false, "0-200 200-400 ",
		  "AUX buffer full at 200, " },
		{ "no room at the end", 200, 200, 1, false, "0-400 ", "AUX buffer full at 400, " },
		{ "no room at the start", 0, 0, 1, false, "0-400 ", "AUX buffer full at 0, " },
		{ "no room beyond", 1000, 200, 1, false, "0-400 ", "AUX buffer full at 1200, " },
		{ "gaps", 120, 60, 4, false, "0-400 ", "AUX data with gaps at 120, " },
		{ "a collision", 120, 60, 8, false, "0-400 ", "AUX samples collided at 120, " },
		{ "all at once", 120, 60, 13, false, "0-180 180-400 ",
		  "AUX data with gaps at 120, AUX samples collided at 120, AUX buffer full at "
		  "180, " },
		{ "overwritten, which no full trace is", 0, 400, 2, false, "0-400 ",
		  "older data overwritten at time 70, " },
		{ "overwritten", 0, 400, 2, true, "0-200 200-400 ", "overwritten" },
		{ "no room in a snapshot", 40, 60, 1, true, "0-200 200-400 ",
		  "AUX buffer full at time 70, " },
	};

	(void)state;
	make_stream(true);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_(trace_freep) struct trace *trace = NULL;
		char got[512];

		print_message("  %s\n", rows[i].name);
		perfbuild_begin(&b, false);
		b.bytes[PERFBUILD_SLOTS + 8 * PERFABI_PT_SNAPSHOT_MODE] = rows[i].snapshot;
		perfbuild_at(&b, 70, 0, 10, 10);
		perfbuild_aux(&b, rows[i].offset, rows[i].size, rows[i].flags);
		perfbuild_auxtrace(&b, 0, 0, -1, 0, stream, 200);
		perfbuild_auxtrace(&b, 0, 0, -1, 200, stream + 200, 200);
		perfbuild_end(&b);
		trace = parse();
		assert_int_equal(trace->n_queues, 1);
		transcribe(&trace->queues[0], got);
		assert_string_equal(got, rows[i].spans);
		transcribe_losses(&trace->queues[0], got);
		assert_string_equal(got, rows[i].losses);
	}
}

/* By CPU, each in its queue; one that has no PT gets a queue, too. */
static void losses_of_cpus(void **state)
{
	static const char *const expected[] = {
		"records lost at time 50, samples lost at time 90, ",
		"AUX buffer full at 100, records lost at time 60, ",
		"records lost at time 80, ",
	};
	_cleanup_(trace_freep) struct trace *trace = NULL;
	char got[512];

	(void)state;
	make_stream(true);
	perfbuild_begin(&b, false);
	perfbuild_auxtrace(&b, 1, 3, -1, 0, stream, 200);
	perfbuild_auxtrace(&b, 0, 0, -1, 0, stream, 200);
	perfbuild_at(&b, 90, 0, 10, 10);
	perfbuild_lost_samples(&b, 3);
	perfbuild_at(&b, 80, 7, 10, 10);
	perfbuild_lost(&b, 3);
	perfbuild_at(&b, 50, 0, 10, 10);
	perfbuild_lost(&b, 3);
	perfbuild_at(&b, 60, 3, 10, 10);
	perfbuild_lost(&b, 3);
	perfbuild_aux(&b, 0, 100, PERF_AUX_FLAG_TRUNCATED);
	perfbuild_end(&b);

	trace = parse();
	assert_int_equal(trace->n_queues, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(trace->queues[i].cpu, i == 0 ? 0 : i == 1 ? 3 : 7);
		assert_int_equal(trace->queues[i].n_spans, i == 1 ? 2 : i == 0);
		transcribe_losses(&trace->queues[i], got);
		assert_string_equal(got, expected[i]);
	}
}

/* In per-thread mode, by thread. */
static void losses_of_threads(void **state)
{
	_cleanup_(trace_freep) struct trace *trace = NULL;
	char got[512];

	(void)state;
	make_stream(true);
	perfbuild_begin(&b, false);
	b.bytes[PERFBUILD_SLOTS + 8 * PERFABI_PT_PER_CPU_MMAPS] = 0;
	perfbuild_auxtrace(&b, 0, -1, 11, 0, stream, 200);
	perfbuild_auxtrace(&b, 1, -1, 12, 0, stream, 200);
	perfbuild_at(&b, 60, 3, 10, 12);
	perfbuild_lost(&b, 3);
	perfbuild_at(&b, 70, 3, 10, 13);
	perfbuild_lost(&b, 3);
	perfbuild_end(&b);

	trace = parse();
	assert_int_equal(trace->n_queues, 2);
	transcribe_losses(&trace->queues[0], got);
	assert_string_equal(got, "");
	transcribe_losses(&trace->queues[1], got);
	assert_string_equal(got, "records lost at time 60, ");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(snapshots),
		cmocka_unit_test(repetitive),
		cmocka_unit_test(losses),
		cmocka_unit_test(losses_of_cpus),
		cmocka_unit_test(losses_of_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
