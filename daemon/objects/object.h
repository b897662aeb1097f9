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
#include "record/record.h"
#include "util/sha256.h"

struct object {
	/* The object store's own. */
	unsigned n_refs; /* counted in the object store's thread only */
	bool told;       /* that it could not be kept */
	uint64_t seen;   /* the moment at which a record named it last, or objectstore_touch() */
	bool goes;       /* it is to be forgotten, if nobody else has it */
	struct object *alike; /* an older one, whose path hashes alike */

	/* The copier's own. */
	int fd;                /* of the original while it waits to be copied; may be -1 */
	struct object *queued; /* the next one that waits, or that is finished */
	uint64_t ahead;        /* bytes of its owner's that are copied first, with its own */

	struct record_mmap2 mapped; /* by whom and where; its name is the path */
	struct original original;   /* to notice when another took its place */

	/* Immutable. */
	char *path;             /* as it was mapped */
	struct buildid claimed; /* what the records said */

	/* Immutable once objectstore_wait() has returned 0. */
	bool done;
	int error;                    /* negative errno if it could not be kept */
	struct buildid build_id;      /* of the content; anybody can write any into his file */
	char sha256[SHA256_HEX_SIZE]; /* of the content, and its name in the store */
};

/* May what the record maps be an object: is it executable, and a file or the vDSO? Memory may have
 * the name of a file. */
bool object_is_meant(const struct record_mmap2 *mmap);

/* Return: in words why an object could not be kept, for its error. */
const char *object_why(int error);

/* What @mmap maps; its name is copied. Return: the object with one reference, the caller's, or
 * NULL. */
struct object *object_new(const struct record_mmap2 *mmap);

struct object *object_ref(struct object *object);

/* Return: NULL. */
struct object *object_unref(struct object *object);

DEFINE_CLEANUP(struct object *, object_unref);

/* Does the record @mmap mean this object? */
bool object_matches(const struct object *object, const struct record_mmap2 *mmap);
