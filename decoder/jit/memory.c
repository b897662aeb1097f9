/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/jit/memory.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ptd/snapshot.h"
#include "util/dirs.h"

#define NAME "[anon]"

/* PID-ADDR, and nothing else. */
static bool read_name(const char *name, uint32_t *ret_pid, uint64_t *ret_start)
{
	char again[64];

	if (sscanf(name, "%" SCNu32 "-%" SCNx64, ret_pid, ret_start) != 2)
		return false;
	(void)snprintf(again, sizeof(again), "%" PRIu32 "-%" PRIx64, *ret_pid, *ret_start);
	return strcmp(name, again) == 0;
}

static int add_piece(struct memory *memory, struct objects *objects, const char *name)
{
	_cleanup_(freep) char *path = NULL;
	struct memory_piece piece = {};
	struct object *object;
	int r;

	if (!read_name(name, &piece.pid, &piece.start) || memory->pieces.n == MEMORY_PIECES_MAX)
		return 0;
	if (asprintf(&path, "%s/" PTD_SNAPSHOT_MEM "/%s", objects_dir(objects), name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	r = objects_add_memory(objects, path, NAME, piece.start, &object);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (object->size == 0 || object->size - 1 > UINT64_MAX - piece.start)
		return 0;
	piece.object = object;
	piece.last = piece.start + (object->size - 1);
	return vec_push(&memory->pieces, piece);
}

static int compare(const void *pa, const void *pb)
{
	const struct memory_piece *a = pa, *b = pb;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return a->start < b->start ? -1 : a->start > b->start;
}

/* Of pieces that overlap, which no recorder writes, the first counts. */
static void drop_overlaps(struct memory *memory)
{
	struct memory_piece *p = memory->pieces.items;
	size_t n = 0;

	for (size_t i = 0; i < memory->pieces.n; i++)
		if (n == 0 || p[i].pid != p[n - 1].pid || p[i].start > p[n - 1].last)
			p[n++] = p[i];
	memory->pieces.n = n;
}

static int name_pieces(struct memory *memory, struct perfmaps *perfmaps)
{
	for (size_t i = 0; i < memory->pieces.n; i++) {
		struct memory_piece *p = &memory->pieces.items[i];
		struct perfmap *perfmap;
		uint64_t start, end;
		int r;

		r = perfmaps_find(perfmaps, p->pid, &perfmap);
		if (r < 0)
			return r;
		if (!perfmap)
			continue;
		object_span(p->object, &start, &end);
		perfmap_source_init(&p->names, perfmap, start, end);
		/* The object is ours until it is used for the first time. */
		((struct object *)(uintptr_t)p->object)->symbols = &p->names.source;
	}
	return 0;
}

static int read_dir(struct memory *memory, struct objects *objects, struct perfmaps *perfmaps)
{
	_cleanup_(dirs_closep) DIR *dir = NULL;
	_cleanup_(freep) char *path = NULL;
	const struct dirent *entry;
	int r;

	if (asprintf(&path, "%s/" PTD_SNAPSHOT_MEM, objects_dir(objects)) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		r = add_piece(memory, objects, entry->d_name);
		if (r < 0)
			return r;
	}
	if (memory->pieces.n == 0)
		return 0;
	qsort(memory->pieces.items, memory->pieces.n, sizeof(*memory->pieces.items), compare);
	drop_overlaps(memory);
	return name_pieces(memory, perfmaps);
}

int memory_init(struct memory *memory, struct objects *objects, struct perfmaps *perfmaps)
{
	int r = 0;

	*memory = (struct memory){};
	if (objects_dir(objects))
		r = read_dir(memory, objects, perfmaps);
	if (r < 0)
		memory_deinit(memory);
	return r;
}

void memory_deinit(struct memory *memory)
{
	for (size_t i = 0; i < memory->pieces.n; i++)
		perfmap_source_deinit(&memory->pieces.items[i].names);
	vec_deinit(&memory->pieces);
}

const struct memory_piece *memory_find(const struct memory *memory, uint32_t pid, uint64_t address)
{
	const struct memory_piece *p = memory->pieces.items;
	const size_t low =
	    vec_bisect(&memory->pieces, piece,
		       piece->pid < pid || (piece->pid == pid && piece->last < address));

	return low < memory->pieces.n && p[low].pid == pid ? &p[low] : NULL;
}
