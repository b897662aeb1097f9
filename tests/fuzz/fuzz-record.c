/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the daemon reads out of a source's rings: task records, and switch rings that wrapped. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "util/perf/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk(const uint8_t *data, size_t size)
{
	struct cursor c = cursor_from(data, size);
	struct record_mmap2 mmap;
	struct record_task task;
	struct record record;

	while (record_next(&c, &record) == 0) {
		if (record.bytes + record.header.size != c.pos)
			abort();
		if (record_get_mmap2(&record, &mmap) == 0 &&
		    mmap.name + strlen(mmap.name) >= (const char *)c.pos)
			abort();
		(void)!record_get_task(&record, &task);
	}
}

/* What is kept of a ring is whole records up to the end, in the order of time. */
static void resync(const uint8_t *data, size_t size)
{
	struct record record;
	struct cursor c;
	uint64_t last = 0;
	size_t start;

	if (record_resync(data, size, 0, &start) < 0)
		return;
	if (start > size)
		abort();
	for (c = cursor_from(data + start, size - start); cursor_left(&c) > 0;) {
		if (record_next(&c, &record) != 0 || record.trailer.time < last)
			abort();
		last = record.trailer.time;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A copy of just this size, so that a read beyond it is seen. */
	uint8_t *copy = malloc(size);

	if (copy && size > 0) {
		memcpy(copy, data, size);
		walk(copy, size);
		resync(copy, size);
	}
	free(copy);
	return 0;
}
