/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Object store
 *
 * The files that programs executed. A file may be replaced or deleted before a user takes a
 * snapshot, so the object store opens each file as soon as it sees the record of its mapping,
 * copies it once into the store directory (daemon/spool/storedir.h), and snapshots link to the
 * copy. A thread makes the copies (daemon/objects/copier.h); the user of an object waits for it.
 *
 * Objects that no record names any more are to be forgotten with objectstore_forget(): a machine
 * that compiles all day executes new files all the time. If too many are executed before that,
 * objectstore_make_room() is to be called; objects of programs that ended meanwhile may then be
 * missing in the next snapshot.
 *
 * daemon/objects/original.h finds the file that a record names.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"
#include "daemon/objects/object.h"

struct copier;
struct map;
struct objectstore;
struct share;
struct spool_limits;

/* Number of objects above which room is to be made. There are more of them, up to
 * OBJECTSTORE_MAX, if they are in use: a living process has them mapped, or a snapshot that is
 * being made needs them. */
#define OBJECTSTORE_SOFT_MAX 4096u
#define OBJECTSTORE_MAX      (4 * OBJECTSTORE_SOFT_MAX)

/*
 * Make an object store without objects, and remove from the store directory what no snapshot links
 * to.
 *
 * @store_fd: the store directory; borrowed
 * @runtime_dir: where the socket of the collector is, which looks for the files and reads them
 *
 * Return: 0, or negative errno.
 */
_must_check_ int objectstore_new(int store_fd, const struct spool_limits *limits,
				 const char *runtime_dir, struct objectstore **ret_store);

/* Free the object store. Objects that wait to be copied are not copied any more. Return: NULL. */
struct objectstore *objectstore_free(struct objectstore *store);

DEFINE_CLEANUP(struct objectstore *, objectstore_free);

/* Say that programs write the records that objectstore_add() will be given, not the kernel. To be
 * called before the first objectstore_add(). */
void objectstore_set_claimed(struct objectstore *store);

/* Let copies to which no snapshot links take no more than @bytes, or half of MaxUse= if that is
 * less. More of them are taken back with objectstore_take_back(). To be called in any thread. */
void objectstore_set_room(struct objectstore *store, uint64_t bytes);

/* Remove the copies to which no snapshot links and which belong to no known object. No other
 * thread may link to copies meanwhile. Return: 0, or negative errno. */
_must_check_ int objectstore_sweep(struct objectstore *store);

/* Make a set of the names that the copies of known objects have in the store directory, for
 * objectstore_names_has(). To be called in any thread. Return: 0 and a map that the caller frees,
 * or -ENOMEM. */
_must_check_ int objectstore_names(struct objectstore *store, struct map *ret_names);

/* Return: whether @hash is one of the names. */
bool objectstore_names_has(const struct map *names, const char *hash);

/*
 * Have the file copied that the MMAP2 record maps, if the mapping is executable and the file is
 * not known yet. An object that could not be copied before is tried again.
 *
 * @user: who started the process, should it have ended: what is done for that user does not delay
 * others;
 *        0: root, or not known
 *
 * If object_is_by_inode(), the caller has the record name it so, as @mapped of the object does.
 *
 * Return: 0 and the object, borrowed, which may still wait to be copied, or NULL if the record maps
 *         no object; -ENOBUFS if there are OBJECTSTORE_MAX; or -ENOMEM.
 */
_must_check_ int objectstore_add(struct objectstore *store, const struct record_mmap2 *mmap,
				 uid_t user, struct object **ret_object);

/* Mark the objects that the record may mean as named just now. objectstore_add() has been given
 * the record before. */
void objectstore_touch(struct objectstore *store, const struct record_mmap2 *mmap);

/* Return: a number for the present moment, which increases with each record. */
uint64_t objectstore_moment(const struct objectstore *store);

/* Return: whether objectstore_make_room() is to be called before more objects are added. */
bool objectstore_is_full(const struct objectstore *store);

/*
 * Forget objects until there are half of OBJECTSTORE_SOFT_MAX, and remove their copies: first the
 * objects that could not be copied, then those that were not named for the longest time. Objects
 * that a snapshot needs stay. Objects that were named after @moment, for instance because the
 * caller has touched all that living processes have mapped, go only if there would be almost
 * OBJECTSTORE_MAX otherwise.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int objectstore_make_room(struct objectstore *store, uint64_t moment);

/* Forget the objects that no record named after @moment, and remove their copies. No other thread
 * may link to copies meanwhile. Return: 0, or negative errno. */
_must_check_ int objectstore_forget(struct objectstore *store, uint64_t moment);

/*
 * Forget objects to whose copies no snapshot links, and remove these copies, until @bytes are
 * free. If less than @least would become free, nothing is removed. Objects that were not named for
 * the longest time go first; objects that a snapshot needs, or that were named after @moment, stay.
 * No other thread may link to copies meanwhile.
 *
 * Return: 0 and about how many bytes became free, or negative errno.
 */
_must_check_ int objectstore_evict(struct objectstore *store, uint64_t moment, uint64_t bytes,
				   uint64_t least, uint64_t *ret_freed);

/* Return: whether objectstore_take_back() is to be called, since a user has more than their share
 * of the room for copies to which no snapshot links, and little is left; or since there are more of
 * them than there is room for; or since there is more room than before. */
bool objectstore_is_unfair(struct objectstore *store);

/*
 * Remove copies to which no snapshot links, of users who have more than their share, so that there
 * is room again for others: first those that were not named after @moment, in the order in which
 * they were named. If there are still more than there is room for, root's go in the same order; and
 * those of root's that were not named after @moment, if a user has less than their share.
 * Their objects count as not copied (-EDQUOT), unless a snapshot needs them. Then
 * try again to copy what was refused to users who have not more than their share. No other thread
 * may link to copies meanwhile.
 *
 * Return: 0, about how many bytes became free, and the owner of the last of these files; or
 *         negative errno.
 */
_must_check_ int objectstore_take_back(struct objectstore *store, uint64_t moment,
				       uint64_t *ret_freed, uid_t *ret_uid);

/* Return: what copies the objects, which is the store's. */
struct copier *objectstore_copier(const struct objectstore *store);

/* Get a copy of the account of bytes of copies to which no snapshot links. */
void objectstore_get_share(struct objectstore *store, struct share *ret_share);

/* Return: the next object that could not be copied and has not been returned yet, borrowed until
 *         the next objectstore_add(); NULL if there is none. */
const struct object *objectstore_next_failed(struct objectstore *store);

/* Return: how many objects are known, copied or not. */
size_t objectstore_count(const struct objectstore *store);

/* List all objects, oldest first, each with a reference for the caller, who also frees the array.
 * Return: 0, or -ENOMEM. */
_must_check_ int objectstore_list(const struct objectstore *store, struct object ***ret_objects,
				  size_t *ret_n_objects);
