/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sideband/idtable.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/file/perfrec.h"
#include "util/perfabi.h"

#define MISC_SIZE_VALID (1u << 15) /* the record states how long its build-id is */

struct build_id_head {
	int32_t pid;
	uint8_t id[BUILDID_MAX];
	uint8_t size;
	uint8_t reserved[3];
};

static int read_entry(const struct trace_record *record, struct idtable_entry *ret_entry)
{
	struct cursor c = cursor_from(record->payload, record->payload_size);
	struct build_id_head head;
	struct idtable_entry entry;
	int r;

	r = cursor_get(&c, sizeof(head), &head);
	if (r < 0)
		return r;
	r = perfrec_get_string(&c, &entry.path);
	if (r < 0)
		return r;

	entry.id.size = record->misc & MISC_SIZE_VALID ? head.size : BUILDID_MAX;
	if (entry.id.size > BUILDID_MAX)
		return -EBADMSG;
	memcpy(entry.id.bytes, head.id, BUILDID_MAX);
	*ret_entry = entry;
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
