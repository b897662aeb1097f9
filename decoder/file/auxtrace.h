/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * AUX trace
 *
 * The PT side of a perf.data file: AUXTRACE_INFO says how the PT was made, AUXTRACE records carry
 * its bytes, in pieces, which are put together to one queue a buffer.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "base/cursor.h"
#include "decoder/file/perfattr.h"
#include "decoder/file/trace.h"
#include "decoder/util/perfabi.h"

/* What AUXTRACE_INFO states. */
struct auxtrace_info {
	uint32_t type;                           /* PERFABI_AUXTRACE_INTEL_PT, or a foreign one */
	uint64_t slots[_PERFABI_PT_SLOTS_FIXED]; /* by enum perfabi_pt_slot; 0 if not stated */
};

/* One AUXTRACE record. */
struct auxtrace_piece {
	uint32_t idx;
	int32_t cpu; /* -1: none; like tid */
	int32_t tid;
	struct trace_span span;
};

/* Read the body of an AUXTRACE_INFO record. Return: 0; -EBADMSG if it is cut short. */
_must_check_ int auxtrace_info_read(struct cursor body, struct auxtrace_info *ret_info);

/*
 * Take out of AUXTRACE_INFO, and of the attr of the PT event, how the PT was made: all of @facts
 * but what the CPUID feature and the manifest say.
 *
 * Return: 0; -ENOENT if no attr has the PMU type that the info names; -EBADMSG if its clock cannot
 *         be.
 */
_must_check_ int auxtrace_facts(const struct auxtrace_info *info, const struct perfattrs *attrs,
				struct trace_facts *facts);

/*
 * Take family, model and stepping out of the CPUID feature ("GenuineIntel,6,94,3"). Other vendors,
 * and what is not of that form, leave @facts alone.
 */
void auxtrace_cpuid(const char *cpuid, struct trace_facts *facts);

/*
 * Put the pieces together: one queue for each buffer, sorted by cpu, then tid. In full-trace mode
 * the pieces of a buffer are one stream, cut anywhere, and are joined (copied) where no bytes are
 * missing between them; in snapshot mode each is a span of its own.
 *
 * @pieces is sorted by it. The queues are added to @trace.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int auxtrace_queues(struct auxtrace_piece *pieces, size_t n_pieces,
				 const struct auxtrace_info *info, struct trace *trace);
