/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Perf sample
 *
 * The body of a SAMPLE record, which is laid out as the attr of its event says: field by field, up
 * to the PT that it may carry (perf record --aux-sample).
 */

#include <stdint.h>

#include "base/base.h"
#include "base/cursor.h"
#include "decoder/file/perfattr.h"

/* What is needed of a sample; UINT32_MAX for a pid, tid or cpu, and 0 for the time, if not told. */
struct perfsample {
	uint32_t pid;
	uint32_t tid;
	uint32_t cpu;
	uint64_t time;
	struct cursor raw; /* what a tracepoint says; borrowed, like aux; empty if there is none */
	struct cursor aux; /* PT */
};

/*
 * Return: the attr of the event that a sample with this @body belongs to, by the id in the body;
 *         the first attr if the id is 0 or no attr's; NULL if there are no attrs.
 */
const struct perfattr *perfsample_attr(const struct perfattrs *attrs, struct cursor body);

/* Read a sample of an event with @attr. Return: 0; -EBADMSG if @body is not laid out like that. */
_must_check_ int perfsample_read(struct cursor body, const struct perfattr *attr,
				 struct perfsample *ret_sample);
