/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Loss
 *
 * What the recorder itself says that it lost: flags of AUX records, LOST and LOST_SAMPLES. Each
 * becomes a gap of the buffer that it is about, at a place in its stream if the record tells that,
 * else at the record's time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/trace/trace.h"
#include "util/vec.h"

/* One of them, and whose. */
struct loss {
	uint32_t key; /* the cpu, or in per-thread mode the tid */
	uint32_t cpu; /* TRACE_NONE in per-thread mode; like tid */
	uint32_t tid;
	bool in_aux;    /* the AUX record covers the stream from aux_start to aux_end */
	bool overwrite; /* only this: the ring was overwritten */
	uint64_t aux_start, aux_end;
	struct trace_loss loss; /* at its time */
};

struct losses {
	VEC(struct loss) list; /* by key, then time */
};

/* Collect those in the records of @trace. Return: 0 or -ENOMEM. */
_must_check_ int losses_init(struct losses *losses, const struct trace *trace, bool per_thread);
void losses_deinit(struct losses *losses);

/* Return: index of the first loss of @key, or of a greater one. */
size_t losses_find(const struct losses *losses, uint32_t key);
