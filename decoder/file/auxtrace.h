/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * AUX trace
 *
 * How the PT of a perf.data file was made, as AUXTRACE_INFO and the attr of the PT event say.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "base/cursor.h"
#include "decoder/file/perfattr.h"
#include "decoder/trace/trace.h"
#include "record/codec.h"
#include "record/perfabi.h"

/*
 * Take out of AUXTRACE_INFO, and of the attr of the PT event, how the PT was made: all of @facts
 * but what the CPUID feature and the manifest say.
 *
 * Return: 0; -ENOENT if no attr has the PMU type that the info names; -EBADMSG if its clock cannot
 *         be.
 */
_must_check_ int auxtrace_facts(const struct record_auxtrace_info *info,
				const struct perfattrs *attrs, struct trace_facts *facts);

/*
 * Take family, model and stepping out of the CPUID feature ("GenuineIntel,6,94,3"). Other vendors,
 * and what is not of that form, leave @facts alone.
 */
void auxtrace_cpuid(const char *cpuid, struct trace_facts *facts);
