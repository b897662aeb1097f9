/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Writer: however many threads there are, sinks get the same stream in the same order. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/sink/sink.h"
#include "decoder/util/hold.h"
#include "ptd/decode.h"
#include "tests/lib/failing.h"
#include "tests/lib/stream.h"
#include "util/vec.h"

#define N_BATCHES 5000

/* What a sink of the tests got; see sink_config.userdata. */
struct seen {
	VEC(char) bytes;
	size_t n_runs, n_marks;
	uint64_t t0;
	uint64_t fails_at;        /* writing fails at this slice, */
	uint64_t expand_fails_at; /* expanding at this one */
	bool is_lost;             /* batches came out of order */
};

static int seen_open(void *state, const struct sink_config *config, struct output *output)
{
	(void)output;
	*(struct seen **)state = config->userdata;
	return 0;
}

static int seen_remember(const void *state, void **ret_memory)
{
	(void)state;
	*ret_memory = malloc(1);
	return *ret_memory ? 0 : -ENOMEM;
}

/* Each run and mark as text, with its slice; however the stream is cut into batches. */
static int seen_expand(const void *state, void *memory, const struct ptd_batch *batch,
		       struct output *output)
{
	const struct seen *seen = *(struct seen *const *)state;
	const unsigned long long t0 = batch->slice->t0;
	size_t m = 0;

	assert_true(!!memory);
	for (size_t i = 0; i <= batch->n_runs; i++) {
		for (; m < batch->n_marks && batch->marks[m].run == i; m++)
			output_printf(output, "%llu mark %llu\n", t0,
				      (unsigned long long)batch->marks[m].ip);
		if (i < batch->n_runs)
			output_printf(output, "%llu run %u\n", t0, batch->runs[i].first);
	}
	assert_int_equal(m, batch->n_marks);
	return seen->expand_fails_at && t0 == seen->expand_fails_at ? -EBADMSG : 0;
}

static int seen_write(void *state, const struct ptd_batch *batch, const void *bytes, size_t n_bytes)
{
	struct seen *seen = *(struct seen **)state;

	if (batch->slice->t0 == seen->fails_at && seen->fails_at)
		return -ENOSPC;
	if (batch->slice->t0 < seen->t0)
		seen->is_lost = true;
	seen->t0 = batch->slice->t0;
	seen->n_runs += batch->n_runs;
	seen->n_marks += batch->n_marks;
	if (vec_reserve(&seen->bytes, n_bytes) < 0)
		return -ENOMEM;
	if (n_bytes)
		memcpy(seen->bytes.items + seen->bytes.n, bytes, n_bytes);
	seen->bytes.n += n_bytes;
	return 0;
}

static const struct sink_ops expanding = {
	.name = "expanding",
	.help = "",
	.state_size = sizeof(struct seen *),
	.open = seen_open,
	.remember = seen_remember,
	.forget = free,
	.expand = seen_expand,
	.write = seen_write,
};

static int seen_batch(void *state, const struct ptd_batch *batch, uint64_t t_end)
{
	(void)t_end;
	return seen_write(state, batch, NULL, 0);
}

static const struct sink_ops writing = {
	.name = "writing",
	.help = "",
	.state_size = sizeof(struct seen *),
	.open = seen_open,
	.batch = seen_batch,
};

/* One stream through a writer: to an expanding sink, and to one that only writes. */
struct fixture {
	bool holds;       /* each third batch has a hold of its runs */
	size_t n_threads; /* 0: none are passed */
	size_t n_batches;
	struct seen seen[2];
	struct ptd_threads *threads;
	struct sink *sinks[2];
	struct writer *writer;
};

/* Return: how many runs batch @i has. Each 700th is large. */
static size_t size_of(size_t i)
{
	return i % 700 == 699 ? 10000 : i % 21;
}

/* Runs that a batch has a hold of. */
struct held {
	struct ptd_hold hold;
	struct ptd_run runs[];
};

static size_t n_held; /* that were not released yet */

static void release(struct ptd_hold *hold)
{
	struct held *held = (struct held *)hold;

	memset(held->runs, 0xff, hold->n_runs * sizeof(*held->runs));
	free(held);
	n_held--;
}

/* Return: room for @n runs, used by the caller. */
static struct held *new_held(size_t n)
{
	struct held *held = calloc(1, sizeof(*held) + n * sizeof(*held->runs));

	if (!held)
		return NULL;
	held->hold =
	    (struct ptd_hold){ .runs = held->runs, .n_runs = n, .n_users = 1, .release = release };
	n_held++;
	return held;
}

/* Batch @i, with marks before and behind some runs. What it points to is overwritten afterwards,
 * unless it is held. */
static int put_batch(struct fixture *f, const struct stream *stream, size_t i)
{
	const size_t n = size_of(i);
	struct held *held = new_held(n + 1);
	struct ptd_run *runs = held ? held->runs : NULL;
	struct ptd_mark marks[] = { { .run = n / 2, .ip = 1 },
				    { .run = n / 2, .ip = 2 },
				    { .run = n, .ip = 3 } };
	struct ptd_slice slice = stream->slice;
	const struct ptd_batch batch = {
		.slice = &slice,
		.runs = runs,
		.n_runs = n,
		.marks = marks,
		.n_marks = i % 4,
		.hold = held && f->holds && i % 3 ? &held->hold : NULL,
	};
	int r;

	if (!runs)
		return -ENOMEM;
	for (size_t k = 0; k < n; k++)
		runs[k] =
		    (struct ptd_run){ .block = &stream->hot, .first = (uint16_t)(i + k), .n = 1 };
	slice.t0 = i;
	r = writer_batch(f->writer, &batch);
	memset(marks, 0xff, sizeof(marks));
	slice.t0 = UINT64_MAX;
	assert_true(batch.hold || held->hold.n_users == 1);
	hold_unref(&held->hold);
	return r;
}

static int open_all(struct fixture *f)
{
	static const struct ptd_info info = { .clock = PTD_CLOCK_NS };
	int r = f->n_threads ? ptd_threads_new(f->n_threads, &f->threads) : 0;

	for (size_t i = 0; i < ARRAY_LEN(f->sinks) && r == 0; i++) {
		const struct sink_config config = { .info = &info,
						    .fd = -1,
						    .userdata = &f->seen[i] };

		r = sink_new(i ? &writing : &expanding, &config, &f->sinks[i], NULL);
	}
	return r < 0 ? r : writer_new(f->threads, f->sinks, ARRAY_LEN(f->sinks), &f->writer);
}

static void close_all(struct fixture *f)
{
	f->writer = writer_free(f->writer);
	for (size_t i = 0; i < 2; i++)
		f->sinks[i] = sink_free(f->sinks[i]);
	f->threads = ptd_threads_free(f->threads);
}

static void forget_all(struct fixture *f)
{
	for (size_t i = 0; i < 2; i++)
		vec_deinit(&f->seen[i].bytes);
}

/* Return: 0 or the first error. */
static int put_all(struct fixture *f)
{
	struct stream stream;
	int r = 0;

	stream_init(&stream);
	for (size_t i = 0; i < f->n_batches && r == 0; i++)
		r = put_batch(f, &stream, i);
	return r < 0 ? r : writer_flush(f->writer);
}

static void same_for_all(void **state)
{
	static const size_t counts[] = { 0, 1, 2, 3, 8 };
	struct fixture first = { .n_batches = N_BATCHES };
	size_t n_runs = 0, n_marks = 0;

	(void)state;
	for (size_t i = 0; i < N_BATCHES; i++) {
		n_runs += size_of(i);
		n_marks += i % 4;
	}
	assert_int_equal(open_all(&first), 0);
	assert_int_equal(put_all(&first), 0);
	close_all(&first);
	for (size_t i = 1; i < 2 * ARRAY_LEN(counts); i++) {
		struct fixture f = { .n_threads = counts[i / 2],
				     .n_batches = N_BATCHES,
				     .holds = i % 2 };

		assert_int_equal(open_all(&f), 0);
		assert_int_equal(put_all(&f), 0);
		assert_null(writer_failed(f.writer));
		/* What was written is not held any more. */
		assert_int_equal(n_held, 0);
		close_all(&f);
		for (size_t k = 0; k < 2; k++) {
			assert_int_equal(f.seen[k].n_runs, n_runs);
			assert_int_equal(f.seen[k].n_marks, n_marks);
			assert_false(f.seen[k].is_lost);
			assert_int_equal(f.seen[k].bytes.n, first.seen[k].bytes.n);
			assert_memory_equal(f.seen[k].bytes.items, first.seen[k].bytes.items,
					    f.seen[k].bytes.n);
		}
		forget_all(&f);
	}
	forget_all(&first);
}

/* An error of a sink ends it, at the batch where it happened; it is said again. */
static void errors(void **state)
{
	static const struct {
		size_t n_threads, fails_at, expand_fails_at, sink;
		int r;
	} rows[] = {
		{ 1, 4000, 0, 1, -ENOSPC }, { 1, 0, 4000, 0, -EBADMSG },
		{ 3, 4000, 0, 1, -ENOSPC }, { 3, 0, 4000, 0, -EBADMSG },
		{ 3, 4999, 0, 1, -ENOSPC }, { 8, 0, 4999, 0, -EBADMSG },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct fixture f = { .n_threads = rows[i].n_threads,
				     .n_batches = N_BATCHES,
				     .holds = true };

		f.seen[1].fails_at = rows[i].fails_at;
		f.seen[0].expand_fails_at = rows[i].expand_fails_at;
		assert_int_equal(open_all(&f), 0);
		assert_int_equal(put_all(&f), rows[i].r);
		assert_ptr_equal(writer_failed(f.writer), f.sinks[rows[i].sink]);
		assert_int_equal(writer_flush(f.writer), rows[i].r);
		assert_true(f.seen[1].t0 <= rows[i].fails_at + rows[i].expand_fails_at);
		assert_false(f.seen[0].is_lost);
		close_all(&f);
		forget_all(&f);
		assert_int_equal(n_held, 0);
	}
}

static int decode_some(void *userdata)
{
	struct fixture *f = userdata;
	int r;

	*f = (struct fixture){ .n_threads = 2, .n_batches = 30, .holds = true };
	r = open_all(f);
	if (r == 0)
		r = put_all(f);
	if (r < 0) {
		close_all(f);
		forget_all(f);
	}
	return r;
}

static void check_some(void *userdata)
{
	struct fixture *f = userdata;

	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(f->seen[i].t0, 29);
		assert_int_equal(f->seen[i].n_marks, 43);
	}
	close_all(f);
	forget_all(f);
}

static void nothing_left(void **state)
{
	struct fixture f = {};

	(void)state;
	failing_each(decode_some, check_some, &f);
}

/* What was not flushed may be lost, but is waited for. */
static void not_flushed(void **state)
{
	struct fixture f = { .n_threads = 3, .holds = true };
	struct stream stream;

	(void)state;
	stream_init(&stream);
	assert_int_equal(open_all(&f), 0);
	for (size_t i = 0; i < 3000; i++)
		assert_int_equal(put_batch(&f, &stream, i), 0);
	close_all(&f);
	forget_all(&f);
	assert_int_equal(n_held, 0);
	assert_null(writer_free(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_for_all),
		cmocka_unit_test(errors),
		cmocka_unit_test(nothing_left),
		cmocka_unit_test(not_flushed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
