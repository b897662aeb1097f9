/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Trace parts
 *
 * Records of which tests put drmemtrace files together.
 */

#include <stddef.h>
#include <stdint.h>

#include "decoder/drmemtrace/tracerecord.h"

#define TRACE_TIME (TRACE_TIME_UNIX + UINT64_C(1700000000000000))

#define TRACE_REC(t, s, a)                            \
	{                                             \
		.type = (t), .size = (s), .addr = (a) \
	}
#define TRACE_MARKER(kind, value) TRACE_REC(RECORD_MARKER, kind, value)
#define TRACE_CODE(n, bytes)      TRACE_REC(RECORD_ENCODING, n, bytes)
#define TRACE_PAIR(us, cpu)       TRACE_MARKER(2, TRACE_TIME + (us)), TRACE_MARKER(3, cpu)

/* The header of the file of a thread, and its first timestamp. */
#define TRACE_HEADER(file_type, tid, pid, us, cpu)                              \
	TRACE_REC(25, 0, 7), TRACE_MARKER(12, 7), TRACE_MARKER(9, file_type),   \
	    TRACE_REC(22, 4, tid), TRACE_REC(24, 4, pid), TRACE_MARKER(10, 64), \
	    TRACE_MARKER(18, 4096), TRACE_PAIR(us, cpu)

#define TRACE_END(tid) TRACE_REC(23, 4, tid), TRACE_REC(26, 0, 0)

/* Write the records as a file has them into @ret_bytes, which has room for RECORD_SIZE each. */
static inline void trace_put(const struct record *records, size_t n, uint8_t *ret_bytes)
{
	for (size_t i = 0; i < n; i++, ret_bytes += RECORD_SIZE) {
		memcpy(ret_bytes, &records[i].type, 2);
		memcpy(ret_bytes + 2, &records[i].size, 2);
		memcpy(ret_bytes + 4, &records[i].addr, 8);
	}
}
