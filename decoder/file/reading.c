/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/file/reading.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/pieces.h"

void reading_deinit(struct reading *reading)
{
	vec_deinit_each(&reading->files, file, free(file->path));
	pieces_free(reading->pieces);
}

int reading_note(struct reading *reading, const char *path, const struct stat *st)
{
	_cleanup_(freep) char *copy = NULL;
	int r;

	if (!reading)
		return 0;
	copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	r = vec_push(
	    &reading->files,
	    { .path = copy, .device = st->st_dev, .inode = st->st_ino, .size = st->st_size });
	if (r == 0)
		copy = NULL;
	return r;
}

const struct reading_file *reading_find_cut(const struct reading *reading, off_t *ret_size)
{
	for (size_t i = 0; i < reading->files.n; i++) {
		const struct reading_file *file = &reading->files.items[i];
		struct stat st;

		if (stat(file->path, &st) < 0 || st.st_dev != file->device ||
		    st.st_ino != file->inode || st.st_size >= file->size)
			continue;
		*ret_size = st.st_size;
		return file;
	}
	return NULL;
}
