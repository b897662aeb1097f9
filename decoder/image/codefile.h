/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Code file
 *
 * An object with what only the collection needs of it: the mapped bytes, the segments that state
 * the addresses of the bytes, the build-id. The functions of object.h are implemented here. All
 * code files of a decode are in one list; the place of a code file in it is the id of its object in
 * the decoded stream.
 */

#include <stdint.h>

#include "base/base.h"
#include "decoder/image/object.h"
#include "decoder/symbol/elfsource.h"
#include "util/arena.h"
#include "util/buildid.h"
#include "util/mapfile.h"
#include "util/vec.h"

struct codefile_segment {
	uint64_t offset, size; /* in the file */
	uint64_t address;
};

struct codefile {
	struct object object; /* the first member: object_address() relies on it */
	struct mapfile map;
	struct elf_source elf; /* the names, if it is an ELF file that can be used */
	VEC(struct codefile_segment) segments; /* of an ELF file, the executable ones come first */
};

struct codefiles {
	VEC(struct codefile *) files; /* owned, by id */
	VEC(int) copies;      /* open memfds with copies of fetched files, which give them a path */
	uint64_t copies_size; /* bytes of all copies */
	struct arena names;
	const struct debugfile_places *debug_places; /* borrowed; NULL: use no debug files */
};

/* Make a code file without bytes, which can be read from the path @source. Return: 0 or -ENOMEM. */
_must_check_ int codefile_new(const char *source, struct codefile **ret_file);

/*
 * Make a code file for a file that was not found, and whose build-id is @id. Return: 0 or -ENOMEM.
 */
_must_check_ int codefile_new_missing(const struct buildid *id, struct codefile **ret_file);

/*
 * Map the file at @path, or the file open at @fd (borrowed) if @fd is not -1. Of an ELF file, read
 * the build-id and the segments.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int codefile_load(const char *path, int fd, struct codefile **ret_file);

/*
 * Map the file at @path, which has the bytes that were in memory from @address on, whatever they
 * look like.
 *
 * Return: as above.
 */
_must_check_ int codefile_load_memory(const char *path, uint64_t address,
				      struct codefile **ret_file);
struct codefile *codefile_free(struct codefile *file);

bool codefile_has_build_id(const struct codefile *file, const struct buildid *id);

/*
 * Append *@file to @files: give its object an id, @state, and the name that the decoded stream
 * shows for @path. The file belongs to @files then, and *@file is NULL.
 *
 * Return: 0; or -ENOMEM, and *@file still belongs to the caller.
 */
_must_check_ int codefiles_adopt(struct codefiles *files, const char *path, enum object_state state,
				 struct codefile **file);

/*
 * Give @file, which is open at @fd, a path that leads to a copy of it. The sandbox does not let
 * this process open files in the cache of fetched files, but libipt reads code from a path. The
 * copy belongs to @files. If there is no room for a copy, the file keeps its path.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int codefiles_make_readable(struct codefiles *files, int fd, struct codefile *file);

/* Free all files that were appended, and the copies. */
void codefiles_deinit(struct codefiles *files);

DEFINE_CLEANUP(struct codefile *, codefile_free);
