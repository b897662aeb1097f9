/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/export/stacktree.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Parts are joined after this number of new nodes; and if there can be no more, when this number of
 * parts have ended. */
#define JOIN_NODES ((size_t)1 << 16)
#define JOIN_PARTS ((size_t)1 << 12)

void stacktree_deinit(struct stacktree *tree)
{
	vec_deinit_each(&tree->stacks, stack, vec_deinit(&stack->frames));
	vec_deinit(&tree->nodes);
	vec_deinit(&tree->parts);
	vec_deinit(&tree->names);
	map_deinit(&tree->names_by_hash);
	map_deinit(&tree->children);
}

/* --- nodes ------------------------------------------------------------------------------------ */

static uint64_t key_of(uint32_t parent, uint32_t function)
{
	return (uint64_t)parent << 32 | function;
}

static bool has_child(const struct stacktree *tree, uint32_t parent, uint32_t function)
{
	return map_get(&tree->children, key_of(parent, function));
}

/* Add a node that is no child yet. Return: 0 or -ENOMEM. */
static int add_node(struct stacktree *tree, uint32_t parent, uint32_t function, uint32_t *ret_node)
{
	if (vec_push(&tree->nodes, { .parent = parent, .function = function }) < 0)
		return -ENOMEM;
	*ret_node = (uint32_t)tree->nodes.n - 1;
	return 0;
}

/* Get the node of @function below @parent, which is made if need be. Return: 0 or -ENOMEM. */
static int get_child(struct stacktree *tree, uint32_t parent, uint32_t function, uint32_t *ret_node)
{
	uint64_t node;
	const int r = map_number(&tree->children, key_of(parent, function), tree->nodes.n, &node);

	*ret_node = (uint32_t)node;
	return r > 0 ? add_node(tree, parent, function, ret_node) : r;
}

/* --- parts ------------------------------------------------------------------------------------ */

static bool is_full(const struct stacktree *tree)
{
	return tree->nodes.n >= STACKTREE_NODES_MAX;
}

/* Return: the name of the thread which was on the stack last. */
static const char *text_of(const struct stacktree_stack *stack)
{
	return stack->name && stack->name[0] ? stack->name : "?";
}

/* Return: whether @name is that of the thread which was on the stack last. */
static bool is_name_of(const struct stacktree *tree, const struct stacktree_name *name,
		       const struct stacktree_stack *stack)
{
	return strcmp(name->text, text_of(stack)) == 0 &&
	       (!tree->by_thread || (name->pid == stack->pid && name->tid == stack->tid));
}

/* Get the index of the name of the thread which was on the stack last. Return: 0 or -ENOMEM. */
static int get_name(struct stacktree *tree, const struct stacktree_stack *stack,
		    uint32_t *ret_index)
{
	const char *text = text_of(stack);
	uint64_t key = map_hash(text, strlen(text)), *found;

	if (tree->by_thread)
		key ^= ((uint64_t)stack->pid << 32 | stack->tid) * UINT64_C(0x9e3779b97f4a7c15);
	while ((found = map_get(&tree->names_by_hash, key)) &&
	       !is_name_of(tree, &tree->names.items[*found], stack))
		key++;
	if (found) {
		*ret_index = (uint32_t)*found;
		return 0;
	}
	if (map_put(&tree->names_by_hash, key, tree->names.n) < 0 ||
	    vec_push(
		&tree->names,
		{ .text = text, .pid = stack->pid, .tid = stack->tid, .root = STACKTREE_NONE }) < 0)
		return -ENOMEM;
	*ret_index = (uint32_t)tree->names.n - 1;
	return 0;
}

/* The part of the stack has ended, if there is one. Return: 0 or -ENOMEM. */
static int end_part(struct stacktree *tree, struct stacktree_stack *stack)
{
	struct stacktree_part part = { .root = stack->root };

	stack->frames.n = 0;
	stack->root = STACKTREE_NONE;
	if (part.root == STACKTREE_NONE)
		return 0;
	if (get_name(tree, stack, &part.name) < 0)
		return -ENOMEM;
	return vec_push(&tree->parts, part);
}

/* New numbers of nodes, by their old ones; STACKTREE_NONE: it has none yet. */
struct renumbering {
	uint32_t *numbers;
	VEC(uint32_t) path;
};

/* Give the node @i of @old and those above it, whose root has a number, numbers in @tree. */
static int renumber(struct stacktree *tree, const struct stacktree *old, struct renumbering *re,
		    uint32_t i)
{
	uint32_t number;

	re->path.n = 0;
	for (; re->numbers[i] == STACKTREE_NONE; i = old->nodes.items[i].parent)
		if (vec_push(&re->path, i) < 0)
			return -ENOMEM;
	number = re->numbers[i];
	while (re->path.n > 0) {
		i = re->path.items[--re->path.n];
		if (get_child(tree, number, old->nodes.items[i].function, &number) < 0)
			return -ENOMEM;
		re->numbers[i] = number;
	}
	return 0;
}

/* Give the old roots numbers in the new tree: ended parts have the root of their name. */
static int renumber_roots(struct stacktree *tree, const struct renumbering *re)
{
	for (uint32_t i = 0; i < tree->names.n; i++) {
		struct stacktree_name *name = &tree->names.items[i];
		const uint32_t root = name->root;

		if (add_node(tree, STACKTREE_NONE, i, &name->root) < 0)
			return -ENOMEM;
		if (root != STACKTREE_NONE)
			re->numbers[root] = name->root;
	}
	for (size_t i = 0; i < tree->parts.n; i++)
		re->numbers[tree->parts.items[i].root] =
		    tree->names.items[tree->parts.items[i].name].root;
	tree->parts.n = 0;
	for (size_t i = 0; i < tree->stacks.n; i++) {
		uint32_t *root = &tree->stacks.items[i].root;

		if (*root == STACKTREE_NONE)
			continue;
		if (add_node(tree, STACKTREE_NONE, STACKTREE_NONE, &re->numbers[*root]) < 0)
			return -ENOMEM;
		*root = re->numbers[*root];
	}
	return 0;
}

static int renumber_all(struct stacktree *tree, const struct stacktree *old, struct renumbering *re)
{
	if (renumber_roots(tree, re) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < old->nodes.n; i++) {
		const struct stacktree_node *from = &old->nodes.items[i];
		struct stacktree_node *to;

		if (renumber(tree, old, re, i) < 0)
			return -ENOMEM;
		to = &tree->nodes.items[re->numbers[i]];
		to->n_calls += from->n_calls;
		to->t_self += from->t_self;
		to->n_insns_self += from->n_insns_self;
	}
	for (size_t i = 0; i < tree->stacks.n; i++) {
		const struct stacktree_stack *stack = &tree->stacks.items[i];

		for (size_t k = 0; k < stack->frames.n; k++)
			stack->frames.items[k] = re->numbers[stack->frames.items[k]];
	}
	return 0;
}

/* Join the parts that have ended with what is below the roots of their names. */
static int join_parts(struct stacktree *tree)
{
	struct stacktree old = { .nodes.items = tree->nodes.items, .nodes.n = tree->nodes.n };
	struct renumbering re = { .numbers = malloc((old.nodes.n + 1) * sizeof(*re.numbers)) };
	int r = -ENOMEM;

	if (re.numbers) {
		memset(re.numbers, 0xff, (old.nodes.n + 1) * sizeof(*re.numbers));
		tree->nodes = (__typeof__(tree->nodes)){};
		map_deinit(&tree->children);
		r = renumber_all(tree, &old, &re);
		tree->n_joined = tree->nodes.n;
		free(old.nodes.items);
	}
	free(re.numbers);
	vec_deinit(&re.path);
	return r;
}

static bool is_to_be_joined(const struct stacktree *tree)
{
	const size_t more = tree->n_joined > JOIN_NODES ? tree->n_joined : JOIN_NODES;

	return tree->nodes.n >= tree->n_joined + more ||
	       (is_full(tree) && tree->parts.n >= JOIN_PARTS);
}

/* --- the stream ------------------------------------------------------------------------------- */

static struct stacktree_stack *get_stack(struct stacktree *tree, uint32_t id)
{
	return vec_at(&tree->stacks, id, { .root = STACKTREE_NONE });
}

/* Open @function on the stack, whose part has a root. Return: 0 or -ENOMEM. */
static int push_function(struct stacktree *tree, struct stacktree_stack *stack, uint32_t function)
{
	const size_t n = stack->frames.n;
	uint32_t node = n > 0 ? stack->frames.items[n - 1] : stack->root;

	if (!is_full(tree) || has_child(tree, node, function)) {
		if (get_child(tree, node, function, &node) < 0)
			return -ENOMEM;
	} else {
		tree->n_left_out++;
	}
	return vec_push(&stack->frames, node);
}

/* Open @function, in which all lies that the part has so far. Return: 0 or -ENOMEM. */
static int push_outer(struct stacktree *tree, struct stacktree_stack *stack, uint32_t function)
{
	const uint32_t node = stack->root;

	if (is_full(tree)) {
		tree->n_left_out++;
		return vec_push(&stack->frames, node);
	}
	if (add_node(tree, STACKTREE_NONE, STACKTREE_NONE, &stack->root) < 0)
		return -ENOMEM;
	tree->nodes.items[node].parent = stack->root;
	tree->nodes.items[node].function = function;
	if (map_put(&tree->children, key_of(stack->root, function), node) < 0)
		return -ENOMEM;
	return vec_push(&stack->frames, node);
}

static int enter(struct stacktree *tree, struct stacktree_stack *stack, const struct ptd_call *call)
{
	const bool is_outer =
	    call->how == PTD_CALL_BY_INFERENCE || call->how == PTD_CALL_BY_RESUMPTION;
	int r;

	if (stack->frames.n > 0)
		return push_function(tree, stack, call->function->id);
	if (call->how == PTD_CALL_BY_START) {
		r = end_part(tree, stack);
		if (r < 0)
			return r;
	}
	if (stack->root != STACKTREE_NONE && is_outer)
		return push_outer(tree, stack, call->function->id);
	if (stack->root == STACKTREE_NONE &&
	    add_node(tree, STACKTREE_NONE, STACKTREE_NONE, &stack->root) < 0)
		return -ENOMEM;
	return push_function(tree, stack, call->function->id);
}

static int leave(struct stacktree *tree, struct stacktree_stack *stack, const struct ptd_call *call)
{
	const size_t n = stack->frames.n;
	const uint32_t i = n > 0 ? stack->frames.items[n - 1] : STACKTREE_NONE;
	const uint32_t below = n > 1 ? stack->frames.items[n - 2] : stack->root;
	struct stacktree_node *node;

	if (n == 0)
		return 0;
	node = &tree->nodes.items[i];
	/* It would be the same if the call had been left out. */
	node->n_calls += i != below;
	node->t_self += call->t_self;
	node->n_insns_self += call->n_insns_self;
	stack->frames.n--;
	if (n == 1 && (call->how == PTD_CALL_BY_GAP || call->how == PTD_CALL_BY_END)) {
		vec_deinit(&stack->frames);
		return end_part(tree, stack);
	}
	return 0;
}

/* Move the functions to the other stack, as the PTD_CALL_SWITCH asks. Return: 0 or -ENOMEM. */
static int move_functions(struct stacktree *tree, const struct ptd_call *call)
{
	struct stacktree_stack *from, *to;
	size_t n = call->n_moved;

	if (n == 0 || call->stack == call->moved_to)
		return 0;
	if (!get_stack(tree, call->stack) || !get_stack(tree, call->moved_to))
		return -ENOMEM;
	from = &tree->stacks.items[call->stack];
	to = &tree->stacks.items[call->moved_to];
	if (n > from->frames.n)
		n = from->frames.n;
	if (n > 0 && to->root == STACKTREE_NONE &&
	    add_node(tree, STACKTREE_NONE, STACKTREE_NONE, &to->root) < 0)
		return -ENOMEM;
	from->frames.n -= n;
	for (size_t i = 0; i < n; i++) {
		const uint32_t node = from->frames.items[from->frames.n + i];
		const uint32_t function = tree->nodes.items[node].function;

		/* A root has the calls that have no node. */
		if (function == STACKTREE_NONE ? vec_push(&to->frames, to->root) < 0
					       : push_function(tree, to, function) < 0)
			return -ENOMEM;
	}
	return 0;
}

int stacktree_call(struct stacktree *tree, const struct ptd_call_thread *thread,
		   const struct ptd_call *call)
{
	struct stacktree_stack *stack;
	int r;

	if (is_to_be_joined(tree)) {
		r = join_parts(tree);
		if (r < 0)
			return r;
	}
	if (call->kind == PTD_CALL_SWITCH)
		return move_functions(tree, call);
	stack = get_stack(tree, call->stack);
	if (!stack)
		return -ENOMEM;
	if (call->kind == PTD_CALL_ENTER) {
		/* A part that ends here is that of the thread before. */
		r = enter(tree, stack, call);
		if (r < 0)
			return r;
	}
	stack->name = thread->comm;
	stack->pid = thread->pid;
	stack->tid = thread->tid;
	return call->kind == PTD_CALL_LEAVE ? leave(tree, stack, call) : 0;
}

int stacktree_finish(struct stacktree *tree)
{
	for (size_t i = 0; i < tree->stacks.n; i++) {
		const int r = end_part(tree, &tree->stacks.items[i]);

		if (r < 0)
			return r;
	}
	return join_parts(tree);
}

/* --- as a sink -------------------------------------------------------------------------------- */

int stacktree_calls(void *state, const struct ptd_call_batch *calls)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < calls->n_calls; i++)
		r = stacktree_call(state, calls->thread, &calls->calls[i]);
	return r;
}

const char *stacktree_omission(void *state)
{
	struct stacktree *tree = state;
	const uint64_t n = tree->n_left_out;

	if (n == 0)
		return NULL;
	(void)snprintf(tree->omission, sizeof(tree->omission),
		       "there are too many different stacks: %" PRIu64
		       " call%s counted with the function that made %s",
		       n, n == 1 ? " is" : "s are", n == 1 ? "it" : "them");
	return tree->omission;
}
