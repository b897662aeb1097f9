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

/*
 * Data that the recorder itself states to be lost: by the flags of AUX records, and by LOST and
 * LOST_SAMPLES records. Each loss becomes a gap in the stream of the AUX buffer that it is about:
 * at the offset that the record states, or at the record's time if it states none.
 */

/* A loss, and the buffer that it is about. */
struct loss {
	uint32_t key; /* the cpu, or in per-thread mode the tid */
	uint32_t cpu; /* TRACE_NONE in per-thread mode; like tid */
	uint32_t tid;
	bool in_aux;    /* an AUX record states it, about the bytes from aux_start to aux_end */
	bool overwrite; /* it only states that the ring was overwritten */
	uint64_t aux_start, aux_end;
	struct trace_loss loss; /* with the record's time */
};

struct losses {
	VEC(struct loss) list; /* by key, then time */
};

/*
 * Collect the losses in the records of @trace.
 *
 * @per_thread: each AUX buffer was of a thread; else each was of a CPU
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int losses_init(struct losses *losses, const struct trace *trace, bool per_thread);
void losses_deinit(struct losses *losses);

/* Return: the index of the first loss whose key is @key or greater. */
size_t losses_find(const struct losses *losses, uint32_t key);

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
