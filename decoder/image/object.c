/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/image/object.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "decoder/image/kept.h"
#include "decoder/util/arena.h"
#include "decoder/util/copyfile.h"
#include "decoder/util/fetch.h"
#include "decoder/util/map.h"
#include "decoder/util/mapfile.h"
#include "decoder/util/mapname.h"
#include "decoder/util/vec.h"
#include "ptd/snapshot.h"

#define SEGMENTS_MAX 256 /* loadable ones; real files have four to ten */

/* Of fetched files, in memory. */
#define COPIES_MAX      256u
#define COPIES_SIZE_MAX (UINT64_C(1) << 30)

struct segment {
	uint64_t offset, size; /* in the file */
	uint64_t address;
};

/* An object and what only this file knows of it. The object is first: see object_address(). */
struct file {
	struct object object;
	struct mapfile map;
	VEC(struct segment) segments; /* executable ones first */
};

/* One question that was asked before; those whose paths and build-ids hash alike are chained. */
struct answer {
	struct answer *next;
	const char *path;
	struct buildid asked;
	struct file *file;
};

struct objects {
	char *dir;         /* the snapshot, or NULL */
	struct kept *kept; /* its objects.map, or NULL */
	char *buildid_dir; /* or NULL, like the next */
	char *symfs;
	int fetch;       /* see decoder/util/fetch.h */
	VEC(int) copies; /* of files that were fetched, open: by that they have a path */
	uint64_t copies_size;
	struct arena arena;
	struct map answers; /* hash of path and build-id → struct answer */
	VEC(struct file *) files;
};

/* --- one file --------------------------------------------------------------------------------- */

static void elf_endp(Elf **elf)
{
	if (*elf)
		elf_end(*elf);
}

static int add_segments(struct file *file, Elf *elf, size_t n_headers, bool executable)
{
	for (size_t i = 0; i < n_headers && file->segments.n < SEGMENTS_MAX; i++) {
		GElf_Phdr h;
		int r;

		if (!gelf_getphdr(elf, (int)i, &h))
			break;
		if (h.p_type != PT_LOAD || !!(h.p_flags & PF_X) != executable)
			continue;
		r = vec_push(&file->segments,
			     { .offset = h.p_offset, .size = h.p_filesz, .address = h.p_vaddr });
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_elf(struct file *file)
{
	_cleanup_(elf_endp) Elf *elf = NULL;
	size_t n_headers;
	int r;

	(void)elf_version(EV_CURRENT);
	elf = file->map.size > 0 ? elf_memory((char *)(uintptr_t)file->map.bytes, file->map.size)
				 : NULL;
	if (!elf || elf_kind(elf) != ELF_K_ELF || elf_getphdrnum(elf, &n_headers) < 0)
		return 0;

	file->object.is_elf = true;
	r = add_segments(file, elf, n_headers, true);
	return r < 0 ? r : add_segments(file, elf, n_headers, false);
}

static struct file *file_free(struct file *file)
{
	if (!file)
		return NULL;
	mapfile_deinit(&file->map);
	vec_deinit(&file->segments);
	free((void *)(uintptr_t)file->object.id.source);
	free(file);
	return NULL;
}
DEFINE_CLEANUP(struct file *, file_free);

static void set_build_id(struct object *object, const struct buildid *id)
{
	object->id.build_id_size = id->size;
	memcpy(object->id.build_id, id->bytes, id->size);
}

static bool has_build_id(const struct object *object, const struct buildid *id)
{
	return object->id.build_id_size == id->size &&
	       memcmp(object->id.build_id, id->bytes, id->size) == 0;
}

/* The bytes of the file at @path, or open at @fd if that is not -1; whatever they are. */
static int file_new(const char *path, int fd, struct file **ret_file)
{
	_cleanup_(file_freep) struct file *file = calloc(1, sizeof(*file));
	int r;

	if (!file)
		return -ENOMEM;
	file->object.id.source = strdup(path);
	if (!file->object.id.source)
		return -ENOMEM;

	r = fd < 0 ? mapfile_init(&file->map, AT_FDCWD, path) : mapfile_init_fd(&file->map, fd);
	if (r < 0)
		return r;
	file->object.bytes = file->map.bytes;
	file->object.size = file->map.size;
	*ret_file = TAKE(file);
	return 0;
}

static int file_load(const char *path, int fd, struct file **ret_file)
{
	_cleanup_(file_freep) struct file *file = NULL;
	struct buildid id;
	int r;

	r = file_new(path, fd, &file);
	if (r < 0)
		return r;

	buildid_read_bytes(file->map.bytes, file->map.size, &id);
	set_build_id(&file->object, &id);

	r = read_elf(file);
	if (r < 0)
		return r;
	*ret_file = TAKE(file);
	return 0;
}

/* --- the search ------------------------------------------------------------------------------- */

/*
 * Try one place, or the file open at @fd; *@state says afterwards how far the search has come. All
 * that can go wrong means that the file cannot be had, want of memory too: too many mappings look
 * the same.
 */
static void try_file(const char *path, int fd, const struct buildid *wanted,
		     enum object_state *state, struct file **ret_file)
{
	_cleanup_(file_freep) struct file *file = NULL;

	if (file_load(path, fd, &file) < 0)
		return;
	if (wanted->size && !has_build_id(&file->object, wanted)) {
		*state = OBJECT_WRONG_ID;
		return;
	}
	*state = OBJECT_OK;
	*ret_file = TAKE(file);
}

static void try_path(const char *path, const struct buildid *wanted, enum object_state *state,
		     struct file **ret_file)
{
	try_file(path, -1, wanted, state, ret_file);
}

/* @location is relative to the snapshot. Return: 0 or -ENOMEM. */
static int try_kept(const struct objects *objects, const char *location,
		    const struct buildid *wanted, enum object_state *state, struct file **ret_file)
{
	_cleanup_(freep) char *path = NULL;

	if (asprintf(&path, "%s/%s", objects->dir, location) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	try_path(path, wanted, state, ret_file);
	return 0;
}

/* Return: 0; KEPT_AMBIGUOUS if no place but the snapshot can have it, and it is not to be had
 * there; or -ENOMEM. */
static int search_snapshot(const struct objects *objects, const char *path,
			   const struct buildid *wanted, enum object_state *state,
			   struct file **ret_file)
{
	char hex[BUILDID_HEX_MAX], by_id[BUILDID_HEX_MAX + 32];
	const enum object_state before = *state;
	const char *location;
	int r;

	if (wanted->size > 1) {
		buildid_hex(wanted, hex);
		(void)snprintf(by_id, sizeof(by_id), PTD_SNAPSHOT_OBJECTS "/.build-id/%.2s/%s/%s",
			       hex, hex + 2, mapname_in_cache(path));
		r = try_kept(objects, by_id, wanted, state, ret_file);
		if (r < 0 || *state != before)
			return r;
		r = kept_find_by_content(objects->kept, path, &location);
	} else {
		r = kept_find(objects->kept, path, &location);
	}
	if (r == KEPT_AMBIGUOUS)
		*state = OBJECT_WRONG_ID; /* the one at the path now is no better guess */
	if (r == 0)
		r = try_kept(objects, location, wanted, state, ret_file);
	return r == KEPT_NONE ? 0 : r;
}

/* By build-id only, so that it does not matter what the file was called. Return: 0 or -ENOMEM. */
static int search_by_id(const struct objects *objects, const struct buildid *wanted,
			enum object_state *state, struct file **ret_file)
{
	/* The last is how perf called it once. */
	static const char *const names[] = { "/elf", "/vdso", "" };
	char hex[BUILDID_HEX_MAX];

	if (!objects->buildid_dir || wanted->size < 2)
		return 0;
	buildid_hex(wanted, hex);
	for (size_t i = 0; i < ARRAY_LEN(names) && *state != OBJECT_OK; i++) {
		_cleanup_(freep) char *path = NULL;

		if (asprintf(&path, "%s/.build-id/%.2s/%s%s", objects->buildid_dir, hex, hex + 2,
			     names[i]) < 0) {
			path = NULL;
			return -ENOMEM;
		}
		try_path(path, wanted, state, ret_file);
	}
	return 0;
}

/* At the path, or below the directory that stands for the root. Return: 0 or -ENOMEM. */
static int search_at_path(const struct objects *objects, const char *path,
			  const struct buildid *wanted, enum object_state *state,
			  struct file **ret_file)
{
	_cleanup_(freep) char *below = NULL;

	if (objects->symfs && asprintf(&below, "%s%s", objects->symfs, path) < 0) {
		below = NULL;
		return -ENOMEM;
	}
	try_path(below ?: path, wanted, state, ret_file);
	return 0;
}

/*
 * Who reads code by its path cannot where the cache of fetched files is beyond what this process
 * may open: give @file a path that leads to a copy. If there is no room for one, it keeps its path.
 */
static int make_readable(struct objects *objects, int fd, struct file *file)
{
	_cleanup_(fd_closep) int there = open(file->object.id.source, O_RDONLY | O_CLOEXEC);
	_cleanup_(fd_closep) int copy = -1;
	char *source;
	int r;

	if (there >= 0 || objects->copies.n >= COPIES_MAX ||
	    file->map.size > COPIES_SIZE_MAX - objects->copies_size)
		return 0;
	r = vec_reserve(&objects->copies, 1);
	if (r < 0)
		return r;
	copy = memfd_create("ptd-code", MFD_CLOEXEC);
	if (copy < 0 || copyfile_fd(fd, copy, file->map.size) < 0)
		return 0;
	if (asprintf(&source, "/proc/self/fd/%d", copy) < 0)
		return -ENOMEM;
	free((void *)(uintptr_t)file->object.id.source);
	file->object.id.source = source;
	objects->copies_size += file->map.size;
	objects->copies.items[objects->copies.n++] = copy;
	copy = -1;
	return 0;
}

/* Where nobody here has it. Return: 0 or -ENOMEM. */
static int search_elsewhere(struct objects *objects, const struct buildid *wanted,
			    enum object_state *state, struct file **ret_file)
{
	_cleanup_(fd_closep) int fd = -1;
	_cleanup_(freep) char *path = NULL;

	if (objects->fetch == FETCH_NONE || wanted->size < 2)
		return 0;
	fd = fetch_file(objects->fetch, FETCH_EXECUTABLE, wanted, &path);
	if (fd < 0)
		return 0;
	try_file(path, fd, wanted, state, ret_file);
	return *state == OBJECT_OK ? make_readable(objects, fd, *ret_file) : 0;
}

static int search(struct objects *objects, const char *path, const struct buildid *wanted,
		  enum object_state *ret_state, struct file **ret_file)
{
	enum object_state state = mapname_is_file(path) ? OBJECT_MISSING : OBJECT_NO_FILE;
	bool is_only_there = false;
	int r = 0;

	if (objects->dir) {
		r = search_snapshot(objects, path, wanted, &state, ret_file);
		if (r < 0)
			return r;
		is_only_there = r == KEPT_AMBIGUOUS;
	}
	if (state != OBJECT_OK) {
		r = search_by_id(objects, wanted, &state, ret_file);
		if (r < 0)
			return r;
	}
	if (mapname_is_file(path) && !is_only_there &&
	    (state == OBJECT_MISSING || (state == OBJECT_WRONG_ID && wanted->size))) {
		r = search_at_path(objects, path, wanted, &state, ret_file);
		if (r < 0)
			return r;
	}
	if (state != OBJECT_OK) {
		r = search_elsewhere(objects, wanted, &state, ret_file);
		if (r < 0)
			return r;
	}
	*ret_state = state;
	return 0;
}

static const char *display_name(const char *path)
{
	return strcmp(path, "//anon") == 0 ? "[anon]" : path;
}

/* Give @file its place and its id; it is @objects' then. */
static int adopt(struct objects *objects, const char *path, enum object_state state,
		 struct file **file)
{
	struct object *object = &(*file)->object;
	int r;

	object->state = state;
	object->id.id = (uint32_t)objects->files.n;
	object->id.name = arena_strdup(&objects->arena, display_name(path));
	if (!object->id.name)
		return -ENOMEM;
	r = vec_push(&objects->files, *file);
	if (r < 0)
		return r;
	*file = NULL;
	return 0;
}

static uint64_t key_of(const char *path, const struct buildid *id)
{
	const uint64_t key[] = { map_hash(path, strlen(path)), map_hash(id->bytes, id->size) };

	return map_hash(key, sizeof(key));
}

/* Return: the file that was found for @path with build-id @id; NULL if that was not asked. */
static struct file *find_answer(const struct objects *objects, const char *path,
				const struct buildid *id)
{
	const uint64_t *head = map_get(&objects->answers, key_of(path, id));

	for (const struct answer *a = head ? (struct answer *)(uintptr_t)*head : NULL; a;
	     a = a->next)
		if (strcmp(a->path, path) == 0 && buildid_equal(&a->asked, id))
			return a->file;
	return NULL;
}

static int add_answer(struct objects *objects, const char *path, const struct buildid *id,
		      struct file *file)
{
	const uint64_t key = key_of(path, id), *head = map_get(&objects->answers, key);
	struct answer *answer = arena_alloc(&objects->arena, sizeof(*answer));

	if (!answer)
		return -ENOMEM;
	*answer = (struct answer){
		.next = head ? (struct answer *)(uintptr_t)*head : NULL,
		.path = arena_strdup(&objects->arena, path),
		.asked = *id,
		.file = file,
	};
	if (!answer->path)
		return -ENOMEM;
	return map_put(&objects->answers, key, (uintptr_t)answer);
}

static int find_new(struct objects *objects, const char *path, const struct buildid *asked,
		    struct file **ret_file)
{
	_cleanup_(file_freep) struct file *file = NULL;
	struct file *same = NULL;
	enum object_state state;
	struct buildid id;
	int r;

	r = search(objects, path, asked, &state, &file);
	if (r < 0)
		return r;
	if (!file) {
		file = calloc(1, sizeof(*file));
		if (!file)
			return -ENOMEM;
		set_build_id(&file->object, asked);
	}

	/* Asked for with its build-id and without: one object, not two of the same name. */
	id = (struct buildid){ .size = file->object.id.build_id_size };
	memcpy(id.bytes, file->object.id.build_id, sizeof(id.bytes));
	if (state == OBJECT_OK && id.size)
		same = find_answer(objects, path, &id);
	if (same && same->object.state == OBJECT_OK) {
		*ret_file = same;
	} else {
		*ret_file = file;
		r = adopt(objects, path, state, &file);
		if (r == 0 && state == OBJECT_OK && id.size && !same && !asked->size)
			r = add_answer(objects, path, &id, *ret_file);
		if (r < 0)
			return r;
	}
	return add_answer(objects, path, asked, *ret_file);
}

int objects_find(struct objects *objects, const char *path, const struct buildid *build_id,
		 const struct object **ret_object)
{
	const struct buildid asked = build_id ? *build_id : (struct buildid){};
	struct file *file = find_answer(objects, path, &asked);
	int r = 0;

	if (!file)
		r = find_new(objects, path, &asked, &file);
	if (r == 0)
		*ret_object = &file->object;
	return r;
}

int objects_add_named(struct objects *objects, const char *path, const char *name,
		      struct object **ret_object)
{
	_cleanup_(file_freep) struct file *file = NULL;
	struct object *object;
	int r;

	r = file_load(path, -1, &file);
	if (r < 0)
		return r;
	object = &file->object;
	r = adopt(objects, name, OBJECT_OK, &file);
	if (r < 0)
		return r;
	*ret_object = object;
	return 0;
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
		       uint64_t address, struct object **ret_object)
{
	_cleanup_(file_freep) struct file *file = NULL;
	struct object *object;
	int r;

	r = file_new(path, -1, &file);
	if (r < 0)
		return r;
	r = vec_push(&file->segments, { .size = file->map.size, .address = address });
	if (r < 0)
		return r;
	object = &file->object;
	r = adopt(objects, name, OBJECT_OK, &file);
	if (r < 0)
		return r;
	*ret_object = object;
	return 0;
}

int objects_add_made(struct objects *objects, const char *source, const char *name,
		     struct object **ret_object)
{
	_cleanup_(file_freep) struct file *file = calloc(1, sizeof(*file));
	struct object *object;
	int r;

	if (!file)
		return -ENOMEM;
	file->object.id.source = strdup(source);
	if (!file->object.id.source)
		return -ENOMEM;
	object = &file->object;
	r = adopt(objects, name, OBJECT_OK, &file);
	if (r < 0)
		return r;
	*ret_object = object;
	return 0;
}

int object_add_part(struct object *object, uint64_t offset, uint64_t size, uint64_t address)
{
	struct file *file = (struct file *)object;

	return vec_push(&file->segments, { .offset = offset, .size = size, .address = address });
}

const char *objects_dir(const struct objects *objects)
{
	return objects->dir;
}

uint64_t object_address(const struct object *object, uint64_t offset)
{
	const struct file *file = (const struct file *)object;

	if (!object->is_elf) {
		const size_t n = vec_bisect(&file->segments, segment, segment->offset <= offset);

		if (n > 0 &&
		    offset - file->segments.items[n - 1].offset < file->segments.items[n - 1].size)
			return file->segments.items[n - 1].address +
			       (offset - file->segments.items[n - 1].offset);
		return offset;
	}
	for (size_t i = 0; i < file->segments.n; i++) {
		const struct segment *s = &file->segments.items[i];

		if (offset >= s->offset && offset - s->offset < s->size)
			return s->address + (offset - s->offset);
	}
	return offset;
}

int objects_new(const char *snapshot_dir, struct objects **ret_objects)
{
	_cleanup_(objects_freep) struct objects *objects = calloc(1, sizeof(*objects));
	int r;

	if (!objects)
		return -ENOMEM;
	if (snapshot_dir) {
		objects->dir = strdup(snapshot_dir);
		if (!objects->dir)
			return -ENOMEM;
		r = kept_new(snapshot_dir, &objects->kept);
		if (r < 0)
			return r;
	}
	*ret_objects = TAKE(objects);
	return 0;
}

int objects_look_in(struct objects *objects, const char *buildid_dir, const char *symfs, int fetch)
{
	objects->fetch = fetch;
	objects->buildid_dir = buildid_dir ? strdup(buildid_dir) : NULL;
	objects->symfs = symfs ? strdup(symfs) : NULL;
	return (buildid_dir && !objects->buildid_dir) || (symfs && !objects->symfs) ? -ENOMEM : 0;
}

struct objects *objects_free(struct objects *objects)
{
	if (!objects)
		return NULL;
	for (size_t i = 0; i < objects->files.n; i++)
		(void)file_free(objects->files.items[i]);
	vec_deinit(&objects->files);
	for (size_t i = 0; i < objects->copies.n; i++)
		(void)fd_close(objects->copies.items[i]);
	vec_deinit(&objects->copies);
	free(objects->buildid_dir);
	free(objects->symfs);
	map_deinit(&objects->answers);
	(void)kept_free(objects->kept);
	arena_deinit(&objects->arena);
	free(objects->dir);
	free(objects);
	return NULL;
}
