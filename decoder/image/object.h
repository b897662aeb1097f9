/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Object
 *
 * A file that code comes from, found by the path it was mapped by and by its build-id: first among
 * the objects of the snapshot, then in a directory of build-ids, then at the path itself, at last
 * by asking for it elsewhere. Its bytes are mapped once and shared. A file that cannot be used
 * stays as an object that says why.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/record.h"
#include "util/buildid.h"

enum object_state {
	OBJECT_OK,
	OBJECT_MISSING,  /* no such file, or it cannot be read */
	OBJECT_WRONG_ID, /* the file found has another build-id */
	OBJECT_NO_FILE,  /* it never was a file: anonymous memory, [heap], … */
};

struct object {
	struct ptd_object id; /* what the stream shows of it */
	enum object_state state;
	const uint8_t *bytes; /* NULL unless OBJECT_OK */
	size_t size;
	bool is_elf;

	/*
	 * Answers which names its code has, by the addresses of object_address(); NULL: the code
	 * has no names. An ELF file that is usable has its own source from the beginning; whoever
	 * adds another object may set one, borrowed, before the object is used.
	 */
	struct symbol_source *symbols;
};

struct objects;
struct symbol_source;

/*
 * @snapshot_dir is a snapshot (its objects/ and objects.map are used) or NULL.
 *
 * Return: 0 or negative errno.
 */
_must_check_ int objects_new(const char *snapshot_dir, struct objects **ret_objects);
struct objects *objects_free(struct objects *objects);

/*
 * The places that are searched for files, and for their debug files, after the snapshot. Strings
 * may be NULL.
 */
struct objects_places {
	const char *buildid_dir; /* by build-id; laid out like perf's cache, ~/.debug */
	const char *symfs;       /* the directory that paths lie below; NULL: / */
	const char *debug_dir;   /* debug files only, before those of the system */
	int fetch;               /* the socket to ask for what is nowhere; or FETCH_NONE */
};

/*
 * Search also in @places, which are copied. This must be called before the first object is added;
 * without it, no debug file is used.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int objects_look_in(struct objects *objects, const struct objects_places *places);

/*
 * Find the file that was mapped as @path and had @build_id (NULL or size 0: not known).
 *
 * @ret_object lives as long as @objects; asking again gives the same one.
 *
 * Return: 0, also when the file is missing (see object->state); -ENOMEM.
 */
_must_check_ int objects_find(struct objects *objects, const char *path,
			      const struct buildid *build_id, const struct object **ret_object);

/* Take the file at @path as it is: a bare stream's code. Return: 0, or negative errno. */
_must_check_ int objects_add_file(struct objects *objects, const char *path,
				  const struct object **ret_object);

/* The same under the name @name. */
_must_check_ int objects_add_named(struct objects *objects, const char *path, const char *name,
				   struct object **ret_object);

/*
 * Take the file at @path as it is, even if it is of a known format: what was in memory from
 * @address on. The stream calls it @name.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int objects_add_memory(struct objects *objects, const char *path, const char *name,
				    uint64_t address, struct object **ret_object);

/*
 * An object of the stream's name @name whose bytes the caller will set, before it is used; by
 * @source they can be read, too. Return: 0 or -ENOMEM.
 */
_must_check_ int objects_add_made(struct objects *objects, const char *source, const char *name,
				  struct object **ret_object);

/* What of its bytes, behind those of the part before, is at @address. Return: 0 or -ENOMEM. */
_must_check_ int object_add_part(struct object *object, uint64_t offset, uint64_t size,
				 uint64_t address);

/* The addresses that object_address() gives to the bytes of @object, which is no ELF file, lie from
 * @ret_start on, before @ret_end. */
void object_span(const struct object *object, uint64_t *ret_start, uint64_t *ret_end);

/* Return: the snapshot's directory; NULL if there is none. */
const char *objects_dir(const struct objects *objects);

/*
 * The ELF virtual address of the byte at @offset in the file; @offset itself if no loadable
 * segment holds it or the object is no ELF file. In memory: its address there.
 */
uint64_t object_address(const struct object *object, uint64_t offset);

DEFINE_CLEANUP(struct objects *, objects_free);
