/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Build-id
 *
 * The note by which a linker names what it made: NT_GNU_BUILD_ID, usually a SHA-1.
 *
 * The file may be anybody's, so the search is bounded: it reads the first 1,024 program headers, 64
 * notes, and 64 KiB of notes, and allocates nothing.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

#define BUILDID_MAX     20
#define BUILDID_HEX_MAX (2 * BUILDID_MAX + 1)

struct buildid {
	uint8_t bytes[BUILDID_MAX];
	uint8_t size; /* 0: none */
};

/*
 * Read the build-id of the ELF file open at @fd; its offset stays. The reads may wait for a disk.
 *
 * Return: 0, and @ret_id with size 0 if the file is no ELF file or has no such note within the
 *         bounds; or negative errno.
 */
_must_check_ int buildid_read(int fd, struct buildid *ret_id);

/* The same of a file's bytes in memory; size 0 also if the file is cut off. */
void buildid_read_bytes(const void *bytes, size_t size, struct buildid *ret_id);

bool buildid_equal(const struct buildid *a, const struct buildid *b);

/* Write it as lower-case hex. Return: @ret_hex. */
char *buildid_hex(const struct buildid *id, char ret_hex[static BUILDID_HEX_MAX]);
