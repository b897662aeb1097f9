/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * AUX queue
 *
 * The pieces in which PT came, put together to one queue for each buffer: in full-trace mode they
 * are one stream, cut anywhere; snapshots and samples begin and end anywhere, and may repeat what
 * an earlier one had.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/trace/loss.h"
#include "decoder/trace/trace.h"

/* One piece: an AUXTRACE record's, or a sample's. */
struct auxpiece {
	size_t order; /* in which it came */
	uint32_t idx;
	int32_t cpu; /* -1: none; like tid */
	int32_t tid;
	struct trace_span span;
};

/*
 * Make @trace's queues of the pieces, which are sorted by it. Where bytes are missing between two
 * pieces, or the recorder says that it lost some, a span ends. What must be put together goes into
 * a file of its own, which is the trace's. A CPU of which nothing is known but that records were
 * lost gets a queue without spans.
 *
 * @per_cpu: the buffers were those of CPUs. What is known of @trace before: facts, records, files.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int auxqueues_make(struct auxpiece *pieces, size_t n_pieces, bool per_cpu,
				struct trace *trace);
