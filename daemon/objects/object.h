/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Object
 *
 * One content of the file at one path, as the object store (daemon/objects/objectstore.h) knows it:
 * what the records claim, which file was at the path, and which content the copy has.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/objects/original.h"
#include "util/perf/record.h"
#include "util/sha256.h"

struct object {
	/* The object store's own. */
	unsigned n_refs; /* counted in the object store's thread only */
	bool reported;   /* objectstore_next_failed() has returned it */
	uint64_t seen;   /* the moment at which it was named last */
	bool goes;       /* it is to be forgotten, if there is no other reference */
	/* Who mapped it last while it was being copied for another, or that had failed. */
	bool is_wanted;
	struct record_mmap2 wanted; /* its name is @path */
	uid_t wanted_by;
	struct object *alike; /* an older object whose path has the same hash */

	/* The copier's own. */
	int fd; /* which stands for the original while it waits to be copied; may be -1 */
	struct object *queued; /* the next object that waits, or that is finished */
	uint64_t ahead;        /* bytes of the same owner that are copied before, and its own */
	uint64_t asker;        /* for whom it is copied: a user, or another number */
	bool is_shared;        /* processes of several users mapped it */

	/* By whom and where; its name is @path. What it names the file by, the build-id or the
	 * inode, does not change. */
	struct record_mmap2 mapped;
	uid_t user; /* who started that process, should it have ended; 0: root, or not known */
	struct original original; /* to notice when another file replaces it */

	/* Immutable. */
	char *path;             /* as it was mapped */
	struct buildid claimed; /* in the records */

	/* Immutable once copier_wait() has returned 0, as long as there is a reference besides
	 * the object store's. */
	bool done;
	int error;               /* negative errno if it could not be copied */
	struct buildid build_id; /* of the content; anyone can write any into a file */
	/* Of the content, and its name in the store directory; of a file that is not there for want
	 * of room, too; or empty. */
	char sha256[SHA256_HEX_SIZE];
	uid_t payer;            /* in whose share the copy is; may change later */
	struct original copied; /* that file, as it was before it was read */
};

/* Return: whether what the record maps may be an object: it is executable, and a file or the vDSO.
 *         Anonymous memory may have the name of a file. */
bool object_is_meant(const struct record_mmap2 *mmap);

/* Return: in words, why an object could not be copied, for its error. */
const char *object_why(int error);

/* Make the object that @mmap maps; the name is copied. Return: the object with one reference, which
 * is the caller's; NULL without memory. */
struct object *object_new(const struct record_mmap2 *mmap);

struct object *object_ref(struct object *object);

/* Return: NULL. */
struct object *object_unref(struct object *object);

DEFINE_CLEANUP(struct object *, object_unref);

/* Return: whether records are to name the object by its inode, though the kernel names it by a
 *         build-id: another file was mapped by the same path and with the same build-id before. */
bool object_is_by_inode(const struct object *object);

/* Return: whether the record @mmap means this object. */
bool object_matches(const struct object *object, const struct record_mmap2 *mmap);
