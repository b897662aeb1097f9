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
	struct tracepoint t[_TRACEPOINT_KINDS] = {};
	uint64_t value;

	if (copy && size > 0) {
		memcpy(copy, data, size);
		(void)!tracepoints_find(cursor_from(copy, size), t);
		for (size_t i = 0; i < _TRACEPOINT_KINDS; i++) {
			if (t[i].is_known && tracepoints_kind(t, t[i].id) > (enum tracepoint_kind)i)
				abort();
			(void)!tracepoint_read(&t[i], (enum tracepoint_kind)i, 0,
					       cursor_from(copy, size), &value);
		}
	}
	free(copy);
	return 0;
}
