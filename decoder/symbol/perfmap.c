/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/symbol/perfmap.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "decoder/util/heap.h"
#include "ptd/snapshot.h"
#include "util/message.h"

#define NAME_SIZE_MAX 4095u /* longer names are cut, as in a jitdump */
#define FORKS_MAX     16    /* from a process to the one that has the map */

/* --- the text --------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static void skip_blanks(const char **text, const char *end)
{
	while (*text < end && is_blank(**text))
		++*text;
}

/* Read a number in hex and the blanks behind it. */
static bool read_hex(const char **text, const char *end, uint64_t *ret_number)
{
	const char *at = *text, *start;
	uint64_t number = 0;

	if (end - at > 2 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X'))
		at += 2;
	for (start = at; at < end && !is_blank(*at); at++) {
		const char *digits = "0123456789abcdef0123456789ABCDEF";
		const char *digit = *at ? strchr(digits, *at) : NULL;

		if (!digit || number >> 60)
			return false;
		number = number << 4 | ((size_t)(digit - digits) & 15);
	}
	if (at == start || at == end)
		return false;
	skip_blanks(&at, end);
	*text = at;
	*ret_number = number;
	return true;
}

static int read_map_line(struct perfmap *perfmap, const char *line, const char *end,
			 uint32_t number)
{
	struct symtab_symbol name = { .order = number };
	size_t size;

	skip_blanks(&line, end);
	if (!read_hex(&line, end, &name.address) || !read_hex(&line, end, &name.size) ||
	    name.size == 0 || name.size > PERFMAP_SIZE_MAX || name.size > UINT64_MAX - name.address)
		return 0;
	while (end > line && is_blank(end[-1]))
		end--;
	size = strnlen(line, (size_t)(end - line));
	if (size == 0)
		return 0;
	name.limit = name.address + name.size;
	name.name = line;
	name.name_size = (uint16_t)(size < NAME_SIZE_MAX ? size : NAME_SIZE_MAX);
	return vec_push(&perfmap->names, name);
}

static int read_lines(struct perfmap *perfmap)
{
	const char *at = (const char *)perfmap->text->bytes;
	const char *end = perfmap->text->size > 0 ? at + perfmap->text->size : at;
	size_t *n_left = perfmap->n_lines_left;
	const char *newline;
	int r = 0;

	for (uint32_t line = 0; r == 0 && at<end && * n_left> 0; line++, (*n_left)--) {
		newline = memchr(at, '\n', (size_t)(end - at));
		if (!newline)
			break;
		r = read_map_line(perfmap, at, newline, line);
		at = newline + 1;
	}
	return r;
}

/* --- the ranges ------------------------------------------------------------------------------- */

struct name_end {
	uint64_t address;
	uint32_t name;
};

/* The names are painted over each other. What is at one address: */
struct painting {
	const struct symtab_symbol *names;
	VEC(uint32_t) open;  /* a heap, the last line first; others may have ended */
	struct map n_open;   /* hash of a name → how many lines are open that have it */
	size_t n_open_names; /* different ones */
};

static int compare_names(const void *pa, const void *pb)
{
	const struct symtab_symbol *a = pa, *b = pb;

	return COMPARE(a->address, b->address) ?: COMPARE(a->order, b->order);
}

static int compare_ends(const void *pa, const void *pb)
{
	const struct name_end *a = pa, *b = pb;

	return COMPARE(a->address, b->address);
}

static uint64_t hash_of(const struct symtab_symbol *name)
{
	return map_hash(name->name, name->name_size);
}

static int open_name(struct painting *painting, uint32_t name)
{
	const struct symtab_symbol *names = painting->names;
	const uint64_t key = hash_of(&names[name]);
	const uint64_t *n = map_get(&painting->n_open, key);
	const uint64_t n_before = n ? *n : 0;
	int r;

#define is_newer(a, b) (names[a].order > names[b].order)
	r = vec_push(&painting->open, name);
	if (r == 0)
		heap_lift(&painting->open, painting->open.n - 1, is_newer);
	if (r == 0)
		r = map_put(&painting->n_open, key, n_before + 1);
	painting->n_open_names += n_before == 0;
	return r;
}

static void close_name(struct painting *painting, uint32_t name)
{
	uint64_t *n = map_get(&painting->n_open, hash_of(&painting->names[name]));

	painting->n_open_names -= --*n == 0;
}

/* Return: the name of the last line at @address, or SYMTAB_NONE. */
static uint32_t top_name(struct painting *painting, uint64_t address)
{
	const struct symtab_symbol *names = painting->names;

	while (painting->open.n > 0 && names[painting->open.items[0]].limit <= address)
		heap_drop(&painting->open, is_newer);
	return painting->open.n > 0 ? painting->open.items[0] : SYMTAB_NONE;
}

static int list_ends(const struct perfmap *perfmap, struct name_end **ret_ends)
{
	struct name_end *ends = calloc(perfmap->names.n + 1, sizeof(*ends));

	if (!ends)
		return -ENOMEM;
	for (size_t i = 0; i < perfmap->names.n; i++)
		ends[i] = (struct name_end){ .address = perfmap->names.items[i].limit,
					     .name = (uint32_t)i };
	qsort(ends, perfmap->names.n, sizeof(*ends), compare_ends);
	*ret_ends = ends;
	return 0;
}

static int add_range(struct perfmap *perfmap, struct perfmap_range range)
{
	const struct perfmap_range *before = perfmap->ranges.items + perfmap->ranges.n;

	if (perfmap->ranges.n > 0 && before[-1].name == range.name &&
	    before[-1].has_others == range.has_others)
		return 0;
	return vec_push(&perfmap->ranges, range);
}

static int make_ranges(struct perfmap *perfmap)
{
	struct painting painting = { .names = perfmap->names.items };
	const size_t n = perfmap->names.n;
	_cleanup_(freep) struct name_end *ends = NULL;
	size_t i = 0, ended = 0;
	int r;

	vec_sort(&perfmap->names, compare_names);
	r = list_ends(perfmap, &ends);
	while (r == 0 && ended < n) {
		struct perfmap_range range = { .start = ends[ended].address };

		if (i < n && painting.names[i].address < range.start)
			range.start = painting.names[i].address;
		for (; ended < n && ends[ended].address == range.start; ended++)
			close_name(&painting, ends[ended].name);
		for (; r == 0 && i < n && painting.names[i].address == range.start; i++)
			r = open_name(&painting, (uint32_t)i);
		range.name = top_name(&painting, range.start);
		range.has_others = painting.n_open_names > 1;
		if (r == 0)
			r = add_range(perfmap, range);
	}
	vec_deinit(&painting.open);
	map_deinit(&painting.n_open);
	return r;
}

int perfmap_parse(struct perfmap *perfmap)
{
	int r;

	if (perfmap->is_parsed)
		return 0;
	r = read_lines(perfmap);
	if (r == 0)
		r = make_ranges(perfmap);
	if (r < 0)
		perfmap_deinit(perfmap);
	else
		perfmap->is_parsed = true;
	return r;
}

void perfmap_deinit(struct perfmap *perfmap)
{
	vec_deinit(&perfmap->names);
	vec_deinit(&perfmap->ranges);
	perfmap->is_parsed = false;
}

int perfmap_find(struct perfmap *perfmap, uint64_t address, bool is_last,
		 const struct symtab_symbol **ret_name, uint64_t *ret_end)
{
	const struct perfmap_range *range;
	size_t i;
	int r;

	r = perfmap_parse(perfmap);
	if (r < 0)
		return r;
	i = vec_bisect(&perfmap->ranges, candidate, candidate->start <= address);
	range = i > 0 ? &perfmap->ranges.items[i - 1] : NULL;
	*ret_end = i < perfmap->ranges.n ? perfmap->ranges.items[i].start : UINT64_MAX;
	*ret_name = range && range->name != SYMTAB_NONE && (is_last || !range->has_others)
			? &perfmap->names.items[range->name]
			: NULL;
	return 0;
}

/* --- those of a snapshot ---------------------------------------------------------------------- */

struct perfmap_file {
	struct mapfile text;
	struct perfmap perfmap;
};

void perfmaps_init(struct perfmaps *perfmaps, const char *dir)
{
	*perfmaps = (struct perfmaps){ .dir = dir, .n_lines_left = PERFMAP_LINES_MAX };
}

static struct perfmap_file *file_free(struct perfmap_file *file)
{
	if (!file)
		return NULL;
	perfmap_deinit(&file->perfmap);
	mapfile_deinit(&file->text);
	free(file);
	return NULL;
}
DEFINE_CLEANUP(struct perfmap_file *, file_free);

void perfmaps_deinit(struct perfmaps *perfmaps)
{
	vec_deinit_each(&perfmaps->files, file, file_free(*file));
	map_deinit(&perfmaps->by_pid);
	vec_deinit(&perfmaps->programs);
	map_deinit(&perfmaps->programs_by_pid);
}

/* Return: 0; -ENOMEM; or another negative errno if the file cannot be mapped. */
static int open_file(struct perfmaps *perfmaps, uint32_t pid, struct perfmap_file **ret_file)
{
	_cleanup_(file_freep) struct perfmap_file *file = calloc(1, sizeof(*file));
	_cleanup_(freep) char *path =
	    message_text("%s/" PTD_SNAPSHOT_JIT "/perf-%" PRIu32 ".map", perfmaps->dir, pid);
	int r;

	if (!file || !path)
		return -ENOMEM;
	r = mapfile_read(&file->text, AT_FDCWD, path);
	if (r < 0)
		return r;
	file->perfmap.text = &file->text;
	file->perfmap.n_lines_left = &perfmaps->n_lines_left;
	*ret_file = TAKE(file);
	return 0;
}

int perfmaps_find(struct perfmaps *perfmaps, uint32_t pid, struct perfmap **ret_perfmap)
{
	const bool is_known = map_get(&perfmaps->by_pid, pid);
	struct perfmap_file **file = map_item(&perfmaps->by_pid, pid, &perfmaps->files, NULL);

	if (!file || (!is_known && open_file(perfmaps, pid, file) == -ENOMEM))
		return -ENOMEM;
	*ret_perfmap = *file ? &(*file)->perfmap : NULL;
	return 0;
}

static struct perfmap_program *find_program(const struct perfmaps *perfmaps, uint32_t pid)
{
	const uint64_t *i = map_get(&perfmaps->programs_by_pid, pid);

	return i ? &perfmaps->programs.items[*i] : NULL;
}

static uint32_t program_number(const struct perfmaps *perfmaps, uint32_t pid)
{
	const struct perfmap_program *program = find_program(perfmaps, pid);

	return program ? program->number : 0;
}

int perfmaps_begin(struct perfmaps *perfmaps, uint32_t pid, uint32_t parent)
{
	struct perfmap_program *program =
	    map_item(&perfmaps->programs_by_pid, pid, &perfmaps->programs, {});

	if (!program)
		return -ENOMEM;
	program->number++;
	program->parent = parent;
	program->number_of_parent = program_number(perfmaps, parent);
	return 0;
}

/* Return: the process that forked @pid, if its names are those of @pid, too; or 0. */
static uint32_t parent_of(const struct perfmaps *perfmaps, uint32_t pid)
{
	const struct perfmap_program *program = find_program(perfmaps, pid);

	return program && program->number_of_parent == program_number(perfmaps, program->parent)
		   ? program->parent
		   : 0;
}

/* --- the source of code ----------------------------------------------------------------------- */

static int find_name(struct symbol_source *source, uint64_t address,
		     const struct symtab_symbol **ret_symbol, uint64_t *ret_end)
{
	const struct perfmap_source *code = (const struct perfmap_source *)source;
	uint32_t pid = code->pid;
	struct perfmap *perfmap;
	uint64_t end;
	int r;

	*ret_symbol = NULL;
	*ret_end = UINT64_MAX;
	for (int i = 0; i < FORKS_MAX && pid != 0; i++, pid = parent_of(code->perfmaps, pid)) {
		r = perfmaps_find(code->perfmaps, pid, &perfmap);
		if (r == 0 && perfmap)
			r = perfmap_find(perfmap, address, code->is_last && i == 0, ret_symbol,
					 &end);
		if (r < 0)
			return r;
		if (perfmap && end < *ret_end)
			*ret_end = end;
		if (*ret_symbol)
			break;
	}
	return 0;
}

static const struct symbol_source_ops perfmap_ops = { .find = find_name };

void perfmap_source_init(struct perfmap_source *source, struct perfmaps *perfmaps, uint32_t pid,
			 bool is_last)
{
	*source = (struct perfmap_source){
		.source.ops = &perfmap_ops, .perfmaps = perfmaps, .pid = pid, .is_last = is_last
	};
}
