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
#include "util/message.h"

#define FILE_NAME_MAX 64

static void format_name(const struct memfile *file, char ret_name[static FILE_NAME_MAX])
{
	(void)snprintf(ret_name, FILE_NAME_MAX, "%" PRIu32 "-%" PRIu64 PTD_CODE_SUFFIX, file->pid,
		       file->start);
}

/* Return: whether @name is, to the letter, that of a code log. */
static bool read_name(const char *name, struct memfile *ret_file)
{
	char again[FILE_NAME_MAX];

	if (sscanf(name, "%" SCNu32 "-%" SCNu64, &ret_file->pid, &ret_file->start) != 2)
		return false;
	format_name(ret_file, again);
	return strcmp(name, again) == 0;
}

static int add_name(struct memfiles *files, const char *name)
{
	struct memfile file;

	if (!read_name(name, &file))
		return 0;
	if (files->logs.n < MEMFILES_MAX)
		return vec_push(&files->logs, file);
	files->n_left_out++;
	return 0;
}

static int compare_memfiles(const void *pa, const void *pb)
{
	const struct memfile *a = pa, *b = pb;

	return COMPARE(a->pid, b->pid) ?: COMPARE(a->start, b->start);
}

static int list_names(struct memfiles *files, const char *snapshot_dir)
{
	_cleanup_(dirs_closep) DIR *dir = NULL;
	_cleanup_(freep) char *path = message_text("%s/" PTD_SNAPSHOT_MEM, snapshot_dir);
	const struct dirent *entry;
	int r = 0;

	if (!path)
		return -ENOMEM;
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
	vec_sort(&files->logs, compare_memfiles);
	return r;
}

void memfiles_deinit(struct memfiles *files)
{
	vec_deinit(&files->logs);
}

static int load_file(const struct memfiles *files, const char *name, struct object **ret_object)
{
	_cleanup_(freep) char *path = message_text("%s/%s", objects_dir(files->objects), name);

	return path ? objects_add_memory(files->objects, path, MEMFILE_OBJECT_NAME, ret_object)
		    : -ENOMEM;
}

int memfiles_load(const struct memfiles *files, const struct memfile *file,
		  struct object **ret_object)
{
	char name[FILE_NAME_MAX], path[FILE_NAME_MAX + sizeof(PTD_SNAPSHOT_MEM)];

	format_name(file, name);
	(void)snprintf(path, sizeof(path), PTD_SNAPSHOT_MEM "/%s", name);
	return load_file(files, path, ret_object);
}

int memfiles_load_pages(const struct memfiles *files, struct object **ret_object)
{
	if (!objects_dir(files->objects))
		return -ENOENT;
	return load_file(files, PTD_SNAPSHOT_MEM_PAGES, ret_object);
}

void memfile_set_names(struct object *object, uint32_t pid, struct perfmaps *perfmaps, bool is_last,
		       struct perfmap_source *ret_names)
{
	perfmap_source_init(ret_names, perfmaps, pid, is_last);
	object->symbols = &ret_names->source;
}
