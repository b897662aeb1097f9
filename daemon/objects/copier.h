/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Copier
 *
 * Copies the originals of objects into the store, one after the other, in a thread of its own: that
 * takes a while, and records do not wait. It takes turns between the owners of the files, so that
 * nobody's are kept waiting by how many another user has. An original is held open from the moment
 * it is given to the copier, so that what is copied is what was mapped, whatever lies at its path
 * by then.
 *
 * Its functions are the object store's event loop's to call, unless they say otherwise.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"

struct claims;
/* How much a user may have others wait for, of a snapshot's objects. */
#define COPIER_NEAR_MAX (UINT64_C(768) << 20)

struct copier;
struct object;
struct record_mmap2;
struct spool_limits;

/* @store_fd: the folder the copies go to; borrowed. Return: 0, or negative errno. */
_must_check_ int copier_new(int store_fd, const struct spool_limits *limits,
			    struct copier **ret_copier);

/* Frees it; what still waits to be copied is given up. Return: NULL. */
struct copier *copier_free(struct copier *copier);

DEFINE_CLEANUP(struct copier *, copier_free);

/* From the next copy on. */
void copier_set_limits(struct copier *copier, const struct spool_limits *limits);

/* Say who writes the records, before the first of them; it is copied. Without this, the kernel
 * does. */
void copier_set_claims(struct copier *copier, const struct claims *claims);

/*
 * Hold the original of @object open, which is what is mapped now as @mmap says, and have it copied.
 * The object is new, or could not be copied before and is known to nobody else. It is referenced
 * until copier_next_finished() returns it.
 */
void copier_add(struct copier *copier, struct object *object, const struct record_mmap2 *mmap);

/* Return: whether the object could not be copied; false while it waits. */
bool copier_has_failed(struct copier *copier, const struct object *object);

/* Wait until the object is copied, or cannot be; in any thread. Return: 0, or -ECANCELED once
 * @cancel, which may be NULL, is true. */
_must_check_ int copier_wait(struct copier *copier, const struct object *object,
			     const atomic_bool *cancel);

/*
 * Find out which of those that wait are near: at most COPIER_NEAR_MAX bytes of their owner's files
 * wait in front of them. Those of root always are: he alone cannot make others wait who may do
 * anything.
 */
void copier_measure(struct copier *copier);

/* Return: whether the object is copied, cannot be, or was near at the last copier_measure(). In any
 * thread. */
bool copier_is_near(struct copier *copier, const struct object *object);

/* Borrowed descriptor that is readable when copier_next_finished() has something to do. */
int copier_fd(const struct copier *copier);

/* Return: the next object that was copied, or cannot be, with the copier's reference, which is the
 * caller's now; NULL if there is none. */
struct object *copier_next_finished(struct copier *copier);

/*
 * Remove the copies that @needed does not claim from the store directory, as storedir_sweep() does.
 * To be called in any thread. No object becomes done meanwhile.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int copier_sweep(struct copier *copier,
			      bool (*needed)(const char *hash, void *userdata), void *userdata);

/* Return: bytes on the disk that removing the object's copy would free: none if it has none, or a
 * snapshot has it, too. */
uint64_t copier_alone(struct copier *copier, const struct object *object);
