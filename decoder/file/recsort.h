/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Record sort
 *
 * The records of a file are a few runs that are each in order (a ring's, mostly), one behind the
 * other; sorting is merging them.
 */

#include <stddef.h>

#include "base/base.h"

struct trace_record;

/*
 * Sort the records by time; those of one time keep their order.
 *
 * Return: 0; -ENOMEM, and then the order is undefined.
 */
_must_check_ int recsort(struct trace_record *records, size_t n);
