/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/jit/memfile.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptd/snapshot.h"
#include "util/dirs.h"

#define FILE_NAME_MAX 64

static void format_name(enum memfile_kind kind, const struct memfile *file,
			char ret_name[static FILE_NAME_MAX])
{
	if (kind == MEMFILE_PIECE)
		(void)snprintf(ret_name, FILE_NAME_MAX, "%" PRIu32 "-%" PRIx64, file->pid,
			       file->number);
	else
		(void)snprintf(ret_name, FILE_NAME_MAX, "%" PRIu32 "-%" PRIu64 PTD_CODE_SUFFIX,
			       file->pid, file->number);
}

/* Return: whether @name is, to the letter, that of a file of this kind. */
static bool read_name(enum memfile_kind kind, const char *name, struct memfile *ret_file)
{
	char again[FILE_NAME_MAX];

	if (sscanf(name, kind == MEMFILE_PIECE ? "%" SCNu32 "-%" SCNx64 : "%" SCNu32 "-%" SCNu64,
		   &ret_file->pid, &ret_file->number) != 2)
		return false;
	format_name(kind, ret_file, again);
	return strcmp(name, again) == 0;
}

static int add_name(struct memfiles *files, const char *name)
{
	struct memfile file;

	for (enum memfile_kind kind = 0; kind < _MEMFILE_KINDS; kind++) {
		struct memfile_list *list = &files->kinds[kind];

		if (!read_name(kind, name, &file))
			continue;
		if (list->files.n < MEMFILES_MAX)
			return vec_push(&list->files, file);
		files->n_left_out++;
		return 0;
	}
	return 0;
}

static int compare_memfiles(const void *pa, const void *pb)
{
	const struct memfile *a = pa, *b = pb;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

static int list_names(struct memfiles *files, const char *snapshot_dir)
{
	_cleanup_(dirs_closep) DIR *dir = NULL;
	_cleanup_(freep) char *path = NULL;
	const struct dirent *entry;
	int r = 0;

	if (asprintf(&path, "%s/" PTD_SNAPSHOT_MEM, snapshot_dir) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	dir = opendir(path);
	while (r == 0 && dir && (entry = readdir(dir)))
		r = add_name(files, entry->d_name);
	return r;
}

int memfiles_init(struct memfiles *files, struct objects *objects)
{
	int r = 0;

	*files = (struct memfiles){ .objects = objects };
	if (objects_dir(objects))
		r = list_names(files, objects_dir(objects));
	if (r < 0)
		memfiles_deinit(files);
	for (enum memfile_kind kind = 0; kind < _MEMFILE_KINDS; kind++) {
		struct memfile_list *list = &files->kinds[kind];

		if (list->files.n > 0)
			qsort(list->files.items, list->files.n, sizeof(*list->files.items),
			      compare_memfiles);
	}
	return r;
}

void memfiles_deinit(struct memfiles *files)
{
	for (enum memfile_kind kind = 0; kind < _MEMFILE_KINDS; kind++)
		vec_deinit(&files->kinds[kind].files);
}

int memfiles_load(const struct memfiles *files, enum memfile_kind kind, const struct memfile *file,
		  struct object **ret_object)
{
	_cleanup_(freep) char *path = NULL;
	char name[FILE_NAME_MAX];

	format_name(kind, file, name);
	if (asprintf(&path, "%s/" PTD_SNAPSHOT_MEM "/%s", objects_dir(files->objects), name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	return objects_add_memory(files->objects, path, MEMFILE_OBJECT_NAME,
				  kind == MEMFILE_PIECE ? file->number : 0, ret_object);
}

void memfile_set_names(struct object *object, uint32_t pid, struct perfmaps *perfmaps, bool is_last,
		       struct perfmap_source *ret_names)
{
	perfmap_source_init(ret_names, perfmaps, pid, is_last);
	object->symbols = &ret_names->source;
}
