/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Data span
 *
 * A stretch of a file that holds data. What lies between two spans is a hole, which reads as zeros
 * and takes no room on the disk: a file of a few bytes can have any size. A copier or reader of a
 * whole file goes from span to span.
 */

#include <stdint.h>

#include "base/base.h"

struct dataspan {
	uint64_t start;
	uint64_t end; /* the first byte behind it */
};

/*
 * Find the first data at or behind @from, and before @end, in the file that is open at @fd. Where a
 * file system knows of no holes, all bytes up to the end of the file are data. The file offset of
 * @fd changes.
 *
 * Return: 1 and @ret_span, which is cut at @end; 0 if there is no more data, also if the file ends
 *         before @from; or negative errno.
 */
_must_check_ int dataspan_next(int fd, uint64_t from, uint64_t end, struct dataspan *ret_span);
