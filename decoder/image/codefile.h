/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Code file
 *
 * An object and what its finder need not know of it: the bytes that are mapped, the segments that
 * say where in memory they were, the build-id. object_add_part() and object_address(), which read
 * no more than that, are here, too. The files of a run are kept together: their place among them is
 * their id in the stream.
 */

#include <stdint.h>

#include "base/base.h"
#include "decoder/image/object.h"
#include "decoder/symbol/elfsource.h"
#include "util/arena.h"
#include "util/mapfile.h"
#include "util/vec.h"

struct codefile_segment {
	uint64_t offset, size; /* in the file */
	uint64_t address;
};

/* The object is first: see object_address(). */
struct codefile {
	struct object object;
	struct mapfile map;
	struct elf_source elf;                 /* its names, if it is a usable ELF file */
	VEC(struct codefile_segment) segments; /* executable ones first, if it is an ELF file */
};

struct codefiles {
	VEC(struct codefile *) files; /* owned, by id */
	VEC(int) copies; /* of files that were fetched, open: by that they have a path */
	uint64_t copies_size;
	struct arena names;
	const struct debugfile_places *debug_places; /* borrowed; NULL: use no debug files */
};

/* A file without bytes, to be read by the path @source. Return: 0 or -ENOMEM. */
_must_check_ int codefile_new(const char *source, struct codefile **ret_file);

/* One that is not to be had: all that is known of it is its build-id. Return: 0 or -ENOMEM. */
_must_check_ int codefile_new_missing(const struct buildid *id, struct codefile **ret_file);

/*
 * The file at @path, or open at @fd (borrowed) if that is not -1, with its build-id; if it is an
 * ELF file, with its segments.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int codefile_load(const char *path, int fd, struct codefile **ret_file);

/* The file at @path, whatever it is: what was in memory from @address on. Return: as above. */
_must_check_ int codefile_load_memory(const char *path, uint64_t address,
				      struct codefile **ret_file);
struct codefile *codefile_free(struct codefile *file);

bool codefile_has_build_id(const struct codefile *file, const struct buildid *id);

/*
 * Give *@file its place, its id and the name that the stream shows of @path. It is @files' then,
 * and *@file is NULL.
 *
 * Return: 0; or -ENOMEM, and *@file is still the caller's.
 */
_must_check_ int codefiles_adopt(struct codefiles *files, const char *path, enum object_state state,
				 struct codefile **file);

/*
 * Who reads code by its path cannot where the cache of fetched files is beyond what this process
 * may open: give @file, which is open at @fd, a path that leads to a copy. The copy is @files'. If
 * there is no room for one, the file keeps its path.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int codefiles_make_readable(struct codefiles *files, int fd, struct codefile *file);

/* Free all that was adopted, too. */
void codefiles_deinit(struct codefiles *files);

DEFINE_CLEANUP(struct codefile *, codefile_free);
