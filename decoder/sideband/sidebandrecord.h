/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Sideband record
 *
 * A sideband record in the form in which the library shows it to its users, struct ptd_sideband.
 */

#include <stdbool.h>

#include "base/base.h"
#include "decoder/trace/trace.h"
#include "ptd/sideband.h"

/*
 * Read @record, which is then in @ret_shown.
 *
 * Return: whether the record is of a kind that is shown, and is not cut.
 */
_must_check_ bool sidebandrecord_read(const struct trace_record *record,
				      struct ptd_sideband *ret_shown);
