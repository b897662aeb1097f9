/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * AUX queue
 *
 * Puts the pieces in which PT was recorded together to one queue for each AUX buffer. In full-trace
 * mode the pieces are one stream, cut anywhere. In snapshot mode, and in samples, each piece begins
 * and ends anywhere, and may repeat bytes of earlier pieces.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/trace/loss.h"
#include "decoder/trace/trace.h"

/* The PT of one AUXTRACE record or of one sample. */
struct auxpiece {
	size_t order; /* of its record in the file */
	uint32_t idx; /* perf's number for the buffer */
	int32_t cpu;  /* -1: none; like tid */
	int32_t tid;
	struct trace_span span;
};

/*
 * Make the queues of @trace, whose facts, records and files are known already. @pieces are sorted
 * by this function. A span ends where bytes are missing between two pieces, or the recorder states
 * that it lost some. Pieces that continue each other are copied to a temporary file, which belongs
 * to @trace. A CPU of which there are lost records but no PT gets a queue without spans.
 *
 * @per_cpu: each buffer was of a CPU; else each was of a thread
 *
 * Return: 0, or negative errno.
 */
_must_check_ int auxqueues_make(struct auxpiece *pieces, size_t n_pieces, bool per_cpu,
				struct trace *trace);
