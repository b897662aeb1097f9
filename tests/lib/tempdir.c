/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/tempdir.h"

#include <errno.h>
#include <error.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/dirs.h"

void tempdir_make(const char *name, char ret_dir[static TEMPDIR_SIZE])
{
	if (snprintf(ret_dir, TEMPDIR_SIZE, "/tmp/test-%s.XXXXXX", name) >= TEMPDIR_SIZE)
		error(1, ENAMETOOLONG, "%s", name);
	if (!mkdtemp(ret_dir))
		error(1, errno, "%s", ret_dir);
}

static void make_above(const char *dir, const char *path)
{
	const char *slash = strrchr(path, '/');
	_cleanup_(fd_closep) int fd = -1;
	char above[PATH_MAX];
	int r;

	if (!slash)
		return;
	fd = dirs_open(AT_FDCWD, dir);
	(void)snprintf(above, sizeof(above), "%.*s", (int)(slash - path), path);
	r = fd < 0 ? fd : dirs_make(fd, above, 0700);
	if (r < 0)
		error(1, -r, "%s/%s", dir, above);
}

void tempdir_put(const char *dir, const char *path, const void *bytes, size_t size)
{
	char whole[PATH_MAX];
	FILE *f;

	make_above(dir, path);
	(void)snprintf(whole, sizeof(whole), "%s/%s", dir, path);
	f = fopen(whole, "we");
	if (!f || fwrite(bytes, 1, size, f) != size || fclose(f) != 0)
		error(1, errno, "%s", whole);
}

void tempdir_put_text(const char *dir, const char *path, const char *text)
{
	tempdir_put(dir, path, text, strlen(text));
}

void tempdir_remove(const char *dir)
{
	const int r = dirs_remove(AT_FDCWD, dir);

	if (r < 0 && r != -ENOENT)
		error(1, -r, "%s", dir);
}
