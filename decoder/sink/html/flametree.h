/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Flame tree
 *
 * A stack tree (export/stacktree.h) as a page has it: the nodes that cost most, in time or in
 * instructions, and what the others cost as a part of the nodes above them.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/sink/export/stacktree.h"
#include "decoder/sink/html/packed.h"

#define FLAMETREE_NODES 40000 /* are kept by their time, and as many by their instructions */

struct flametree_node {
	uint64_t t_total, n_insns_total;
	uint32_t number;                 /* in the order of the tree, + 1; 0: it is left out */
	uint64_t t_below, n_insns_below; /* of nodes below that are left out */
};

struct flametree {
	const struct stacktree *tree; /* borrowed */
	struct flametree_node *nodes; /* as many as the tree has */
	size_t n_kept;
};

/* @tree is finished. Return: 0 or -ENOMEM. */
_must_check_ int flametree_init(struct flametree *flame, const struct stacktree *tree);
void flametree_deinit(struct flametree *flame);

/*
 * Write the nodes that are kept. Each is seven numbers: of a root 0, else how many nodes before it
 * the node above it stands; of a root the index of its name, else the number of its function; its
 * calls; its own time and instructions; and the time and instructions of what is left out below.
 */
void flametree_put(const struct flametree *flame, const uint32_t *numbers_of_functions,
		   struct packed *packed);
