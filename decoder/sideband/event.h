/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Event
 *
 * A record of the trace in the form in which it is shown (ptd/event.h).
 */

#include <stdbool.h>

#include "base/base.h"
#include "decoder/trace/trace.h"
#include "ptd/event.h"

/* Return: whether @record is of a kind that is shown, and whole; then @ret_event points into it. */
_must_check_ bool event_read(const struct trace_record *record, struct ptd_event *ret_event);
