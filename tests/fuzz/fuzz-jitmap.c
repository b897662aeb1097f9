/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A foreign jit.map: no line leads out of the folder of the jitdumps, and each is found. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decoder/jit/jitmap.h"
#include "ptd/snapshot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int ok)
{
	if (!ok)
		abort();
}

static void check_line(const struct jitmap *map, const struct jitmap_line *l)
{
	const struct jitmap_line *found = jitmap_find(map, l->pid, l->path, l->since);

	check(found && found->pid == l->pid && strcmp(found->path, l->path) == 0);
	check(found->since <= l->since);
	check(!l->name != !l->why);
	check(!l->name || (strncmp(l->name, "jit-", 4) == 0 && !strchr(l->name, '/')));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char dir[] = "/tmp/fuzz-jitmap-XXXXXX", path[64];
	struct jitmap map;
	int fd;

	check(mkdtemp(dir) != NULL);
	(void)snprintf(path, sizeof(path), "%s/" PTD_SNAPSHOT_JIT_MAP, dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	check(fd >= 0 && write(fd, data, size) == (ssize_t)size && close(fd) == 0);
	check(jitmap_init(&map, dir) == 0);
	for (size_t i = 0; i < map.lines.n && i < 1000; i++)
		check_line(&map, &map.lines.items[i]);
	jitmap_deinit(&map);
	check(unlink(path) == 0 && rmdir(dir) == 0);
	return 0;
}
