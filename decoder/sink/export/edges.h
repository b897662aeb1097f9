/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Edges
 *
 * How often each branch of one object was taken, and how often the code between two of them ran
 * straight through. It is what the processor's record of last branches (LBR) has a sample of, and
 * what compilers and linkers take as a profile. Code that ran before the first branch of a stretch,
 * or behind the last one, is on no edge, as in such a record.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/sink/sink.h"
#include "ptd/record.h"
#include "util/map.h"
#include "util/vec.h"

enum edge_kind {
	EDGE_BRANCH,  /* taken */
	EDGE_THROUGH, /* from where a branch led to, up to the next branch that was taken */
	EDGE_THROUGH_FROM_OUTSIDE, /* likewise; the first of these branches is in another object */
	_EDGE_KINDS,
};

/* @from led to @to. Both are addresses as linked, or 0: a place in another object. */
struct edge {
	uint64_t from, to;
	uint64_t n;
};

/* Where a thread is. */
struct edge_thread {
	bool has_last;       /* this run came right before: */
	struct ptd_run last; /* that ran up to its end */
	uint32_t start;      /* where the last branch led to; 0: not known, or outside */
	bool from_outside;   /* it was outside */
};

struct edges {
	const char *name;                /* of the object that is asked for; borrowed */
	const struct ptd_object *object; /* NULL: nothing of it was executed yet */
	const struct ptd_object *other;  /* the last one that was found not to be it */
	bool has_another;                /* another object of that name was executed, too */

	struct map numbers;             /* of places, by their address as linked */
	VEC(uint64_t) addresses;        /* by number; [0] is that of all places outside */
	struct map counts[_EDGE_KINDS]; /* FROM << 32 | TO, by their numbers */

	struct map thread_index; /* address space << 32 | tid → index of threads */
	VEC(struct edge_thread) threads;
};

/* What the user of a sink of edges says: "object", which edges_init() is given. */
extern const struct sink_option edges_options[];

/*
 * Begin to count for the object @name, which is borrowed: its path, or the last part of that.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int edges_init(struct edges *edges, const char *name);
void edges_deinit(struct edges *edges);

/* Count the runs of @batch. Return: 0 or -ENOMEM. */
_must_check_ int edges_add(struct edges *edges, const struct ptd_batch *batch);

/*
 * List the edges of one kind by their addresses. The caller frees @ret_list.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int edges_list(const struct edges *edges, enum edge_kind kind, struct edge **ret_list,
			    size_t *ret_n);

/* Return: whether @name is the path of the object, or the last part of that. */
bool edges_is_named(const struct ptd_object *object, const char *name);

/* Return: what is to be said of the object, a text for the user; NULL: nothing. */
const char *edges_complaint(const struct edges *edges);
