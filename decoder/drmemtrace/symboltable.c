/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/drmemtrace/symboltable.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/drmemtrace/container.h"
#include "decoder/image/objects.h"
#include "util/buildid.h"

/* --- texttable -------------------------------------------------------------------------------- */

/* A file of the aux/ directory: a heading, and rows whose columns have tabs between them. */

#define TEXTTABLE_COLUMNS_MAX 16

/* Take a row. Return: 0; -EBADMSG if it is none; or another negative errno. */
typedef int (*texttable_row_fn)(void *userdata, char **columns);

#define TEXT_MAX (UINT64_C(1) << 28)

/* Read all of @text as a number. Return: whether it is one, with small letters in base 16. */
static bool texttable_number(const char *text, int base, uint64_t *ret_number)
{
	char *end;

	if (!(*text >= '0' && *text <= '9') && !(*text >= 'a' && *text <= 'f'))
		return false;
	errno = 0;
	*ret_number = strtoull(text, &end, base);
	return errno == 0 && *end == '\0';
}

static size_t count_columns(const char *heading)
{
	size_t n = 1;

	for (; *heading; heading++)
		n += *heading == '\t';
	return n;
}

static int read_lines(char *text, const char *heading, texttable_row_fn take, void *userdata,
		      size_t *ret_line)
{
	const size_t n = count_columns(heading);
	char *line;

	assert(n <= TEXTTABLE_COLUMNS_MAX);
	*ret_line = 1;
	line = strsep(&text, "\n");
	if (!text || strcmp(line, heading) != 0)
		return -EBADMSG;
	while (text && *text) {
		char *columns[TEXTTABLE_COLUMNS_MAX];
		int r;

		(*ret_line)++;
		line = strsep(&text, "\n");
		/* What is behind the last newline was cut off. */
		if (!text)
			return -EBADMSG;
		for (size_t i = 0; i < n; i++)
			columns[i] = strsep(&line, "\t");
		r = columns[n - 1] && !line ? take(userdata, columns) : -EBADMSG;
		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * Read the file at @path, whose heading must be @heading, and give @take each row. The columns lie
 * in @ret_text, which the caller frees, also behind an error.
 *
 * Return: 0; -EBADMSG, if line @ret_line (from 1) is none of such a table; or negative errno of
 *         reading or of @take. @ret_line is 0 if the file could not be read.
 */
static int texttable_read(const char *path, const char *heading, texttable_row_fn take,
			  void *userdata, char **ret_text, size_t *ret_line)
{
	size_t size;
	int r;

	*ret_line = 0;
	r = container_read_all(path, TEXT_MAX, ret_text, &size);
	if (r == 0 && strlen(*ret_text) != size)
		r = -EBADMSG;
	return r < 0 ? r : read_lines(*ret_text, heading, take, userdata, ret_line);
}

/* --- symbol table of a trace ------------------------------------------------------------------ */

#define PAGE_SIZE UINT64_C(4096)

static const char heading[] =
    "id\tname\tobject\tbuild_id\taddress\tsize\tkind\tpid\tjit_index\tvalid_from";

enum column {
	ID,
	NAME,
	OBJECT,
	BUILD_ID,
	ADDRESS,
	SIZE,
	KIND,
	PID,
	JIT_INDEX,
	VALID_FROM,
};

void symboltable_deinit(struct symboltable *table)
{
	free(table->text);
	table->text = NULL;
	vec_deinit(&table->rows);
	vec_deinit(&table->symbols);
	vec_deinit(&table->pointers);
	mappingtable_deinit(&table->mappings);
	vec_deinit(&table->bases);
	map_deinit(&table->by_id);
	map_deinit(&table->synthetic);
	map_deinit(&table->by_mapping);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Take one row. Return: 0; -EBADMSG or -ENOMEM. */
static int take_row(void *userdata, char **columns)
{
	struct symboltable *table = userdata;
	struct symboltable_row row = {};
	uint64_t id;
	int r;

	if (!texttable_number(columns[ID], 10, &id) || id == 0 || map_get(&table->by_id, id) ||
	    !texttable_number(columns[ADDRESS], 16, &row.address) ||
	    !texttable_number(columns[SIZE], 10, &row.size) || table->rows.n >= UINT32_MAX)
		return -EBADMSG;
	row.object_name = columns[OBJECT];
	row.build_id = columns[BUILD_ID];
	row.is_linked = strcmp(columns[KIND], "elf") == 0 || strcmp(columns[KIND], "plt") == 0;
	r = map_put(&table->by_id, id, table->rows.n);
	if (r == 0)
		r = vec_push(&table->rows, row);
	return r < 0 ? r
		     : vec_push(&table->symbols, { .name = columns[NAME],
						   .address = row.address,
						   .size = row.size,
						   .is_plt = strcmp(columns[KIND], "plt") == 0 });
}

int symboltable_read(const char *path, struct symboltable *ret_table, size_t *ret_line)
{
	_cleanup_(symboltable_deinit) struct symboltable table = {};
	int r;

	*ret_line = 0;
	r = vec_push(&table.rows, {});
	if (r == 0)
		r = vec_push(&table.symbols, { .name = "" });
	if (r == 0)
		r = texttable_read(path, heading, take_row, &table, &table.text, ret_line);
	for (size_t i = 0; i < table.symbols.n && r == 0; i++)
		r = vec_push(&table.pointers, &table.symbols.items[i]);
	if (r < 0)
		return r;
	*ret_table = table;
	table = (struct symboltable){};
	return 0;
}

/* Return: the build-id that @text states in hexadecimal; none if it states none. */
static struct buildid read_build_id(const char *text)
{
	struct buildid id = {};

	while (id.size < sizeof(id.bytes)) {
		const int high = hex_digit(text[0]), low = high < 0 ? -1 : hex_digit(text[1]);

		if (low < 0)
			break;
		id.bytes[id.size++] = (uint8_t)(high << 4 | low);
		text += 2;
	}
	return id;
}

/* Find the object that is no file and has this name. */
static int find_synthetic(struct symboltable *table, struct objects *objects, const char *name,
			  const struct object **ret_object)
{
	const uint64_t key = map_hash(name, strlen(name));
	const uint64_t *known = map_get(&table->synthetic, key);
	struct object *object = known ? (struct object *)(uintptr_t)*known : NULL;
	int r = 0;

	if (!object || strcmp(object->id.name, name) != 0) {
		r = objects_add_synthetic(objects, name, &object);
		if (r == 0)
			r = map_put(&table->synthetic, key, (uintptr_t)object);
	}
	*ret_object = object;
	return r;
}

static int find_object(struct symboltable *table, struct objects *objects,
		       struct symboltable_row *row)
{
	const bool is_file = row->is_linked && row->object_name[0] == '/';
	struct buildid build_id;

	if (row->object)
		return 0;
	if (!is_file)
		return find_synthetic(table, objects, row->object_name, &row->object);
	build_id = read_build_id(row->build_id);
	return objects_find(objects, row->object_name, &build_id, &row->object);
}

/* Return: whether the symbol covers @pc if its object is mapped at @base. */
static bool covers(const struct symboltable_row *row, uint64_t pc, uint64_t base)
{
	return pc - base - row->address < (row->size ?: 1);
}

/* Return: whether the directory states where the process had mapped the object of @row: the mapping
 *         in which the symbol covers @pc, or the last one, if its size is not known. */
static bool find_base(const struct symboltable *table, const struct symboltable_row *row,
		      uint64_t pid, uint64_t pc, struct symboltable_base *base)
{
	const struct mappingtable_row *found = NULL;

	do {
		found = mappingtable_find(&table->mappings, pid, row->object_name, row->build_id,
					  found);
	} while (found && row->size > 0 && !covers(row, pc, found->base));
	if (found)
		base->base = found->base;
	return found;
}

int symboltable_place(struct symboltable *table, struct objects *objects, uint32_t index,
		      uint64_t pid, uint64_t pc, const struct object **ret_object,
		      uint64_t *ret_link)
{
	struct symboltable_row *row = &table->rows.items[index];
	struct symboltable_base *base;
	uint64_t key[2], hash;
	const uint64_t *known;
	int r;

	r = find_object(table, objects, row);
	if (r < 0)
		return r;
	*ret_object = row->object;
	*ret_link = 0;
	if (!row->is_linked)
		return 0;
	key[0] = pid;
	key[1] = (uintptr_t)row->object;
	hash = map_hash(key, sizeof(key));
	known = map_get(&table->by_mapping, hash);
	if (!known) {
		r = vec_push(&table->bases, { .pid = pid, .object = row->object });
		if (r == 0)
			r = map_put(&table->by_mapping, hash, table->bases.n - 1);
		if (r < 0)
			return r;
	}
	base = &table->bases.items[known ? (size_t)*known : table->bases.n - 1];
	if ((!known || !covers(row, pc, base->base)) && !find_base(table, row, pid, pc, base))
		base->base = (pc - row->address) / PAGE_SIZE * PAGE_SIZE;
	*ret_link = -base->base;
	return 0;
}

/* --- mapping table of a trace ----------------------------------------------------------------- */

static const char mapping_heading[] = "pid\tobject\tbuild_id\tbase\tvalid_from";

enum mapping_column {
	MAPPING_PID,
	MAPPING_OBJECT,
	MAPPING_BUILD_ID,
	MAPPING_BASE,
	MAPPING_VALID_FROM
};

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
static int take_mapping(void *userdata, char **columns)
{
	struct mappingtable *table = userdata;
	struct mappingtable_row row = {};
	const uint64_t *latest;
	uint64_t time, key;
	int r;

	if (!texttable_number(columns[MAPPING_PID], 10, &row.pid) ||
	    !texttable_number(columns[MAPPING_BASE], 16, &row.base) ||
	    !texttable_number(columns[MAPPING_VALID_FROM], 10, &time) ||
	    table->rows.n >= UINT32_MAX - 1)
		return -EBADMSG;
	row.object = columns[MAPPING_OBJECT];
	row.build_id = columns[MAPPING_BUILD_ID];
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

	r = texttable_read(path, mapping_heading, take_mapping, &table, &table.text, ret_line);
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
