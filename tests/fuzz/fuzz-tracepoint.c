/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The formats of tracepoints, and raw data of any bytes read as they say. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/file/tracepoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A copy of just this size, so that a read beyond it is seen. */
	uint8_t *copy = malloc(size);
	struct tracepoint t = {};
	struct cursor next;
	uint32_t prev;

	if (copy && size > 0) {
		memcpy(copy, data, size);
		if ((tracepoint_find(cursor_from(copy, size), &t) == 0) != t.is_known)
			abort();
		if (tracepoint_read(&t, cursor_from(copy, size), &prev, &next) == 0 &&
		    cursor_left(&next) != sizeof(prev))
			abort();
	}
	free(copy);
	return 0;
}
