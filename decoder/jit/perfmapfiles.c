/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/jit/perfmapfiles.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "decoder/image/object.h"
#include "ptd/snapshot.h"

void perfmapfiles_deinit(struct perfmapfiles *files)
{
	for (size_t i = 0; i < files->files.n; i++) {
		mapfile_deinit(files->files.items[i]);
		free(files->files.items[i]);
	}
	vec_deinit(&files->files);
}

int perfmapfiles_open(struct perfmapfiles *files, const struct objects *objects, uint32_t pid,
		      const struct mapfile **ret_file)
{
	struct mapfile *file;
	char *path;
	int r;

	*ret_file = NULL;
	r = vec_reserve(&files->files, 1);
	if (r < 0)
		return r;
	if (asprintf(&path, "%s/" PTD_SNAPSHOT_JIT "/perf-%" PRIu32 ".map", objects_dir(objects),
		     pid) < 0)
		return -ENOMEM;
	file = calloc(1, sizeof(*file));
	r = file ? mapfile_init(file, AT_FDCWD, path) : -ENOMEM;
	free(path);
	if (r < 0) {
		free(file);
		return r == -ENOMEM ? r : 0;
	}
	*ret_file = file;
	return vec_push(&files->files, file);
}
