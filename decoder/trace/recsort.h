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

struct table;

/*
 * Sort the first @n records of @from by time; those of one time keep their order.
 *
 * Return: 0, and they are in @to, which was empty; or negative errno. Both tables are the caller's
 *         to deinit.
 */
_must_check_ int recsort(struct table *from, size_t n, struct table *to);
