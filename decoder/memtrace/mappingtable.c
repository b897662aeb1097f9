/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/memtrace/mappingtable.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/memtrace/texttable.h"

static const char heading[] = "pid\tobject\tbuild_id\tbase\tvalid_from";

enum column { PID, OBJECT, BUILD_ID, BASE, VALID_FROM };

void mappingtable_deinit(struct mappingtable *table)
{
	free(table->text);
	table->text = NULL;
	vec_deinit(&table->rows);
	map_deinit(&table->latest);
}

static uint64_t key_of(uint64_t pid, const char *object, const char *build_id)
{
	const uint64_t parts[] = { pid, map_hash(object, strlen(object)),
				   map_hash(build_id, strlen(build_id)) };

	return map_hash(parts, sizeof(parts));
}

/* Take one row. Return: 0; -EBADMSG or -ENOMEM. */
static int take_row(void *userdata, char **columns)
{
	struct mappingtable *table = userdata;
	struct mappingtable_row row = {};
	const uint64_t *latest;
	uint64_t time, key;
	int r;

	if (!texttable_number(columns[PID], 10, &row.pid) ||
	    !texttable_number(columns[BASE], 16, &row.base) ||
	    !texttable_number(columns[VALID_FROM], 10, &time) || table->rows.n >= UINT32_MAX - 1)
		return -EBADMSG;
	row.object = columns[OBJECT];
	row.build_id = columns[BUILD_ID];
	key = key_of(row.pid, row.object, row.build_id);
	latest = map_get(&table->latest, key);
	row.before = latest ? (uint32_t)*latest + 1 : 0;
	r = map_put(&table->latest, key, table->rows.n);
	return r < 0 ? r : vec_push(&table->rows, row);
}

int mappingtable_read(const char *path, struct mappingtable *ret_table, size_t *ret_line)
{
	_cleanup_(mappingtable_deinit) struct mappingtable table = {};
	int r;

	r = texttable_read(path, heading, take_row, &table, &table.text, ret_line);
	if (r < 0)
		return r;
	*ret_table = table;
	table = (struct mappingtable){};
	return 0;
}

static bool is_of(const struct mappingtable_row *row, uint64_t pid, const char *object,
		  const char *build_id)
{
	return row->pid == pid && strcmp(row->object, object) == 0 &&
	       strcmp(row->build_id, build_id) == 0;
}

const struct mappingtable_row *mappingtable_find(const struct mappingtable *table, uint64_t pid,
						 const char *object, const char *build_id,
						 const struct mappingtable_row *row)
{
	const uint64_t *latest;

	if (row)
		return row->before > 0 ? &table->rows.items[row->before - 1] : NULL;
	latest = map_get(&table->latest, key_of(pid, object, build_id));
	/* What has the same hash is another. */
	if (!latest || !is_of(&table->rows.items[*latest], pid, object, build_id))
		return NULL;
	return &table->rows.items[*latest];
}
