/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/memtrace/mappingtable.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/memtrace/container.h"

#define TEXT_MAX (UINT64_C(1) << 28)

static const char heading[] = "pid\tobject\tbuild_id\tbase\tvalid_from";

enum column { PID, OBJECT, BUILD_ID, BASE, VALID_FROM, N_COLUMNS };

void mappingtable_deinit(struct mappingtable *table)
{
	free(table->text);
	table->text = NULL;
	vec_deinit(&table->rows);
	map_deinit(&table->latest);
}

/* Read all of @text as a number. */
static bool read_number(const char *text, int base, uint64_t *ret_number)
{
	char *end;

	if (!isxdigit((unsigned char)*text))
		return false;
	errno = 0;
	*ret_number = strtoull(text, &end, base);
	return errno == 0 && *end == '\0';
}

static uint64_t key_of(uint64_t pid, const char *object, const char *build_id)
{
	const uint64_t parts[] = { pid, map_hash(object, strlen(object)),
				   map_hash(build_id, strlen(build_id)) };

	return map_hash(parts, sizeof(parts));
}

/* Take one line, which is cut up. Return: 0; -EBADMSG or -ENOMEM. */
static int read_line(struct mappingtable *table, char *line)
{
	struct mappingtable_row row = {};
	const uint64_t *latest;
	char *columns[N_COLUMNS];
	uint64_t time, key;
	int r;

	for (size_t i = 0; i < N_COLUMNS; i++)
		columns[i] = strsep(&line, "\t");
	if (!columns[N_COLUMNS - 1] || line || !read_number(columns[PID], 10, &row.pid) ||
	    !read_number(columns[BASE], 16, &row.base) ||
	    !read_number(columns[VALID_FROM], 10, &time) || table->rows.n >= UINT32_MAX - 1)
		return -EBADMSG;
	row.object = columns[OBJECT];
	row.build_id = columns[BUILD_ID];
	key = key_of(row.pid, row.object, row.build_id);
	latest = map_get(&table->latest, key);
	row.before = latest ? (uint32_t)*latest + 1 : 0;
	r = map_put(&table->latest, key, table->rows.n);
	return r < 0 ? r : vec_push(&table->rows, row);
}

static int read_lines(struct mappingtable *table, char *text, size_t *ret_line)
{
	char *line;
	int r;

	*ret_line = 1;
	line = strsep(&text, "\n");
	if (!text || strcmp(line, heading) != 0)
		return -EBADMSG;
	while (text && *text) {
		(*ret_line)++;
		line = strsep(&text, "\n");
		/* What is behind the last newline was cut off. */
		r = text ? read_line(table, line) : -EBADMSG;
		if (r < 0)
			return r;
	}
	return 0;
}

int mappingtable_read(const char *path, struct mappingtable *ret_table, size_t *ret_line)
{
	_cleanup_(mappingtable_deinit) struct mappingtable table = {};
	size_t size;
	int r;

	*ret_line = 0;
	r = container_read_all(path, TEXT_MAX, &table.text, &size);
	if (r == 0 && strlen(table.text) != size)
		r = -EBADMSG;
	if (r == 0)
		r = read_lines(&table, table.text, ret_line);
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
