/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Debugfile
 *
 * The file with the symbols that were stripped off an object: kept by the object's build-id, or by
 * the name and checksum in its .gnu_debuglink. Its symbols have the addresses of the object.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/image/object.h"
#include "util/fetch.h"
#include "util/mapfile.h"

#define DEBUGFILE_SYSTEM_DIR "/usr/lib/debug"

/* Where to look, in this order; and for .gnu_debuglink, before the dirs, beside the object. */
struct debugfile_places {
	const char *snapshot;    /* its objects/: by build-id only; or NULL */
	const char *buildid_dir; /* laid out as perf's ~/.debug: by build-id only; or NULL */
	const char *symfs;       /* stands for the root: where "beside the object" is; or NULL */
	const char *const *dirs; /* each laid out as DEBUGFILE_SYSTEM_DIR */
	size_t n_dirs;
	int fetch; /* the socket on which it is asked for if it is nowhere; or FETCH_NONE */
};

/*
 * Find the debug file of an object that has no .symtab itself. It is a regular file with a .symtab
 * and with the very build-id of the object; one that was found by .gnu_debuglink has also the
 * checksum named there.
 *
 * Return: true, and the caller owns @ret_file; false if there is none, or none is needed.
 */
_must_check_ bool debugfile_find(const struct debugfile_places *places, const struct object *object,
				 struct mapfile *ret_file);

/* --- for debugfile.c and its tests ------------------------------------------------------------ */

/* What .gnu_debuglink says. */
struct debugfile_link {
	const char *name; /* of a file, without directory; the object's */
	uint32_t crc;     /* of all its bytes */
};

/* Return: whether the ELF file of @size bytes has one, and it is well-formed. */
_must_check_ bool debugfile_read_link(const uint8_t *bytes, size_t size,
				      struct debugfile_link *ret_link);

/* The checksum of .gnu_debuglink: CRC-32 as in Ethernet and zlib. */
uint32_t debugfile_crc(const uint8_t *bytes, size_t size);
