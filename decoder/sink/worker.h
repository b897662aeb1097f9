/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Worker
 *
 * Expands batches for one sink in one thread. What it made of several batches is kept together, one
 * piece for each batch, until the sink writes them in the order in which they were expanded.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/base.h"
#include "decoder/sink/output.h"
#include "decoder/sink/sink.h"
#include "util/vec.h"

struct sink_worker {
	const struct sink *sink; /* borrowed; NULL: it expands nothing */
	void *memory;            /* the kind's; owned */
};

/* What was made of batches that the sink has not written yet. */
struct sink_bytes {
	struct output output; /* to memory: the pieces, one behind the other */
	VEC(size_t) ends;     /* where each piece ends */
	size_t n_written;     /* how many pieces the sink has written */
};

/* Return: whether the sink is of a kind that expands batches. */
bool sink_expands(const struct sink *sink);

/* The sink must expand batches. Return: 0, or negative errno. */
_must_check_ int sink_worker_init(struct sink_worker *worker, const struct sink *sink);
void sink_worker_deinit(struct sink_worker *worker);

/* Return: an empty list of pieces. */
static inline struct sink_bytes sink_bytes_none(void)
{
	return (struct sink_bytes){ .output = output_memory() };
}
void sink_bytes_deinit(struct sink_bytes *bytes);

/* Expand a batch: add a piece to @bytes. Return: 0, or negative errno. */
_must_check_ int sink_worker_expand(struct sink_worker *worker, const struct ptd_batch *batch,
				    struct sink_bytes *bytes);

/*
 * Write the next batch of the stream. @bytes has a piece of this batch as the first that was not
 * written; NULL: the sink expands nothing.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int sink_write(struct sink *sink, const struct ptd_batch *batch,
			    struct sink_bytes *bytes);
