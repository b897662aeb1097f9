/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Copier
 *
 * Threads that copy the originals of objects into the store directory, so that the event loop does
 * not wait for the disk. They take turns between the users whose processes mapped the files and
 * the owners: a user with many files does not delay those of others. Nor does a user whose file
 * server does not answer: the kernel says which user's process mapped the file, which its owner
 * need not be, and one thread at a time works for one user. A snapshot does not wait for a file
 * that is not being read on, nor longer than a moment for all files together that one user, who is
 * not root, executes.
 *
 * The copier gets a descriptor of the original together with the object, so it copies what was
 * mapped even if another file is at the path by then. The collector
 * (daemon/helper/collector/link.h) reads the originals, and writes the copies to descriptors that
 * it is passed.
 *
 * The functions are to be called in the event loop's thread, unless they say otherwise.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"

/* Copies to which no snapshot links may take MaxUse= divided by this; otherwise users who execute
 * many files would leave no room for snapshots. The owner of the original has the copy in their
 * share (daemon/share/share.h). A file of root's counts for the user whose processes map it, until
 * those of another one do, too: or anybody could have all programs of the machine copied, and leave
 * no room for what others execute. */
#define COPIER_PART 2u

/* Bytes of one user's files for which a snapshot waits. */
#define COPIER_NEAR_MAX (UINT64_C(768) << 20)

struct copier;
struct map;
struct object;
struct record_mmap2;
struct share;
struct spool_limits;

/*
 * Start the threads.
 *
 * @store_fd: the store directory, borrowed
 * @runtime_dir: where the collector's socket is
 *
 * Return: 0, or negative errno.
 */
_must_check_ int copier_new(int store_fd, const struct spool_limits *limits,
			    const char *runtime_dir, struct copier **ret_copier);

/* Stop the threads. Objects that wait are not copied any more. Return: NULL. */
struct copier *copier_free(struct copier *copier);

DEFINE_CLEANUP(struct copier *, copier_free);

/* Use other limits from the next copy on. */
void copier_set_limits(struct copier *copier, const struct spool_limits *limits);

/* Let copies to which no snapshot links take @bytes, if MaxUse= allows it. To be called in
 * any thread. Return: whether that is more than before. */
bool copier_set_room(struct copier *copier, uint64_t bytes);

/* Say that programs write the records, not the kernel, before the first copier_add(). */
void copier_set_claimed(struct copier *copier);

/*
 * Have the original of @object copied. The object is new; or it could not be copied before, and
 * only the caller has a reference to it. The copier has a reference until copier_next_finished()
 * returns the object.
 *
 * @fd: stands for the original; or -1: the copier is to find it. It passes to the copier
 * @error: 0; or negative errno: the object is known to fail
 */
void copier_add(struct copier *copier, struct object *object, int fd, int error);

/*
 * The record @mmap names an object that was added before. While it waits behind files that are not
 * read on, it is copied for the one who mapped it now; and for root in any case. If it is root's
 * and another user's processes have mapped it, it counts for root from now on. @user: as of
 * asker_find().
 */
void copier_ask_too(struct copier *copier, struct object *object, const struct record_mmap2 *mmap,
		    uid_t user);

enum {
	COPIER_WAITS = 1,
};

/* Return: 0 if the object was copied; COPIER_WAITS; or negative errno if it was not, -EDQUOT if its
 *         owner had no share left for it. */
_must_check_ int copier_result(struct copier *copier, const struct object *object);

enum {
	/* Nothing of it, or of what is before it, has been read for a while; or the snapshot has
	 * waited long enough for files of its user. */
	COPIER_STALLED = 1,
};

#define COPIER_WHY_STALLED "it was not read in time"

/*
 * Wait until the object is copied or has failed. To be called in any thread.
 *
 * Return: 0; COPIER_STALLED, unless it is copied for root; or -ECANCELED once @cancel, which may be
 *         NULL, is true.
 */
_must_check_ int copier_wait(struct copier *copier, const struct object *object,
			     const atomic_bool *cancel);

/*
 * Find out which waiting objects are near: at most COPIER_NEAR_MAX bytes of their owner's files
 * are to be copied before them. Files of root are always near.
 */
void copier_measure(struct copier *copier);

/* Return: why a snapshot is not to wait for the object, a constant: it was not near at the last
 *         copier_measure(), or a file that its user mapped could not be read lately. NULL if it may
 *         wait, or need not. To be called in any thread. */
const char *copier_why_not_near(struct copier *copier, const struct object *object);

/* Return: a borrowed descriptor that is readable when copier_next_finished() or
 *         objectstore_next_failed() has something to return. */
int copier_fd(const struct copier *copier);

/* Return: the next object that was copied or has failed, with the copier's reference, which passes
 *         to the caller; NULL if there is none. */
struct object *copier_next_finished(struct copier *copier);

/* What a sweep asks about the copies, by their hashes. */
struct copier_names {
	bool (*needed)(const char *hash, void *userdata);
	uid_t (*owner)(const char *hash, void *userdata); /* in whose share it is */
	void *userdata;
};

/*
 * Remove the copies that are not needed and to which no snapshot links, and count those that remain
 * without a link. To be called in any thread. No object becomes done meanwhile.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int copier_sweep(struct copier *copier, const struct copier_names *names);

/* Get a copy of the account of bytes on the disk of copies to which no snapshot links, and what all
 * may take together. To be called in any thread. */
void copier_get_share(struct copier *copier, struct share *ret_share, uint64_t *ret_max);

/* Have the object fail with -EDQUOT though it was copied: others need the room. Its copy goes with
 * the next sweep. Only the caller has a reference to the object. */
void copier_take_back(struct copier *copier, struct object *object);

/* Get how many bytes more a snapshot takes on the disk with the copy of the object, which was
 * copied: none if another snapshot links to it; and in whose share it is. To be called in any
 * thread. */
uint64_t copier_bytes(struct copier *copier, const struct object *object, uid_t *ret_payer);

/* Count that a snapshot does not have the object, whose user has too much there. To be called in
 * any thread. */
void copier_count_left_out(struct copier *copier, uid_t payer);

/* Return: the bytes on the disk that become free if the object's copy is removed; 0 if it has no
 *         copy, or a snapshot links to it. */
uint64_t copier_alone(struct copier *copier, const struct object *object);
