/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/jit/jitmap.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "ptd/snapshot.h"
#include "util/mapfile.h"
#include "util/message.h"
#include "util/objectsmap.h"

/* Parse "PID SINCE NAME" or "PID SINCE - REASON", which stays in @id. Return: whether it is one. */
static bool read_id(const char *id, struct jitmap_line *line)
{
	int at = 0;

	if (sscanf(id, "%" SCNu32 " %" SCNu64 " %n", &line->pid, &line->since, &at) != 2 || !at)
		return false;
	if (id[at] == '-' && (!id[at + 1] || id[at + 1] == ' ')) {
		line->why = id[at + 1] ? id + at + 2 : "";
		return true;
	}
	line->name = id + at;
	/* The file lies in the snapshot, whatever the line says. */
	return strncmp(line->name, "jit-", strlen("jit-")) == 0 && !strchr(line->name, '/');
}

static int add_line(struct jitmap *map, const uint8_t *bytes, size_t size)
{
	char *text = arena_alloc(&map->arena, size + 1);
	struct jitmap_line line = {};
	const char *id;

	if (!text)
		return -ENOMEM;
	memcpy(text, bytes, size);
	text[size] = '\0';
	if (strlen(text) != size || objectsmap_split(text, &id, &line.path) < 0 ||
	    !read_id(id, &line))
		return 0;
	return vec_push(&map->lines, line);
}

static int read_lines(struct jitmap *map, const struct mapfile *file)
{
	int r = 0;

	for (size_t at = 0; r == 0 && at < file->size && map->lines.n < JITMAP_LINES_MAX;) {
		const uint8_t *line = file->bytes + at;
		const uint8_t *end = memchr(line, '\n', file->size - at);

		if (!end)
			break;
		r = add_line(map, line, (size_t)(end - line));
		at += (size_t)(end - line) + 1;
	}
	return r;
}

int jitmap_init(struct jitmap *ret_map, const char *snapshot_dir)
{
	_cleanup_(mapfile_deinit) struct mapfile file = {};
	_cleanup_(freep) char *path = NULL;
	int r;

	*ret_map = (struct jitmap){};
	if (!snapshot_dir)
		return 0;
	path = message_text("%s/" PTD_SNAPSHOT_JIT_MAP, snapshot_dir);
	if (!path)
		return -ENOMEM;
	r = mapfile_read(&file, AT_FDCWD, path);
	if (r == 0)
		r = read_lines(ret_map, &file);
	return r == -ENOMEM ? r : 0;
}

void jitmap_deinit(struct jitmap *map)
{
	vec_deinit(&map->lines);
	arena_deinit(&map->arena);
}

const struct jitmap_line *jitmap_find(const struct jitmap *map, uint32_t pid, const char *path,
				      uint64_t time)
{
	const struct jitmap_line *found = NULL;

	for (size_t i = 0; i < map->lines.n; i++) {
		const struct jitmap_line *l = &map->lines.items[i];

		if (l->pid != pid || strcmp(l->path, path) != 0)
			continue;
		/* The last one up to the time; or else the first one. */
		if (!found || (found->since > time ? l->since < found->since
						   : l->since <= time && l->since >= found->since))
			found = l;
	}
	return found;
}
