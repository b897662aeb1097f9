/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/keep.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "daemon/spool.h"
#include "daemon/store.h"
#include "decoder/util/map.h"
#include "decoder/util/mapname.h"
#include "decoder/util/vec.h"

#define OBJECTS_MAX   4096u
#define PATH_SIZE_MAX 4096u

/* Originals held open while they wait. Those beyond are opened when it is their turn. */
#define OPEN_MAX 256u

#define CANCEL_POLL_NS 50000000

/* How often a copy is tried again that was swept just when it was found. */
#define TRIES 3u

struct queue {
	struct object *first, *last;
};

struct keep {
	int store_fd; /* borrowed */
	int event_fd;
	pthread_t thread;
	bool has_thread;
	struct map by_path; /* hash of path → newest object; the others by ->alike */
	unsigned n_open;
	uint64_t moment; /* how many records were seen */

	pthread_mutex_t lock; /* over what follows, and what files the store has */
	pthread_cond_t change;
	bool stop;
	struct spool_limits limits;
	VEC(struct object *) objects;
	struct queue waiting, finished; /* each object in them is referenced */
	uint64_t used;                  /* bytes in the store */
};

struct object *object_ref(struct object *object)
{
	object->n_refs++;
	return object;
}

struct object *object_unref(struct object *object)
{
	if (object && --object->n_refs == 0) {
		(void)fd_close(object->fd);
		free(object->path);
		free(object);
	}
	return NULL;
}

static void push(struct queue *queue, struct object *object)
{
	object->queued = NULL;
	if (queue->last)
		queue->last->queued = object;
	else
		queue->first = object;
	queue->last = object;
}

static struct object *pop(struct queue *queue)
{
	struct object *object = queue->first;

	if (!object)
		return NULL;
	queue->first = object->queued;
	if (!queue->first)
		queue->last = NULL;
	return object;
}

/* --- the thread ------------------------------------------------------------------------------ */

static int check_build_id(int fd, const struct buildid *claimed, struct buildid *ret_id)
{
	int r;

	r = buildid_read(fd, ret_id);
	if (r == 0 && claimed->size > 0 && !buildid_equal(claimed, ret_id))
		return -ESTALE;
	return r;
}

/* What an original turned out to be. */
struct content {
	struct buildid build_id;
	char hash[SHA256_HEX_SIZE];
	uint64_t copied; /* bytes of the copy that is to be named; 0: the store has it */
};

/* Copy what @fd has, if the store has it not yet. */
static int copy_in(struct keep *k, int fd, const struct buildid *claimed,
		   struct content *ret_content)
{
	_cleanup_(fd_closep) int copy = -1;
	struct content content = {};
	struct spool_limits limits;
	uint64_t size, used;
	struct stat st;
	int r;

	r = check_build_id(fd, claimed, &content.build_id);
	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0)
		return -errno;
	if ((uint64_t)st.st_size > STORE_FILE_MAX)
		return -EFBIG;
	r = sha256_fd(fd, content.hash, &size);
	if (r == 0 && !store_has(k->store_fd, content.hash)) {
		(void)pthread_mutex_lock(&k->lock);
		used = k->used;
		limits = k->limits;
		(void)pthread_mutex_unlock(&k->lock);
		r = store_copy(k->store_fd, fd, &limits, used, &copy, content.hash,
			       &content.copied);
		/* The original may have been written to while it was copied. */
		if (r == 0)
			r = check_build_id(copy, claimed, &content.build_id);
		if (r < 0)
			(void)store_forget(k->store_fd, NULL);
	}
	if (r == 0)
		*ret_content = content;
	return r;
}

/* Give the copy its name. The lock is held. Return: 0, or negative errno; -EAGAIN: there is none, since
 * the store had it, but it has just been swept. */
static int name_copy(struct keep *k, const struct content *content)
{
	int r;

	if (store_has(k->store_fd, content->hash)) {
		if (content->copied > 0)
			(void)store_forget(k->store_fd, NULL);
		return 0;
	}
	if (content->copied == 0)
		return -EAGAIN;
	r = store_settle(k->store_fd, content->hash);
	if (r == 0)
		k->used += content->copied;
	return r;
}

/* Copy the object's original, which is open at @fd or -1. It has no name in the store before the lock
 * is held. */
static void take_in(struct keep *k, struct object *object, int fd)
{
	_cleanup_(fd_closep) int original = fd;
	struct content content = {};
	struct original which;
	int r = 0;

	if (original < 0)
		r = original_open(&object->mapped, &original, &which);
	for (unsigned i = 0;; i++) {
		if (r == 0)
			r = copy_in(k, original, &object->claimed, &content);
		(void)pthread_mutex_lock(&k->lock);
		if (r == 0)
			r = name_copy(k, &content);
		if (r != -EAGAIN || i == TRIES)
			break;
		(void)pthread_mutex_unlock(&k->lock);
		r = 0;
	}
	if (r == 0) {
		object->build_id = content.build_id;
		memcpy(object->sha256, content.hash, sizeof(content.hash));
	}
	object->error = r;
	object->done = true;
	push(&k->finished, object);
	(void)pthread_cond_broadcast(&k->change);
	(void)pthread_mutex_unlock(&k->lock);
	(void)eventfd_write(k->event_fd, 1);
}

static void *run(void *userdata)
{
	struct keep *k = userdata;
	struct object *object;
	int fd;

	for (;;) {
		(void)pthread_mutex_lock(&k->lock);
		while (!k->stop && !k->waiting.first)
			(void)pthread_cond_wait(&k->change, &k->lock);
		object = k->stop ? NULL : pop(&k->waiting);
		if (object) {
			fd = object->fd;
			object->fd = -1;
			k->n_open -= fd >= 0;
		}
		(void)pthread_mutex_unlock(&k->lock);
		if (!object)
			return NULL;
		take_in(k, object, fd);
	}
}

/* Signals are the event loop's: the thread gets none. */
static int start_thread(struct keep *k)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	r = -pthread_create(&k->thread, NULL, run, k);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	k->has_thread = r == 0;
	return r;
}

static void stop_thread(struct keep *k)
{
	if (!k->has_thread)
		return;
	(void)pthread_mutex_lock(&k->lock);
	k->stop = true;
	(void)pthread_cond_broadcast(&k->change);
	(void)pthread_mutex_unlock(&k->lock);
	(void)pthread_join(k->thread, NULL);
}

/* --- life ------------------------------------------------------------------------------------ */

int keep_new(int store_fd, const struct spool_limits *limits, struct keep **ret_keep)
{
	_cleanup_(keep_freep) struct keep *k = malloc(sizeof(*k));
	int r;

	if (!k)
		return -ENOMEM;
	*k = (struct keep){
		.store_fd = store_fd,
		.limits = *limits,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.change = PTHREAD_COND_INITIALIZER,
	};
	k->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (k->event_fd < 0)
		return -errno;
	(void)store_forget(store_fd, NULL);
	r = keep_sweep(k);
	if (r == 0)
		r = start_thread(k);
	if (r < 0)
		return r;
	*ret_keep = TAKE(k);
	return 0;
}

struct keep *keep_free(struct keep *keep)
{
	struct object *object;

	if (!keep)
		return NULL;

	stop_thread(keep);
	while ((object = pop(&keep->waiting)) || (object = pop(&keep->finished)))
		(void)object_unref(object);
	for (size_t i = 0; i < keep->objects.n; i++)
		(void)object_unref(keep->objects.items[i]);
	vec_deinit(&keep->objects);
	map_deinit(&keep->by_path);
	(void)fd_close(keep->event_fd);
	(void)pthread_cond_destroy(&keep->change);
	(void)pthread_mutex_destroy(&keep->lock);
	free(keep);
	return NULL;
}

void keep_set_limits(struct keep *keep, const struct spool_limits *limits)
{
	(void)pthread_mutex_lock(&keep->lock);
	keep->limits = *limits;
	(void)pthread_mutex_unlock(&keep->lock);
}

static bool needed(const char *hash, void *userdata)
{
	const struct keep *k = userdata;

	for (size_t i = 0; i < k->objects.n; i++)
		if (strcmp(k->objects.items[i]->sha256, hash) == 0)
			return true;
	return false;
}

int keep_sweep(struct keep *keep)
{
	int r;

	(void)pthread_mutex_lock(&keep->lock);
	r = store_sweep(keep->store_fd, needed, keep, &keep->used);
	(void)pthread_mutex_unlock(&keep->lock);
	return r;
}

/* --- objects --------------------------------------------------------------------------------- */

bool object_matches(const struct object *object, const struct record_mmap2 *mmap)
{
	const uint64_t ino = object->mapped.ino;

	return buildid_equal(&object->claimed, &mmap->build_id) &&
	       (ino == 0 || mmap->ino == 0 || ino == mmap->ino) &&
	       strcmp(object->path, mmap->name) == 0;
}

static uint64_t key_of(const char *path)
{
	return map_hash(path, strlen(path));
}

static struct object *newest(const struct keep *keep, uint64_t key)
{
	const uint64_t *value = map_get(&keep->by_path, key);

	return value ? (struct object *)(uintptr_t)*value : NULL;
}

static int index_object(struct keep *keep, struct object *object)
{
	const uint64_t key = key_of(object->path);

	object->alike = newest(keep, key);
	return map_put(&keep->by_path, key, (uintptr_t)object);
}

/*
 * The object that the record means: the file that is mapped, if that can be seen; else the newest one
 * of the same claims. If another is mapped, that which could not be kept, if any, is to be tried
 * again with it.
 */
static struct object *find(const struct keep *keep, const struct record_mmap2 *mmap)
{
	const struct original original = original_look(mmap);
	struct object *newest_one = NULL, *failed = NULL;

	for (struct object *o = newest(keep, key_of(mmap->name)); o; o = o->alike) {
		if (!object_matches(o, mmap))
			continue;
		if (original_equal(&o->original, &original))
			return o;
		newest_one = newest_one ? newest_one : o;
		if (!failed && o->done && o->error < 0)
			failed = o;
	}
	return original.found ? failed : newest_one;
}

/* Forget those objects that no record named since @before. The lock is held. */
static int forget(struct keep *keep, uint64_t before)
{
	const size_t n_before = keep->objects.n;
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; i < n_before; i++) {
		struct object *object = keep->objects.items[i];

		/* One that waits to be copied, or is needed by a snapshot, has another. */
		if (object->seen < before && object->n_refs == 1)
			(void)object_unref(object);
		else
			keep->objects.items[n++] = object;
	}
	if (n == n_before)
		return 0;
	keep->objects.n = n;
	map_deinit(&keep->by_path);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = index_object(keep, keep->objects.items[i]);
	return r < 0 ? r : store_sweep(keep->store_fd, needed, keep, &keep->used);
}

static int by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Forget the half that was not named for longest, to have room for newer ones. The lock is held. */
static int make_room(struct keep *keep)
{
	_cleanup_(freep) uint64_t *seen = NULL;
	const size_t n = keep->objects.n;
	int r;

	if (n < OBJECTS_MAX)
		return 0;
	seen = malloc(n * sizeof(*seen));
	if (!seen)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		seen[i] = keep->objects.items[i]->seen;
	qsort(seen, n, sizeof(*seen), by_number);
	r = forget(keep, seen[n / 2]);
	return keep->objects.n >= OBJECTS_MAX ? -ENOBUFS : r;
}

static struct object *object_new(const struct record_mmap2 *mmap)
{
	struct object *o = malloc(sizeof(*o));

	if (!o)
		return NULL;
	*o = (struct object){ .n_refs = 1, .fd = -1, .claimed = mmap->build_id, .mapped = *mmap };
	o->path = strdup(mmap->name);
	o->mapped.name = o->path;
	return o->path ? o : object_unref(o);
}

/* Hold what is mapped now as @mmap says, and have it copied. The lock is held. */
static void enqueue(struct keep *keep, struct object *object, const struct record_mmap2 *mmap)
{
	int r;

	object->mapped = *mmap;
	object->mapped.name = object->path;
	object->original = original_look(mmap);
	r = original_open(mmap, &object->fd, &object->original);
	object->error = r;
	object->done = r < 0;
	if (r == 0 && keep->n_open >= OPEN_MAX)
		object->fd = fd_close(object->fd);
	keep->n_open += object->fd >= 0;
	push(r < 0 ? &keep->finished : &keep->waiting, object_ref(object));
	if (r < 0)
		(void)eventfd_write(keep->event_fd, 1);
	(void)pthread_cond_broadcast(&keep->change);
}

static int add(struct keep *keep, const struct record_mmap2 *mmap, struct object **ret_object)
{
	_cleanup_(object_unrefp) struct object *object = NULL;
	struct object *known = find(keep, mmap);
	int r;

	/* What failed is tried again in its place, unless a snapshot may be looking at it. */
	if (known && known->done && known->error < 0 && known->n_refs == 1)
		enqueue(keep, known, mmap);
	if (known) {
		known->seen = keep->moment;
		*ret_object = known;
		return 0;
	}
	r = make_room(keep);
	if (r < 0)
		return r;
	object = object_new(mmap);
	if (!object || vec_reserve(&keep->objects, 1) < 0 || index_object(keep, object) < 0)
		return -ENOMEM;
	object->seen = keep->moment;
	enqueue(keep, object, mmap);
	*ret_object = object;
	return vec_push(&keep->objects, TAKE(object));
}

/* Memory of no file is an object if it is an ELF file all the same: what dlopen() is given by way of
 * a memfd. If not, a snapshot takes it as memory. */
static bool is_only_memory(const struct record_mmap2 *mmap)
{
	_cleanup_(fd_closep) int fd = -1;
	struct original original;

	return mapname_is_memory(mmap->name) && original_open(mmap, &fd, &original) < 0;
}

/* A file, or the vDSO. */
static bool names_object(const char *name)
{
	return mapname_is_vdso(name) || (name[0] == '/' && name[1] != '/');
}

int keep_add(struct keep *keep, const struct record_mmap2 *mmap, struct object **ret_object)
{
	int r;

	*ret_object = NULL;
	if (!(mmap->prot & PROT_EXEC) || !names_object(mmap->name) ||
	    strlen(mmap->name) >= PATH_SIZE_MAX || is_only_memory(mmap))
		return 0;

	keep->moment++;
	(void)pthread_mutex_lock(&keep->lock);
	r = add(keep, mmap, ret_object);
	(void)pthread_mutex_unlock(&keep->lock);
	return r;
}

void keep_touch(struct keep *keep, const struct record_mmap2 *mmap)
{
	keep->moment++;
	for (struct object *o = newest(keep, key_of(mmap->name)); o; o = o->alike)
		if (object_matches(o, mmap))
			o->seen = keep->moment;
}

uint64_t keep_moment(const struct keep *keep)
{
	return keep->moment;
}

int keep_forget(struct keep *keep, uint64_t moment)
{
	int r;

	(void)pthread_mutex_lock(&keep->lock);
	r = forget(keep, moment + 1);
	(void)pthread_mutex_unlock(&keep->lock);
	return r;
}

int keep_wait(struct keep *keep, const struct object *object, const atomic_bool *cancel)
{
	struct timespec until;
	bool done;

	(void)pthread_mutex_lock(&keep->lock);
	while (!(done = object->done) && !(cancel && atomic_load(cancel))) {
		(void)clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += CANCEL_POLL_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		(void)pthread_cond_clockwait(&keep->change, &keep->lock, CLOCK_MONOTONIC, &until);
	}
	(void)pthread_mutex_unlock(&keep->lock);
	return done ? 0 : -ECANCELED;
}

int keep_fd(const struct keep *keep)
{
	return keep->event_fd;
}

const struct object *keep_next_failed(struct keep *keep)
{
	struct object *object;
	eventfd_t n;

	(void)eventfd_read(keep->event_fd, &n);
	for (;;) {
		(void)pthread_mutex_lock(&keep->lock);
		object = pop(&keep->finished);
		(void)pthread_mutex_unlock(&keep->lock);
		if (!object)
			return NULL;
		/* The keep itself has another reference. */
		(void)object_unref(object);
		if (object->error < 0 && !object->told) {
			object->told = true;
			return object;
		}
	}
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
