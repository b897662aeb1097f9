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
#include "decoder/trace/trace.h"
#include "util/vec.h"

/* PT bytes that lie together in a file. The last two members are as in struct trace_span. */
struct auxbytes {
	int fd;                /* the file's; borrowed, like the next */
	struct pieces *pieces; /* of the file; or NULL */
	uint64_t at;           /* where in that file they begin */
	uint64_t size;
	uint64_t offset;
	uint64_t file_offset;
};

/* The PT of one AUXTRACE record or of one sample. */
struct auxpiece {
	size_t order; /* of its record in the file */
	uint32_t idx; /* perf's number for the buffer */
	int32_t cpu;  /* -1: none; like tid */
	int32_t tid;
	struct auxbytes bytes;
};

/*
 * Make the queues of @trace, whose facts and records are known already. @pieces are sorted by this
 * function. A span ends where bytes are missing between two pieces, or the recorder states that it
 * lost some. Its bytes stay where the pieces have them. A CPU that has lost records but
 * no PT gets a queue without spans.
 *
 * @per_cpu: each buffer was of a CPU; else each was of a thread
 *
 * Return: 0; -ESTALE if a file has become shorter; or another negative errno.
 */
_must_check_ int auxqueues_make(struct auxpiece *pieces, size_t n_pieces, bool per_cpu,
				struct trace *trace);
