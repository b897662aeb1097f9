/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Report
 *
 * The data of the page, as elements that its scripts read: the document "report" in JSON, and
 * "spans" and "nodes" as packed numbers. model.js reads them.
 *
 * Times are relative to the first one that is shown, "base".
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/sink/answer/profile.h"
#include "decoder/sink/export/stacktree.h"
#include "decoder/sink/html/trackspans.h"
#include "decoder/sink/sink.h"
#include "ptd/calls.h"
#include "ptd/record.h"

/*
 * Numbers as a text for a page: each is written in 7 bits a byte, the lowest first, and the high
 * bit of a byte says that another one follows (LEB128). The bytes are written in base64, whose
 * characters mean nothing to HTML.
 */

struct packed {
	struct output *output; /* borrowed; it keeps the first error */
	uint8_t bytes[3];      /* that are not written yet */
	size_t n;
};

/* Return: a text to @output in which nothing stands yet. */
static inline struct packed packed_begin(struct output *output)
{
	return (struct packed){ .output = output };
}

/* Write one byte, or one number. */
void packed_byte(struct packed *packed, uint8_t byte);
void packed_number(struct packed *packed, uint64_t number);

/* End the text. */
void packed_end(struct packed *packed);

/*
 * A stack tree (export/stacktree.h) as a page has it: the nodes that cost most, in time or in
 * instructions, and what the others cost as a part of the nodes above them.
 */

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

#define REPORT_FUNCTIONS  20000               /* further ones have no row */
#define REPORT_NAMES_SIZE (UINT64_C(6) << 20) /* nor have those whose names need more bytes */
#define REPORT_NAME_MAX   512                 /* bytes of a name; longer ones are cut */

struct report {
	/* The caller sets these, which are finished, and borrowed. */
	const struct ptd_info *info;
	const struct ptd_stats *stats;
	const struct profile *profile;
	const struct stacktree *tree;
	const struct trackspans *trackspans;

	struct profile_list functions; /* those that were called, by their cost */
	size_t n_listed;               /* of these */
	uint32_t *numbers;             /* in the list, + 1, by their ids; 0: it is not listed */
	struct flametree flame;
	uint64_t base;
};

/* Write the elements. Return: 0 or negative errno. */
_must_check_ int report_put(struct report *report, struct output *output);
void report_deinit(struct report *report);
