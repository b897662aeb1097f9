/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * AUX trace
 *
 * How the PT of a perf.data file was recorded: what the record AUXTRACE_INFO and the attr of the PT
 * event state.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "base/cursor.h"
#include "decoder/file/perfattr.h"
#include "decoder/trace/trace.h"
#include "util/perf/codec.h"
#include "util/perf/perfabi.h"

/*
 * Set @facts from AUXTRACE_INFO and from the attr of the PT event; except those facts that the
 * CPUID feature and the manifest state.
 *
 * Return: 0; -ENOENT if no attr has the PMU type that the info names; -EBADMSG if the info states
 *         an impossible clock.
 */
_must_check_ int auxtrace_facts(const struct record_auxtrace_info *info,
				const struct perfattrs *attrs, struct trace_facts *facts);

/*
 * Set family, model and stepping from the text of the CPUID feature ("GenuineIntel,6,94,3"). If the
 * vendor is another one, or the text does not have that form, @facts stay as they are.
 */
void auxtrace_cpuid(const char *cpuid, struct trace_facts *facts);
