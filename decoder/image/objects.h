/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Objects
 *
 * The collection of all objects of a decode. It finds the file that was mapped by a path, with a
 * build-id: first in the snapshot, then in a directory of build-ids, then at the path itself, and
 * at last by asking the caller of the library to fetch it. The bytes of the files are read when
 * they are needed (see filebytes.h).
 */

#include "base/base.h"
#include "decoder/image/object.h"
#include "decoder/util/fetch.h"
#include "util/buildid.h"

struct objects;
struct objectsmap_inode;

/*
 * Make an empty collection that searches in the snapshot, or directory of perf, @snapshot_dir;
 * NULL: there is none.
 *
 * Return: 0; -EBADMSG if the snapshot's objects.map is malformed; or negative errno.
 */
_must_check_ int objects_new(const char *snapshot_dir, struct objects **ret_objects);
struct objects *objects_free(struct objects *objects);

/* Where files, and their debug files, are searched after the snapshot. Strings may be NULL. */
struct objects_places {
	const char *buildid_dir; /* by build-id; laid out like perf's cache, ~/.debug */
	const char *symfs;       /* the directory that paths lie below; NULL: / */
	const char *debug_dir;   /* only for debug files, before the system's directory of them */
	struct fetch fetch;      /* by which to ask for other files */
};

/*
 * Search also in @places, which are copied. This must be called before the first object is added;
 * without it, no debug file is used.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int objects_look_in(struct objects *objects, const struct objects_places *places);

/* Return: the snapshot's directory; NULL if there is none. */
const char *objects_dir(const struct objects *objects);

/*
 * Return: a text that names the first file, of code or of its names, that was cut off or changed
 *         while it was read, or could not be read; NULL if there is none. What was decoded since
 *         may lack it.
 */
const char *objects_failure(const struct objects *objects);

/*
 * Find the file that was mapped by @path and had @build_id; NULL or size 0: the build-id is not
 * known. Each call with the same file finds the same object.
 *
 * Return: 0, and @ret_object, which belongs to @objects, also if the file is missing (see
 *         object->state); -ENOMEM.
 */
_must_check_ int objects_find(struct objects *objects, const char *path,
			      const struct buildid *build_id, const struct object **ret_object);

/* The same for a file that a record names by @inode, if that is not NULL, nor all 0: if several
 * files had the path, it tells which one is meant. */
_must_check_ int objects_find_mapped(struct objects *objects, const char *path,
				     const struct buildid *build_id,
				     const struct objectsmap_inode *inode,
				     const struct object **ret_object);

/*
 * Add the file at @path without searching for it.
 *
 * Return: 0, and @ret_object, which belongs to @objects; or negative errno.
 */
_must_check_ int objects_add_file(struct objects *objects, const char *path,
				  const struct object **ret_object);

/* The same for an object that the decoded stream calls @name. Return: as above. */
_must_check_ int objects_add_named(struct objects *objects, const char *path, const char *name,
				   struct object **ret_object);

/*
 * Add the file at @path, which has bytes that were in memory; object_add_part() says where. It is
 * not read as an ELF file, even if it looks like one. The decoded stream calls the object @name.
 *
 * Return: as above.
 */
_must_check_ int objects_add_memory(struct objects *objects, const char *path, const char *name,
				    struct object **ret_object);

/*
 * Add an object that the decoded stream calls @name, with the bytes of @object, which are read once
 * for both; and with its addresses, or, if @is_plain, with each byte at the address that is its
 * offset.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int objects_share(struct objects *objects, const struct object *object, bool is_plain,
			       const char *name, struct object **ret_object);

/*
 * Add an object that the decoded stream calls @name, and whose file the caller sets before it is
 * used; the object owns that file then.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int objects_add_synthetic(struct objects *objects, const char *name,
				       struct object **ret_object);

DEFINE_CLEANUP(struct objects *, objects_free);
