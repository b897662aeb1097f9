/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/calllog/fdrlog.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cursor.h"
#include "decoder/calllog/calllog.h"
#include "decoder/calllog/fdrfile.h"
#include "decoder/image/objects.h"
#include "decoder/symbol/elfsym.h"
#include "decoder/symbol/resolver.h"
#include "decoder/symbol/source.h"
#include "decoder/util/fdr.h"
#include "util/dirs.h"
#include "util/map.h"
#include "util/message.h"
#include "util/vec.h"

/* --- instrumentation map ---------------------------------------------------------------------- */

/*
 * The table of an ELF file that says which function is instrumented where (decoder/util/fdr.h).
 * XRay numbers the functions in the order in which they first stand in it, from 1.
 */

struct filebytes;

/* More functions than this are not read. */
#define INSTRMAP_MAX (1u << 24)

struct instrmap {
	VEC(uint64_t) addresses; /* of function 1, 2, …, as the file is linked */
	bool is_library;         /* the file is one, not a program */
};

#define ADDRESS_AT offsetof(struct entry, function)

struct entry {
	uint64_t place, function;
	uint8_t kind, is_always, version, reserved[13];
};

_Static_assert(sizeof(struct entry) == FDR_MAP_ENTRY_SIZE, "an entry as it is in the file");

/* Add the functions of the section at @address, which @c walks. */
static int add_functions(struct instrmap *map, struct cursor *c, uint64_t address)
{
	struct entry entry;
	int r = 0;

	for (; r == 0 && cursor_get(c, sizeof(entry), &entry) == 0; address += sizeof(entry)) {
		const bool is_relative = entry.version >= FDR_MAP_RELATIVE_FROM;
		const uint64_t function = entry.function + (is_relative ? address + ADDRESS_AT : 0);

		if (map->addresses.n > 0 && map->addresses.items[map->addresses.n - 1] == function)
			continue;
		if (map->addresses.n == INSTRMAP_MAX)
			break;
		r = vec_push(&map->addresses, function);
	}
	return r;
}

/* A program that may be loaded anywhere is of the same type as a library. It has an interpreter, or
 * a flag that says so. */
static bool is_library(const struct elfsym *elf)
{
	struct elfsym_section *dynamic;
	Elf_Data *data;
	GElf_Ehdr header;
	GElf_Dyn entry;

	if (!gelf_getehdr(elf->elf, &header) || header.e_type != ET_DYN ||
	    elfsym_find(elf, SHT_PROGBITS, ".interp"))
		return false;
	dynamic = elfsym_find(elf, SHT_DYNAMIC, NULL);
	data = dynamic ? elfsym_data(elf, dynamic) : NULL;
	for (int i = 0; data && gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++)
		if (entry.d_tag == DT_FLAGS_1 && entry.d_un.d_val & DF_1_PIE)
			return false;
	return dynamic;
}

static void instrmap_deinit(struct instrmap *map)
{
	vec_deinit(&map->addresses);
}

/*
 * Read the table of @file.
 *
 * Return: 0; -ENOENT if it is no ELF file, or has no table that is not empty; or -ENOMEM.
 */
static int instrmap_read(struct filebytes *file, struct instrmap *ret_map)
{
	struct instrmap map = {};
	struct elfsym_section *section;
	const uint8_t *bytes;
	struct elfsym elf;
	struct cursor c;
	int r;

	r = elfsym_init(&elf, file);
	if (r < 0)
		return r;
	section = elfsym_find(&elf, SHT_PROGBITS, FDR_MAP_SECTION);
	bytes = section ? elfsym_bytes(&elf, section) : NULL;
	if (bytes) {
		c = cursor_from(bytes, section->size);
		r = add_functions(&map, &c, section->header.sh_addr);
		map.is_library = is_library(&elf);
	}
	elfsym_deinit(&elf);
	if (r == 0 && map.addresses.n == 0)
		r = -ENOENT;
	if (r < 0)
		instrmap_deinit(&map);
	else
		*ret_map = map;
	return r;
}

/* --- fdr log ---------------------------------------------------------------------------------- */

#define MAP_NAME "map.elf"
#define NS_PER_S 1000000000

/* From LLVM 20 on, a number has that of the object above that of the function in it: 0 is the
 * program, libraries that were compiled with -fxray-shared have others. */
#define OBJECT_SHIFT  24
#define FUNCTION_MASK ((1u << OBJECT_SHIFT) - 1)

#define EVENT_TEXT_MAX  128
#define EVENT_BYTES_MAX 16

/* Arguments and events stand behind the functions. */
#define EVENT_ADDRESS(i) ((UINT64_C(1) << 32) + (i))

struct fdrlane {
	struct calllane lane; /* the first field */
	size_t first, n;      /* its blocks */
	size_t block;         /* that it is in */
	uint64_t offset;      /* in the file */
	uint64_t ticks;
};

/* What a number stands for. */
struct fdrfunction {
	const struct ptd_object *object;
	uint32_t number;
	uint32_t symbol;
};

/* An argument or event. */
struct fdrevent {
	const char *text;
	uint32_t symbol;
};

struct fdrlog {
	struct calllog log;        /* the first field */
	VEC(struct fdrfile) files; /* in the order of their names */
	struct logwindow window;
	struct fdrscan scan;
	VEC(struct fdrlane) lanes;
	bool is_in_ticks; /* the frequency of a file is not known */

	VEC(struct fdrfunction) functions;
	struct map by_number; /* number → index */
	struct symbol_list unnamed;

	/* Arguments and events, as they are shown. */
	VEC(struct fdrevent) events;
	struct map by_text; /* hash → index */
};

static struct fdrlog *of(struct calllog *log)
{
	return (struct fdrlog *)log;
}

/* --- the files -------------------------------------------------------------------------------- */

static bool is_log_name(const char *name)
{
	return strncmp(name, FDRFILE_PREFIX, strlen(FDRFILE_PREFIX)) == 0;
}

bool fdrlog_is(const char *path)
{
	_cleanup_(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
	_cleanup_(dirs_closep) DIR *dir = fd < 0 ? NULL : dirs_list(fd);
	struct dirent *entry;
	struct stat st;
	bool is = false;

	/* The writer of a FIFO must not see it opened and closed. */
	if (!dir)
		return stat(path, &st) == 0 && S_ISREG(st.st_mode) && fdrfile_is(path);
	while (!is && dirs_next(dir, &entry) > 0) {
		_cleanup_(freep) char *file = message_text("%s/%s", path, entry->d_name);

		is = file && is_log_name(entry->d_name) && fdrfile_is(file);
	}
	return is;
}

static int add_file(struct fdrlog *log, const char *path, char **reterr_message)
{
	struct fdrfile file;
	int r;

	if (log->files.n == FDRLOG_FILES_MAX)
		return message_set(reterr_message, -EFBIG, "%s: more than %u files", path,
				   FDRLOG_FILES_MAX);
	r = fdrfile_open(&file, path, &log->window, reterr_message);
	log->window.file = NULL;
	if (r == 0)
		r = vec_push(&log->files, file);
	if (r < 0)
		fdrfile_deinit(&file);
	return r;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct fdrfile *)a)->log.path, ((const struct fdrfile *)b)->log.path);
}

/* @path is no directory if @dir is NULL. */
static int add_files(struct fdrlog *log, const char *path, DIR *dir, char **reterr_message)
{
	struct dirent *entry;
	int r = 0;

	if (!dir)
		return add_file(log, path, reterr_message);
	while (r == 0 && (r = dirs_next(dir, &entry)) > 0) {
		_cleanup_(freep) char *file = message_text("%s/%s", path, entry->d_name);

		if (!is_log_name(entry->d_name))
			r = 0;
		else
			r = file ? add_file(log, file, reterr_message) : -ENOMEM;
	}
	vec_sort(&log->files, by_path);
	return r;
}

static int note_function(void *userdata, uint32_t number)
{
	struct fdrlog *log = userdata;
	int r;

	if (map_get(&log->by_number, number))
		return 0;
	if (log->functions.n == FDRLOG_FUNCTIONS_MAX)
		return -EFBIG;
	r = vec_push(&log->functions, { .number = number });
	return r < 0 ? r : map_put(&log->by_number, number, log->functions.n - 1);
}

/* Add the data of an event to @text: as text if it is one, or its bytes. */
static void put_data(char *text, size_t size, const struct fdrrecord *record, struct cursor data)
{
	size_t n = cursor_left(&data), used = strlen(text);
	bool is_text = true;

	while (n > 0 && data.pos[n - 1] == '\0')
		n--;
	for (size_t i = 0; i < n; i++)
		is_text = is_text && data.pos[i] >= ' ' && data.pos[i] <= '~';
	if (is_text)
		used += (size_t)snprintf(text + used, size - used, "%.*s", (int)n, data.pos);
	else
		for (size_t i = 0; i < n && i < EVENT_BYTES_MAX; i++)
			used += (size_t)snprintf(text + used, size - used, "%02x", data.pos[i]);
	if (record->size > FDRFILE_DATA_MAX || (!is_text && n > EVENT_BYTES_MAX))
		(void)snprintf(text + used, size - used, "…");
}

/* Write what an argument or event is shown as; without @data only what kind it is of. */
static void show_event(const struct fdrrecord *record, const struct cursor *data,
		       char ret_text[static EVENT_TEXT_MAX])
{
	const bool is_typed = record->kind == FDR_TYPED_EVENT;

	if (record->kind == FDR_CALL_ARGUMENT) {
		if (data)
			(void)snprintf(ret_text, EVENT_TEXT_MAX, "argument %#" PRIx64,
				       record->value);
		else
			(void)snprintf(ret_text, EVENT_TEXT_MAX, "argument");
		return;
	}
	if (is_typed)
		(void)snprintf(ret_text, EVENT_TEXT_MAX, "typed event %u", record->type);
	else
		(void)snprintf(ret_text, EVENT_TEXT_MAX, "custom event");
	if (data) {
		strcat(ret_text, ": ");
		put_data(ret_text, EVENT_TEXT_MAX, record, *data);
	}
}

/* Find the event that is shown as @text. Return: NULL if there is none, and the @ret_key for it. */
static struct fdrevent *find_text(struct fdrlog *log, const char *text, uint64_t *ret_key)
{
	const uint64_t *known;

	*ret_key = map_hash(text, strlen(text));
	for (; (known = map_get(&log->by_text, *ret_key)); ++*ret_key)
		if (strcmp(log->events.items[*known].text, text) == 0)
			return &log->events.items[*known];
	return NULL;
}

/* Find how the argument or event is shown: beyond a limit, by its kind alone.
 * Return: NULL if it is new, and the @ret_key and the @ret_text for it. */
static struct fdrevent *find_event(struct fdrlog *log, const struct fdrrecord *record,
				   struct cursor data, char ret_text[static EVENT_TEXT_MAX],
				   uint64_t *ret_key)
{
	struct fdrevent *found;

	show_event(record, &data, ret_text);
	found = find_text(log, ret_text, ret_key);
	if (found || log->events.n < FDRLOG_EVENTS_MAX)
		return found;
	show_event(record, NULL, ret_text);
	return find_text(log, ret_text, ret_key);
}

static int note_event(void *userdata, const struct fdrrecord *record, struct cursor data)
{
	struct fdrlog *log = userdata;
	char text[EVENT_TEXT_MAX];
	const char *copy;
	uint64_t key;
	int r;

	if (find_event(log, record, data, text, &key))
		return 0;
	copy = arena_strdup(&log->log.texts, text);
	r = copy ? vec_push(&log->events, { .text = copy, .symbol = PTD_NO_SYMBOL }) : -ENOMEM;
	return r < 0 ? r : map_put(&log->by_text, key, log->events.n - 1);
}

static int note_fault(void *userdata, const struct fdrfile *file, uint64_t offset,
		      const char *fault)
{
	return calllog_complain(userdata, file->log.path, offset, fault);
}

static int scan_files(struct fdrlog *log, const char *path, char **reterr_message)
{
	int r = 0;

	log->scan.function = note_function;
	log->scan.event = note_event;
	log->scan.fault = note_fault;
	log->scan.userdata = log;
	for (size_t i = 0; i < log->files.n && r == 0; i++) {
		const struct fdrfile *file = &log->files.items[i];
		const size_t first = log->scan.blocks.n;

		r = fdrfile_scan(file, &log->window, &log->scan, reterr_message);
		for (size_t k = first; k < log->scan.blocks.n; k++)
			log->scan.blocks.items[k].file = (uint32_t)i;
		if (file->header.frequency == 0)
			log->is_in_ticks = true;
		if (r == -EFBIG && !*reterr_message)
			r = message_set(reterr_message, r, "%s: calls more than %u functions",
					file->log.path, FDRLOG_FUNCTIONS_MAX);
	}
	log->log.n_calls = log->scan.n_calls;
	return r < 0 ? r : calllog_check(&log->log, path, "calls", reterr_message);
}

/* --- names ------------------------------------------------------------------------------------ */

/* Name the functions that @map and the symbols of @object name. */
static int name_by_map(struct fdrlog *log, const struct object *object, const struct instrmap *map)
{
	int r = 0;

	for (size_t i = 0; i < log->functions.n && r == 0; i++) {
		struct fdrfunction *f = &log->functions.items[i];
		uint32_t symbol = PTD_NO_SYMBOL;
		uint64_t end;

		/* Which library has which number is not known. */
		if (f->number == 0 || f->number > map->addresses.n ||
		    f->number >> OBJECT_SHIFT != 0)
			continue;
		r = resolver_find(log->log.resolver, object->symbols,
				  map->addresses.items[f->number - 1], &symbol, &end);
		if (symbol == PTD_NO_SYMBOL)
			continue;
		f->object = &object->id;
		f->symbol = symbol;
	}
	return r;
}

static int read_map(struct fdrlog *log, const char *path, struct objects *objects,
		    char **reterr_message)
{
	const struct object *object = NULL;
	struct instrmap map = {};
	int r;

	r = objects_add_file(objects, path, &object);
	if (r == 0)
		r = object->state == OBJECT_OK && object->is_elf ? instrmap_read(object->file, &map)
								 : -ENOENT;
	if (r == -ENOENT)
		return message_set(reterr_message, -EBADMSG,
				   "%s: expected an ELF file with a section " FDR_MAP_SECTION,
				   path);
	if (r < 0)
		return message_set(reterr_message, r, "%s: %s", path, strerror(-r));
	if (map.is_library)
		r = message_set(reterr_message, -EBADMSG,
				"%s: is a library; a log does not say which library has which "
				"numbers, so that only the program can name its functions",
				path);
	else
		r = name_by_map(log, object, &map);
	instrmap_deinit(&map);
	return r;
}

/* Name the other functions by their numbers, which are their addresses, too. */
static int name_by_number(struct fdrlog *log, struct objects *objects)
{
	char name[sizeof("#15:4294967295")];
	struct object *object;
	int r;

	symbol_list_init(&log->unnamed);
	r = objects_add_synthetic(objects, "[xray]", &object);
	if (r < 0)
		return r;
	object->symbols = &log->unnamed.source;
	for (size_t i = 0; i < log->functions.n && r == 0; i++) {
		struct fdrfunction *f = &log->functions.items[i];
		const uint32_t object_id = f->number >> OBJECT_SHIFT;
		const int n = object_id ? snprintf(name, sizeof(name), "#%" PRIu32 ":%" PRIu32,
						   object_id, f->number & FUNCTION_MASK)
					: snprintf(name, sizeof(name), "#%" PRIu32, f->number);
		const char *copy;

		if (f->symbol != PTD_NO_SYMBOL)
			continue;
		f->object = &object->id;
		copy = arena_strdup(&log->log.texts, name);
		r = copy ? symbol_list_add(&log->unnamed, f->number, 1, copy, (uint16_t)n, NULL)
			 : -ENOMEM;
	}
	for (size_t i = 0; i < log->events.n && r == 0; i++) {
		const char *text = log->events.items[i].text;

		r = symbol_list_add(&log->unnamed, EVENT_ADDRESS(i), 1, text,
				    (uint16_t)strlen(text), NULL);
	}
	for (size_t i = 0; i < log->functions.n && r == 0; i++) {
		struct fdrfunction *f = &log->functions.items[i];
		uint64_t end;

		if (f->symbol == PTD_NO_SYMBOL)
			r = resolver_find(log->log.resolver, object->symbols, f->number, &f->symbol,
					  &end);
	}
	for (size_t i = 0; i < log->events.n && r == 0; i++) {
		uint64_t end;

		r = resolver_find(log->log.resolver, object->symbols, EVENT_ADDRESS(i),
				  &log->events.items[i].symbol, &end);
	}
	return r;
}

static int find_names(struct fdrlog *log, const char *map, struct objects *objects,
		      char **reterr_message)
{
	const int r = map ? read_map(log, map, objects, reterr_message) : 0;

	return r < 0 ? r : name_by_number(log, objects);
}

/* --- threads ---------------------------------------------------------------------------------- */

static int by_thread(const void *pa, const void *pb)
{
	const struct fdrblock *a = pa, *b = pb;

	return COMPARE(a->pid, b->pid) ?: COMPARE(a->tid, b->tid) ?: COMPARE(a->time, b->time)
		?: COMPARE(a->file, b->file) ?: COMPARE(a->begin, b->begin);
}

/* Files are called xray-log.PROGRAM.XXXXXX. Return: 0 and the program's name, or NULL; or -ENOMEM.
 */
static int find_comm(struct fdrlog *log, const struct fdrfile *file, const char **ret_comm)
{
	const char *name = basename(file->log.path), *end;
	char *comm;

	*ret_comm = NULL;
	if (!is_log_name(name))
		return 0;
	name += strlen(FDRFILE_PREFIX);
	end = strchr(name, '.');
	if (!end || end == name)
		return 0;
	comm = arena_alloc(&log->log.texts, (size_t)(end - name) + 1);
	if (!comm)
		return -ENOMEM;
	*ret_comm = memcpy(comm, name, (size_t)(end - name));
	return 0;
}

static int make_lanes(struct fdrlog *log)
{
	const struct fdrblock *blocks = log->scan.blocks.items;
	const size_t n = log->scan.blocks.n;
	int r = 0;

	vec_sort(&log->scan.blocks, by_thread);
	for (size_t i = 0; i < n && r == 0; i++) {
		if (i > 0 && blocks[i].pid == blocks[i - 1].pid &&
		    blocks[i].tid == blocks[i - 1].tid) {
			log->lanes.items[log->lanes.n - 1].n++;
			continue;
		}
		r = vec_push(
		    &log->lanes,
		    { .lane = { .pid = blocks[i].pid, .tid = blocks[i].tid }, .first = i, .n = 1 });
		if (r == 0)
			r = find_comm(log, &log->files.items[blocks[i].file],
				      &log->lanes.items[log->lanes.n - 1].lane.comm);
	}
	for (size_t i = 0; i < log->lanes.n && r == 0; i++)
		r = vec_push(&log->log.lanes, &log->lanes.items[i].lane);
	return r;
}

/* --- the calls -------------------------------------------------------------------------------- */

static uint64_t time_of(const struct fdrlog *log, const struct fdrlane *lane)
{
	const struct fdrblock *block = &log->scan.blocks.items[lane->block];
	const uint64_t frequency = log->files.items[block->file].header.frequency;
	unsigned __int128 t = lane->ticks;

	if (!log->is_in_ticks && frequency != NS_PER_S)
		t = t * NS_PER_S / frequency;
	return t < INT64_MAX ? (uint64_t)t : INT64_MAX;
}

/* Go to the lane's next block, @i. */
static void enter_block(const struct fdrlog *log, struct fdrlane *lane, size_t i)
{
	const struct fdrblock *block;

	lane->lane.ended = i == lane->first + lane->n;
	if (lane->lane.ended)
		return;
	block = &log->scan.blocks.items[i];
	lane->block = i;
	lane->offset = block->begin;
	lane->ticks = block->time;
	lane->lane.cpu = block->cpu;
	lane->lane.t = time_of(log, lane);
}

static int begin_lane(struct calllog *calllog, struct calllane *calllane, char **reterr_message)
{
	struct fdrlane *lane = (struct fdrlane *)calllane;

	enter_block(of(calllog), lane, lane->first);
	return 0;
}

static int add_call(const struct fdrlog *log, const struct fdrlane *lane,
		    const struct fdrrecord *record, uint16_t version, struct callpiece *piece)
{
	const uint64_t *i = map_get(&log->by_number, record->function);
	const struct fdrfunction *f;
	uint8_t kind = PTD_LOGGED_ENTER;

	/* The file was changed since it was gone through. */
	if (!i)
		return -ESTALE;
	f = &log->functions.items[*i];
	if (record->kind == FDR_EXIT)
		kind = PTD_LOGGED_LEAVE;
	else if (record->kind == FDR_TAIL_EXIT)
		kind = version == 1 ? PTD_LOGGED_TAIL_CHAIN : PTD_LOGGED_TAIL;
	return vec_push(
	    &piece->calls,
	    { .t = lane->lane.t, .object = f->object, .symbol = f->symbol, .kind = kind });
}

static void add_ticks(const struct fdrlog *log, struct fdrlane *lane, uint32_t delta)
{
	lane->ticks = lane->ticks < UINT64_MAX - delta ? lane->ticks + delta : UINT64_MAX;
	lane->lane.t = time_of(log, lane);
}

/* Show the argument or event, which ends where the lane stands. Its time is that of the call before
 * it, and how much later it was, if the file says so, as in version 5. */
static int add_event(struct fdrlog *log, const struct fdrlane *lane, const struct fdrrecord *record,
		     struct callpiece *piece, char **reterr_message)
{
	const struct fdrfile *file = &log->files.items[log->scan.blocks.items[lane->block].file];
	const struct fdrevent *event;
	char text[EVENT_TEXT_MAX];
	struct cursor data;
	uint64_t key;
	int r;

	r = fdrwindow_data(&log->window, file, lane->offset, record, &data, reterr_message);
	if (r < 0)
		return r;
	event = find_event(log, record, data, text, &key);
	/* The file was changed since it was gone through. */
	if (!event)
		return -ESTALE;
	return vec_push(&piece->marks, { .kind = PTD_MARK_POINT,
					 .run = piece->calls.n,
					 .t = lane->lane.t,
					 .value = event->symbol });
}

/* Take a record. Return: 0; 1: the lane is on another CPU now; or negative errno. */
static int take_record(struct fdrlog *log, struct fdrlane *lane, const struct fdrrecord *record,
		       uint16_t version, struct callpiece *piece, char **reterr_message)
{
	const bool is_time =
	    !record->is_function && (record->kind == FDR_NEW_CPU || record->kind == FDR_TSC_WRAP);
	const uint32_t cpu = lane->lane.cpu;

	if (record->has_delta)
		add_ticks(log, lane, record->delta);
	if (record->is_function)
		return add_call(log, lane, record, version, piece);
	if (fdrfile_is_event(record))
		return add_event(log, lane, record, piece, reterr_message);
	if (is_time) {
		lane->ticks = record->time;
		lane->lane.t = time_of(log, lane);
	}
	if (record->kind == FDR_NEW_CPU)
		lane->lane.cpu = record->cpu;
	return lane->lane.cpu != cpu;
}

/* The block has been read: mark what is lost behind it, and go to the next. */
static int leave_block(const struct fdrlog *log, struct fdrlane *lane, struct callpiece *piece)
{
	const struct fdrblock *block = &log->scan.blocks.items[lane->block];
	const uint32_t cpu = lane->lane.cpu;
	int r = 0;

	if (block->n_lost > 0 || block->is_cut)
		r = vec_push(&piece->marks,
			     { .kind = PTD_MARK_GAP,
			       .reason = block->is_cut ? PTD_GAP_CUT : PTD_GAP_BAD_PACKET,
			       .run = piece->calls.n,
			       .t = lane->lane.t,
			       .offset = block->end,
			       .n_bytes = block->n_lost });
	enter_block(log, lane, lane->block + 1);
	return r < 0 ? r : lane->lane.ended || lane->lane.cpu != cpu;
}

static int read_lane(struct calllog *calllog, struct calllane *calllane, struct callpiece *piece,
		     char **reterr_message)
{
	struct fdrlane *lane = (struct fdrlane *)calllane;
	struct fdrlog *log = of(calllog);
	int r = 0;

	while (r == 0 && !callpiece_is_full(piece)) {
		const struct fdrblock *block = &log->scan.blocks.items[lane->block];
		const struct fdrfile *file = &log->files.items[block->file];
		struct fdrrecord record;
		const char *fault;

		if (lane->offset >= block->end) {
			r = leave_block(log, lane, piece);
			continue;
		}
		r = fdrwindow_get(&log->window, file, block->end, &lane->offset, &record, &fault,
				  reterr_message);
		if (r == 0)
			r = take_record(log, lane, &record, file->header.format.version, piece,
					reterr_message);
		if (r == -EBADMSG || r == -ENODATA || (r == -ESTALE && !*reterr_message))
			r = message_set(reterr_message, -ESTALE,
					"%s: was changed while it was read", file->log.path);
	}
	return r < 0 ? r : 0;
}

/* --- its life --------------------------------------------------------------------------------- */

static void free_log(struct calllog *calllog)
{
	struct fdrlog *log = of(calllog);

	vec_deinit_each(&log->files, file, fdrfile_deinit(file));
	vec_deinit(&log->scan.blocks);
	vec_deinit(&log->lanes);
	vec_deinit(&log->functions);
	map_deinit(&log->by_number);
	vec_deinit(&log->events);
	map_deinit(&log->by_text);
	symbol_list_deinit(&log->unnamed);
	logwindow_deinit(&log->window);
	free(log);
}

static const struct calllog_ops log_ops = {
	.begin = begin_lane,
	.read = read_lane,
	.free = free_log,
};

static int open_log(struct fdrlog *log, const char *path, const char *map, struct objects *objects,
		    char **reterr_message)
{
	_cleanup_(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
	_cleanup_(dirs_closep) DIR *dir = fd < 0 ? NULL : dirs_list(fd);
	_cleanup_(freep) char *own_map = message_text("%s/" MAP_NAME, path);
	int r;

	if (!own_map)
		return -ENOMEM;
	r = add_files(log, path, dir, reterr_message);
	if (r == 0)
		r = scan_files(log, path, reterr_message);
	if (dir && !map && access(own_map, F_OK) == 0)
		map = own_map;
	if (r == 0)
		r = find_names(log, map, objects, reterr_message);
	return r < 0 ? r : make_lanes(log);
}

int fdrlog_open(const char *path, const char *map, struct objects *objects,
		struct resolver *resolver, struct calllog **ret_log, char **reterr_message)
{
	struct fdrlog *log = calloc(1, sizeof(*log));
	int r;

	if (!log)
		return -ENOMEM;
	log->log.ops = &log_ops;
	log->log.resolver = resolver;
	logwindow_init(&log->window);
	symbol_list_init(&log->unnamed);
	r = open_log(log, path, map, objects, reterr_message);
	if (r < 0) {
		calllog_free(&log->log);
		return r;
	}
	log->log.clock = log->is_in_ticks ? PTD_CLOCK_TSC : PTD_CLOCK_NS;
	*ret_log = &log->log;
	return 0;
}
