/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Stack tree: what lies below what, for call streams made by hand. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "decoder/sink/export/stacktree.h"
#include "tests/lib/callmade.h"
#include "tests/lib/failing.h"

static int add(struct stacktree *tree, struct callmade *made)
{
	int r = 0;

	for (size_t i = 0; i < made->batch.n_calls && r == 0; i++)
		r = stacktree_call(tree, &made->thread, &made->calls[i]);
	callmade_clear(made);
	return r;
}

/* Each node in a line: its stack, calls, time and instructions. */
static void assert_tree(struct stacktree *tree, const char *expected)
{
	char text[4096] = "";
	size_t n = 0;

	assert_int_equal(stacktree_finish(tree), 0);
	for (uint32_t i = 0; i < tree->nodes.n; i++) {
		const struct stacktree_node *node = &tree->nodes.items[i];
		uint32_t path[32], depth = 0, k = i;

		for (; tree->nodes.items[k].parent != STACKTREE_NONE; k = path[depth++]) {
			assert_true(tree->nodes.items[k].parent < k && depth < ARRAY_LEN(path));
			path[depth] = tree->nodes.items[k].parent;
		}
		if (node->parent == STACKTREE_NONE)
			continue;
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s",
				      tree->names.items[tree->nodes.items[k].function].text);
		while (depth-- > 0) {
			k = depth > 0 ? path[depth - 1] : i;
			n += (size_t)snprintf(
			    text + n, sizeof(text) - n, ";%s",
			    callmade_functions[tree->nodes.items[k].function].name);
		}
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", node->n_calls,
				      node->t_self, node->n_insns_self);
		assert_true(n < sizeof(text));
	}
	assert_string_equal(text, expected);
	stacktree_deinit(tree);
}

/* main { f { f }; f; g } */
static void make_nested(struct callmade *made)
{
	callmade_enter(made, CALLMADE_MAIN, PTD_CALL_BY_START, 100, 1);
	callmade_enter(made, CALLMADE_F, PTD_CALL_BY_CALL, 110, 11);
	callmade_enter(made, CALLMADE_F, PTD_CALL_BY_CALL, 120, 12);
	callmade_leave(made, PTD_CALL_BY_RETURN, 130, 15);
	callmade_leave(made, PTD_CALL_BY_RETURN, 150, 30);
	callmade_enter(made, CALLMADE_F, PTD_CALL_BY_CALL, 150, 31);
	callmade_leave(made, PTD_CALL_BY_RETURN, 155, 41);
	callmade_enter(made, CALLMADE_G, PTD_CALL_BY_TAIL, 160, 41);
	callmade_leave(made, PTD_CALL_BY_RETURN, 170, 51);
	callmade_leave(made, PTD_CALL_BY_END, 200, 101);
}

#define NESTED                   \
	"demo;main 1 45 61\n"    \
	"demo;main;f 2 35 26\n"  \
	"demo;main;f;f 1 10 3\n" \
	"demo;main;ns::g(int) 1 10 10\n"

static void nested(void **state)
{
	struct stacktree tree = {};
	struct callmade made;

	(void)state;
	callmade_init(&made, 0, 11);
	make_nested(&made);
	assert_int_equal(add(&tree, &made), 0);
	assert_tree(&tree, NESTED);
}

/* What is found to have been open contains all since the start, or since the gap. */
static void outer(void **state)
{
	struct stacktree tree = {};
	struct callmade made;

	(void)state;
	callmade_init(&made, 3, 11);
	for (unsigned int i = 0; i < 2; i++) {
		made.first_depth = 0;
		callmade_enter(&made, CALLMADE_F, PTD_CALL_BY_START, 100, 0);
		callmade_leave(&made, PTD_CALL_BY_RETURN, 110, 10);
		made.first_depth = -1;
		callmade_enter(&made, CALLMADE_G,
			       i ? PTD_CALL_BY_RESUMPTION : PTD_CALL_BY_INFERENCE, 100, 0);
		callmade_enter(&made, CALLMADE_F, PTD_CALL_BY_CALL, 120, 20);
		callmade_leave(&made, PTD_CALL_BY_RETURN, 130, 30);
		callmade_leave(&made, PTD_CALL_BY_TAIL, 140, 40);
		callmade_enter(&made, CALLMADE_JIT, PTD_CALL_BY_TAIL, 140, 40);
		callmade_leave(&made, PTD_CALL_BY_RETURN, 150, 50);
		made.first_depth = -2;
		callmade_enter(&made, CALLMADE_MAIN, PTD_CALL_BY_INFERENCE, 100, 0);
		callmade_leave(&made, i ? PTD_CALL_BY_END : PTD_CALL_BY_GAP, 200, 100);
		assert_int_equal(add(&tree, &made), 0);
	}
	/* Times of inner functions are those of callmade, which does not know of them. */
	assert_tree(&tree, "demo;main 2 200 200\n"
			   "demo;main;ns::g(int) 2 60 60\n"
			   "demo;main;ns::g(int);f 4 40 40\n"
			   "demo;main;[anon]+0x10 2 20 20\n");
}

/* Each name has a root; a name that a thread gets later counts for all of the part. */
static void names(void **state)
{
	struct stacktree tree = {};
	struct callmade made[3];
	static const char *const names[] = { "one", NULL, "one" };

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		callmade_init(&made[i], i, 11 + i);
		callmade_enter(&made[i], CALLMADE_MAIN, PTD_CALL_BY_START, 0, 0);
		assert_int_equal(add(&tree, &made[i]), 0);
	}
	for (uint32_t i = 0; i < 3; i++) {
		made[i].thread.comm = names[i];
		callmade_leave(&made[i], PTD_CALL_BY_END, i + 1, 1);
		assert_int_equal(add(&tree, &made[i]), 0);
	}
	assert_tree(&tree, "one;main 2 4 2\n"
			   "?;main 1 2 1\n");
}

/* Functions that were on the wrong stack go on on the other one. */
static void moved(void **state)
{
	struct stacktree tree = {};
	struct callmade made[2];
	struct ptd_call call = { .kind = PTD_CALL_SWITCH, .stack = 1, .n_moved = 1 };

	(void)state;
	for (uint32_t i = 0; i < 2; i++)
		callmade_init(&made[i], i, 11);
	callmade_enter(&made[0], CALLMADE_MAIN, PTD_CALL_BY_START, 0, 0);
	callmade_enter(&made[1], CALLMADE_G, PTD_CALL_BY_START, 0, 0);
	callmade_enter(&made[1], CALLMADE_F, PTD_CALL_BY_CALL, 0, 0);
	assert_int_equal(add(&tree, &made[0]), 0);
	assert_int_equal(add(&tree, &made[1]), 0);
	assert_int_equal(stacktree_call(&tree, &made[0].thread, &call), 0);
	callmade_enter(&made[0], CALLMADE_F, PTD_CALL_BY_CALL, 0, 0);
	made[0].batch.n_calls = 0;
	callmade_leave(&made[0], PTD_CALL_BY_RETURN, 5, 5);
	assert_int_equal(add(&tree, &made[0]), 0);
	made[1].n_open--;
	callmade_leave(&made[1], PTD_CALL_BY_RETURN, 7, 7);
	assert_int_equal(add(&tree, &made[1]), 0);
	/* What it moves may be more than there is, and onto a stack that has nothing. */
	call = (struct ptd_call){ .kind = PTD_CALL_SWITCH, .moved_to = 9, .n_moved = 5 };
	assert_int_equal(stacktree_call(&tree, &made[0].thread, &call), 0);
	assert_tree(&tree, "demo;main 0 0 0\n"
			   "demo;ns::g(int) 1 7 7\n"
			   "demo;ns::g(int);f 0 0 0\n"
			   "demo;main;f 1 5 5\n"
			   "?;main 0 0 0\n");
}

/* Many parts, and one that goes on for long: they are joined meanwhile, and nothing is lost. */
static void joined(void **state)
{
	struct stacktree tree = {};
	struct callmade made, lasting;

	(void)state;
	callmade_init(&made, 0, 11);
	callmade_init(&lasting, 1, 12);
	callmade_enter(&lasting, CALLMADE_MAIN, PTD_CALL_BY_START, 0, 0);
	callmade_enter(&lasting, CALLMADE_G, PTD_CALL_BY_CALL, 10, 10);
	assert_int_equal(add(&tree, &lasting), 0);
	for (unsigned int i = 0; i < 100000; i++) {
		make_nested(&made);
		assert_int_equal(add(&tree, &made), 0);
		assert_true(tree.nodes.n < 70000);
	}
	callmade_leave(&lasting, PTD_CALL_BY_RETURN, 30, 30);
	callmade_leave(&lasting, PTD_CALL_BY_RETURN, 40, 50);
	assert_int_equal(add(&tree, &lasting), 0);
	assert_tree(&tree, "demo;main 100001 4500020 6100030\n"
			   "demo;main;ns::g(int) 100001 1000020 1000020\n"
			   "demo;main;f 200000 3500000 2600000\n"
			   "demo;main;f;f 100000 1000000 300000\n");
}

/* A stack that grows without end: beyond the bound, functions count for the last one. */
static void full(void **state)
{
	struct stacktree tree = {};
	struct callmade made;
	struct ptd_call call;
	uint64_t t = 0;

	(void)state;
	callmade_init(&made, 0, 11);
	callmade_enter(&made, CALLMADE_MAIN, PTD_CALL_BY_START, 0, 0);
	assert_int_equal(add(&tree, &made), 0);
	call = made.calls[0];
	call.how = PTD_CALL_BY_CALL;
	for (uint32_t i = 0; i < STACKTREE_NODES_MAX; i++)
		assert_int_equal(stacktree_call(&tree, &made.thread, &call), 0);
	assert_int_equal(tree.nodes.n, STACKTREE_NODES_MAX);
	assert_int_equal(tree.n_left_out, 2);
	call.kind = PTD_CALL_LEAVE;
	call.how = PTD_CALL_BY_RETURN;
	call.t_self = 1;
	for (uint32_t i = 0; i < STACKTREE_NODES_MAX; i++)
		assert_int_equal(stacktree_call(&tree, &made.thread, &call), 0);
	/* An outer function finds no room for its root, either. */
	call.how = PTD_CALL_BY_END;
	assert_int_equal(stacktree_call(&tree, &made.thread, &call), 0);
	/* A call that was not entered is not left. */
	assert_int_equal(stacktree_call(&tree, &made.thread, &call), 0);
	assert_int_equal(stacktree_finish(&tree), 0);
	for (uint32_t i = 0; i < tree.nodes.n; i++)
		t += tree.nodes.items[i].t_self;
	assert_int_equal(t, STACKTREE_NODES_MAX + 1);
	stacktree_deinit(&tree);
}

static int make_small(void *userdata)
{
	struct stacktree *tree = userdata;
	struct callmade made;
	int r;

	*tree = (struct stacktree){};
	callmade_init(&made, 0, 11);
	make_nested(&made);
	r = add(tree, &made);
	made.first_depth = -1;
	callmade_enter(&made, CALLMADE_F, PTD_CALL_BY_START, 0, 0);
	callmade_leave(&made, PTD_CALL_BY_RETURN, 0, 0);
	callmade_enter(&made, CALLMADE_MAIN, PTD_CALL_BY_INFERENCE, 0, 0);
	if (r == 0)
		r = add(tree, &made);
	if (r == 0)
		r = stacktree_finish(tree);
	if (r < 0)
		stacktree_deinit(tree);
	return r;
}

static void check_small(void *userdata)
{
	struct stacktree *tree = userdata;

	assert_int_equal(tree->nodes.n, 5);
	stacktree_deinit(tree);
}

static void failures(void **state)
{
	struct stacktree tree;

	(void)state;
	failing_each(make_small, check_small, &tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nested),   cmocka_unit_test(outer),  cmocka_unit_test(names),
		cmocka_unit_test(moved),    cmocka_unit_test(joined), cmocka_unit_test(full),
		cmocka_unit_test(failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
