/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/util/zip.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define VERSION        20 /* that a reader must know: 2.0 has deflate */
#define VERSION_ZIP64  45
#define METHOD_DEFLATE 8
#define DATE_NONE      0x21 /* 1980-01-01: the same input makes the same bytes */
#define IN_ZIP64_16    UINT16_MAX
#define IN_ZIP64_32    UINT32_MAX

struct header {
	uint32_t signature;
	uint16_t version, flags, method, time, date;
	uint32_t crc, packed_size, size;
	uint16_t name_size, extra_size;
} __attribute__((__packed__));

struct entry {
	uint32_t signature;
	uint16_t made_by, version, flags, method, time, date;
	uint32_t crc, packed_size, size;
	uint16_t name_size, extra_size, comment_size, disk, internal;
	uint32_t external, offset;
} __attribute__((__packed__));

/* In an entry, if the offset does not fit into it. */
struct extra {
	uint16_t id, extra_size;
	uint64_t offset;
} __attribute__((__packed__));

/* What ends an archive in which numbers do not fit into struct end. */
struct end64 {
	uint32_t signature;
	uint64_t rest_size;
	uint16_t made_by, version;
	uint32_t disk, directory_disk;
	uint64_t n_here, n, size, offset;
	/* and the locator of that */
	uint32_t locator_signature, end_disk;
	uint64_t end_offset;
	uint32_t n_disks;
} __attribute__((__packed__));

struct end {
	uint32_t signature;
	uint16_t disk, directory_disk, n_here, n;
	uint32_t size, offset;
	uint16_t comment_size;
} __attribute__((__packed__));

static_assert(sizeof(struct header) == 30 && sizeof(struct entry) == 46, "as APPNOTE.TXT has it");
static_assert(sizeof(struct extra) == 12 && sizeof(struct end64) == 76, "as APPNOTE.TXT has it");
static_assert(sizeof(struct end) == 22, "as APPNOTE.TXT has it");

size_t zip_put_header(const struct zip_member *member, uint8_t to[static ZIP_HEADER_MAX])
{
	const size_t name_size = strlen(member->name);
	const struct header header = {
		.signature = 0x04034b50,
		.version = VERSION,
		.method = METHOD_DEFLATE,
		.date = DATE_NONE,
		.crc = member->crc,
		.packed_size = (uint32_t)member->packed_size,
		.size = (uint32_t)member->size,
		.name_size = (uint16_t)name_size,
	};

	assert(member->size <= ZIP_SIZE_MAX && member->packed_size <= ZIP_SIZE_MAX);
	memcpy(to, &header, sizeof(header));
	memcpy(to + sizeof(header), member->name, name_size);
	return sizeof(header) + name_size;
}

/* Put the member's entry of the directory at @to. Return: where the next one goes. */
static uint8_t *put_entry(uint8_t *to, const struct zip_member *member)
{
	const bool is_far = member->offset >= IN_ZIP64_32;
	const struct extra extra = { .id = 1,
				     .extra_size = sizeof(extra.offset),
				     .offset = member->offset };
	const size_t name_size = strlen(member->name);
	const struct entry entry = {
		.signature = 0x02014b50,
		.made_by = VERSION_ZIP64,
		.version = is_far ? VERSION_ZIP64 : VERSION,
		.method = METHOD_DEFLATE,
		.date = DATE_NONE,
		.crc = member->crc,
		.packed_size = (uint32_t)member->packed_size,
		.size = (uint32_t)member->size,
		.name_size = (uint16_t)name_size,
		.extra_size = is_far ? sizeof(extra) : 0,
		.offset = is_far ? IN_ZIP64_32 : (uint32_t)member->offset,
	};

	to = mempcpy(to, &entry, sizeof(entry));
	to = mempcpy(to, member->name, name_size);
	return mempcpy(to, &extra, entry.extra_size);
}

/* Put what ends an archive at @to. Return: where it ends. */
static uint8_t *put_end(uint8_t *to, size_t n, uint64_t offset, uint64_t size)
{
	const bool is_zip64 = n >= IN_ZIP64_16 || offset >= IN_ZIP64_32 || size >= IN_ZIP64_32;
	const struct end64 end64 = {
		.signature = 0x06064b50,
		.rest_size =
		    offsetof(struct end64, locator_signature) - offsetof(struct end64, made_by),
		.made_by = VERSION_ZIP64,
		.version = VERSION_ZIP64,
		.n_here = n,
		.n = n,
		.size = size,
		.offset = offset,
		.locator_signature = 0x07064b50,
		.end_offset = offset + size,
		.n_disks = 1,
	};
	const struct end end = {
		.signature = 0x06054b50,
		.n_here = is_zip64 ? IN_ZIP64_16 : (uint16_t)n,
		.n = is_zip64 ? IN_ZIP64_16 : (uint16_t)n,
		.size = is_zip64 ? IN_ZIP64_32 : (uint32_t)size,
		.offset = is_zip64 ? IN_ZIP64_32 : (uint32_t)offset,
	};

	if (is_zip64)
		to = mempcpy(to, &end64, sizeof(end64));
	return mempcpy(to, &end, sizeof(end));
}

int zip_directory(const struct zip_member *members, size_t n, uint64_t offset, uint8_t **ret_bytes,
		  size_t *ret_size)
{
	const size_t entry_max = sizeof(struct entry) + ZIP_NAME_MAX + sizeof(struct extra);
	uint8_t *bytes, *p;

	if (n > SIZE_MAX / 2 / entry_max)
		return -ENOMEM;
	bytes = malloc(n * entry_max + sizeof(struct end64) + sizeof(struct end));
	if (!bytes)
		return -ENOMEM;
	p = bytes;
	for (size_t i = 0; i < n; i++)
		p = put_entry(p, &members[i]);
	p = put_end(p, n, offset, (uint64_t)(p - bytes));
	*ret_bytes = bytes;
	*ret_size = (size_t)(p - bytes);
	return 0;
}
