/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/objects/objectstore.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "daemon/helper/collector/link.h"
#include "daemon/objects/asker.h"
#include "daemon/objects/copier.h"
#include "daemon/objects/eviction.h"
#include "daemon/share/share.h"
#include "util/map.h"
#include "util/mapname.h"
#include "util/mutex.h"
#include "util/vec.h"

struct objectstore {
	struct copier *copier;
	struct collectorlink *link; /* the event loop's */
	bool is_claimed;            /* see struct source_facts */
	struct askers askers;
	struct patience patience;
	struct map by_path;   /* hash of path → newest object; the others by ->alike */
	uint64_t moment;      /* how many records were seen */
	size_t full_at;       /* number of objects at which room is to be made */
	uint64_t full_from;   /* but not before this moment */
	atomic_bool has_room; /* what was refused for want of room may be tried again */

	/* For the list of objects, which other threads read when they sweep. Only the daemon's main
	 * thread changes the list, and reads it without the lock. */
	pthread_mutex_t lock;
	VEC(struct object *) objects;
};

/* --- life ------------------------------------------------------------------------------------ */

int objectstore_new(int store_fd, const struct spool_limits *limits, const char *runtime_dir,
		    struct objectstore **ret_store)
{
	_cleanup_(objectstore_freep) struct objectstore *s = malloc(sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	*s = (struct objectstore){ .full_at = OBJECTSTORE_SOFT_MAX,
				   .lock = PTHREAD_MUTEX_INITIALIZER };
	r = collectorlink_new(runtime_dir, true, &s->link);
	if (r == 0)
		r = copier_new(store_fd, limits, runtime_dir, &s->copier);
	if (r == 0)
		r = objectstore_sweep(s);
	if (r < 0)
		return r;
	*ret_store = TAKE(s);
	return 0;
}

struct objectstore *objectstore_free(struct objectstore *store)
{
	if (!store)
		return NULL;

	(void)copier_free(store->copier);
	askers_deinit(&store->askers);
	patience_deinit(&store->patience);
	(void)collectorlink_free(store->link);
	vec_deinit_each(&store->objects, object, object_unref(*object));
	map_deinit(&store->by_path);
	(void)pthread_mutex_destroy(&store->lock);
	free(store);
	return NULL;
}

void objectstore_set_claimed(struct objectstore *store)
{
	store->is_claimed = true;
	copier_set_claimed(store->copier);
}

void objectstore_set_room(struct objectstore *store, uint64_t bytes)
{
	if (copier_set_room(store->copier, bytes))
		atomic_store(&store->has_room, true);
}

/* The names of copies in the store directory. */
struct names {
	const struct objectstore *store;
	bool complete;
	struct map hashes; /* of copied objects → who pays + 1 */
};

static uint64_t text_key(const char *text)
{
	return map_hash(text, strlen(text));
}

static int gather_names(struct names *names)
{
	const struct objectstore *s = names->store;
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->objects.n; i++) {
		const struct object *o = s->objects.items[i];

		if (o->error == 0)
			r = map_put(&names->hashes, text_key(o->sha256), (uint64_t)o->payer + 1);
	}
	names->complete = r == 0;
	return r;
}

/* Called while no object becomes done. Without memory all copies are needed: to keep one too many
 * does no harm. */
static bool is_needed(const char *hash, void *userdata)
{
	struct names *names = userdata;

	if (!names->complete && gather_names(names) < 0)
		return true;
	return map_get(&names->hashes, text_key(hash));
}

/* Files of a kernel, and others that only snapshots put here, are root's. */
static uid_t owner_of(const char *hash, void *userdata)
{
	const struct names *names = userdata;
	const uint64_t *owner = map_get(&names->hashes, text_key(hash));

	return owner ? (uid_t)(*owner - 1) : 0;
}

/* The lock is held. */
static int sweep_copies(struct objectstore *store)
{
	struct names names = { .store = store };
	int r;

	r = copier_sweep(
	    store->copier,
	    &(struct copier_names){ .needed = is_needed, .owner = owner_of, .userdata = &names });
	map_deinit(&names.hashes);
	return r;
}

int objectstore_names(struct objectstore *store, struct map *ret_names)
{
	struct names names = { .store = store };
	int r;

	(void)pthread_mutex_lock(&store->lock);
	r = gather_names(&names);
	(void)pthread_mutex_unlock(&store->lock);
	if (r < 0)
		map_deinit(&names.hashes);
	else
		*ret_names = names.hashes;
	return r;
}

bool objectstore_names_has(const struct map *names, const char *hash)
{
	return map_get(names, text_key(hash));
}

int objectstore_sweep(struct objectstore *store)
{
	HOLD(&store->lock);

	return sweep_copies(store);
}

/* --- objects --------------------------------------------------------------------------------- */

static struct object *newest_object(const struct objectstore *store, uint64_t key)
{
	return map_pointer(&store->by_path, key);
}

static int index_object(struct objectstore *store, struct object *object)
{
	const uint64_t key = text_key(object->path);

	object->alike = newest_object(store, key);
	return map_put(&store->by_path, key, (uintptr_t)object);
}

/* Find the object that the record means: the mapped file @original if it can be seen, otherwise the
 * newest object with the same claims. If the mapped file is a new one, find an object that could
 * not be copied and can be tried again with it. */
static struct object *find_object(const struct objectstore *store, const struct record_mmap2 *mmap,
				  const struct original *original)
{
	struct object *newest_one = NULL, *failed = NULL;

	for (struct object *o = newest_object(store, text_key(mmap->name)); o; o = o->alike) {
		if (!object_matches(o, mmap))
			continue;
		if (original_equal(&o->original, original))
			return o;
		newest_one = newest_one ? newest_one : o;
		if (!failed && copier_result(store->copier, o) < 0)
			failed = o;
	}
	return original->found ? failed : newest_one;
}

/* Set when room is to be made again: not soon, because making room looks at all objects. */
static void set_full(struct objectstore *store)
{
	const size_t more = store->objects.n + OBJECTSTORE_SOFT_MAX / 4;

	store->full_at = more < OBJECTSTORE_SOFT_MAX ? OBJECTSTORE_SOFT_MAX
			 : more < OBJECTSTORE_MAX    ? more
						     : OBJECTSTORE_MAX;
	store->full_from = store->moment + OBJECTSTORE_SOFT_MAX / 4;
}

/* Forget the objects that were chosen. The lock is held. */
static int forget_chosen(struct objectstore *store)
{
	const size_t n_before = store->objects.n;
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; i < n_before; i++) {
		struct object *object = store->objects.items[i];

		/* An object that waits to be copied, or that a snapshot needs, has another
		 * reference. */
		if (object->goes && object->n_refs == 1) {
			(void)object_unref(object);
			continue;
		}
		object->goes = false;
		store->objects.items[n++] = object;
	}
	store->objects.n = n;
	set_full(store);
	if (n == n_before)
		return 0;
	map_deinit(&store->by_path);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = index_object(store, store->objects.items[i]);
	return r < 0 ? r : sweep_copies(store);
}

/* --- what is added ---------------------------------------------------------------------------- */

/* Ask for the mapped file, as original_find() does, if it may be waited for. */
static int ask_for(struct objectstore *store, enum original_way way,
		   const struct record_mmap2 *mmap, uid_t user, int *ret_fd,
		   struct original *ret_original)
{
	const uint32_t pid = mmap->pid <= INT32_MAX ? mmap->pid : 0;
	const uint64_t asker = asker_find(&store->askers, pid, user, 0, mmap->name);

	if (!patience_begin(&store->patience, asker))
		return -EBUSY;
	return patience_end(&store->patience, asker,
			    original_find(store->link, way, store->is_claimed, mmap, user, NULL,
					  ret_fd, ret_original));
}

/* A file that cannot be seen now, because its disk or the collector does not answer, may be found
 * when it is its turn to be copied. */
static void have_copied(struct objectstore *store, struct object *object,
			const struct record_mmap2 *mmap, uid_t user, const struct original *seen,
			int error)
{
	int fd = -1;

	object->is_wanted = false;
	object->user = user;
	object->mapped = *mmap;
	object->mapped.name = object->path;
	object->original = *seen;
	if (!collectorlink_may_retry(error))
		error = ask_for(store, ORIGINAL_TAKE, mmap, object->user, &fd, &object->original);
	copier_add(store->copier, object, fd, collectorlink_may_retry(error) ? 0 : error);
}

/* Another has mapped the object. What keeps it from being copied for the first one, such as a file
 * server of that user's, need not keep it from being copied for this one. */
static void want_too(struct objectstore *store, struct object *object,
		     const struct record_mmap2 *mmap, uid_t user)
{
	copier_ask_too(store->copier, object, mmap, user);
	if (copier_result(store->copier, object) == 0)
		return;
	object->is_wanted = true;
	object->wanted = *mmap;
	object->wanted.name = object->path;
	object->wanted_by = user;
}

/* Return: whether the file that was found has the build-id of the record. If it has not, something
 * else has been mapped there since. */
static bool has_build_id(struct objectstore *store, const struct record_mmap2 *mmap, uid_t user,
			 const struct original *original)
{
	_cleanup_(fd_closep) int fd = -1;
	struct original verified = {};

	return ask_for(store, ORIGINAL_VERIFY, mmap, user, &fd, &verified) == 0 &&
	       original_equal(original, &verified);
}

/*
 * Name the file that was found by its inode, if the kernel names by the same path and build-id
 * another file, which was mapped before: in a mount namespace of their own, users can have any file
 * at any path, and anybody can write any build-id into a file. Return: how records name it.
 */
static struct record_mmap2 name_file(struct objectstore *store, const struct record_mmap2 *mmap,
				     uid_t user, const struct original *original)
{
	struct record_mmap2 named = *mmap;
	bool has_other = false;

	if (mmap->build_id.size == 0 || !original->found)
		return named;
	for (struct object *o = newest_object(store, text_key(mmap->name)); o; o = o->alike) {
		if (!o->original.found || !object_matches(o, mmap))
			continue;
		if (o->original.dev == original->dev && o->original.ino == original->ino)
			return named;
		has_other = true;
	}
	if (has_other && has_build_id(store, mmap, user, original)) {
		named.build_id = (struct buildid){};
		named.maj = major(original->dev);
		named.min = minor(original->dev);
		named.ino = original->ino;
	}
	return named;
}

static int add_object(struct objectstore *store, const struct record_mmap2 *recorded, uid_t user,
		      struct object **ret_object)
{
	_cleanup_(object_unrefp) struct object *object = NULL;
	struct original original = {};
	struct record_mmap2 named;
	const struct record_mmap2 *const mmap = &named;
	struct object *known;
	int error, fd;

	error = ask_for(store, ORIGINAL_LOOK, recorded, user, &fd, &original);
	named = name_file(store, recorded, user, &original);
	known = find_object(store, mmap, &original);

	/* An object that could not be copied is tried again, unless a snapshot may be reading
	 * it. */
	if (known && known->n_refs == 1 && copier_result(store->copier, known) < 0)
		have_copied(store, known, mmap, user, &original, error);
	else if (known)
		want_too(store, known, mmap, user);
	if (known) {
		known->seen = store->moment;
		*ret_object = known;
		return 0;
	}
	if (store->objects.n >= OBJECTSTORE_MAX)
		return -ENOBUFS;
	object = object_new(mmap);
	if (!object || vec_reserve(&store->objects, 1) < 0 || index_object(store, object) < 0)
		return -ENOMEM;
	object->seen = store->moment;
	object->claimed = recorded->build_id;
	have_copied(store, object, mmap, user, &original, error);
	*ret_object = object;
	return vec_push(&store->objects, TAKE(object));
}

/* Memory without a file is an object if it is an ELF file: a program can pass a memfd to dlopen().
 * Other memory is read by snapshots. */
static bool is_only_memory(struct objectstore *store, const struct record_mmap2 *mmap, uid_t user)
{
	struct original original;
	int fd;

	return mapname_is_memory(mmap->name) &&
	       ask_for(store, ORIGINAL_IS_ELF, mmap, user, &fd, &original) < 0;
}

int objectstore_add(struct objectstore *store, const struct record_mmap2 *mmap, uid_t user,
		    struct object **ret_object)
{
	int r;

	*ret_object = NULL;
	if (!object_is_meant(mmap) || is_only_memory(store, mmap, user))
		return 0;

	store->moment++;
	(void)pthread_mutex_lock(&store->lock);
	r = add_object(store, mmap, user, ret_object);
	(void)pthread_mutex_unlock(&store->lock);
	return r;
}

void objectstore_touch(struct objectstore *store, const struct record_mmap2 *mmap)
{
	store->moment++;
	for (struct object *o = newest_object(store, text_key(mmap->name)); o; o = o->alike)
		if (object_matches(o, mmap))
			o->seen = store->moment;
}

uint64_t objectstore_moment(const struct objectstore *store)
{
	return store->moment;
}

/* --- what goes, for want of room -------------------------------------------------------------- */

bool objectstore_is_full(const struct objectstore *store)
{
	return store->objects.n >= store->full_at && store->moment >= store->full_from;
}

static struct eviction eviction_of(const struct objectstore *store, uint64_t moment)
{
	return (struct eviction){ .copier = store->copier,
				  .objects = store->objects.items,
				  .n_objects = store->objects.n,
				  .moment = moment };
}

int objectstore_make_room(struct objectstore *store, uint64_t moment)
{
	const struct eviction eviction = eviction_of(store, moment);
	int r;
	HOLD(&store->lock);

	r = eviction_choose(&eviction);
	if (r == 0)
		r = forget_chosen(store);
	return r;
}

int objectstore_evict(struct objectstore *store, uint64_t moment, uint64_t bytes, uint64_t least,
		      uint64_t *ret_freed)
{
	const struct eviction eviction = eviction_of(store, moment);
	uint64_t chosen = 0;
	int r;

	(void)pthread_mutex_lock(&store->lock);
	r = eviction_choose_alone(&eviction, bytes, least, &chosen);
	if (r == 0 && chosen > 0)
		r = forget_chosen(store);
	(void)pthread_mutex_unlock(&store->lock);
	if (r == 0)
		*ret_freed = chosen;
	return r;
}

bool objectstore_is_unfair(struct objectstore *store)
{
	struct share share;
	uint64_t max;

	copier_get_share(store->copier, &share, &max);
	return atomic_load(&store->has_room) || eviction_is_due(&share, max);
}

/* Have the object copied if it was refused for want of room, and its owner has not more than their
 * part: if there is too little, others will give. Root's is if there is room. */
static void retry_refused(struct objectstore *store, struct object *object, struct share *share,
			  uint64_t max)
{
	const uid_t uid = object->original.uid;

	if (object->n_refs > 1 || copier_result(store->copier, object) != -EDQUOT ||
	    share_exceeds(share, max, uid) ||
	    (uid == 0 && !share_allows(share, max, uid, object->original.size)))
		return;
	share_take(share, uid, object->original.size);
	have_copied(store, object, &object->mapped, object->user, &object->original, 0);
}

/* Root comes last: it may just have given for others. */
static void retry_all_refused(struct objectstore *store)
{
	struct share share;
	uint64_t max;

	copier_get_share(store->copier, &share, &max);
	for (unsigned pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < store->objects.n; i++)
			if ((store->objects.items[i]->original.uid == 0) == (pass == 1))
				retry_refused(store, store->objects.items[i], &share, max);
}

int objectstore_take_back(struct objectstore *store, uint64_t moment, uint64_t *ret_freed,
			  uid_t *ret_uid)
{
	const struct eviction eviction = eviction_of(store, moment);
	uint64_t freed = 0;
	uid_t uid = 0;
	int r;

	(void)pthread_mutex_lock(&store->lock);
	r = eviction_take_back(&eviction, &freed, &uid);
	if (r == 0)
		r = sweep_copies(store);
	if (r == 0 && (atomic_exchange(&store->has_room, false) || freed > 0))
		retry_all_refused(store);
	(void)pthread_mutex_unlock(&store->lock);
	if (r < 0)
		return r;
	*ret_freed = freed;
	*ret_uid = uid;
	return 0;
}

void objectstore_get_share(struct objectstore *store, struct share *ret_share)
{
	uint64_t max;

	copier_get_share(store->copier, ret_share, &max);
}

int objectstore_forget(struct objectstore *store, uint64_t moment)
{
	int r;
	HOLD(&store->lock);

	for (size_t i = 0; i < store->objects.n; i++)
		store->objects.items[i]->goes = store->objects.items[i]->seen <= moment;
	r = forget_chosen(store);
	return r;
}

/* Have the object, which could not be copied for one, copied for the other who mapped it. */
static void copy_for_other(struct objectstore *store, struct object *object)
{
	HOLD(&store->lock);

	have_copied(store, object, &object->wanted, object->wanted_by, &object->original, 0);
}

const struct object *objectstore_next_failed(struct objectstore *store)
{
	struct object *object;

	while ((object = copier_next_finished(store->copier))) {
		/* The object store itself has another reference. */
		(void)object_unref(object);
		if (object->error < 0 && object->is_wanted && object->n_refs == 1)
			copy_for_other(store, object);
		else if (object->error < 0 && !object->reported) {
			object->reported = true;
			return object;
		}
	}
	return NULL;
}

struct copier *objectstore_copier(const struct objectstore *store)
{
	return store->copier;
}

size_t objectstore_count(const struct objectstore *store)
{
	return store->objects.n;
}

int objectstore_list(const struct objectstore *store, struct object ***ret_objects,
		     size_t *ret_n_objects)
{
	struct object **objects = calloc(store->objects.n + 1, sizeof(struct object *));

	if (!objects)
		return -ENOMEM;
	for (size_t i = 0; i < store->objects.n; i++)
		objects[i] = object_ref(store->objects.items[i]);
	*ret_objects = objects;
	*ret_n_objects = store->objects.n;
	return 0;
}
