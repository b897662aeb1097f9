/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/objects/keep.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/objects/copier.h"
#include "daemon/proc/claimant.h"
#include "util/map.h"
#include "util/mapname.h"
#include "util/vec.h"

struct keep {
	struct copier *copier;
	struct claims claims;
	struct map by_path; /* hash of path → newest object; the others by ->alike */
	uint64_t moment;    /* how many records were seen */
	size_t full_at;     /* objects: then room is to be made */
	uint64_t full_from; /* but not before this moment */

	/* Over what objects there are, for whoever sweeps. One thread alone, the daemon's main one,
	 * makes and forgets them: that one reads them without the lock. */
	pthread_mutex_t lock;
	VEC(struct object *) objects;
};

/* --- life ------------------------------------------------------------------------------------ */

int keep_new(int store_fd, const struct spool_limits *limits, struct keep **ret_keep)
{
	_cleanup_(keep_freep) struct keep *k = malloc(sizeof(*k));
	int r;

	if (!k)
		return -ENOMEM;
	*k = (struct keep){ .full_at = KEEP_MAX, .lock = PTHREAD_MUTEX_INITIALIZER };
	r = copier_new(store_fd, limits, &k->copier);
	if (r == 0)
		r = keep_sweep(k);
	if (r < 0)
		return r;
	*ret_keep = TAKE(k);
	return 0;
}

struct keep *keep_free(struct keep *keep)
{
	if (!keep)
		return NULL;

	(void)copier_free(keep->copier);
	for (size_t i = 0; i < keep->objects.n; i++)
		(void)object_unref(keep->objects.items[i]);
	vec_deinit(&keep->objects);
	map_deinit(&keep->by_path);
	(void)pthread_mutex_destroy(&keep->lock);
	free(keep);
	return NULL;
}

void keep_set_claims(struct keep *keep, const struct claims *claims)
{
	keep->claims = *claims;
	copier_set_claims(keep->copier, claims);
}

void keep_set_limits(struct keep *keep, const struct spool_limits *limits)
{
	copier_set_limits(keep->copier, limits);
}

/* What the objects are called in the store. */
struct names {
	const struct keep *keep;
	bool complete;
	struct map hashes; /* of those that are copied */
};

static uint64_t key_of(const char *text)
{
	return map_hash(text, strlen(text));
}

static int gather_names(struct names *names)
{
	const struct keep *k = names->keep;
	int r = 0;

	for (size_t i = 0; r == 0 && i < k->objects.n; i++)
		r = map_put(&names->hashes, key_of(k->objects.items[i]->sha256), 1);
	names->complete = r == 0;
	return r;
}

/* Asked while no object becomes done. One too many is no harm: without memory all are needed. */
static bool needed(const char *hash, void *userdata)
{
	struct names *names = userdata;

	if (!names->complete && gather_names(names) < 0)
		return true;
	return map_get(&names->hashes, key_of(hash));
}

/* The lock is held. */
static int sweep(struct keep *keep)
{
	struct names names = { .keep = keep };
	int r;

	r = copier_sweep(keep->copier, needed, &names);
	map_deinit(&names.hashes);
	return r;
}

int keep_names(struct keep *keep, struct map *ret_names)
{
	struct names names = { .keep = keep };
	int r;

	(void)pthread_mutex_lock(&keep->lock);
	r = gather_names(&names);
	(void)pthread_mutex_unlock(&keep->lock);
	if (r < 0)
		map_deinit(&names.hashes);
	else
		*ret_names = names.hashes;
	return r;
}

bool keep_names_has(const struct map *names, const char *hash)
{
	return map_get(names, key_of(hash));
}

int keep_sweep(struct keep *keep)
{
	int r;

	(void)pthread_mutex_lock(&keep->lock);
	r = sweep(keep);
	(void)pthread_mutex_unlock(&keep->lock);
	return r;
}

/* --- objects --------------------------------------------------------------------------------- */

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
 * The object that the record means: the file that is mapped, if that can be seen; else the newest
 * one of the same claims. If another is mapped, that which could not be kept, if any, is to be
 * tried again with it.
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
		if (!failed && copier_has_failed(keep->copier, o))
			failed = o;
	}
	return original.found ? failed : newest_one;
}

/* Room is made again when there are so many more: it takes a look at all of them. */
static void set_full(struct keep *keep)
{
	const size_t more = keep->objects.n + KEEP_MAX / 4;

	keep->full_at = more < KEEP_MAX ? KEEP_MAX : more < KEEP_MOST ? more : KEEP_MOST;
	keep->full_from = keep->moment + KEEP_MAX / 4;
}

/* Forget the objects that are to go. The lock is held. */
static int forget(struct keep *keep)
{
	const size_t n_before = keep->objects.n;
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; i < n_before; i++) {
		struct object *object = keep->objects.items[i];

		/* One that waits to be copied, or is needed by a snapshot, has another. */
		if (object->goes && object->n_refs == 1) {
			(void)object_unref(object);
			continue;
		}
		object->goes = false;
		keep->objects.items[n++] = object;
	}
	keep->objects.n = n;
	set_full(keep);
	if (n == n_before)
		return 0;
	map_deinit(&keep->by_path);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = index_object(keep, keep->objects.items[i]);
	return r < 0 ? r : sweep(keep);
}

/* How much an object would be missed. */
struct rank {
	enum {
		RANK_FAILED, /* there is no copy of it */
		RANK_NAMED,
		RANK_MAPPED,
	} use;
	uint64_t seen;
	struct object *object;
};

static int by_rank(const void *a, const void *b)
{
	const struct rank *x = a, *y = b;

	if (x->use != y->use)
		return x->use < y->use ? -1 : 1;
	return (x->seen > y->seen) - (x->seen < y->seen);
}

static struct rank rank(const struct keep *keep, struct object *object, uint64_t moment)
{
	return (struct rank){
		.use = copier_has_failed(keep->copier, object) ? RANK_FAILED
		       : object->seen > moment                 ? RANK_MAPPED
							       : RANK_NAMED,
		.seen = object->seen,
		.object = object,
	};
}

/* Choose those that go. */
static int choose(struct keep *keep, uint64_t moment)
{
	const size_t n = keep->objects.n;
	_cleanup_(freep) struct rank *ranks = calloc(n + 1, sizeof(*ranks));
	size_t n_left = n, n_ranks = 0;

	if (!ranks)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (keep->objects.items[i]->n_refs == 1)
			ranks[n_ranks++] = rank(keep, keep->objects.items[i], moment);
	qsort(ranks, n_ranks, sizeof(*ranks), by_rank);
	for (size_t i = 0; i < n_ranks; i++) {
		if (n_left <= (ranks[i].use < RANK_MAPPED ? KEEP_MAX / 2 : KEEP_MOST / 8 * 7))
			break;
		ranks[i].object->goes = true;
		n_left--;
	}
	return 0;
}

static int add(struct keep *keep, const struct record_mmap2 *mmap, struct object **ret_object)
{
	_cleanup_(object_unrefp) struct object *object = NULL;
	struct object *known = find(keep, mmap);

	/* What failed is tried again in its place, unless a snapshot may be looking at it. */
	if (known && known->n_refs == 1 && copier_has_failed(keep->copier, known))
		copier_add(keep->copier, known, mmap);
	if (known) {
		known->seen = keep->moment;
		*ret_object = known;
		return 0;
	}
	if (keep->objects.n >= KEEP_MOST)
		return -ENOBUFS;
	object = object_new(mmap);
	if (!object || vec_reserve(&keep->objects, 1) < 0 || index_object(keep, object) < 0)
		return -ENOMEM;
	object->seen = keep->moment;
	copier_add(keep->copier, object, mmap);
	*ret_object = object;
	return vec_push(&keep->objects, TAKE(object));
}

/* Memory of no file is an object if it is an ELF file all the same: what dlopen() is given by way
 * of a memfd. If not, a snapshot takes it as memory. */
static bool is_only_memory(const struct keep *keep, const struct record_mmap2 *mmap)
{
	_cleanup_(fd_closep) int fd = -1;
	struct original original;

	return mapname_is_memory(mmap->name) &&
	       original_open(&keep->claims, mmap, &fd, &original) < 0;
}

int keep_add(struct keep *keep, const struct record_mmap2 *mmap, struct object **ret_object)
{
	int r;

	*ret_object = NULL;
	if (!object_is_meant(mmap) || is_only_memory(keep, mmap))
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

bool keep_is_full(const struct keep *keep)
{
	return keep->objects.n >= keep->full_at && keep->moment >= keep->full_from;
}

int keep_make_room(struct keep *keep, uint64_t moment)
{
	int r;

	(void)pthread_mutex_lock(&keep->lock);
	r = choose(keep, moment);
	if (r == 0)
		r = forget(keep);
	(void)pthread_mutex_unlock(&keep->lock);
	return r;
}

/* Choose those that no process has mapped, first those that were not named for longest, until
 * their copies, which no snapshot has, are @bytes. Return: 0 and how many they are, or -ENOMEM. */
static int choose_alone(struct keep *keep, uint64_t moment, uint64_t bytes, uint64_t *ret_chosen)
{
	const size_t n = keep->objects.n;
	_cleanup_(freep) struct rank *ranks = calloc(n + 1, sizeof(*ranks));
	uint64_t chosen = 0;
	size_t n_ranks = 0;

	if (!ranks)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (keep->objects.items[i]->n_refs == 1)
			ranks[n_ranks++] = rank(keep, keep->objects.items[i], moment);
	qsort(ranks, n_ranks, sizeof(*ranks), by_rank);
	for (size_t i = 0; i < n_ranks && chosen < bytes; i++) {
		const uint64_t alone =
		    ranks[i].use == RANK_NAMED ? copier_alone(keep->copier, ranks[i].object) : 0;

		ranks[i].object->goes = alone > 0;
		chosen += alone;
	}
	*ret_chosen = chosen;
	return 0;
}

int keep_shed(struct keep *keep, uint64_t moment, uint64_t bytes, uint64_t least,
	      uint64_t *ret_freed)
{
	uint64_t chosen = 0;
	int r;

	(void)pthread_mutex_lock(&keep->lock);
	r = choose_alone(keep, moment, bytes, &chosen);
	if (r == 0 && chosen < least) {
		for (size_t i = 0; i < keep->objects.n; i++)
			keep->objects.items[i]->goes = false;
		chosen = 0;
	}
	if (r == 0 && chosen > 0)
		r = forget(keep);
	(void)pthread_mutex_unlock(&keep->lock);
	if (r == 0)
		*ret_freed = chosen;
	return r;
}

int keep_forget(struct keep *keep, uint64_t moment)
{
	int r;

	(void)pthread_mutex_lock(&keep->lock);
	for (size_t i = 0; i < keep->objects.n; i++)
		keep->objects.items[i]->goes = keep->objects.items[i]->seen <= moment;
	r = forget(keep);
	(void)pthread_mutex_unlock(&keep->lock);
	return r;
}

void keep_measure(struct keep *keep)
{
	copier_measure(keep->copier);
}

bool keep_is_near(struct keep *keep, const struct object *object)
{
	return copier_is_near(keep->copier, object);
}

int keep_wait(struct keep *keep, const struct object *object, const atomic_bool *cancel)
{
	return copier_wait(keep->copier, object, cancel);
}

int keep_fd(const struct keep *keep)
{
	return copier_fd(keep->copier);
}

const struct object *keep_next_failed(struct keep *keep)
{
	struct object *object;

	while ((object = copier_next_finished(keep->copier))) {
		/* The keep itself has another reference. */
		(void)object_unref(object);
		if (object->error < 0 && !object->told) {
			object->told = true;
			return object;
		}
	}
	return NULL;
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
