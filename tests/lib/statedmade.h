/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Stated calls made by hand
 *
 * The batches of one thread whose calls are stated, for tests of sinks that write calls.
 */

#include <stdint.h>

#include "ptd/record.h"
#include "ptd/sink.h"

#define STATEDMADE_MAX 64
#define STATEDMADE_T0  UINT64_C(5000000000)

/* Symbols 1 to 3 are "f", "say \"hi\\;\"\n" and "h(int)". */
struct statedmade {
	struct ptd_info info;
	struct ptd_object object;
	struct ptd_slice slice; /* of thread 5/70000, "my demo.x", on CPU 2 */
	struct ptd_stated_call stated[STATEDMADE_MAX];
	struct ptd_mark marks[STATEDMADE_MAX];
	struct ptd_batch batch;
	struct ptd_sink *sink; /* which gets the batches */
};

/* Open a sink of the kind @ops that writes to the directory @dir, with @option, which may be NULL.
 */
void statedmade_init(struct statedmade *made, const struct ptd_sink_ops *ops, const char *dir,
		     const char *option);
void statedmade_deinit(struct statedmade *made);

/* Add a call, and a mark behind the calls so far. */
void statedmade_put(struct statedmade *made, enum ptd_stated_kind kind, uint32_t symbol,
		    uint64_t t);
void statedmade_put_mark(struct statedmade *made, enum ptd_mark_kind kind, uint64_t t);

/* Give the sink what was added since the last time. */
void statedmade_flush(struct statedmade *made);
