/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The flame tree: which nodes are kept, that no cost is lost, and how their numbers are packed. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "decoder/sink/html/report.h"
#include "decoder/sink/output.h"
#include "tests/lib/failing.h"

static void assert_text(struct output *output, const char *expected)
{
	assert_int_equal(output->n_used, strlen(expected));
	assert_memory_equal(output->buffer, expected, output->n_used);
	output_deinit(output);
}

/* As base64(1) writes the bytes. */
static void numbers(void **state)
{
	static const struct {
		uint64_t numbers[3];
		size_t n;
		const char *text;
	} rows[] = {
		{ {}, 0, "" },
		{ { 0 }, 1, "AA==" },
		{ { 127, 128 }, 2, "f4AB" },
		{ { 300, 1 }, 2, "rAIB" },
		{ { 1, 2, 3 }, 3, "AQID" },
		{ { 1, 2 }, 2, "AQI=" },
		{ { UINT64_MAX }, 1, "////////////AQ==" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct output output = output_memory();
		struct packed packed = packed_begin(&output);

		for (size_t k = 0; k < rows[i].n; k++)
			packed_number(&packed, rows[i].numbers[k]);
		packed_end(&packed);
		assert_text(&output, rows[i].text);
	}
}

/* A root, and below it @n functions with the costs 1, 2, 3, …, each of which calls one more. */
static void make_tree(struct stacktree *tree, uint32_t n)
{
	*tree = (struct stacktree){};
	assert_int_equal(vec_push(&tree->nodes, { .parent = STACKTREE_NONE }), 0);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(
		    vec_push(&tree->nodes,
			     { .parent = 0, .function = i % 8, .n_calls = 1, .t_self = i + 1 }),
		    0);
		assert_int_equal(vec_push(&tree->nodes, { .parent = 2 * i + 1,
							  .function = 9,
							  .n_calls = 1,
							  .n_insns_self = i + 1 }),
				 0);
	}
}

static void small(void **state)
{
	const uint32_t numbers_of_functions[] = { 5, [9] = 6 };
	struct output output = output_memory();
	struct packed packed = packed_begin(&output);
	struct stacktree tree;
	struct flametree flame;

	(void)state;
	make_tree(&tree, 1);
	assert_int_equal(flametree_init(&flame, &tree), 0);
	assert_int_equal(flame.n_kept, 3);
	flametree_put(&flame, numbers_of_functions, &packed);
	packed_end(&packed);
	/* 0 0 0 0 0 0 0, 1 5 1 1 0 0 0, 1 6 1 0 1 0 0 */
	assert_text(&output, "AAAAAAAAAAEFAQEAAAABBgEAAQAA");
	flametree_deinit(&flame);
	stacktree_deinit(&tree);
}

static void large(void **state)
{
	const uint32_t n = 3 * FLAMETREE_NODES;
	struct stacktree tree;
	struct flametree flame;
	uint64_t t = 0, n_insns = 0;

	(void)state;
	make_tree(&tree, n);
	assert_int_equal(flametree_init(&flame, &tree), 0);
	assert_in_range(flame.n_kept, FLAMETREE_NODES, 2 * FLAMETREE_NODES + 1);
	for (size_t i = 0; i < tree.nodes.n; i++) {
		const struct flametree_node *node = &flame.nodes[i];
		const uint32_t parent = tree.nodes.items[i].parent;

		if (node->number == 0)
			continue;
		assert_true(parent == STACKTREE_NONE || flame.nodes[parent].number > 0);
		t += tree.nodes.items[i].t_self + node->t_below;
		n_insns += tree.nodes.items[i].n_insns_self + node->n_insns_below;
	}
	assert_int_equal(t, (uint64_t)n * (n + 1) / 2);
	assert_int_equal(n_insns, (uint64_t)n * (n + 1) / 2);
	assert_int_equal(flame.nodes[0].t_total, t);
	/* What costs most is kept. */
	assert_true(flame.nodes[2 * n].number > 0 && flame.nodes[1].number == 0);
	flametree_deinit(&flame);
	stacktree_deinit(&tree);
}

static struct stacktree few;

static int init_few(void *userdata)
{
	return flametree_init(userdata, &few);
}

static void check_few(void *userdata)
{
	flametree_deinit(userdata);
}

static void failures(void **state)
{
	struct flametree flame;

	(void)state;
	make_tree(&few, 2);
	failing_each(init_few, check_few, &flame);
	stacktree_deinit(&few);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),
		cmocka_unit_test(small),
		cmocka_unit_test(large),
		cmocka_unit_test(failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
