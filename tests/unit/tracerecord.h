/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Records of a trace for the tests of what looks at them: written by util/perf/codec.h, and split
 * as a reader of perf.data files does it.
 */

#include <stdlib.h>

#include "decoder/trace/trace.h"
#include "util/perf/codec.h"
#include "util/perf/perfrec.h"

/* The record of the kernel's in the @size bytes at @bytes, into which it points. */
static inline struct trace_record tracerecord_from(const uint8_t *bytes, size_t size)
{
	struct cursor c = cursor_from(bytes, size);
	struct trailer trailer;
	struct perfrec rec;

	if (perfrec_next(&c, &rec) != 0 ||
	    trailer_take(&rec.body, PERFABI_SAMPLE_TYPE, &trailer) < 0)
		abort();
	return (struct trace_record){ .type = rec.type,
				      .misc = rec.misc,
				      .time = trailer.time,
				      .cpu = trailer.cpu,
				      .pid = trailer.pid,
				      .tid = trailer.tid,
				      .payload = rec.body.pos,
				      .payload_size = cursor_left(&rec.body) };
}
