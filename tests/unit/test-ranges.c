/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Ranges, against an array that does the same. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/util/ranges.h"

#define N_MAX 4096

struct thing {
	struct range range;
	uint32_t value;
};

struct model {
	struct thing things[N_MAX];
	size_t n;
};

static void compare(const struct ranges *ranges, const struct model *model)
{
	struct ranges_place at = {};

	for (size_t i = 0; i < model->n; i++) {
		const struct thing *t = ranges_get(ranges, at);

		assert_non_null(t);
		assert_memory_equal(t, &model->things[i], sizeof(*t));
		assert_ptr_equal(ranges_get(ranges, ranges_find(ranges, t->range.start)), t);
		assert_ptr_equal(ranges_get(ranges, ranges_find(ranges, t->range.last)), t);
		at = ranges_next(ranges, at);
	}
	assert_null(ranges_get(ranges, at));
	assert_int_equal(ranges->n, model->n);
}

/* Put [start..last] in the place of all that it overlaps; with @keep; else only take that out. */
static void put(struct ranges *ranges, struct model *m, uint64_t start, uint64_t last, bool keep)
{
	struct thing new[2];
	const struct ranges_place place = ranges_find(ranges, start);
	size_t from = 0, n_new, to;

	memset(new, 0, sizeof(new));
	new[0].range = new[1].range = (struct range){ start, last };
	new[0].value = new[1].value = (uint32_t)rand();
	if (last > start) {
		new[0].range.last = start;
		new[1].range.start = start + 1;
	}
	while (from < m->n && m->things[from].range.last < start)
		from++;
	for (to = from; to < m->n && m->things[to].range.start <= last;)
		to++;
	n_new = !keep || m->n + 2 > N_MAX ? 0 : last > start ? 2 : 1;
	assert_int_equal(ranges_replace(ranges, place, to - from, new, n_new), 0);
	memmove(m->things + from + n_new, m->things + to, (m->n - to) * sizeof(new[0]));
	memcpy(m->things + from, new, n_new * sizeof(new[0]));
	m->n = m->n + n_new - (to - from);
}

static void ranges_are_as_in_an_array(void **state)
{
	static struct model model;
	struct ranges ranges;

	(void)state;
	srand(1);
	for (uint64_t width = 1; width < 100000; width *= 10) {
		model.n = 0;
		ranges_init(&ranges, sizeof(struct thing));
		assert_null(ranges_get(&ranges, ranges_find(&ranges, 0)));
		for (size_t i = 0; i < 5000; i++) {
			const uint64_t start = (uint64_t)rand() % 100000;

			put(&ranges, &model, start, start + (uint64_t)rand() % width,
			    rand() % 8 > 0);
			if (i % 250 == 0)
				compare(&ranges, &model);
		}
		compare(&ranges, &model);
		ranges_clear(&ranges);
		assert_null(ranges_get(&ranges, (struct ranges_place){}));
		ranges_deinit(&ranges);
	}
}

static void a_million_may_come_in_any_order(void **state)
{
	static const struct {
		const char *name;
		uint64_t factor;
	} rows[] = { { "upwards", 1 }, { "downwards", (1 << 20) - 1 }, { "anyhow", 386093 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ranges_place at = {};
		struct ranges ranges;
		const struct range *r;
		uint64_t n = 0;

		print_message("  %s\n", rows[i].name);
		ranges_init(&ranges, sizeof(struct range));
		for (uint64_t k = 0; k < 1 << 20; k++) {
			const uint64_t start = k * rows[i].factor % (1 << 20);
			const struct range new = { start, start };

			assert_int_equal(
			    ranges_replace(&ranges, ranges_find(&ranges, start), 0, &new, 1), 0);
		}
		for (; (r = ranges_get(&ranges, at)); at = ranges_next(&ranges, at))
			assert_int_equal(r->start, n++);
		assert_int_equal(n, 1 << 20);
		ranges_deinit(&ranges);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_are_as_in_an_array),
		cmocka_unit_test(a_million_may_come_in_any_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
