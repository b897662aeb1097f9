/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Object selection
 *
 * Chooses the objects that belong in a snapshot: those that the mappings of the tasks that ran
 * name. Also decides where each one lies in the snapshot. An object lies under its build-id, where
 * perf looks for it. But two files may claim one build-id and differ, or a file that claims it may
 * be missing. Such objects lie under the hash of their content, where only objects.map leads to
 * them. If one path has led to two of them, their inodes tell them apart, as far as the records
 * name inodes; otherwise it is not known which was executed, and a reader finds neither.
 *
 * An object is missing if it could not be copied, or if it is beyond the part of its user
 * (daemon/snapshot/userparts.h). Those of a user's objects are chosen first whose processes ran
 * last, and then those that were mapped first; one that does not fit is left out, and smaller ones
 * after it may fit. A path that a mapping names is
 * missing if the object store had no room for its object, or has made room for others since.
 *
 * Only the thread of a snapshot uses a selection.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/base.h"

struct copier;
struct object;
struct record_mmap2;
struct selection;
struct userparts;

/* Make a selection, in which nothing is selected, of the objects @objects, which are borrowed.
 * Return: 0, or -ENOMEM. */
_must_check_ int selection_new(struct object *const *objects, size_t n_objects,
			       struct selection **ret_selection);

/* Return: NULL. */
struct selection *selection_free(struct selection *selection);

DEFINE_CLEANUP(struct selection *, selection_free);

/* Select all objects that the record @mmap may mean, whose process ran last at the time @ran. Its
 * name is borrowed. Return: 0, or -ENOMEM. */
_must_check_ int selection_add(struct selection *selection, const struct record_mmap2 *mmap,
			       uint64_t ran);

/*
 * After the last selection_add(): wait until the selected objects are copied, and decide where each
 * of them lies. Objects that are not near, as copier_why_not_near() says, or that are not read
 * on, are not waited for and count as missing.
 *
 * @copier: copies the objects
 * @parts: how much of each user's is taken; counts what is selected
 *
 * Return: 0; -ECANCELED once @cancel, which may be NULL, is true; or -ENOMEM.
 */
_must_check_ int selection_finish(struct selection *selection, struct copier *copier,
				  struct userparts *parts, const atomic_bool *cancel);

/*
 * Walk over the selected objects that have a copy.
 *
 * @at: 0 at first; selection_next() advances it
 * @ret_by_content: the object lies under the hash of its content
 *
 * Return: the next object; NULL at the end.
 */
const struct object *selection_next(const struct selection *selection, size_t *at,
				    bool *ret_by_content);

/* Return: how many selected objects have no copy, plus how many paths have no object. */
size_t selection_n_missing(const struct selection *selection);

/* Return: how many of them the disk had no room for. */
size_t selection_n_without_room(const struct selection *selection);

/* Write the lines of objects.map. */
void selection_write_map(const struct selection *selection, FILE *stream);
