/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/pt/taskrings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "daemon/pt/cpus.h"
#include "util/perf/codec.h"
#include "util/perf/record.h"

struct slot {
	const uint8_t *record;
	uint64_t time;
};

static int by_time(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	/* One CPU's are in order as they are. */
	return COMPARE(x->time, y->time) ?: COMPARE(x->record, y->record);
}

/* Many CPUs' records become one stream. Return: 0, or -ENOMEM. */
static int sort_records(const uint8_t *bytes, size_t size, uint8_t *ret_bytes)
{
	_cleanup_(freep) struct slot *slots = NULL;
	struct cursor c = cursor_from(bytes, size);
	struct record record;
	size_t n = 0;

	slots = malloc((size / TRAILER_SIZE + 1) * sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	while (record_next(&c, &record) == 0)
		slots[n++] = (struct slot){ record.bytes, record.trailer.time };
	qsort(slots, n, sizeof(*slots), by_time);
	for (size_t i = 0; i < n; i++) {
		struct perf_event_header header;

		memcpy(&header, slots[i].record, sizeof(header));
		memcpy(ret_bytes, slots[i].record, header.size);
		ret_bytes += header.size;
	}
	return 0;
}

static size_t find_records(struct cpus *cpus)
{
	size_t n = 0;

	for (uint32_t i = 0; i < cpus->n; i++)
		n += cpu_tasks_size(&cpus->items[i]);
	return n;
}

int taskrings_drain(struct cpus *cpus, uint64_t until, uint8_t **ret_bytes, size_t *ret_size)
{
	const struct trailer trailer = record_trailer(0, 0, until);
	const size_t found = find_records(cpus), room = found + RECORD_OWN_MAX;
	_cleanup_(freep) uint8_t *bytes = NULL, *sorted = NULL;
	size_t n = 0;
	int r;

	*ret_bytes = NULL;
	*ret_size = 0;
	if (found == 0 && !cpus->lost)
		return 0;
	bytes = malloc(room);
	sorted = malloc(room);
	if (!bytes || !sorted)
		return -ENOMEM;
	for (uint32_t i = 0; i < cpus->n; i++) {
		n += cpu_drain_tasks(&cpus->items[i], until, bytes + n);
		cpus->lost = cpu_may_have_missed(&cpus->items[i]) || cpus->lost;
	}
	if (cpus->lost)
		n += record_write_lost(&(struct record_lost){ RECORD_ID_SIDEBAND, 1 }, &trailer,
				       bytes + n, room - n);
	r = sort_records(bytes, n, sorted);
	/* They are out of the rings by now. */
	cpus->lost = r < 0;
	if (r < 0)
		return r;
	*ret_bytes = TAKE(sorted);
	*ret_size = n;
	return 0;
}
