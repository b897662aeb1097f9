/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A foreign objects.map. What it says must lie below objects/. */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "decoder/image/objectmap.h"
#include "ptd/snapshot.h"
#include "util/buildid.h"
#include "util/objectsmap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_map(const char *dir, const uint8_t *data, size_t size)
{
	_cleanup_(fd_closep) int fd = -1;
	char path[64];

	(void)snprintf(path, sizeof(path), "%s/" PTD_SNAPSHOT_OBJECTS_MAP, dir);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
}

static void find(const struct objectmap *map_of_objects, const char *path)
{
	const struct buildid ids[] = { {}, { .bytes = { 0x0a, 0x0b }, .size = 2 } };
	static const struct objectsmap_inode inodes[] = { {}, { 8, 1, 23 } };
	const char *location;

	for (size_t i = 0; i < 2 * ARRAY_LEN(ids); i++) {
		if (objectmap_find(map_of_objects, path, &ids[i / 2], &inodes[i % 2], &location) !=
		    0)
			continue;
		if (strncmp(location, PTD_SNAPSHOT_OBJECTS "/", strlen(PTD_SNAPSHOT_OBJECTS "/")) !=
			0 ||
		    strstr(location, ".."))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(objectmap_freep) struct objectmap *map_of_objects = NULL;
	char dir[] = "/tmp/fuzz-objectmap-XXXXXX", map[64];

	if (!mkdtemp(dir))
		abort();
	put_map(dir, data, size);
	if (objectmap_new(dir, &map_of_objects) == 0) {
		/* Every path that the map can have named. */
		for (size_t at = 0; at < size; at++) {
			const uint8_t *tab = memchr(data + at, '\t', size - at);
			const uint8_t *end =
			    tab ? memchr(tab, '\n', size - (size_t)(tab - data)) : NULL;
			_cleanup_(freep) char *path = NULL;

			if (!end)
				break;
			path = strndup((const char *)tab + 1, (size_t)(end - tab) - 1);
			if (!path)
				abort();
			find(map_of_objects, path);
			at = (size_t)(end - data);
		}
	}
	(void)snprintf(map, sizeof(map), "%s/" PTD_SNAPSHOT_OBJECTS_MAP, dir);
	if (unlink(map) < 0 || rmdir(dir) < 0)
		abort();
	return 0;
}
