/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/dataspan.h"

#include <errno.h>

int dataspan_next(int fd, uint64_t from, uint64_t end, struct dataspan *ret_span)
{
	off_t data, hole;

	if (from >= end || from > INT64_MAX)
		return 0;
	data = lseek(fd, (off_t)from, SEEK_DATA);
	if (data >= 0 && (uint64_t)data >= end)
		return 0;
	hole = data < 0 ? data : lseek(fd, data, SEEK_HOLE);
	/* The file may have become shorter between the two calls. */
	if (hole < 0)
		return errno == ENXIO ? 0 : -errno;
	*ret_span = (struct dataspan){ .start = (uint64_t)data,
				       .end = (uint64_t)hole < end ? (uint64_t)hole : end };
	return 1;
}
