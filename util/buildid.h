/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Build-id
 *
 * The note NT_GNU_BUILD_ID, by which a linker identifies a file: usually a SHA-1.
 *
 * The file may come from anybody, so the search is bounded: it reads at most 1,024 program headers,
 * 64 notes and 64 KiB of notes, and allocates nothing.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

#define BUILDID_MAX     20
#define BUILDID_HEX_MAX (2 * BUILDID_MAX + 1)

#define BUILDID_PLACE_MAX (BUILDID_HEX_MAX + sizeof(".build-id//"))

struct buildid {
	uint8_t bytes[BUILDID_MAX];
	uint8_t size; /* 0: none */
};

/*
 * Read the build-id of the ELF file open at @fd, without changing the file offset. The reads may
 * wait for a disk.
 *
 * Return: 0, and @ret_id with size 0 if the file is no ELF file or has no such note within the
 *         bounds; or negative errno.
 */
_must_check_ int buildid_read(int fd, struct buildid *ret_id);

bool buildid_equal(const struct buildid *a, const struct buildid *b);

/* Write @id in lower-case hex. Return: @ret_hex. */
char *buildid_hex(const struct buildid *id, char ret_hex[static BUILDID_HEX_MAX]);

/*
 * Make the place of the files with @id below a directory that is laid out as perf's build-id cache
 * or as /usr/lib/debug: ".build-id/", the first byte, "/", the other bytes. Return: @ret_place.
 */
char *buildid_place(const struct buildid *id, char ret_place[static BUILDID_PLACE_MAX]);
