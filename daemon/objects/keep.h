/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Keep
 *
 * The files that programs executed. They may be replaced or deleted before somebody asks what ran,
 * so each is opened as soon as the record of its mapping is seen, copied once into the spool's
 * store (daemon/spool/store.h), and hard-linked into the snapshots that need it. Copying takes a
 * while (daemon/objects/copier.h); who needs an object waits for it.
 *
 * What no record names any more is to be forgotten (keep_forget()): a machine that compiles all day
 * executes ever other files. If it executes too many of them before that, room is to be made
 * (keep_make_room()), and what was executed meanwhile by those who have ended may be missing.
 *
 * What a record names is found as daemon/objects/original.h says.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/objects/object.h"

struct claims;
struct keep;
struct map;
struct spool_limits;

/* Objects that are known. There may be more of them up to KEEP_MOST, if they are in use: processes
 * that live have them mapped, or a snapshot is being made of them. */
#define KEEP_MAX  4096u
#define KEEP_MOST (4 * KEEP_MAX)

/*
 * @store_fd: the folder the copies go to; borrowed. It is swept first.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int keep_new(int store_fd, const struct spool_limits *limits, struct keep **ret_keep);

/* Frees it; what still waits to be copied is given up. Return: NULL. */
struct keep *keep_free(struct keep *keep);

DEFINE_CLEANUP(struct keep *, keep_free);

/* Say who writes the records that keep_add() is given, before the first of them; it is copied.
 * Without this, the kernel does. */
void keep_set_claims(struct keep *keep, const struct claims *claims);

/* From the next copy on. What has been copied stays. */
void keep_set_limits(struct keep *keep, const struct spool_limits *limits);

/* Remove copies of which neither a snapshot has a link nor an object is known; not while another
 * thread links to them. Return: 0, or negative errno. */
_must_check_ int keep_sweep(struct keep *keep);

/* The names that copies of known objects have in the store, for keep_names_has(); in any thread.
 * Return: 0 and a map that the caller frees, or -ENOMEM. */
_must_check_ int keep_names(struct keep *keep, struct map *ret_names);

/* Return: whether one of the objects has a copy of that name. */
bool keep_names_has(const struct map *names, const char *hash);

/*
 * Keep what an MMAP2 record maps, if it is executable and a file, and not kept yet. What cannot be
 * kept is remembered as such, and tried again when it is mapped again.
 *
 * Return: 0 and the object, borrowed, which may have to be waited for, or NULL if there is nothing
 *         to keep; -ENOBUFS if there are KEEP_MOST; or -ENOMEM.
 */
_must_check_ int keep_add(struct keep *keep, const struct record_mmap2 *mmap,
			  struct object **ret_object);

/* A record that keep_add() has seen is still of use: the objects that it may mean are not
 * forgotten. */
void keep_touch(struct keep *keep, const struct record_mmap2 *mmap);

/* Return: a number for the present moment. Those of later records are larger. */
uint64_t keep_moment(const struct keep *keep);

/* Return: whether there are so many objects that keep_make_room() is to be called before more are
 *         added. */
bool keep_is_full(const struct keep *keep);

/*
 * Forget objects until there are half of KEEP_MAX, and remove their copies: first those that could
 * not be kept, then those that were not named for longest. But not what a snapshot is being made
 * of; and what was named after that @moment, as by keep_touch() for those who live, only if there
 * would be almost KEEP_MOST otherwise.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int keep_make_room(struct keep *keep, uint64_t moment);

/* Forget those objects that no record named after that @moment, and remove their copies; not while
 * another thread links to them. Return: 0, or negative errno. */
_must_check_ int keep_forget(struct keep *keep, uint64_t moment);

/*
 * Forget objects whose copies no snapshot has a link to, and remove these, until @bytes are free;
 * none if they are not @least. First those that were not named for longest; but not what a snapshot
 * is being made of, nor what was named after that @moment, as by keep_touch() for those who live.
 * Not while another thread links to the copies.
 *
 * Return: 0 and about how many bytes became free, or negative errno.
 */
_must_check_ int keep_shed(struct keep *keep, uint64_t moment, uint64_t bytes, uint64_t least,
			   uint64_t *ret_freed);

/* Wait until the object is copied, or cannot be; in any thread. Return: 0, or -ECANCELED once
 * @cancel, which may be NULL, is true. */
_must_check_ int keep_wait(struct keep *keep, const struct object *object,
			   const atomic_bool *cancel);

/* Before a snapshot waits for objects: see copier_measure(). In any thread. */
void keep_measure(struct keep *keep);

/* Return: whether the object is worth waiting for: if not, its owner has too many files that wait.
 * In any thread. */
bool keep_is_near(struct keep *keep, const struct object *object);

/* Borrowed descriptor that is readable when keep_next_failed() has something to do. */
int keep_fd(const struct keep *keep);

/* Return: the next object that could not be kept and has not been returned yet, borrowed until the
 * next keep_add(); NULL if there is none. */
const struct object *keep_next_failed(struct keep *keep);

/* How many are known, kept or not. */
size_t keep_count(const struct keep *keep);

/* All objects, oldest first, each referenced for the caller, who frees the array. Return: 0, or
 * -ENOMEM. */
_must_check_ int keep_list(const struct keep *keep, struct object ***ret_objects,
			   size_t *ret_n_objects);
