/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Perf sample
 *
 * The body of a SAMPLE record, which has the fields that the attr of its event states. A sample may
 * carry PT (perf record --aux-sample).
 */

#include <stdint.h>

#include "base/base.h"
#include "base/cursor.h"
#include "decoder/file/perfattr.h"

/* A pid, tid or cpu that the sample does not state is UINT32_MAX; a time is 0. */
struct perfsample {
	uint32_t pid;
	uint32_t tid;
	uint32_t cpu;
	uint64_t time;
	struct cursor raw; /* the data of a tracepoint, in the body; empty: there are none */
	struct cursor aux; /* the PT, in the body; empty: there is none */
};

/*
 * Return: the attr of the event that a sample with this @body belongs to, by the id in the body;
 *         the first attr if the id is 0 or belongs to no attr; NULL if there are no attrs.
 */
const struct perfattr *perfsample_attr(const struct perfattrs *attrs, struct cursor body);

/* Return: the id of the event that the sample with this @body belongs to; 0: it does not say. */
uint64_t perfsample_id(const struct perfattrs *attrs, struct cursor body);

/*
 * Read a sample of the event with @attr. Return: 0; -EBADMSG if @body is too short for its fields.
 */
_must_check_ int perfsample_read(struct cursor body, const struct perfattr *attr,
				 struct perfsample *ret_sample);
