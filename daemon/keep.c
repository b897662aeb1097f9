/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/keep.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "decoder/util/copyfile.h"
#include "decoder/util/dirs.h"
#include "decoder/util/vec.h"

#define OBJECTS_MAX     4096u
#define OBJECT_SIZE_MAX ((off_t)4 << 30)
#define PATH_SIZE_MAX   4096u

struct keep {
	int store_fd; /* borrowed */
	VEC(struct object *) objects;
};

struct object *object_ref(struct object *object)
{
	object->n_refs++;
	return object;
}

struct object *object_unref(struct object *object)
{
	if (object && --object->n_refs == 0) {
		free(object->path);
		free(object);
	}
	return NULL;
}

/* Remove a copy, unless a snapshot has a link to it. */
static void forget_copy(int store_fd, const char *name)
{
	char file[OBJECT_NAME_MAX + 8];
	struct stat st;

	(void)snprintf(file, sizeof(file), "%s/elf", name);
	if (fstatat(store_fd, file, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_nlink > 1)
		return;
	(void)unlinkat(store_fd, file, 0);
	(void)snprintf(file, sizeof(file), "%s/new", name);
	(void)unlinkat(store_fd, file, 0);
	(void)unlinkat(store_fd, name, AT_REMOVEDIR);
}

int keep_new(int store_fd, struct keep **ret_keep)
{
	_cleanup_(keep_freep) struct keep *k = malloc(sizeof(*k));
	int r;

	if (!k)
		return -ENOMEM;
	*k = (struct keep){ .store_fd = store_fd };
	r = keep_sweep(k);
	if (r < 0)
		return r;
	*ret_keep = TAKE(k);
	return 0;
}

static bool known(const struct keep *keep, const char *name)
{
	for (size_t i = 0; i < keep->objects.n; i++)
		if (strcmp(keep->objects.items[i]->name, name) == 0)
			return true;
	return false;
}

int keep_sweep(struct keep *keep)
{
	_cleanup_(dirs_closep) DIR *dir = dirs_list(keep->store_fd);
	struct dirent *entry;
	int r;

	if (!dir)
		return -errno;
	while ((r = dirs_next(dir, &entry)) > 0)
		if (strlen(entry->d_name) < OBJECT_NAME_MAX && !known(keep, entry->d_name))
			forget_copy(keep->store_fd, entry->d_name);
	return r;
}

struct keep *keep_free(struct keep *keep)
{
	if (!keep)
		return NULL;

	for (size_t i = 0; i < keep->objects.n; i++)
		(void)object_unref(keep->objects.items[i]);
	vec_deinit(&keep->objects);
	free(keep);
	return NULL;
}

bool object_matches(const struct object *object, const struct record_mmap2 *mmap)
{
	return buildid_equal(&object->claimed, &mmap->build_id) &&
	       strcmp(object->path, mmap->name) == 0;
}

static int64_t mtime_ns(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

static bool same_file(const struct object *object, const struct stat *st)
{
	return object->dev == st->st_dev && object->ino == st->st_ino &&
	       object->size == (uint64_t)st->st_size && object->mtime_ns == mtime_ns(st);
}

static struct object *find(const struct keep *keep, const struct record_mmap2 *mmap)
{
	for (size_t i = keep->objects.n; i-- > 0;)
		if (object_matches(keep->objects.items[i], mmap))
			return keep->objects.items[i];
	return NULL;
}

/* Open what is at @path if it can be an object at all. */
static int open_original(const char *path, int *ret_fd, struct stat *ret_st)
{
	_cleanup_(fd_closep) int fd = -1;
	uint8_t magic[SELFMAG];

	/* O_NONBLOCK: a record may name a FIFO. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (fstat(fd, ret_st) < 0)
		return -errno;
	if (!S_ISREG(ret_st->st_mode))
		return -ENOEXEC;
	if (ret_st->st_size > OBJECT_SIZE_MAX)
		return -EFBIG;
	/* A record may also name a file that whoever wrote it may not read, but we may. */
	if (pread(fd, magic, sizeof(magic), 0) != (ssize_t)sizeof(magic) ||
	    memcmp(magic, ELFMAG, SELFMAG) != 0)
		return -ENOEXEC;
	*ret_fd = fd;
	fd = -1;
	return 0;
}

/* Put a copy of @fd into the store's folder @object->name. */
static int copy_in(int store_fd, int fd, struct object *object)
{
	_cleanup_(fd_closep) int folder = -1, copy = -1;
	struct buildid id;
	int r;

	if (mkdirat(store_fd, object->name, 0750) < 0 && errno != EEXIST)
		return -errno;
	folder = openat(store_fd, object->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (folder < 0)
		return -errno;
	if (faccessat(folder, "elf", F_OK, 0) == 0)
		return 0;

	copy = openat(folder, "new", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (copy < 0)
		return -errno;
	r = copyfile_fd(fd, copy);
	if (r < 0)
		return r;
	/* The original may have been written to while it was copied. */
	r = buildid_read(copy, &id);
	if (r < 0)
		return r;
	if (!buildid_equal(&id, &object->build_id))
		return -ESTALE;
	return renameat(folder, "new", folder, "elf") < 0 ? -errno : 0;
}

static int name_object(int fd, struct object *object)
{
	char hash[SHA256_HEX_SIZE];
	char hex[BUILDID_HEX_MAX];
	uint64_t size;
	int r;

	r = buildid_read(fd, &object->build_id);
	if (r < 0)
		return r;
	if (object->claimed.size > 0 && !buildid_equal(&object->claimed, &object->build_id))
		return -ESTALE;
	if (object->build_id.size > 0) {
		(void)snprintf(object->name, sizeof(object->name), "%s",
			       buildid_hex(&object->build_id, hex));
		return 0;
	}
	r = sha256_fd(fd, hash, &size);
	if (r < 0)
		return r;
	(void)snprintf(object->name, sizeof(object->name), "sha256-%s", hash);
	return 0;
}

/* Fill in what is at the object's path. */
static int take_in(const struct keep *keep, struct object *object)
{
	_cleanup_(fd_closep) int fd = -1;
	struct stat st;
	int r;

	r = open_original(object->path, &fd, &st);
	if (r < 0)
		return r;
	object->dev = st.st_dev;
	object->ino = st.st_ino;
	object->size = (uint64_t)st.st_size;
	object->mtime_ns = mtime_ns(&st);

	r = name_object(fd, object);
	if (r == 0)
		r = copy_in(keep->store_fd, fd, object);
	if (r < 0 && object->name[0]) {
		forget_copy(keep->store_fd, object->name);
		object->name[0] = 0;
	}
	return r;
}

/* Does the object have no copy of its own, because another path leads to the same? */
static bool shared(const struct keep *keep, const struct object *object)
{
	if (!object->name[0])
		return true;
	for (size_t i = 0; i < keep->objects.n; i++) {
		const struct object *other = keep->objects.items[i];

		if (other != object && strcmp(other->name, object->name) == 0)
			return true;
	}
	return false;
}

/* Forget those objects that came first, to have room for newer ones. */
static void make_room(struct keep *keep)
{
	size_t n_forget = OBJECTS_MAX / 2;

	if (keep->objects.n < OBJECTS_MAX)
		return;
	for (size_t i = 0; n_forget > 0; n_forget--) {
		struct object *object = keep->objects.items[i];

		if (object->n_refs > 1) {
			i++;
			continue;
		}
		if (!shared(keep, object))
			forget_copy(keep->store_fd, object->name);
		keep->objects.n--;
		memmove(keep->objects.items + i, keep->objects.items + i + 1,
			(keep->objects.n - i) * sizeof(struct object *));
		(void)object_unref(object);
	}
}

static struct object *object_new(const struct record_mmap2 *mmap)
{
	struct object *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->n_refs = 1;
	o->claimed = mmap->build_id;
	o->path = strdup(mmap->name);
	return o->path ? o : object_unref(o);
}

struct object *keep_add(struct keep *keep, const struct record_mmap2 *mmap, int *ret_error)
{
	_cleanup_(object_unrefp) struct object *object = NULL;
	struct object *known;
	struct stat st;
	int r;

	*ret_error = 0;
	if (!(mmap->prot & PROT_EXEC) || mmap->name[0] != '/' || mmap->name[1] == '/' ||
	    strlen(mmap->name) >= PATH_SIZE_MAX)
		return NULL;

	known = find(keep, mmap);
	if (known && known->name[0] &&
	    (known->claimed.size > 0 || stat(mmap->name, &st) < 0 || same_file(known, &st)))
		return known;

	/* What failed is tried again, and said only once. A snapshot may be looking at it. */
	if (known && !known->name[0])
		return known->n_refs == 1 && take_in(keep, known) == 0 ? known : NULL;

	make_room(keep);
	object = object_new(mmap);
	r = object ? take_in(keep, object) : -ENOMEM;
	*ret_error = r;
	if (!object || vec_push(&keep->objects, object) < 0) {
		*ret_error = -ENOMEM;
		return NULL;
	}
	known = TAKE(object);
	return r < 0 ? NULL : known;
}

size_t keep_count(const struct keep *keep)
{
	return keep->objects.n;
}

int keep_list(const struct keep *keep, struct object ***ret_objects, size_t *ret_n_objects)
{
	struct object **objects = calloc(keep->objects.n + 1, sizeof(struct object *));

	if (!objects)
		return -ENOMEM;
	for (size_t i = 0; i < keep->objects.n; i++)
		objects[i] = object_ref(keep->objects.items[i]);
	*ret_objects = objects;
	*ret_n_objects = keep->objects.n;
	return 0;
}
