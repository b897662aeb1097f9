/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Run pool: chunks come back when their last user is gone, and are used again. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "decoder/stream/runpool.h"
#include "tests/lib/failing.h"

#define N_CHUNKS 100

static void come_back(void **state)
{
	struct runpool_chunk *chunks[N_CHUNKS], *last;
	struct runpool *pool;

	(void)state;
	assert_int_equal(runpool_new(2, &pool), 0);
	for (size_t i = 0; i < N_CHUNKS; i++) {
		chunks[i] = runpool_take(pool, 1);
		assert_non_null(chunks[i]);
		memset(chunks[i]->runs, (int)i, sizeof(chunks[i]->runs));
	}
	for (size_t i = 0; i < N_CHUNKS; i++)
		assert_int_equal(((uint8_t *)chunks[i]->runs)[sizeof(chunks[i]->runs) - 1], i);

	/* With another user it stays. */
	last = chunks[N_CHUNKS - 1];
	assert_ptr_equal(hold_ref(&last->hold), &last->hold);
	hold_unref(&last->hold);
	for (size_t i = 0; i + 1 < N_CHUNKS; i++)
		hold_unref(&chunks[i]->hold);
	chunks[0] = runpool_take(pool, 1);
	assert_non_null(chunks[0]);
	assert_ptr_not_equal(chunks[0], last);
	assert_int_equal(((uint8_t *)last->runs)[0], N_CHUNKS - 1);

	/* The one that came back last is taken first: it is likely to be in the CPU's cache. */
	hold_unref(&last->hold);
	assert_int_equal(last->hold.thread, 1);
	/* Each thread has its own. */
	chunks[1] = runpool_take(pool, 0);
	assert_ptr_not_equal(chunks[1], last);
	hold_unref(&chunks[1]->hold);
	assert_ptr_equal(runpool_take(pool, 1), last);
	hold_unref(&last->hold);
	hold_unref(&chunks[0]->hold);
	assert_null(runpool_free(pool));
}

/* What a hold covers. */
static void covers(void **state)
{
	static const struct {
		size_t first, n;
		bool has;
	} rows[] = {
		{ 0, 0, true },
		{ 0, RUNPOOL_CHUNK_RUNS, true },
		{ 10, 20, true },
		{ RUNPOOL_CHUNK_RUNS, 0, true },
		{ RUNPOOL_CHUNK_RUNS - 1, 2, false },
		{ RUNPOOL_CHUNK_RUNS + 1, 1, false },
	};
	struct runpool_chunk *chunk;
	struct ptd_run other[2];
	struct runpool *pool;

	(void)state;
	assert_int_equal(runpool_new(2, &pool), 0);
	chunk = runpool_take(pool, 1);
	assert_non_null(chunk);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(hold_has(&(struct ptd_batch){ .runs = chunk->runs + rows[i].first,
							       .n_runs = rows[i].n,
							       .hold = &chunk->hold }),
				 rows[i].has);
	/* Runs that a program has put elsewhere. */
	assert_false(
	    hold_has(&(struct ptd_batch){ .runs = other, .n_runs = 2, .hold = &chunk->hold }));
	assert_false(hold_has(&(struct ptd_batch){ .runs = chunk->runs, .n_runs = 2 }));
	hold_unref(&chunk->hold);
	assert_null(runpool_free(pool));
	assert_null(runpool_free(NULL));
}

struct taking {
	struct runpool *pool;
	struct runpool_chunk *chunk;
};

static int take(void *userdata)
{
	struct taking *t = userdata;
	int r;

	r = runpool_new(2, &t->pool);
	if (r < 0)
		return r;
	t->chunk = runpool_take(t->pool, 0);
	if (t->chunk)
		return 0;
	runpool_free(t->pool);
	return -ENOMEM;
}

static void give_back(void *userdata)
{
	struct taking *t = userdata;

	hold_unref(&t->chunk->hold);
	runpool_free(t->pool);
}

static void nothing_left(void **state)
{
	struct taking t;

	(void)state;
	failing_each(take, give_back, &t);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(come_back),
		cmocka_unit_test(covers),
		cmocka_unit_test(nothing_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
