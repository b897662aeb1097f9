/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>

#include "daemon/sideband.h"
#include "tests/unit/records.h"

#define MEBI (UINT64_C(1) << 20)

struct summary {
	size_t n_comm;
	uint64_t lost; /* as LOST records say */
	uint64_t first, last;
};

static struct summary summarize(const struct sideband_view *view)
{
	struct summary s = {};

	for (size_t i = 0; i < view->n_spans; i++) {
		struct cursor c = view->spans[i];
		struct record record;
		int r;

		while ((r = record_next(&c, &record)) == 0) {
			uint64_t lost[2];

			if (record.header.type == PERF_RECORD_LOST) {
				assert_int_equal(cursor_get(&record.body, 16, lost), 0);
				s.lost += lost[1];
				continue;
			}
			assert_true(record.trailer.time > s.last);
			s.first = s.first ? s.first : record.trailer.time;
			s.last = record.trailer.time;
			s.n_comm++;
		}
		assert_int_equal(r, RECORD_END);
	}
	return s;
}

static struct summary look(const struct sideband *sideband)
{
	struct sideband_view view;
	struct summary s;

	assert_int_equal(sideband_view_init(sideband, &view), 0);
	s = summarize(&view);
	sideband_view_deinit(&view);
	return s;
}

/* @n COMM records (56 bytes each) with times from @time on. */
static int add(struct sideband *sideband, size_t n, uint64_t time)
{
	struct records r = {};
	int result = 0;

	for (size_t i = 0; i < n; i++) {
		int one;

		r.size = 0;
		records_comm(&r, 1, "x", time + i);
		one = sideband_add(sideband, r.bytes, r.size);
		result = result ? result : one;
	}
	records_deinit(&r);
	return result;
}

static void keeps_what_it_is_given(void **state)
{
	_cleanup_(sideband_freep) struct sideband *s = NULL;
	struct summary seen;

	(void)state;
	assert_int_equal(sideband_new(4 * MEBI, &s), 0);
	assert_int_equal(look(s).n_comm, 0);
	assert_int_equal(add(s, 20000, 1), 0);
	seen = look(s);
	assert_int_equal(seen.n_comm, 20000);
	assert_int_equal(seen.last, 20000);
	assert_int_equal(seen.lost, 0);
	assert_in_range(sideband_stats(s).bytes, 20000 * 56, 2 * MEBI);
}

/* What a snapshot looks at does not change under it, nor go away. */
static void a_view_stays(void **state)
{
	_cleanup_(sideband_freep) struct sideband *s = NULL;
	struct sideband_view view;

	(void)state;
	assert_int_equal(sideband_new(MEBI, &s), 0);
	assert_int_equal(add(s, 10, 1), 0);
	assert_int_equal(sideband_view_init(s, &view), 0);
	assert_int_equal(add(s, 10000, 11), 0);
	sideband_idle(s);
	(void)add(s, 10000, 20000);
	sideband_idle(s);
	(void)add(s, 10000, 40000);
	assert_int_equal(summarize(&view).n_comm, 10);
	s = sideband_free(s);
	assert_int_equal(summarize(&view).n_comm, 10);
	sideband_view_deinit(&view);
}

static void the_limit_holds(void **state)
{
	_cleanup_(sideband_freep) struct sideband *s = NULL;
	struct summary seen;

	(void)state;
	assert_int_equal(sideband_new(MEBI, &s), 0);
	assert_int_equal(add(s, 100000, 1), -ENOSPC);
	assert_in_range(sideband_stats(s).bytes, MEBI / 2, MEBI);
	seen = look(s);
	assert_int_equal(seen.n_comm + sideband_stats(s).lost, 100000);
	assert_int_equal(seen.last, seen.n_comm);

	/* With a new epoch there is room again, and the loss is told of at the place of it. */
	sideband_idle(s);
	assert_int_equal(add(s, 1, 200000), 0);
	seen = look(s);
	assert_int_equal(seen.lost, sideband_stats(s).lost);
	assert_int_equal(seen.last, 200000);
}

static void epochs(void **state)
{
	_cleanup_(sideband_freep) struct sideband *s = NULL;

	(void)state;
	assert_int_equal(sideband_new(2 * MEBI, &s), 0);

	/* A small epoch goes on. */
	assert_int_equal(add(s, 1000, 1), 0);
	sideband_idle(s);
	assert_int_equal(add(s, 17000, 2000), 0);
	assert_int_equal(look(s).first, 1);

	/* A large one is succeeded by a second, and goes when there is a third. */
	sideband_idle(s);
	assert_int_equal(add(s, 5000, 30000), 0);
	assert_int_equal(look(s).first, 1);
	assert_int_equal(look(s).n_comm, 23000);
	assert_int_equal(add(s, 10000, 40000), 0);
	assert_int_equal(look(s).first, 30000);
	assert_int_equal(sideband_stats(s).lost, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_what_it_is_given),
		cmocka_unit_test(a_view_stays),
		cmocka_unit_test(the_limit_holds),
		cmocka_unit_test(epochs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
