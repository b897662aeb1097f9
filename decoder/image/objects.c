/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/image/objects.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "decoder/image/codefile.h"
#include "decoder/image/objectmap.h"
#include "decoder/symbol/debugfile.h"
#include "ptd/snapshot.h"
#include "util/arena.h"
#include "util/map.h"
#include "util/mapname.h"
#include "util/objectsmap.h"

/* The result of an earlier search. Those whose paths and build-ids hash alike are chained. */
struct answer {
	struct answer *next;
	const char *path;
	struct buildid asked;
	struct objectsmap_inode inode;
	struct codefile *file;
};

/* What is searched for. */
struct question {
	const char *path;
	struct buildid id;             /* size 0: not known */
	struct objectsmap_inode inode; /* all 0: not known */
};

struct objects {
	char *dir;                   /* the snapshot, or NULL */
	struct objectmap *objectmap; /* the snapshot's, or NULL */
	struct objects_places places;
	struct debugfile_places debug_places;
	const char *debug_dirs[3]; /* of debug_places */
	struct codefiles files;
	struct arena arena; /* of the answers and the places */
	struct map answers; /* hash of path and build-id → struct answer */
};

/* --- the search ------------------------------------------------------------------------------- */

/*
 * Try one place, or the file open at @fd, which is taken over; *@state says afterwards how far the
 * search has come. All that can go wrong means that the file cannot be had, want of memory too: too
 * many mappings look the same.
 */
static void try_file(struct objects *objects, const char *path, int fd,
		     const struct buildid *wanted, enum object_state *state,
		     struct codefile **ret_file)
{
	_cleanup_(codefile_freep) struct codefile *file = NULL;
	_cleanup_(fd_closep) int given = fd;

	if (codefile_load(&objects->files.fileset, path, &given, &file) < 0)
		return;
	if (wanted->size && !codefile_has_build_id(file, wanted)) {
		*state = OBJECT_WRONG_ID;
		return;
	}
	*state = OBJECT_OK;
	*ret_file = TAKE(file);
}

static void try_path(struct objects *objects, const char *path, const struct buildid *wanted,
		     enum object_state *state, struct codefile **ret_file)
{
	try_file(objects, path, -1, wanted, state, ret_file);
}

/* @location is relative to the snapshot. Return: 0 or -ENOMEM. */
static int try_in_snapshot(struct objects *objects, const char *location,
			   const struct buildid *wanted, enum object_state *state,
			   struct codefile **ret_file)
{
	_cleanup_(freep) char *path = NULL;

	if (asprintf(&path, "%s/%s", objects->dir, location) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	try_path(objects, path, wanted, state, ret_file);
	return 0;
}

/* Whatever lies under the build-id, in a directory that perf wrote. Return: 0 or -ENOMEM. */
static int search_snapshot_by_id(struct objects *objects, const char *path,
				 const struct buildid *wanted, enum object_state *state,
				 struct codefile **ret_file)
{
	char place[BUILDID_PLACE_MAX], by_id[BUILDID_PLACE_MAX + 32];

	if (wanted->size < 2)
		return 0;
	(void)snprintf(by_id, sizeof(by_id), PTD_SNAPSHOT_OBJECTS "/%s/%s",
		       buildid_place(wanted, place), mapname_in_cache(path));
	return try_in_snapshot(objects, by_id, wanted, state, ret_file);
}

/*
 * Return: 0; OBJECTMAP_AMBIGUOUS if no other place can have the file, and the snapshot does not;
 *         -ENOMEM.
 */
static int search_snapshot(struct objects *objects, const struct question *question,
			   enum object_state *state, struct codefile **ret_file)
{
	const struct buildid *wanted = &question->id;
	const char *path = question->path, *location;
	int r;

	r = objectmap_find(objects->objectmap, path, wanted, &question->inode, &location);
	switch (r) {
	case 0:
		return try_in_snapshot(objects, location, wanted, state, ret_file);
	case OBJECTMAP_NO_MAP:
		return search_snapshot_by_id(objects, path, wanted, state, ret_file);
	case OBJECTMAP_AMBIGUOUS:
		*state = OBJECT_WRONG_ID; /* the file at the path today is no better guess */
		return r;
	case OBJECTMAP_LOST:
		/* If only its path is known, the file on this machine may be another one. */
		return wanted->size > 0 ? 0 : OBJECTMAP_AMBIGUOUS;
	default:
		return 0;
	}
}

/* Search by build-id alone, whatever the file was called. Return: 0 or -ENOMEM. */
static int search_buildid_dir(struct objects *objects, const struct buildid *wanted,
			      enum object_state *state, struct codefile **ret_file)
{
	/* The last one is the name that older versions of perf gave. */
	static const char *const names[] = { "/elf", "/vdso", "" };
	char place[BUILDID_PLACE_MAX];

	if (!objects->places.buildid_dir || wanted->size < 2)
		return 0;
	buildid_place(wanted, place);
	for (size_t i = 0; i < ARRAY_LEN(names) && *state != OBJECT_OK; i++) {
		_cleanup_(freep) char *path = NULL;

		if (asprintf(&path, "%s/%s%s", objects->places.buildid_dir, place, names[i]) < 0) {
			path = NULL;
			return -ENOMEM;
		}
		try_path(objects, path, wanted, state, ret_file);
	}
	return 0;
}

/* Search at the path, below the directory that stands for the root if there is one. Return: 0 or
 * -ENOMEM. */
static int search_at_path(struct objects *objects, const char *path, const struct buildid *wanted,
			  enum object_state *state, struct codefile **ret_file)
{
	_cleanup_(freep) char *below = NULL;

	if (objects->places.symfs && asprintf(&below, "%s%s", objects->places.symfs, path) < 0) {
		below = NULL;
		return -ENOMEM;
	}
	try_path(objects, below ?: path, wanted, state, ret_file);
	return 0;
}

/* Ask the other process to fetch the file. */
static void search_elsewhere(struct objects *objects, const struct buildid *wanted,
			     enum object_state *state, struct codefile **ret_file)
{
	_cleanup_(freep) char *path = NULL;
	const int fd = fetch_get(&objects->places.fetch, PTD_FETCH_FILE, wanted, &path);

	if (fd >= 0)
		try_file(objects, path, fd, wanted, state, ret_file);
}

static int search_file(struct objects *objects, const struct question *question,
		       enum object_state *ret_state, struct codefile **ret_file)
{
	const struct buildid *wanted = &question->id;
	const char *path = question->path;
	enum object_state state = mapname_is_file(path)      ? OBJECT_MISSING
				  : mapname_is_uprobes(path) ? OBJECT_COPIES
							     : OBJECT_NO_FILE;
	bool is_only_there = false;
	int r = 0;

	if (objects->dir) {
		r = search_snapshot(objects, question, &state, ret_file);
		if (r < 0)
			return r;
		is_only_there = r == OBJECTMAP_AMBIGUOUS;
	}
	if (state != OBJECT_OK) {
		r = search_buildid_dir(objects, wanted, &state, ret_file);
		if (r < 0)
			return r;
	}
	if (mapname_is_file(path) && !is_only_there &&
	    (state == OBJECT_MISSING || (state == OBJECT_WRONG_ID && wanted->size))) {
		r = search_at_path(objects, path, wanted, &state, ret_file);
		if (r < 0)
			return r;
	}
	if (state != OBJECT_OK)
		search_elsewhere(objects, wanted, &state, ret_file);
	*ret_state = state;
	return 0;
}

static uint64_t key_of(const struct question *q)
{
	const uint64_t key[] = { map_hash(q->path, strlen(q->path)),
				 map_hash(q->id.bytes, q->id.size), q->inode.ino };

	return map_hash(key, sizeof(key));
}

/* Return: the file that was found for the question; NULL if it was not searched for. */
static struct codefile *find_answer(const struct objects *objects, const struct question *q)
{
	const uint64_t *head = map_get(&objects->answers, key_of(q));

	for (const struct answer *a = head ? (struct answer *)(uintptr_t)*head : NULL; a;
	     a = a->next)
		if (strcmp(a->path, q->path) == 0 && buildid_equal(&a->asked, &q->id) &&
		    a->inode.ino == q->inode.ino && a->inode.maj == q->inode.maj &&
		    a->inode.min == q->inode.min)
			return a->file;
	return NULL;
}

static int add_answer(struct objects *objects, const struct question *q, struct codefile *file)
{
	const uint64_t key = key_of(q), *head = map_get(&objects->answers, key);
	struct answer *answer = arena_alloc(&objects->arena, sizeof(*answer));

	if (!answer)
		return -ENOMEM;
	*answer = (struct answer){
		.next = head ? (struct answer *)(uintptr_t)*head : NULL,
		.path = arena_strdup(&objects->arena, q->path),
		.asked = q->id,
		.inode = q->inode,
		.file = file,
	};
	if (!answer->path)
		return -ENOMEM;
	return map_put(&objects->answers, key, (uintptr_t)answer);
}

static bool is_same(const struct codefile *a, const struct codefile *b)
{
	return a && a->object.state == OBJECT_OK &&
	       strcmp(a->object.id.source, b->object.id.source) == 0;
}

static int find_new_file(struct objects *objects, const struct question *q,
			 struct codefile **ret_file)
{
	_cleanup_(codefile_freep) struct codefile *file = NULL;
	struct question by_id = { .path = q->path };
	struct codefile *same = NULL;
	enum object_state state;
	int r;

	r = search_file(objects, q, &state, &file);
	if (r < 0)
		return r;
	if (!file) {
		r = codefile_new_missing(&q->id, &file);
		if (r < 0)
			return r;
	}

	/* A search with the build-id and one without find one object, not two of the same name. */
	by_id.id.size = file->object.id.build_id_size;
	memcpy(by_id.id.bytes, file->object.id.build_id, sizeof(by_id.id.bytes));
	if (state == OBJECT_OK && by_id.id.size)
		same = find_answer(objects, &by_id);
	if (is_same(same, file)) {
		*ret_file = same;
	} else {
		*ret_file = file;
		r = codefiles_adopt(&objects->files, q->path, state, &file);
		if (r == 0 && state == OBJECT_OK && by_id.id.size && !same && !q->id.size &&
		    !q->inode.ino)
			r = add_answer(objects, &by_id, *ret_file);
		if (r < 0)
			return r;
	}
	return add_answer(objects, q, *ret_file);
}

int objects_find_mapped(struct objects *objects, const char *path, const struct buildid *build_id,
			const struct objectsmap_inode *inode, const struct object **ret_object)
{
	const bool counts =
	    inode && objects->dir && objectmap_tells_inodes(objects->objectmap, path);
	const struct question question = {
		.path = path,
		.id = build_id ? *build_id : (struct buildid){},
		.inode = counts ? *inode : (struct objectsmap_inode){},
	};
	struct codefile *file = find_answer(objects, &question);
	int r = 0;

	if (!file)
		r = find_new_file(objects, &question, &file);
	if (r == 0)
		*ret_object = &file->object;
	return r;
}

int objects_find(struct objects *objects, const char *path, const struct buildid *build_id,
		 const struct object **ret_object)
{
	return objects_find_mapped(objects, path, build_id, NULL, ret_object);
}

/*
 * --- objects that are not searched for
 * -----------------------------------------------------------------
 */

/* Give *@file to @objects; *@file is NULL then. */
static int adopt_file(struct objects *objects, const char *name, struct codefile **file,
		      struct object **ret_object)
{
	struct object *object = &(*file)->object;
	const int r = codefiles_adopt(&objects->files, name, OBJECT_OK, file);

	if (r == 0)
		*ret_object = object;
	return r;
}

int objects_add_named(struct objects *objects, const char *path, const char *name,
		      struct object **ret_object)
{
	_cleanup_(codefile_freep) struct codefile *file = NULL;
	_cleanup_(fd_closep) int fd = -1;
	const int r = codefile_load(&objects->files.fileset, path, &fd, &file);

	return r < 0 ? r : adopt_file(objects, name, &file, ret_object);
}

int objects_add_file(struct objects *objects, const char *path, const struct object **ret_object)
{
	struct object *object;
	int r;

	r = objects_add_named(objects, path, path, &object);
	if (r == 0)
		*ret_object = object;
	return r;
}

int objects_add_memory(struct objects *objects, const char *path, const char *name,
		       struct object **ret_object)
{
	_cleanup_(codefile_freep) struct codefile *file = NULL;
	const int r = codefile_load_memory(&objects->files.fileset, path, &file);

	return r < 0 ? r : adopt_file(objects, name, &file, ret_object);
}

int objects_share(struct objects *objects, const struct object *object, bool is_plain,
		  const char *name, struct object **ret_object)
{
	_cleanup_(codefile_freep) struct codefile *file = NULL;
	const int r = codefile_share((const struct codefile *)object, is_plain, &file);

	return r < 0 ? r : adopt_file(objects, name, &file, ret_object);
}

int objects_add_synthetic(struct objects *objects, const char *name, struct object **ret_object)
{
	_cleanup_(codefile_freep) struct codefile *file = NULL;
	const int r = codefile_new(NULL, &file);

	return r < 0 ? r : adopt_file(objects, name, &file, ret_object);
}

/*
 * --- the collection ------------------------------------------------------------------------------
 */

const char *objects_dir(const struct objects *objects)
{
	return objects->dir;
}

const char *objects_failure(const struct objects *objects)
{
	return fileset_failure(&objects->files.fileset);
}

int objects_new(const char *snapshot_dir, struct objects **ret_objects)
{
	_cleanup_(objects_freep) struct objects *objects = calloc(1, sizeof(*objects));
	int r;

	if (!objects)
		return -ENOMEM;
	codefiles_init(&objects->files);
	if (snapshot_dir) {
		objects->dir = strdup(snapshot_dir);
		if (!objects->dir)
			return -ENOMEM;
		r = objectmap_new(snapshot_dir, &objects->objectmap);
		if (r < 0)
			return r;
	}
	*ret_objects = TAKE(objects);
	return 0;
}

/* Return: 0 or -ENOMEM; what is NULL stays NULL. */
static int copy_string(struct objects *objects, const char *string, const char **ret_copy)
{
	*ret_copy = string ? arena_strdup(&objects->arena, string) : NULL;
	return string && !*ret_copy ? -ENOMEM : 0;
}

static int debug_dir_below(struct objects *objects, const char *root, char **ret_dir)
{
	const size_t size = strlen(root) + sizeof(DEBUGFILE_SYSTEM_DIR);
	char *dir = arena_alloc(&objects->arena, size);

	if (!dir)
		return -ENOMEM;
	(void)snprintf(dir, size, "%s" DEBUGFILE_SYSTEM_DIR, root);
	*ret_dir = dir;
	return 0;
}

int objects_look_in(struct objects *objects, const struct objects_places *places)
{
	struct objects_places own = { .fetch = places->fetch };
	char *symfs_debug_dir = NULL;
	size_t n = 0;
	int r;

	r = copy_string(objects, places->buildid_dir, &own.buildid_dir);
	if (r == 0)
		r = copy_string(objects, places->symfs, &own.symfs);
	if (r == 0)
		r = copy_string(objects, places->debug_dir, &own.debug_dir);
	if (r == 0 && own.symfs)
		r = debug_dir_below(objects, own.symfs, &symfs_debug_dir);
	if (r < 0)
		return r;

	if (own.debug_dir)
		objects->debug_dirs[n++] = own.debug_dir;
	if (symfs_debug_dir)
		objects->debug_dirs[n++] = symfs_debug_dir;
	objects->debug_dirs[n++] = DEBUGFILE_SYSTEM_DIR;
	objects->debug_places = (struct debugfile_places){
		.snapshot = objects->dir,
		.buildid_dir = own.buildid_dir,
		.symfs = own.symfs,
		.dirs = objects->debug_dirs,
		.n_dirs = n,
		.fetch = own.fetch,
		.fileset = &objects->files.fileset,
	};
	objects->files.debug_places = &objects->debug_places;
	objects->places = own;
	return 0;
}

struct objects *objects_free(struct objects *objects)
{
	if (!objects)
		return NULL;
	codefiles_deinit(&objects->files);
	map_deinit(&objects->answers);
	(void)objectmap_free(objects->objectmap);
	arena_deinit(&objects->arena);
	free(objects->dir);
	free(objects);
	return NULL;
}
