/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/image/objectmap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "ptd/snapshot.h"
#include "util/arena.h"
#include "util/buildid.h"
#include "util/map.h"
#include "util/mapfile.h"
#include "util/mapname.h"
#include "util/message.h"
#include "util/objectsmap.h"

#define LINES_MAX (1u << 20)

#define SHA256_HEX_CHARS (SHA256_HEX_SIZE - 1)
#define BY_CONTENT       PTD_SNAPSHOT_OBJECTS "/sha256/"

struct line {
	struct line *next;  /* the next line whose path has the same hash */
	struct line *exact; /* the next line whose path and location, or inode, have the same hash
			     */
	const char *path;
	const char *location; /* NULL: ptd could not copy the file */
	const char *hash;     /* of the content of one that could not be copied; NULL: not known */
	struct objectsmap_inode inode; /* of the file that is meant; all 0: any */
};

struct objectmap {
	bool is_there; /* the snapshot has a map */
	struct arena arena;
	struct map lines;  /* hash of path → struct line */
	struct map exact;  /* hash of path and location → struct line; lines of build-ids only */
	struct map inodes; /* hash of path and inode → struct line */
};

static bool is_hex(const char *s, size_t n)
{
	return n > 0 && strspn(s, "0123456789abcdef") == n && s[n] == '\0';
}

/* Make the place below the snapshot of the file with build-id @hex that is called @name there. */
static void place_of_id(const char *hex, const char *name, char *ret_place, size_t size)
{
	(void)snprintf(ret_place, size, PTD_SNAPSHOT_OBJECTS "/.build-id/%.2s/%s/%s", hex, hex + 2,
		       name);
}

/* Make the place of the file with this @id in the map. Return: 0, -EBADMSG or -ENOMEM. */
static int locate(struct objectmap *map, const char *id, const char *name,
		  const char **ret_location)
{
	char path[2 * SHA256_HEX_CHARS];

	if (strncmp(id, OBJECTSMAP_HASH, strlen(OBJECTSMAP_HASH)) == 0) {
		id += strlen(OBJECTSMAP_HASH);
		if (!is_hex(id, SHA256_HEX_CHARS))
			return -EBADMSG;
		(void)snprintf(path, sizeof(path), BY_CONTENT "%s/%s", id, name);
	} else {
		const size_t n = strlen(id);

		if (n < 4 || n >= BUILDID_HEX_MAX || !is_hex(id, n))
			return -EBADMSG;
		place_of_id(id, name, path, sizeof(path));
	}
	*ret_location = arena_strdup(&map->arena, path);
	return *ret_location ? 0 : -ENOMEM;
}

/* The kinds of places. */
enum kind { LOST, BY_ID, BY_HASH };

static enum kind kind_of(const struct line *line)
{
	if (!line->location)
		return LOST;
	return strncmp(line->location, BY_CONTENT, strlen(BY_CONTENT)) == 0 ? BY_HASH : BY_ID;
}

static uint64_t exact_key(const char *path, const char *location)
{
	const uint64_t key[] = { map_hash(path, strlen(path)),
				 map_hash(location, strlen(location)) };

	return map_hash(key, sizeof(key));
}

static struct line *find_exact(const struct objectmap *map, const char *path, const char *location)
{
	struct line *l = map_pointer(&map->exact, exact_key(path, location));

	while (l && (strcmp(l->path, path) != 0 || strcmp(l->location, location) != 0))
		l = l->exact;
	return l;
}

static int index_exact(struct objectmap *map, struct line *line)
{
	const uint64_t key = exact_key(line->path, line->location);

	if (find_exact(map, line->path, line->location))
		return 0;
	line->exact = map_pointer(&map->exact, key);
	return map_put(&map->exact, key, (uintptr_t)line);
}

static uint64_t inode_key(const char *path, const struct objectsmap_inode *inode)
{
	const uint64_t key[] = { map_hash(path, strlen(path)),
				 (uint64_t)inode->maj << 32 | inode->min, inode->ino };

	return map_hash(key, sizeof(key));
}

static bool is_of_inode(const struct line *l, const char *path,
			const struct objectsmap_inode *inode)
{
	return objectsmap_same_inode(&l->inode, inode) && strcmp(l->path, path) == 0;
}

/* Return: what the snapshot knows of the file, which is the same for the same file. */
static const char *content_of(const struct line *line)
{
	return line->location ?: line->hash ?: "";
}

static bool is_same_content(const struct line *a, const struct line *b)
{
	return strcmp(content_of(a), content_of(b)) == 0;
}

/* Put the line before the others of its path and inode. More than two that differ say no more than
 * two. */
static int index_inode(struct objectmap *map, struct line *line)
{
	const uint64_t key = inode_key(line->path, &line->inode);
	size_t n_others = 0;

	line->exact = map_pointer(&map->inodes, key);
	for (const struct line *l = line->exact; l; l = l->exact)
		if (is_of_inode(l, line->path, &line->inode) &&
		    (++n_others == 2 || is_same_content(l, line)))
			return 0;
	return map_put(&map->inodes, key, (uintptr_t)line);
}

/* Return: the first line of the paths with the hash of @path; NULL if there is none. */
static struct line *first_of(const struct objectmap *map, const char *path)
{
	return map_pointer(&map->lines, map_hash(path, strlen(path)));
}

/*
 * Put @line, which belongs to @map, before the other lines of its hash. If a path has two lines of
 * one kind whose places differ, the search without a build-id is ambiguous: further lines are left
 * out, which keeps the search short.
 */
static int chain(struct objectmap *map, struct line *line)
{
	const uint64_t key = map_hash(line->path, strlen(line->path));
	size_t n_others = 0;

	line->next = first_of(map, line->path);
	for (const struct line *l = line->next; l; l = l->next) {
		if (kind_of(l) != kind_of(line) || (l->inode.ino > 0) != (line->inode.ino > 0) ||
		    strcmp(l->path, line->path) != 0)
			continue;
		if (++n_others == 2 || is_same_content(l, line))
			return 0;
	}
	return map_put(&map->lines, key, (uintptr_t)line);
}

/* Add the line of @size bytes at @bytes. */
static int add_line(struct objectmap *map, const uint8_t *bytes, size_t size)
{
	struct line *line = arena_alloc(&map->arena, sizeof(*line));
	char *text = arena_alloc(&map->arena, size + 1);
	char hash[SHA256_HEX_SIZE];
	const char *id;
	int r;

	if (!line || !text)
		return -ENOMEM;
	memcpy(text, bytes, size);
	if (strlen(text) != size || objectsmap_split(text, &id, &line->path) < 0)
		return -EBADMSG;
	*line = (struct line){ .path = line->path };
	r = objectsmap_take_inode(&id, &line->inode);
	if (r < 0)
		return r;
	if (!objectsmap_is_missing(id, hash))
		r = locate(map, id, mapname_in_cache(line->path), &line->location);
	else if (hash[0] != '\0' && !(line->hash = arena_strdup(&map->arena, hash)))
		r = -ENOMEM;
	if (r < 0)
		return r;
	if (line->inode.ino > 0)
		r = index_inode(map, line);
	else
		r = line->location && kind_of(line) == BY_ID ? index_exact(map, line) : 0;
	return r < 0 ? r : chain(map, line);
}

static int read_lines(struct objectmap *map, const struct mapfile *file)
{
	for (size_t i = 0, at = 0; at < file->size; i++) {
		const uint8_t *line = file->bytes + at;
		const uint8_t *end = memchr(line, '\n', file->size - at);
		int r;

		if (!end || i == LINES_MAX)
			return -EBADMSG;
		r = add_line(map, line, (size_t)(end - line));
		if (r < 0)
			return r;
		at += (size_t)(end - line) + 1;
	}
	return 0;
}

int objectmap_new(const char *snapshot_dir, struct objectmap **ret_map)
{
	_cleanup_(objectmap_freep) struct objectmap *map = calloc(1, sizeof(*map));
	_cleanup_(mapfile_deinit) struct mapfile file = {};
	_cleanup_(freep) char *path = NULL;
	int r;

	if (!map)
		return -ENOMEM;
	path = message_text("%s/" PTD_SNAPSHOT_OBJECTS_MAP, snapshot_dir);
	if (!path)
		return -ENOMEM;
	r = mapfile_read(&file, AT_FDCWD, path);
	map->is_there = r == 0;
	if (r == 0)
		r = read_lines(map, &file);
	else if (r == -ENOENT)
		r = 0;
	if (r < 0)
		return r;
	*ret_map = TAKE(map);
	return 0;
}

/*
 * Find the place of the file with this build-id, whether or not there is a file in it. Return:
 * whether the map has it for this path.
 */
static bool find_by_id(const struct objectmap *map, const char *path, const struct buildid *id,
		       const char **ret_location)
{
	char hex[BUILDID_HEX_MAX], place[2 * SHA256_HEX_CHARS];
	const struct line *line;

	buildid_hex(id, hex);
	place_of_id(hex, mapname_in_cache(path), place, sizeof(place));
	line = find_exact(map, path, place);
	if (line)
		*ret_location = line->location;
	return line != NULL;
}

/* Return: 0 and the place; OBJECTMAP_LOST and the hash; OBJECTMAP_AMBIGUOUS; or OBJECTMAP_NONE if
 * the map has no line of this inode. */
static int find_by_inode(const struct objectmap *map, const char *path,
			 const struct objectsmap_inode *inode, const char **ret_location)
{
	const struct line *found = NULL;

	for (const struct line *l = map_pointer(&map->inodes, inode_key(path, inode)); l;
	     l = l->exact) {
		if (!is_of_inode(l, path, inode))
			continue;
		if (found)
			return OBJECTMAP_AMBIGUOUS;
		found = l;
	}
	if (!found)
		return OBJECTMAP_NONE;
	*ret_location = found->location ?: found->hash;
	return found->location ? 0 : OBJECTMAP_LOST;
}

/* Return: OBJECTMAP_LOST and the hash, NULL if it is not known or those of the path differ; or
 * which other one @lost means that there is none of. */
static int lose(const struct objectmap *map, const struct line *lost, bool differ,
		const char **ret_location)
{
	if (!lost)
		return map->is_there ? OBJECTMAP_NONE : OBJECTMAP_NO_MAP;
	*ret_location = differ ? NULL : lost->hash;
	return OBJECTMAP_LOST;
}

int objectmap_find(const struct objectmap *map, const char *path, const struct buildid *id,
		   const struct objectsmap_inode *inode, const char **ret_location)
{
	const struct line *lost = NULL;
	const char *found = NULL;
	bool differ = false;
	int r;

	r = inode->ino > 0 ? find_by_inode(map, path, inode, ret_location) : OBJECTMAP_NONE;
	if (r != OBJECTMAP_NONE)
		return r;
	if (id->size > 1 && find_by_id(map, path, id, ret_location))
		return 0;
	for (const struct line *l = first_of(map, path); l; l = l->next) {
		/* Those of an inode are other files, unless it is not known what is meant. */
		if (strcmp(l->path, path) != 0 ||
		    (l->inode.ino > 0 && (id->size > 0 || inode->ino > 0)))
			continue;
		if (!l->location) {
			differ = differ || (lost && !is_same_content(l, lost));
			lost = l;
		}
		if (!l->location || (id->size > 0 && kind_of(l) == BY_ID))
			continue;
		if (found && strcmp(l->location, found) != 0)
			return OBJECTMAP_AMBIGUOUS;
		found = l->location;
	}
	if (!found)
		return lose(map, lost, differ, ret_location);
	/* The file that could not be copied may be another one, and the one that is meant. Whether
	 * it is this one, its build-id tells. */
	if (lost && id->size < 2)
		return OBJECTMAP_AMBIGUOUS;
	*ret_location = found;
	return 0;
}

bool objectmap_tells_inodes(const struct objectmap *map, const char *path)
{
	for (const struct line *l = first_of(map, path); l; l = l->next)
		if (l->inode.ino > 0 && strcmp(l->path, path) == 0)
			return true;
	return false;
}

struct objectmap *objectmap_free(struct objectmap *map)
{
	if (!map)
		return NULL;
	map_deinit(&map->lines);
	map_deinit(&map->exact);
	map_deinit(&map->inodes);
	arena_deinit(&map->arena);
	free(map);
	return NULL;
}
