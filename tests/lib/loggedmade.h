/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Logged calls made by hand
 *
 * The calls that one thread logged, for tests of sinks that write calls.
 */

#include <stdint.h>

#include "decoder/sink/sink.h"
#include "ptd/calls.h"

#define LOGGEDMADE_MAX 64
#define LOGGEDMADE_T0  UINT64_C(5000000000)

/* Symbols 1 to 3 are "f", "say \"hi\\;\"\n" and "h(int)". */
struct loggedmade {
	struct ptd_info info;
	struct ptd_object object;
	struct ptd_slice slice; /* of thread 5/70000, "my demo.x", on CPU 2 */
	struct ptd_logged_call calls[LOGGEDMADE_MAX];
	struct ptd_mark marks[LOGGEDMADE_MAX];
	struct ptd_logged logged;
	struct sink *sink; /* which gets the calls */
};

/* Open a sink of the kind @ops that writes to the directory @dir, with @option, which may be NULL.
 */
void loggedmade_init(struct loggedmade *made, const struct sink_ops *ops, const char *dir,
		     const char *option);
void loggedmade_deinit(struct loggedmade *made);

/* Add a call, and a mark behind the calls so far. */
void loggedmade_put(struct loggedmade *made, enum ptd_logged_kind kind, uint32_t symbol,
		    uint64_t t);
void loggedmade_put_mark(struct loggedmade *made, enum ptd_mark_kind kind, uint64_t t);

/* Give the sink what was added since the last time. */
void loggedmade_flush(struct loggedmade *made);
