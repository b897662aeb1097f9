/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Step
 *
 * Runs a subject under ptrace(2), an instruction at a time, on any CPU: what PT is compared with.
 */

#include "ctl/prove/subject.h"

/* Run it, and write the addresses of what its threads executed between subject_begin() and
 * subject_end() to the files "@prefix.0", "@prefix.1"…, in the order in which the threads were
 * made, 8 bytes each. Ends the process if that fails. */
void step_subject(const struct subject *subject, const char *prefix);
