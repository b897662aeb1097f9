/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Zip
 *
 * What stands in a zip archive around the compressed bytes of its members: a header before each,
 * and the directory behind the last. The caller writes these bytes and the members' to the file.
 *
 * A library such as minizip writes an archive as one stream, and keeps 64 KiB for each archive that
 * it has begun. Here thousands of archives grow at the same time, several threads compress the
 * parts of one member, and a few bytes of a member are changed after they were written.
 *
 * Source: PKWARE's APPNOTE.TXT 6.3.10, sections 4.3 and 4.5.3. An archive may have any size
 * (zip64); a member has less than 4 GiB.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

#define ZIP_NAME_MAX   31
#define ZIP_SIZE_MAX   (UINT64_C(0xffffffff) - 1) /* of a member, compressed or not */
#define ZIP_HEADER_MAX (30 + ZIP_NAME_MAX)

struct zip_member {
	char name[ZIP_NAME_MAX + 1];
	uint64_t offset;      /* of its header in the file */
	uint64_t packed_size; /* bytes of raw deflate behind the header */
	uint64_t size;        /* bytes that these inflate to */
	uint32_t crc;         /* CRC-32 of them */
};

/* Put the member's header at @to. Its size depends only on the name. Return: that size. */
size_t zip_put_header(const struct zip_member *member, uint8_t to[static ZIP_HEADER_MAX]);

/*
 * Make the directory of the members, which stands at @offset, behind all of them.
 *
 * Return: 0 and the bytes, which the caller frees; or -ENOMEM.
 */
_must_check_ int zip_directory(const struct zip_member *members, size_t n, uint64_t offset,
			       uint8_t **ret_bytes, size_t *ret_size);
