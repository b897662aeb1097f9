/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/symbol/perfmap.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ptd/snapshot.h"

#define NAME_SIZE_MAX 4095u /* longer names are cut, as in a jitdump */

/* --- the text --------------------------------------------------------------------------------- */

/* Read a number in hex and the blank behind it. */
static bool read_hex(const char **text, const char *end, uint64_t *ret_number)
{
	const char *at = *text;
	uint64_t number = 0;

	for (; at < end && *at != ' '; at++) {
		const char *digits = "0123456789abcdef0123456789ABCDEF";
		const char *digit = *at ? strchr(digits, *at) : NULL;

		if (!digit || number >> 60)
			return false;
		number = number << 4 | ((size_t)(digit - digits) & 15);
	}
	if (at == *text || at == end)
		return false;
	*text = at + 1;
	*ret_number = number;
	return true;
}

static int read_map_line(struct perfmap *perfmap, const char *line, const char *end,
			 uint32_t number)
{
	struct perfmap_name name = { .line = number };
	size_t size;

	if (end - line > 2 && line[0] == '0' && line[1] == 'x')
		line += 2;
	if (!read_hex(&line, end, &name.address) || !read_hex(&line, end, &name.size))
		return 0;
	size = (size_t)(end - line);
	if (size == 0)
		return 0;
	name.name = line;
	name.name_size = (uint16_t)(size < NAME_SIZE_MAX ? size : NAME_SIZE_MAX);
	return vec_push(&perfmap->names, name);
}

static int compare_names(const void *pa, const void *pb)
{
	const struct perfmap_name *a = pa, *b = pb;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return a->line < b->line ? -1 : a->line > b->line;
}

int perfmap_parse(struct perfmap *perfmap)
{
	const char *at = (const char *)perfmap->text->bytes;
	const char *end = perfmap->text->size > 0 ? at + perfmap->text->size : at;
	size_t *n_left = perfmap->n_lines_left;

	if (perfmap->is_parsed)
		return 0;
	perfmap->is_parsed = true;
	for (uint32_t line = 0; at<end && * n_left> 0; line++, (*n_left)--) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		int r;

		if (!newline)
			newline = end;
		r = read_map_line(perfmap, at, newline, line);
		if (r < 0) {
			perfmap_deinit(perfmap);
			return r;
		}
		at = newline < end ? newline + 1 : end;
	}
	if (perfmap->names.n > 0)
		qsort(perfmap->names.items, perfmap->names.n, sizeof(*perfmap->names.items),
		      compare_names);
	return 0;
}

void perfmap_deinit(struct perfmap *perfmap)
{
	vec_deinit(&perfmap->names);
	perfmap->is_parsed = false;
}

/* --- the source of a piece of code ------------------------------------------------------------ */

static int read_perfmap(struct symbol_source *source, struct symtab *symtab)
{
	const struct perfmap_source *piece = (const struct perfmap_source *)source;
	const struct perfmap_name *names;
	size_t i;
	int r;

	r = perfmap_parse(piece->perfmap);
	if (r < 0)
		return r;
	names = piece->perfmap->names.items;
	i = vec_bisect(&piece->perfmap->names, name, name->address < piece->start);
	for (; r == 0 && i < piece->perfmap->names.n && names[i].address < piece->end; i++)
		r = symtab_add(symtab, &(struct symtab_symbol){
					   .address = names[i].address,
					   .size = names[i].size,
					   .limit = piece->end,
					   .name = names[i].name,
					   .name_size = names[i].name_size,
				       });
	return r;
}

static const struct symbol_source_ops perfmap_ops = { .read = read_perfmap };

void perfmap_source_init(struct perfmap_source *source, struct perfmap *perfmap, uint64_t start,
			 uint64_t end)
{
	*source = (struct perfmap_source){
		.source.ops = &perfmap_ops, .perfmap = perfmap, .start = start, .end = end
	};
}

void perfmap_source_deinit(struct perfmap_source *source)
{
	symbol_source_deinit(&source->source);
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
	for (size_t i = 0; i < perfmaps->files.n; i++)
		(void)file_free(perfmaps->files.items[i]);
	vec_deinit(&perfmaps->files);
	map_deinit(&perfmaps->by_pid);
}

/* Return: 0; -ENOMEM; or another negative errno if the file cannot be mapped. */
static int open_file(struct perfmaps *perfmaps, uint32_t pid, struct perfmap_file **ret_file)
{
	_cleanup_(file_freep) struct perfmap_file *file = calloc(1, sizeof(*file));
	_cleanup_(freep) char *path = NULL;
	int r;

	if (!file)
		return -ENOMEM;
	if (asprintf(&path, "%s/" PTD_SNAPSHOT_JIT "/perf-%" PRIu32 ".map", perfmaps->dir, pid) <
	    0) {
		path = NULL;
		return -ENOMEM;
	}
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
	const uint64_t *known = map_get(&perfmaps->by_pid, pid);
	struct perfmap_file *file = NULL;
	int r;

	if (!known) {
		r = vec_reserve(&perfmaps->files, 1);
		if (r == 0)
			r = map_put(&perfmaps->by_pid, pid, perfmaps->files.n);
		if (r < 0)
			return r;
		r = open_file(perfmaps, pid, &file);
		perfmaps->files.items[perfmaps->files.n++] = file;
		if (r == -ENOMEM)
			return r;
	} else {
		file = perfmaps->files.items[*known];
	}
	*ret_perfmap = file ? &file->perfmap : NULL;
	return 0;
}
