/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Record sort
 *
 * Sorts the records of a file by time. They are a few runs, mostly one for each ring, and each
 * is in order already; so the runs are merged.
 */

#include <stddef.h>

#include "base/base.h"

struct table;

/*
 * Merge the first @n records of @from into @to, which is empty, by time. Records of one time keep
 * their order. The caller deinitializes both tables.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int recsort(struct table *from, size_t n, struct table *to);
