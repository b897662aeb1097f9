/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/drmemtrace/naming.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/drmemtrace/container.h"
#include "decoder/drmemtrace/tracedir.h"
#include "decoder/image/objects.h"
#include "decoder/symbol/resolver.h"
#include "util/buildid.h"
#include "util/map.h"
#include "util/message.h"
#include "util/vec.h"

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

/* --- mapping table of a trace ----------------------------------------------------------------- */

/* aux/mappings.tsv: where processes had mapped files. */

struct mappingtable_row {
	uint64_t pid;
	const char *object,
	    *build_id;   /* borrowed from the text, as the table of symbols has them */
	uint64_t base;   /* address at run time = address as linked + base */
	uint32_t before; /* index of an earlier mapping of the same, plus 1; 0: none */
};

struct mappingtable {
	char *text; /* of the file, cut up into strings */
	VEC(struct mappingtable_row) rows;
	struct map latest; /* hash of process and object → index of the last row */
};

static const char mapping_heading[] = "pid\tobject\tbuild_id\tbase\tvalid_from";

enum mapping_column {
	MAPPING_PID,
	MAPPING_OBJECT,
	MAPPING_BUILD_ID,
	MAPPING_BASE,
	MAPPING_VALID_FROM
};

static void mappingtable_deinit(struct mappingtable *table)
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

/* Return: as texttable_read(). */
static int mappingtable_read(const char *path, struct mappingtable *ret_table, size_t *ret_line)
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

/* Return: where process @pid had mapped the object last; the mapping before @row, if that is not
 *         NULL; NULL: there is none. */
static const struct mappingtable_row *mappingtable_find(const struct mappingtable *table,
							uint64_t pid, const char *object,
							const char *build_id,
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

/* --- symbol table of a trace ------------------------------------------------------------------ */

/* aux/symbols.tsv: the symbols and objects that markers 101 name by their ids. */

#define PAGE_SIZE UINT64_C(4096)

/* What an id stands for. */
struct symboltable_row {
	uint64_t address; /* as the object was linked; of code that is in no file, where it ran */
	uint64_t size;    /* 0: not known */
	const char *object_name; /* these two are borrowed from the text */
	const char *build_id;
	const struct object *object; /* NULL until it was asked for */
	bool is_linked;              /* its code is in a file, which is mapped anywhere */
};

/* Where a process has mapped an object. */
struct symboltable_base {
	uint64_t pid;
	const struct object *object;
	uint64_t base; /* address at run time = address as linked + base */
};

struct symboltable {
	char *text; /* of the file, cut up into strings */
	/* Of the symbols in the order of the file; [0] stands for no symbol. */
	VEC(struct symboltable_row) rows;
	VEC(struct ptd_symbol) symbols;
	VEC(const struct ptd_symbol *) pointers; /* the same, as batches have them */
	struct map by_id;                        /* id of markers 101 → index */
	struct map synthetic;                    /* hash of the name → object that is no file */
	struct mappingtable mappings;            /* empty if the directory has none */
	VEC(struct symboltable_base) bases;
	struct map by_mapping; /* hash of process and object → index of the base */
};

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

static void symboltable_deinit(struct symboltable *table)
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

/* Return: as texttable_read(). */
static int symboltable_read(const char *path, struct symboltable *ret_table, size_t *ret_line)
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

/* Return: the index of the symbol with @id; 0: none has it. */
static uint32_t symboltable_index(const struct symboltable *table, uint64_t id)
{
	const uint64_t *index = map_get(&table->by_id, id);

	return index ? (uint32_t)*index : 0;
}

/*
 * Find the object of symbol @index, to which the instruction at @pc of process @pid belongs.
 *
 * The table states addresses as linked. Where files are mapped is in @table->mappings; if it is not
 * (older versions of ptdecode wrote no such table), it is inferred: a file is mapped at pages, so
 * the place of a symbol that is shorter than a page follows from a pc in it; that of a longer one
 * is taken from another symbol of the object, or, if there was none yet, assumed to be the highest
 * that is possible.
 *
 * Return: 0 and @ret_link: address as linked = @pc + link; or -ENOMEM.
 */
static int symboltable_place(struct symboltable *table, struct objects *objects, uint32_t index,
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

/* --- modules ---------------------------------------------------------------------------------- */

/*
 * modules.log of a drmemtrace directory that DynamoRIO wrote: which file was mapped where. It is
 * about one process, and states no times.
 */

#define MODULES_MAX (UINT32_C(1) << 26) /* bytes */
#define N_NUMBERS   7 /* before the path: id, containing id, start, end, entry, offset, base */

struct modules_segment {
	uint64_t start, end;         /* of the mapping; @end is behind it */
	uint64_t offset;             /* of its first byte in the file */
	const char *path;            /* borrowed from the text */
	const struct object *object; /* NULL until it was asked for */
};

struct modules {
	char *text;
	VEC(struct modules_segment) segments; /* by address */
};

static void modules_deinit(struct modules *modules)
{
	free(modules->text);
	modules->text = NULL;
	vec_deinit(&modules->segments);
}

/* Read a number and the comma behind it. */
static bool read_number(const char **at, int base, uint64_t *ret_number)
{
	char *end;

	errno = 0;
	*ret_number = strtoull(*at, &end, base);
	if (errno || end == *at)
		return false;
	while (*end == ' ')
		end++;
	if (*end != ',')
		return false;
	*at = end + 1;
	return true;
}

/*
 * Pass over what raw2trace keeps before the path: "v#1,", a size, a comma, and that number of bytes
 * of the module, which may be any. Return: whether that is as it should be.
 */
static bool skip_contents(const char **at, const char *end)
{
	uint64_t size;
	const char *comma;

	if (strncmp(*at, "v#", 2) != 0)
		return true;
	comma = strchr(*at, ',');
	if (!comma)
		return false;
	*at = comma + 1;
	if (!read_number(at, 10, &size) || size > (uint64_t)(end - *at))
		return false;
	*at += size;
	return true;
}

/* Take the line at @at. Return: 0 or -ENOMEM, and @ret_next, where the next one begins. */
static int read_line(struct modules *modules, char *at, char *end, char **ret_next)
{
	uint64_t numbers[N_NUMBERS];
	const char *from = at;
	bool is_good = true;
	char *newline, *path;

	for (size_t i = 0; i < N_NUMBERS && is_good; i++)
		is_good = read_number(&from, i < 2 ? 10 : 16, &numbers[i]);
	while (is_good && *from == ' ')
		from++;
	is_good = is_good && skip_contents(&from, end);
	while (is_good && *from == ' ')
		from++;
	path = at + (from - at);
	newline = memchr(path, '\n', (size_t)(end - path));
	if (newline)
		*newline = '\0';
	*ret_next = newline ? newline + 1 : end;
	if (!is_good || numbers[2] >= numbers[3])
		return 0;
	return vec_push(
	    &modules->segments,
	    { .start = numbers[2], .end = numbers[3], .offset = numbers[5], .path = path });
}

static int by_start(const void *a, const void *b)
{
	const struct modules_segment *x = a, *y = b;

	return COMPARE(x->start, y->start);
}

/* Read the file at @path. Lines that are not as they should be are passed over. */
static int modules_read(const char *path, struct modules *ret_modules)
{
	_cleanup_(modules_deinit) struct modules modules = {};
	char *at, *end;
	size_t size;
	int r;

	r = container_read_all(path, MODULES_MAX, &modules.text, &size);
	if (r < 0)
		return r;
	end = modules.text + size;
	for (at = modules.text; at < end && r == 0;)
		r = read_line(&modules, at, end, &at);
	if (r < 0)
		return r;
	vec_sort(&modules.segments, by_start);
	*ret_modules = modules;
	modules = (struct modules){};
	return 0;
}

/*
 * Find what was mapped at @pc.
 *
 * Return: 0, @ret_object, NULL if nothing is known, and @ret_offset of @pc in it; or -ENOMEM.
 */
static int modules_find(struct modules *modules, struct objects *objects, uint64_t pc,
			const struct object **ret_object, uint64_t *ret_offset)
{
	const size_t i = vec_bisect(&modules->segments, segment, segment->start <= pc);
	struct modules_segment *found = i > 0 ? &modules->segments.items[i - 1] : NULL;
	int r = 0;

	*ret_object = NULL;
	*ret_offset = 0;
	if (!found || pc >= found->end)
		return 0;
	if (!found->object)
		r = objects_find(objects, found->path, NULL, &found->object);
	if (r < 0)
		return r;
	*ret_object = found->object;
	*ret_offset = found->offset + (pc - found->start);
	return 0;
}

/* --- naming ----------------------------------------------------------------------------------- */

struct naming {
	struct objects *objects;   /* borrowed, like the next one */
	struct resolver *resolver; /* gives out symbols if there is no table */
	bool has_table;
	struct symboltable table;
	struct modules modules;
	const struct object *unknown; /* of code about which nothing is known; NULL until then */
};

static int read_table(struct naming *naming, const char *path, char **reterr_message)
{
	size_t line;
	const int r = symboltable_read(path, &naming->table, &line);

	if (r == -EBADMSG && line == 1)
		return message_set(reterr_message, r,
				   "%s: line 1: expected the names of the columns that "
				   "ptd-drmemtrace(5) has",
				   path);
	if (r == -EBADMSG)
		return message_set(reterr_message, r,
				   "%s: line %zu: expected an id of its own and nine columns "
				   "behind it, separated by tabs",
				   path, line);
	if (r < 0)
		return message_set(reterr_message, r, "%s: %s", path, strerror(-r));
	naming->has_table = true;
	return 0;
}

/* Read the table of mappings, if there is one. */
static int read_mappings(struct naming *naming, const char *dir, char **reterr_message)
{
	_cleanup_(freep) char *path = NULL;
	size_t line;
	int r;

	r = tracedir_find(dir, "mappings.tsv", &path);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = mappingtable_read(path, &naming->table.mappings, &line);
	if (r == -EBADMSG)
		return message_set(reterr_message, r,
				   "%s: line %zu: expected %s, separated by tabs", path, line,
				   line == 1 ? "the names of the columns that ptd-drmemtrace(5) has"
					     : "a pid and four columns behind it");
	return r < 0 ? message_set(reterr_message, r, "%s: %s", path, strerror(-r)) : 0;
}

static int read_directory(struct naming *naming, const char *dir, char **reterr_message)
{
	_cleanup_(freep) char *table = NULL, *modules = NULL;
	int r;

	r = tracedir_find(dir, "symbols.tsv", &table);
	if (r == 0) {
		r = read_table(naming, table, reterr_message);
		return r < 0 ? r : read_mappings(naming, dir, reterr_message);
	}
	if (r != -ENOENT)
		return r;
	r = tracedir_find(dir, "modules.log", &modules);
	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = modules_read(modules, &naming->modules);
	return r < 0 && modules ? message_set(reterr_message, r, "%s: %s", modules, strerror(-r))
				: r;
}

int naming_new(const char *dir, struct objects *objects, struct resolver *resolver,
	       struct naming **ret_naming, char **reterr_message)
{
	_cleanup_(naming_freep) struct naming *naming = calloc(1, sizeof(*naming));
	int r;

	if (!naming)
		return -ENOMEM;
	naming->objects = objects;
	naming->resolver = resolver;
	r = read_directory(naming, dir, reterr_message);
	if (r == 0)
		*ret_naming = TAKE(naming);
	return r;
}

struct naming *naming_free(struct naming *naming)
{
	if (!naming)
		return NULL;
	symboltable_deinit(&naming->table);
	modules_deinit(&naming->modules);
	free(naming);
	return NULL;
}

/* Nothing is known of the code but where it ran. */
static int find_unknown(struct naming *naming, struct naming_answer *ret_answer)
{
	struct object *object;
	int r;

	if (!naming->unknown) {
		r = objects_add_synthetic(naming->objects, "[unknown]", &object);
		if (r < 0)
			return r;
		naming->unknown = object;
	}
	*ret_answer = (struct naming_answer){ .object = naming->unknown };
	return 0;
}

int naming_find(struct naming *naming, uint64_t pid, uint64_t pc, uint64_t id,
		struct naming_answer *ret_answer)
{
	uint64_t offset, address, end;
	int r;

	if (naming->has_table) {
		ret_answer->symbol = symboltable_index(&naming->table, id);
		if (ret_answer->symbol == PTD_NO_SYMBOL)
			return find_unknown(naming, ret_answer);
		return symboltable_place(&naming->table, naming->objects, ret_answer->symbol, pid,
					 pc, &ret_answer->object, &ret_answer->link);
	}
	r = modules_find(&naming->modules, naming->objects, pc, &ret_answer->object, &offset);
	if (r < 0)
		return r;
	if (!ret_answer->object)
		return find_unknown(naming, ret_answer);
	address = object_address(ret_answer->object, offset);
	ret_answer->link = address - pc;
	return resolver_find(naming->resolver, ret_answer->object->symbols, address,
			     &ret_answer->symbol, &end);
}

bool naming_may_be(const struct naming *naming, uint64_t id, uint32_t symbol)
{
	return !naming->has_table || symbol == symboltable_index(&naming->table, id);
}

const uint8_t *naming_bytes(struct naming *naming, uint64_t pc, size_t size)
{
	const struct object *object;
	uint64_t offset;

	if (modules_find(&naming->modules, naming->objects, pc, &object, &offset) < 0 || !object)
		return NULL;
	return object_bytes(object, offset, size);
}

const struct ptd_symbol *const *naming_symbols(const struct naming *naming, size_t *ret_n)
{
	if (!naming->has_table)
		return resolver_symbols(naming->resolver, ret_n);
	*ret_n = naming->table.pointers.n;
	return naming->table.pointers.items;
}
