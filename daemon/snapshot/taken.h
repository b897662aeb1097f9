/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Taken
 *
 * Which of the kept objects belong in a snapshot, and where they lie in it: those that mappings of
 * the tasks that ran name. An object lies under its build-id, as perf looks for it. But two files
 * may claim one build-id and differ, or one of them may be missing; these lie under the hash of
 * their content, where only the path leads to them. If a path has led to both, nobody knows which
 * was executed, and a reader finds that it is not to be had.
 *
 * A file that a mapping names and the object store does not have, because it had no room for it or
 * made room for others, is missing. So is a file that could not be copied.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/base.h"

struct objectstore;
struct object;
struct record_mmap2;
struct taken;

/* @objects are borrowed. Return: 0, or -ENOMEM. */
_must_check_ int taken_new(struct object *const *objects, size_t n_objects,
			   struct taken **ret_taken);

/* Return: NULL. */
struct taken *taken_free(struct taken *taken);

DEFINE_CLEANUP(struct taken *, taken_free);

/* Take all objects that the record may mean. Its name is borrowed. Return: 0, or -ENOMEM. */
_must_check_ int taken_add(struct taken *taken, const struct record_mmap2 *mmap);

/*
 * No more are added: wait until all of them are copied, and find out where they lie. Nobody can
 * have a snapshot wait for more than objectstore_is_near() allows: what is behind that is missing.
 *
 * Return: 0; -ECANCELED once @cancel is true; or -ENOMEM.
 */
_must_check_ int taken_settle(struct taken *taken, struct objectstore *store,
			      const atomic_bool *cancel);

/* Walk over those that there are copies of; @at is 0 at first. @ret_by_content: it lies under the
 * hash of its content. Return: the next one; NULL at the end. */
const struct object *taken_next(const struct taken *taken, size_t *at, bool *ret_by_content);

/* How many are missing: objects without a copy, and paths that no object is for. */
size_t taken_n_missing(const struct taken *taken);

/* Print objects.map. */
void taken_print(const struct taken *taken, FILE *stream);
