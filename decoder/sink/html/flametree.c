/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/html/flametree.h"

#include <errno.h>
#include <stdlib.h>

static void sum_up(struct flametree *flame)
{
	const struct stacktree_node *nodes = flame->tree->nodes.items;

	/* Each node stands behind its parent. */
	for (size_t i = flame->tree->nodes.n; i-- > 0;) {
		struct flametree_node *node = &flame->nodes[i];

		node->t_total += nodes[i].t_self;
		node->n_insns_total += nodes[i].n_insns_self;
		if (nodes[i].parent == STACKTREE_NONE)
			continue;
		flame->nodes[nodes[i].parent].t_total += node->t_total;
		flame->nodes[nodes[i].parent].n_insns_total += node->n_insns_total;
	}
}

static int by_size(const void *pa, const void *pb)
{
	const uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;

	return a > b ? -1 : a < b;
}

/* Return: the least cost with which a node is among the first FLAMETREE_NODES. */
static uint64_t find_least(uint64_t *costs, size_t n)
{
	if (n <= FLAMETREE_NODES)
		return 0;
	qsort(costs, n, sizeof(*costs), by_size);
	return costs[FLAMETREE_NODES] + 1;
}

static int choose(struct flametree *flame)
{
	const size_t n = flame->tree->nodes.n;
	uint64_t *costs = calloc(n + 1, sizeof(*costs)), t_least, n_insns_least;

	if (!costs)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		costs[i] = flame->nodes[i].t_total;
	t_least = find_least(costs, n);
	for (size_t i = 0; i < n; i++)
		costs[i] = flame->nodes[i].n_insns_total;
	n_insns_least = find_least(costs, n);
	free(costs);
	for (size_t i = 0; i < n; i++)
		if (flame->nodes[i].t_total >= t_least ||
		    flame->nodes[i].n_insns_total >= n_insns_least ||
		    flame->tree->nodes.items[i].parent == STACKTREE_NONE)
			flame->nodes[i].number = (uint32_t)++flame->n_kept;
	return 0;
}

/* What is left out is part of the innermost node above it that is kept. */
static void account_rest(struct flametree *flame)
{
	for (size_t i = 0; i < flame->tree->nodes.n; i++) {
		const struct flametree_node *node = &flame->nodes[i];
		const uint32_t parent = flame->tree->nodes.items[i].parent;

		/* A node costs at least what each one below it costs. */
		if (node->number > 0 || flame->nodes[parent].number == 0)
			continue;
		flame->nodes[parent].t_below += node->t_total;
		flame->nodes[parent].n_insns_below += node->n_insns_total;
	}
}

int flametree_init(struct flametree *flame, const struct stacktree *tree)
{
	*flame = (struct flametree){ .tree = tree };
	flame->nodes = calloc(tree->nodes.n + 1, sizeof(*flame->nodes));
	if (!flame->nodes)
		return -ENOMEM;
	sum_up(flame);
	if (choose(flame) < 0) {
		flametree_deinit(flame);
		return -ENOMEM;
	}
	account_rest(flame);
	return 0;
}

void flametree_deinit(struct flametree *flame)
{
	free(flame->nodes);
	*flame = (struct flametree){};
}

void flametree_put(const struct flametree *flame, const uint32_t *numbers_of_functions,
		   struct packed *packed)
{
	for (size_t i = 0; i < flame->tree->nodes.n; i++) {
		const struct stacktree_node *node = &flame->tree->nodes.items[i];
		const struct flametree_node *kept = &flame->nodes[i];
		const bool is_root = node->parent == STACKTREE_NONE;

		if (kept->number == 0)
			continue;
		packed_number(packed,
			      is_root ? 0 : kept->number - flame->nodes[node->parent].number);
		packed_number(packed,
			      is_root ? node->function : numbers_of_functions[node->function]);
		packed_number(packed, node->n_calls);
		packed_number(packed, node->t_self);
		packed_number(packed, node->n_insns_self);
		packed_number(packed, kept->t_below);
		packed_number(packed, kept->n_insns_below);
	}
}
