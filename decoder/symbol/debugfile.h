/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Debug file
 *
 * The file with the symbols, and the DWARF, that were stripped off an object. Distributions install
 * it under the object's build-id, or under the name and checksum that stand in the object's
 * .gnu_debuglink. The addresses of its symbols are those of the object.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/util/fetch.h"
#include "ptd/record.h"

#define DEBUGFILE_SYSTEM_DIR "/usr/lib/debug"

struct buildid;
struct filebytes;
struct fileset;

/*
 * The places that are searched, in this order. For .gnu_debuglink, the directory of the object
 * comes before @dirs. Strings and arrays are borrowed.
 */
struct debugfile_places {
	const char *snapshot;    /* its objects/, by build-id only; or NULL */
	const char *buildid_dir; /* laid out as perf's ~/.debug, by build-id only; or NULL */
	const char *symfs;       /* below it lies the object's directory; NULL: below / */
	const char *const *dirs; /* each laid out as DEBUGFILE_SYSTEM_DIR */
	size_t n_dirs;
	struct fetch fetch;      /* by which to ask for what none of them has */
	struct fileset *fileset; /* that the files belong to; borrowed */
};

/* What a debug file must have. */
enum debugfile_part {
	DEBUGFILE_SYMTAB, /* .symtab */
	DEBUGFILE_DWARF,  /* .debug_info */
};

/* Return: whether the ELF file @file has @part. */
_must_check_ bool debugfile_has(struct filebytes *file, enum debugfile_part part);

/*
 * Find the debug file of @object, the ELF file @file.
 *
 * A debug file is a regular file that has @part, and exactly the build-id of the object. One that
 * is found by .gnu_debuglink has also the checksum that stands there.
 *
 * Return: true, and the caller owns @ret_debug; false if there is none, or the object has @part
 *         itself.
 */
_must_check_ bool debugfile_find(const struct debugfile_places *places,
				 const struct ptd_object *object, struct filebytes *file,
				 enum debugfile_part part, struct filebytes **ret_debug);

/*
 * Find the alternate file, in which dwz puts what the DWARF of several debug files has in common.
 * @id is its build-id, and @name the path that the DWARF states. Only what is below .dwz/
 * counts.
 *
 * Return: whether there is one; then the caller owns @ret_file.
 */
_must_check_ bool debugfile_find_alternate(const struct debugfile_places *places, const char *name,
					   const struct buildid *id, struct filebytes **ret_file);

/* --- for debugfile.c and its tests ------------------------------------------------------------ */

/* The contents of .gnu_debuglink. */
struct debugfile_link {
	const char *name; /* of the debug file, without a directory; borrowed from the object */
	uint32_t crc;     /* of all bytes of the debug file */
};

/* Return: whether the ELF file @file has a well-formed .gnu_debuglink. */
_must_check_ bool debugfile_read_link(struct filebytes *file, struct debugfile_link *ret_link);

/*
 * Continue the checksum that .gnu_debuglink uses, which is the CRC-32 of Ethernet and zlib, by
 * @size bytes. Return: the checksum; that of no bytes is 0.
 */
uint32_t debugfile_crc(uint32_t crc, const uint8_t *bytes, size_t size);
