/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sideband/filtered.h"

#include <linux/perf_event.h>
#include <string.h>

#include "util/perf/codec.h"

static int add_range(struct filtered *filtered, const struct filtered_range *range)
{
	for (size_t i = 0; i < filtered->n; i++) {
		const struct filtered_range *known = &filtered->ranges[i];

		if (known->first == range->first && known->last == range->last &&
		    known->stops == range->stops)
			return 0;
	}
	if (filtered->n == FILTERED_RANGES_MAX)
		return FILTERED_TOO_MANY;
	filtered->ranges[filtered->n++] = *range;
	return 0;
}

static bool is_of(const struct addrfilter *filter, const struct record_mmap2 *map)
{
	return filter->path && strlen(map->name) == filter->path_size &&
	       memcmp(map->name, filter->path, filter->path_size) == 0;
}

static int add_mapping(struct filtered *filtered, const struct addrfilters *filters,
		       const struct trace_record *record)
{
	struct record_mmap2 map;
	int r = 0;

	if (record_read_mmap2(record->type, record->misc, trace_record_body(record), &map) < 0 ||
	    !record_maps_code(record->type, &map))
		return 0;
	for (size_t i = 0; i < filters->n && r == 0; i++) {
		const struct addrfilter *f = &filters->parts[i];
		struct filtered_range range = { .stops = f->stops };

		if (is_of(f, &map) &&
		    addrfilter_place(f, map.addr, map.len, map.pgoff, &range.first, &range.last))
			r = add_range(filtered, &range);
	}
	return r;
}

int filtered_find(const struct trace *trace, struct filtered *ret_filtered)
{
	const struct addrfilters *filters = &trace->facts.filters;
	struct filtered filtered = {};
	int r = 0;

	for (size_t i = 0; i < filters->n && r == 0; i++) {
		const struct addrfilter *f = &filters->parts[i];

		if (!f->path)
			r = add_range(&filtered, &(struct filtered_range){
						     .first = f->address,
						     .last = f->address + (f->size - 1),
						     .stops = f->stops,
						 });
	}
	for (size_t i = 0; filters->n > 0 && i < trace->n_records && r == 0; i++) {
		r = add_mapping(&filtered, filters, &trace->records[i]);
		if (i % TRACE_EVICT_RECORDS == 0)
			trace_evict(trace);
	}
	if (r == 0)
		*ret_filtered = filtered;
	return r;
}
