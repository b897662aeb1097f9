/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Code file
 *
 * An object with what only the collection needs of it: its file, the segments that state the
 * addresses of the bytes, the build-id. The functions of object.h are implemented here. All
 * code files of a decode are in one list; the place of a code file in it is the id of its object in
 * the decoded stream.
 */

#include <stdint.h>

#include "base/base.h"
#include "decoder/image/object.h"
#include "decoder/symbol/elfsource.h"
#include "decoder/util/filebytes.h"
#include "util/arena.h"
#include "util/buildid.h"
#include "util/vec.h"

struct codefile_segment {
	uint64_t offset, size; /* in the file */
	uint64_t address;
};

struct codefile {
	struct object object;  /* the first member: object_address() relies on it */
	struct elf_source elf; /* the names, if it is an ELF file that can be used */
	VEC(struct codefile_segment) segments; /* of an ELF file, the executable ones come first */
};

struct codefiles {
	VEC(struct codefile *) files; /* owned, by id */
	struct fileset fileset;       /* of all of them, and of their debug files */
	struct arena names;
	const struct debugfile_places *debug_places; /* borrowed; NULL: use no debug files */
};

/*
 * Make a code file without bytes. @source is the path of its file; NULL: it has none.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int codefile_new(const char *source, struct codefile **ret_file);

/*
 * Make a code file for a file that was not found, and whose build-id is @id. Return: 0 or -ENOMEM.
 */
_must_check_ int codefile_new_missing(const struct buildid *id, struct codefile **ret_file);

/*
 * Open the file at @path, or take the file that is open at *@fd if that is not -1; then *@fd is -1
 * on success, and @path may be one that this process may not open. Of an ELF file, read the
 * build-id and the segments. @set must outlive @ret_file.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int codefile_load(struct fileset *set, const char *path, int *fd,
			       struct codefile **ret_file);

/*
 * Open the file at @path, which has bytes that were in memory, whatever they look like.
 *
 * Return: as above.
 */
_must_check_ int codefile_load_memory(struct fileset *set, const char *path,
				      struct codefile **ret_file);

/*
 * Make another code file with the bytes of @file, which are read once for both; and with its
 * addresses, or, if @is_plain, with each byte at the address that is its offset.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int codefile_share(const struct codefile *file, bool is_plain,
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

void codefiles_init(struct codefiles *files);

/* Free all files that were appended. */
void codefiles_deinit(struct codefiles *files);

DEFINE_CLEANUP(struct codefile *, codefile_free);
