/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Loss
 *
 * Data that the recorder itself states to be lost: by the flags of AUX records, and by LOST and
 * LOST_SAMPLES records. Each loss becomes a gap in the stream of the AUX buffer that it is about:
 * at the offset that the record states, or at the record's time if it states none.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/trace/trace.h"
#include "util/vec.h"

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
