/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/buildid.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/fullwrite.h"

/*
 * Bounds of the search_segments. Anybody may write the file, and have ptd look at it: program
 * headers may be as many as the format allows, and all name the same notes. Real files have some 15
 * headers and four notes.
 */
#define HEADERS_MAX    1024u
#define NOTES_MAX      64u
#define NOTE_BYTES_MAX 65536u

/* What search_segments() may still look at. */
struct budget {
	unsigned notes;
	uint64_t bytes; /* of notes */
};

/* A segment of notes. */
struct segment {
	uint64_t offset, size, align;
};

/* Read @size bytes at @offset. Return: 1; 0 if the file ends before; or negative errno. */
static int read_at(int fd, uint64_t offset, size_t size, void *ret_bytes)
{
	const ssize_t n = fullread_at(fd, ret_bytes, size, offset);

	return n < 0 ? (int)n : (size_t)n == size;
}

/* Up to the next multiple of @align, a power of two. */
static uint64_t align_up(uint64_t size, uint64_t align)
{
	return (size + align - 1) & ~(align - 1);
}

/*
 * Compare the note at @offset, whose header is @note.
 *
 * Return: 1 and @ret_id if it is the build-id; 0; or negative errno.
 */
static int read_note(int fd, uint64_t offset, const Elf64_Nhdr *note, uint64_t align,
		     struct buildid *ret_id)
{
	struct buildid id = { .size = (uint8_t)note->n_descsz };
	char name[sizeof("GNU")];
	int r;

	if (note->n_type != NT_GNU_BUILD_ID || note->n_namesz != sizeof(name) ||
	    note->n_descsz == 0 || note->n_descsz > BUILDID_MAX)
		return 0;
	r = read_at(fd, offset + sizeof(*note), sizeof(name), name);
	if (r <= 0 || memcmp(name, "GNU", sizeof(name)) != 0)
		return r < 0 ? r : 0;
	r = read_at(fd, offset + align_up(sizeof(*note) + sizeof(name), align), id.size, id.bytes);
	if (r > 0)
		*ret_id = id;
	return r;
}

/* Return: 1 and @ret_id if the segment has it; 0; or negative errno. */
static int search_segment(int fd, const struct segment *segment, struct budget *left,
			  struct buildid *ret_id)
{
	const uint64_t align = segment->align == 8 ? 8 : 4;
	uint64_t at = 0;
	Elf64_Nhdr note; /* as that of a 32-bit file */
	int r;

	if (segment->offset > INT64_MAX - segment->size)
		return 0;
	while (left->notes > 0 && segment->size >= sizeof(note) &&
	       at <= segment->size - sizeof(note)) {
		uint64_t size;

		r = read_at(fd, segment->offset + at, sizeof(note), &note);
		if (r <= 0)
			return r;
		size = align_up(sizeof(note) + (uint64_t)note.n_namesz, align) + note.n_descsz;
		if (size > segment->size - at || size > left->bytes)
			return 0;
		left->notes--;
		left->bytes -= size;
		r = read_note(fd, segment->offset + at, &note, align, ret_id);
		if (r != 0)
			return r;
		at += align_up(size, align);
	}
	return 0;
}

/* Read the program header @i of a table at @offset. Return: as read_at(). */
static int read_header(int fd, bool wide, uint64_t offset, unsigned i, uint32_t *ret_type,
		       struct segment *ret_segment)
{
	Elf64_Phdr h64;
	Elf32_Phdr h32;
	int r;

	if (offset > INT64_MAX - HEADERS_MAX * sizeof(h64))
		return 0;
	if (wide) {
		r = read_at(fd, offset + i * sizeof(h64), sizeof(h64), &h64);
		if (r > 0) {
			*ret_type = h64.p_type;
			*ret_segment = (struct segment){ h64.p_offset, h64.p_filesz, h64.p_align };
		}
		return r;
	}
	r = read_at(fd, offset + i * sizeof(h32), sizeof(h32), &h32);
	if (r > 0) {
		*ret_type = h32.p_type;
		*ret_segment = (struct segment){ h32.p_offset, h32.p_filesz, h32.p_align };
	}
	return r;
}

/* Where the program headers are. Return: 1; 0 if it is no ELF file of x86's byte order; or negative
 * errno. */
static int find_headers(int fd, bool *ret_wide, uint64_t *ret_offset, unsigned *ret_n)
{
	uint8_t ident[EI_NIDENT];
	Elf64_Ehdr e64;
	Elf32_Ehdr e32;
	int r;

	r = read_at(fd, 0, sizeof(ident), ident);
	if (r <= 0)
		return r;
	if (memcmp(ident, ELFMAG, SELFMAG) != 0 || ident[EI_DATA] != ELFDATA2LSB ||
	    (ident[EI_CLASS] != ELFCLASS64 && ident[EI_CLASS] != ELFCLASS32))
		return 0;
	*ret_wide = ident[EI_CLASS] == ELFCLASS64;
	if (*ret_wide) {
		r = read_at(fd, 0, sizeof(e64), &e64);
		*ret_offset = r > 0 ? e64.e_phoff : 0;
		*ret_n = r > 0 ? e64.e_phnum : 0;
	} else {
		r = read_at(fd, 0, sizeof(e32), &e32);
		*ret_offset = r > 0 ? e32.e_phoff : 0;
		*ret_n = r > 0 ? e32.e_phnum : 0;
	}
	return r;
}

/* The search goes by segments, not by sections, which strip and sstrip may remove. */
static int search_segments(int fd, struct buildid *ret_id)
{
	struct budget left = { .notes = NOTES_MAX, .bytes = NOTE_BYTES_MAX };
	struct segment segment = {};
	struct buildid id = {};
	uint32_t type = PT_NULL;
	uint64_t offset;
	unsigned n;
	bool wide;
	int r;

	r = find_headers(fd, &wide, &offset, &n);
	for (unsigned i = 0; r > 0 && i < n && i < HEADERS_MAX && left.notes > 0; i++) {
		r = read_header(fd, wide, offset, i, &type, &segment);
		if (r <= 0 || type != PT_NOTE)
			continue;
		r = search_segment(fd, &segment, &left, &id);
		if (r != 0)
			break;
		r = 1;
	}
	if (r < 0)
		return r;
	*ret_id = id;
	return 0;
}

int buildid_read(int fd, struct buildid *ret_id)
{
	return fd < 0 ? -EBADF : search_segments(fd, ret_id);
}

bool buildid_equal(const struct buildid *a, const struct buildid *b)
{
	return a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

char *buildid_hex(const struct buildid *id, char ret_hex[static BUILDID_HEX_MAX])
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < id->size; i++) {
		ret_hex[2 * i] = digits[id->bytes[i] >> 4];
		ret_hex[2 * i + 1] = digits[id->bytes[i] & 15];
	}
	ret_hex[2 * (size_t)id->size] = '\0';
	return ret_hex;
}

char *buildid_place(const struct buildid *id, char ret_place[static BUILDID_PLACE_MAX])
{
	char hex[BUILDID_HEX_MAX];

	buildid_hex(id, hex);
	(void)snprintf(ret_place, BUILDID_PLACE_MAX, ".build-id/%.2s/%s", hex,
		       id->size > 0 ? hex + 2 : "");
	return ret_place;
}
