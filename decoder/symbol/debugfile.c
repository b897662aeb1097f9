/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/symbol/debugfile.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cursor.h"
#include "decoder/symbol/elfsym.h"
#include "decoder/util/filebytes.h"
#include "ptd/snapshot.h"
#include "util/buildid.h"
#include "util/regular.h"

/* Larger files are not checksummed: a file with a hole can have any size. */
#define CRC_SIZE_MAX (UINT64_C(1) << 30)
#define CRC_STEP     65536u

uint32_t debugfile_crc(uint32_t crc, const uint8_t *bytes, size_t size)
{
	uint32_t table[256];

	for (uint32_t i = 0; i < ARRAY_LEN(table); i++) {
		table[i] = i;
		for (int bit = 0; bit < 8; bit++)
			table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320 : 0);
	}
	crc = ~crc;
	for (size_t i = 0; i < size; i++)
		crc = crc >> 8 ^ table[(crc ^ bytes[i]) & 0xff];
	return ~crc;
}

/* --- what an object says about its debug file ------------------------------------------------- */

/* The section holds the name, NULs up to a multiple of four bytes, and the checksum. */
static bool parse_link(const struct elfsym *elf, struct debugfile_link *ret_link)
{
	struct elfsym_section *section = elfsym_find(elf, SHT_PROGBITS, ".gnu_debuglink");
	const uint8_t *bytes = section ? elfsym_bytes(elf, section) : NULL;
	struct cursor c, name;
	size_t size;

	if (!bytes)
		return false;
	c = cursor_from(bytes, section->size);
	size = strnlen((const char *)bytes, section->size) + 1;
	if (size > NAME_MAX + 1 || cursor_get_sub(&c, (size + 3) / 4 * 4, &name) < 0 ||
	    cursor_get(&c, sizeof(ret_link->crc), &ret_link->crc) < 0)
		return false;
	ret_link->name = (const char *)name.pos;
	/* A name with a slash could lead out of the directories that are searched. */
	return size > 1 && !strchr(ret_link->name, '/');
}

bool debugfile_read_link(struct filebytes *file, struct debugfile_link *ret_link)
{
	_cleanup_(elfsym_deinit) struct elfsym elf = {};
	struct debugfile_link link;

	if (elfsym_init(&elf, file) < 0 || !parse_link(&elf, &link))
		return false;
	*ret_link = link;
	return true;
}

bool debugfile_has(struct filebytes *file, enum debugfile_part part)
{
	_cleanup_(elfsym_deinit) struct elfsym elf = {};

	if (elfsym_init(&elf, file) < 0)
		return false;
	return part == DEBUGFILE_SYMTAB ? elfsym_find(&elf, SHT_SYMTAB, NULL)
					: elfsym_find(&elf, SHT_PROGBITS, ".debug_info");
}

/* --- the search ------------------------------------------------------------------------------- */

struct search {
	struct buildid id;
	enum debugfile_part part;
	bool is_alternate; /* a file without program headers, which has its build-id in a section */
	const struct debugfile_link *link; /* NULL while searching by build-id */
	struct fileset *fileset;
	struct filebytes **ret_debug;
};

/* Return: whether the file open at @fd has the checksum @crc. Its bytes are not kept. */
static bool has_crc(int fd, uint32_t crc)
{
	_cleanup_(freep) uint8_t *buffer = malloc(CRC_STEP);
	uint32_t of_file = 0;
	struct stat st;
	off_t at = 0;
	ssize_t n;

	if (!buffer || fstat(fd, &st) < 0 || (uint64_t)st.st_size > CRC_SIZE_MAX)
		return false;
	while ((n = pread(fd, buffer, CRC_STEP, at)) > 0 && at < st.st_size) {
		of_file = debugfile_crc(of_file, buffer, (size_t)n);
		at += n;
	}
	return n == 0 && of_file == crc;
}

/* Return: whether @file has a section with the build-id @id. */
static bool has_note(struct filebytes *file, const struct buildid *id)
{
	_cleanup_(elfsym_deinit) struct elfsym elf = {};
	struct elfsym_section *section = NULL;
	uint8_t found[sizeof(id->bytes)];
	const uint8_t *bytes;
	struct cursor c;

	if (elfsym_init(&elf, file) == 0)
		section = elfsym_find(&elf, SHT_NOTE, ".note.gnu.build-id");
	bytes = section ? elfsym_bytes(&elf, section) : NULL;
	if (!bytes)
		return false;
	c = cursor_from(bytes, section->size);
	/* Its head, and "GNU" */
	return cursor_skip(&c, sizeof(Elf64_Nhdr) + 4) == 0 &&
	       cursor_get(&c, id->size, found) == 0 && cursor_left(&c) == 0 &&
	       memcmp(found, id->bytes, id->size) == 0;
}

/*
 * Return: whether the file open at *@fd is the debug file. Then the caller of the search has it,
 * and *@fd is -1.
 *
 * @stays_open: as of filebytes_new()
 */
static bool accept_file(const struct search *search, const char *path, int *fd, bool stays_open)
{
	_cleanup_(filebytes_unrefp) struct filebytes *file = NULL;
	struct buildid id;

	if ((!search->is_alternate &&
	     (buildid_read(*fd, &id) < 0 || !buildid_equal(&id, &search->id))) ||
	    (search->link && !has_crc(*fd, search->link->crc)) ||
	    filebytes_new(search->fileset, path, fd, stays_open, &file) < 0 ||
	    !debugfile_has(file, search->part) ||
	    (search->is_alternate && !has_note(file, &search->id)))
		return false;
	*search->ret_debug = TAKE(file);
	return true;
}

/* Try one path. Nothing else in this file opens a file of this machine. */
_printf_(2, 3) static bool try_debug_path(const struct search *search, const char *format, ...)
{
	_cleanup_(fd_closep) int fd = -1;
	char path[PATH_MAX];
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(path, sizeof(path), format, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(path))
		return false;
	fd = regular_open(AT_FDCWD, path, 0);
	return fd >= 0 && accept_file(search, path, &fd, false);
}

static bool search_debug_by_id(const struct search *search, const struct debugfile_places *places)
{
	char place[BUILDID_PLACE_MAX];

	if (search->id.size < 2)
		return false;
	buildid_place(&search->id, place);
	/* perf's cache has the layout of ours, but another name for debug files: the second one. */
	if (places->snapshot && (try_debug_path(search, "%s/" PTD_SNAPSHOT_OBJECTS "/%s.debug",
						places->snapshot, place) ||
				 try_debug_path(search, "%s/" PTD_SNAPSHOT_OBJECTS "/%s/debug",
						places->snapshot, place)))
		return true;
	if (places->buildid_dir &&
	    try_debug_path(search, "%s/%s/debug", places->buildid_dir, place))
		return true;
	for (size_t i = 0; i < places->n_dirs; i++)
		if (try_debug_path(search, "%s/%s.debug", places->dirs[i], place))
			return true;
	return false;
}

/*
 * @path is the object's. The debug file lies in the same directory, or in the directory of that
 * name below a debug directory.
 */
static bool search_debug_by_link(const struct search *search, const struct debugfile_places *places,
				 const char *path)
{
	const char *slash = strrchr(path, '/'), *name = search->link->name;
	const char *root = places->symfs ?: "";
	const int n = slash ? (int)(slash + 1 - path) : 0;

	if (strnlen(path, PATH_MAX) == PATH_MAX)
		return false;
	if (try_debug_path(search, "%s%.*s%s", root, n, path, name) ||
	    try_debug_path(search, "%s%.*s.debug/%s", root, n, path, name))
		return true;
	for (size_t i = 0; i < places->n_dirs && path[0] == '/'; i++)
		if (try_debug_path(search, "%s%.*s%s", places->dirs[i], n, path, name))
			return true;
	return false;
}

static bool search_debug_elsewhere(const struct search *search,
				   const struct debugfile_places *places)
{
	_cleanup_(freep) char *path = NULL;
	_cleanup_(fd_closep) int fd = -1;

	fd = fetch_get(&places->fetch, PTD_FETCH_DEBUG, &search->id, &path);
	return fd >= 0 && accept_file(search, path, &fd, true);
}

bool debugfile_find(const struct debugfile_places *places, const struct ptd_object *object,
		    struct filebytes *file, enum debugfile_part part, struct filebytes **ret_debug)
{
	struct search search = {
		.id.size = object->build_id_size,
		.part = part,
		.fileset = places->fileset,
		.ret_debug = ret_debug,
	};
	struct debugfile_link link;

	if (debugfile_has(file, part))
		return false;
	memcpy(search.id.bytes, object->build_id, sizeof(search.id.bytes));
	if (search_debug_by_id(&search, places))
		return true;
	if (debugfile_read_link(file, &link)) {
		search.link = &link;
		if (search_debug_by_link(&search, places, object->name))
			return true;
		search.link = NULL;
	}
	return search_debug_elsewhere(&search, places);
}

bool debugfile_find_alternate(const struct debugfile_places *places, const char *name,
			      const struct buildid *id, struct filebytes **ret_file)
{
	const struct search search = { .id = *id,
				       .part = DEBUGFILE_DWARF,
				       .is_alternate = true,
				       .fileset = places->fileset,
				       .ret_debug = ret_file };
	const char *below = strstr(name, ".dwz/");

	if (search_debug_by_id(&search, places))
		return true;
	/* A name with ".." could lead out of the directories that are searched. */
	if (!below || strstr(below, "/../"))
		return false;
	for (size_t i = 0; i < places->n_dirs; i++)
		if (try_debug_path(&search, "%s/%s", places->dirs[i], below))
			return true;
	return false;
}
