/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/image/objects.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "decoder/image/codefile.h"
#include "decoder/image/objectmap.h"
#include "decoder/symbol/debugfile.h"
#include "ptd/snapshot.h"
#include "util/arena.h"
#include "util/map.h"
#include "util/mapname.h"
#include "util/message.h"
#include "util/objectsmap.h"
#include "util/regular.h"
#include "util/sha256.h"

/* What is searched for. */
struct question {
	const char *path;
	struct buildid id;             /* size 0: not known */
	struct objectsmap_inode inode; /* all 0: not known */
};

/* The result of an earlier search. Those whose questions hash alike are chained. */
struct answer {
	struct answer *next;
	struct question question;
	struct codefile *file;
};

struct objects {
	char *dir;                   /* the snapshot, or NULL */
	struct objectmap *objectmap; /* the snapshot's, or NULL */
	struct objects_places places;
	struct debugfile_places debug_places;
	const char *debug_dirs[3]; /* of debug_places */
	struct codefiles files;
	struct arena arena; /* of the answers and the places */
	struct map answers; /* hash of a question → struct answer */
};

/* --- the search ------------------------------------------------------------------------------- */

/* The search for the file that was mapped by @path, with the build-id @wanted, if it is known. */
struct search {
	struct objects *objects;
	const struct question *question;
	const char *path; /* of the question, as the next */
	const struct buildid *wanted;
	const char *hash;        /* of the content of what is wanted; NULL: not known */
	enum object_state state; /* how far it has come */
	struct codefile *file;   /* that was found; or NULL */
};

/* Open the file at @path, unless it is open at *@fd. Return: whether it has the hash. */
static bool has_hash(const char *path, const char *wanted, int *fd)
{
	if (*fd < 0)
		*fd = regular_open(AT_FDCWD, path, 0);
	return *fd >= 0 && sha256_fd_is(*fd, wanted);
}

/*
 * Try the file at @path, or the one that is open at @fd, which is taken over. All that can go wrong
 * means that the file cannot be had, want of memory too: too many mappings look the same.
 */
static void try_file(struct search *s, const char *path, int fd)
{
	_cleanup_(codefile_freep) struct codefile *file = NULL;
	_cleanup_(fd_closep) int given = fd;

	if ((s->hash && !has_hash(path, s->hash, &given)) ||
	    codefile_load(&s->objects->files.fileset, path, &given, &file) < 0)
		return;
	if (s->wanted->size && !codefile_has_build_id(file, s->wanted)) {
		s->state = OBJECT_WRONG_ID;
		return;
	}
	s->state = OBJECT_OK;
	s->file = TAKE(file);
}

/* Try the file at @path, which is freed; NULL: there was no memory for it. Return: 0 or -ENOMEM. */
static int try_path(struct search *s, char *path)
{
	if (!path)
		return -ENOMEM;
	try_file(s, path, -1);
	free(path);
	return 0;
}

/* Whatever lies under the build-id, in a directory that perf wrote. Return: 0 or -ENOMEM. */
static int search_snapshot_by_id(struct search *s)
{
	char place[BUILDID_PLACE_MAX];

	if (s->wanted->size < 2)
		return 0;
	return try_path(s,
			message_text("%s/" PTD_SNAPSHOT_OBJECTS "/%s/%s", s->objects->dir,
				     buildid_place(s->wanted, place), mapname_in_cache(s->path)));
}

/*
 * Return: 0; OBJECTMAP_AMBIGUOUS if no other place can have the file, and the snapshot does not;
 *         -ENOMEM.
 */
static int search_snapshot(struct search *s)
{
	const char *location;
	int r;

	r = objectmap_find(s->objects->objectmap, s->path, s->wanted, &s->question->inode,
			   &location);
	switch (r) {
	case 0:
		return try_path(s, message_text("%s/%s", s->objects->dir, location));
	case OBJECTMAP_NO_MAP:
		return search_snapshot_by_id(s);
	case OBJECTMAP_AMBIGUOUS:
		s->state = OBJECT_WRONG_ID; /* the file at the path today is no better guess */
		return r;
	case OBJECTMAP_LOST:
		/* If only its path is known, the file on this machine may be another one. */
		s->hash = s->wanted->size > 0 ? NULL : location;
		return s->wanted->size > 0 || s->hash ? 0 : OBJECTMAP_AMBIGUOUS;
	default:
		return 0;
	}
}

/* Search by build-id alone, whatever the file was called. Return: 0 or -ENOMEM. */
static int search_buildid_dir(struct search *s)
{
	/* The last one is the name that older versions of perf gave. */
	static const char *const names[] = { "/elf", "/vdso", "" };
	const char *dir = s->objects->places.buildid_dir;
	char place[BUILDID_PLACE_MAX];
	int r = 0;

	if (!dir || s->wanted->size < 2)
		return 0;
	buildid_place(s->wanted, place);
	for (size_t i = 0; i < ARRAY_LEN(names) && s->state != OBJECT_OK && r == 0; i++)
		r = try_path(s, message_text("%s/%s%s", dir, place, names[i]));
	return r;
}

/* Ask the other process to fetch the file. */
static void search_elsewhere(struct search *s)
{
	_cleanup_(freep) char *path = NULL;
	const int fd = fetch_get(&s->objects->places.fetch, PTD_FETCH_FILE, s->wanted, &path);

	if (fd >= 0)
		try_file(s, path, fd);
}

/* Return: 0 and s->state, and s->file if that is OBJECT_OK; or -ENOMEM. */
static int search_file(struct search *s)
{
	const bool is_file = mapname_is_file(s->path);
	bool is_only_there = false;
	int r = 0;

	s->state = is_file                       ? OBJECT_MISSING
		   : mapname_is_uprobes(s->path) ? OBJECT_COPIES
						 : OBJECT_NO_FILE;
	if (s->objects->dir) {
		r = search_snapshot(s);
		is_only_there = r == OBJECTMAP_AMBIGUOUS;
	}
	if (r >= 0 && s->state != OBJECT_OK)
		r = search_buildid_dir(s);
	/* At the path itself, below the directory that stands for the root if there is one. */
	if (r >= 0 && is_file && !is_only_there &&
	    (s->state == OBJECT_MISSING || (s->state == OBJECT_WRONG_ID && s->wanted->size)))
		r = try_path(s, message_text("%s%s", s->objects->places.symfs ?: "", s->path));
	if (r >= 0 && s->state != OBJECT_OK)
		search_elsewhere(s);
	return r < 0 ? r : 0;
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
	for (const struct answer *a = map_pointer(&objects->answers, key_of(q)); a; a = a->next)
		if (strcmp(a->question.path, q->path) == 0 &&
		    buildid_equal(&a->question.id, &q->id) &&
		    objectsmap_same_inode(&a->question.inode, &q->inode))
			return a->file;
	return NULL;
}

static int add_answer(struct objects *objects, const struct question *q, struct codefile *file)
{
	const uint64_t key = key_of(q);
	struct answer *answer = arena_alloc(&objects->arena, sizeof(*answer));

	if (!answer)
		return -ENOMEM;
	*answer = (struct answer){
		.next = map_pointer(&objects->answers, key),
		.question = *q,
		.file = file,
	};
	answer->question.path = arena_strdup(&objects->arena, q->path);
	if (!answer->question.path)
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
	struct search search = {
		.objects = objects, .question = q, .path = q->path, .wanted = &q->id
	};
	struct question by_id = { .path = q->path };
	struct codefile *same = NULL;
	enum object_state state;
	int r = search_file(&search);

	file = search.file;
	state = search.state;
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

/* --- objects that are not searched for -------------------------------------------------------- */

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

/* --- the collection --------------------------------------------------------------------------- */

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

int objects_look_in(struct objects *objects, const struct objects_places *places)
{
	struct objects_places own = { .fetch = places->fetch };
	char *symfs_debug_dir = NULL;
	const size_t size =
	    places->symfs ? strlen(places->symfs) + sizeof(DEBUGFILE_SYSTEM_DIR) : 0;
	size_t n = 0;
	int r;

	r = copy_string(objects, places->buildid_dir, &own.buildid_dir);
	if (r == 0)
		r = copy_string(objects, places->symfs, &own.symfs);
	if (r == 0)
		r = copy_string(objects, places->debug_dir, &own.debug_dir);
	if (r == 0 && own.symfs && !(symfs_debug_dir = arena_alloc(&objects->arena, size)))
		r = -ENOMEM;
	if (r < 0)
		return r;
	if (symfs_debug_dir)
		(void)snprintf(symfs_debug_dir, size, "%s" DEBUGFILE_SYSTEM_DIR, own.symfs);

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
