/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Keep
 *
 * The files that programs executed. They may be replaced or deleted before somebody asks what ran,
 * so each is copied once into the spool's store, as soon as the record of its mapping is seen, and
 * hard-linked into the snapshots that need it.
 *
 * A record is only a claim: what it names is kept if it is a regular ELF file, and if it has the
 * build-id that the record states.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/record.h"
#include "decoder/util/sha256.h"

struct keep;

/* "sha256-" and a hash, or a build-id. */
#define OBJECT_NAME_MAX 80

/* One file under one path. Immutable but for its references and @sha256. */
struct object {
	unsigned n_refs;            /* counted in the keep's thread only */
	char *path;                 /* as it was mapped */
	struct buildid claimed;     /* what the records said */
	struct buildid build_id;    /* of the file */
	char name[OBJECT_NAME_MAX]; /* of its folder in the store; "" if it could not be kept */
	uint64_t size;
	uint64_t dev, ino; /* of the original, to know it again where records have no build-id */
	int64_t mtime_ns;

	/* Hash of the content for SHA256SUMS, "" until a snapshot needed it. The one snapshot that
	 * runs at a time is its only user. */
	char sha256[SHA256_HEX_SIZE];
};

struct object *object_ref(struct object *object);
struct object *object_unref(struct object *object);

DEFINE_CLEANUP(struct object *, object_unref);

/*
 * @store_fd: the folder the copies go to; borrowed. It is swept first.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int keep_new(int store_fd, struct keep **ret_keep);
struct keep *keep_free(struct keep *keep);

DEFINE_CLEANUP(struct keep *, keep_free);

/* Remove copies that neither a snapshot nor a program seen since the start needs. Return: 0, or
 * negative errno. */
_must_check_ int keep_sweep(struct keep *keep);

/*
 * Keep what an MMAP2 record maps, if it is executable and a file, and not kept yet. What cannot be
 * kept is remembered as such.
 *
 * Return: the object, borrowed; NULL if there is nothing to keep, and @ret_error is 0 or, the first
 *         time a file could not be kept, the negative errno that says why.
 */
struct object *keep_add(struct keep *keep, const struct record_mmap2 *mmap, int *ret_error);

size_t keep_count(const struct keep *keep);

/* All objects, each referenced for the caller, who frees the array. Return: 0, or -ENOMEM. */
_must_check_ int keep_list(const struct keep *keep, struct object ***ret_objects,
			   size_t *ret_n_objects);

/* Does the record @mmap mean this object? */
bool object_matches(const struct object *object, const struct record_mmap2 *mmap);
