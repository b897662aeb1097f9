/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Perf trace
 *
 * The trace that a perf stream's records are, put together once all of them were seen: only then is
 * it known which attr each record belongs to, and with it where its time and its thread are; which
 * samples tell of switches; and which pieces of PT go together.
 */

#include "base/base.h"

struct perfstream;
struct trace;

/*
 * Make the trace of all that was read; it is no more the stream's then.
 *
 * Return: 0; or a negative errno of perfdata_parse(), with a message.
 */
_must_check_ int perftrace_make(struct perfstream *s, struct trace **ret_trace);
