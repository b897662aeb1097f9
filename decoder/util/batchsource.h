/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Batch source
 *
 * An input of the decoder that has what happened in some form of its own, and no PT: the
 * instructions of a drmemtrace directory, or the calls that a program logged. It comes out as
 * batches, or as calls. A kind of source embeds this as its first field, and sets the operations.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/record.h"
#include "util/vec.h"

struct batchsource;
struct ptd_logged;

struct batchsource_ops {
	/* Begin the stream, anew if it was begun before. Return: 0; or negative errno. */
	int (*start)(struct batchsource *source, char **reterr_message);

	/*
	 * Make the next batch. @ret_batch is valid until the next call; the id of its slice is not
	 * set.
	 *
	 * Return: 0, @ret_slice, the slice, whose id the caller sets, and @ret_new, whether the
	 *         batch is the first one of it; 1 at the end; or negative errno and
	 *         @reterr_message.
	 */
	int (*next)(struct batchsource *source, struct ptd_batch *ret_batch,
		    struct ptd_slice **ret_slice, bool *ret_new, char **reterr_message);

	/* Likewise of a log of calls (ptd/calls.h), which has no batches; NULL: it is none. */
	int (*next_logged)(struct batchsource *source, struct ptd_logged *ret_logged,
			   struct ptd_slice **ret_slice, bool *ret_new, char **reterr_message);

	void (*free)(struct batchsource *source);
};

struct batchsource {
	const struct batchsource_ops *ops;

	/* What struct ptd_info says of the input. The texts belong to the source. */
	enum ptd_clock clock;
	int64_t realtime_offset_ns;
	const char *const *complaints;
	size_t n_complaints;

	/* Of the stream so far: by CPU, and the index in that of the last batch's; and by reason.
	 */
	VEC(struct ptd_cpu_stats) cpus;
	size_t cpu;
	uint64_t n_gaps[_PTD_GAP_REASONS];
};

/* The stream begins anew: nothing is counted. */
void batchsource_reset(struct batchsource *source);

/* What is to be counted of a batch. */
struct batchsource_count {
	uint32_t cpu;
	uint64_t n_insns;
	uint64_t t_first, t_last;
	uint64_t n_gaps[_PTD_GAP_REASONS];
};

/* Count a batch. Return: 0 or -ENOMEM. */
_must_check_ int batchsource_count(struct batchsource *source,
				   const struct batchsource_count *count);

struct batchsource *batchsource_free(struct batchsource *source);
