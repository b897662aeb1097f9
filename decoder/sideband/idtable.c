/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sideband/idtable.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "record/codec.h"
#include "record/perfabi.h"

static int read_entry(const struct trace_record *record, struct idtable_entry *ret_entry)
{
	struct record_build_id entry;
	int r;

	r = record_read_build_id(record->misc, trace_record_body(record), &entry);
	if (r < 0)
		return r;
	*ret_entry = (struct idtable_entry){ .path = entry.path, .id = entry.build_id };
	return 0;
}

static int compare_entries(const void *a, const void *b)
{
	return strcmp(((const struct idtable_entry *)a)->path,
		      ((const struct idtable_entry *)b)->path);
}

int idtable_init(struct idtable *table, const struct trace *trace)
{
	struct idtable_entry entry;
	int r;

	*table = (struct idtable){};
	for (size_t i = 0; i < trace->n_records; i++) {
		const struct trace_record *record = &trace->records[i];

		/* They have no time, and so come before all that has one. */
		if (record->time > 0)
			break;
		if (record->type != PERFABI_HEADER_BUILD_ID ||
		    (record->misc & PERF_RECORD_MISC_CPUMODE_MASK) != PERF_RECORD_MISC_USER ||
		    read_entry(record, &entry) < 0)
			continue;
		r = vec_push(&table->list, entry);
		if (r < 0) {
			idtable_deinit(table);
			return r;
		}
	}

	if (table->list.n)
		qsort(table->list.items, table->list.n, sizeof(*table->list.items),
		      compare_entries);
	return 0;
}

void idtable_deinit(struct idtable *table)
{
	vec_deinit(&table->list);
}

const struct buildid *idtable_find(const struct idtable *table, const char *path)
{
	const struct idtable_entry key = { .path = path }, *found;

	if (!table->list.n)
		return NULL;
	found = bsearch(&key, table->list.items, table->list.n, sizeof(key), compare_entries);
	return found ? &found->id : NULL;
}
