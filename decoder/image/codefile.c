/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/image/codefile.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "util/copyfile.h"
#include "util/effort.h"
#include "util/regular.h"

#define SEGMENTS_MAX 256 /* loadable ones; real files have four to ten */

/* Of fetched files, in memory. */
#define COPIES_MAX      256u
#define COPIES_SIZE_MAX (UINT64_C(1) << 30)

static void elf_endp(Elf **elf)
{
	if (*elf)
		elf_end(*elf);
}

static int add_segments(struct codefile *file, Elf *elf, size_t n_headers, bool executable)
{
	for (size_t i = 0; i < n_headers && file->segments.n < SEGMENTS_MAX; i++) {
		GElf_Phdr h;
		int r;

		if (!gelf_getphdr(elf, (int)i, &h))
			break;
		if (h.p_type != PT_LOAD || !!(h.p_flags & PF_X) != executable)
			continue;
		r = vec_push(&file->segments,
			     { .offset = h.p_offset, .size = h.p_filesz, .address = h.p_vaddr });
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_elf(struct codefile *file)
{
	_cleanup_(elf_endp) Elf *elf = NULL;
	size_t n_headers;
	int r;

	(void)elf_version(EV_CURRENT);
	elf = file->map.size > 0 ? elf_memory((char *)(uintptr_t)file->map.bytes, file->map.size)
				 : NULL;
	if (!elf || elf_kind(elf) != ELF_K_ELF || elf_getphdrnum(elf, &n_headers) < 0)
		return 0;

	file->object.is_elf = true;
	r = add_segments(file, elf, n_headers, true);
	return r < 0 ? r : add_segments(file, elf, n_headers, false);
}

struct codefile *codefile_free(struct codefile *file)
{
	if (!file)
		return NULL;
	elf_source_deinit(&file->elf);
	mapfile_deinit(&file->map);
	vec_deinit(&file->segments);
	free((void *)(uintptr_t)file->object.id.source);
	free(file);
	return NULL;
}

static void set_build_id(struct object *object, const struct buildid *id)
{
	object->id.build_id_size = id->size;
	memcpy(object->id.build_id, id->bytes, id->size);
}

bool codefile_has_build_id(const struct codefile *file, const struct buildid *id)
{
	return file->object.id.build_id_size == id->size &&
	       memcmp(file->object.id.build_id, id->bytes, id->size) == 0;
}

int codefile_new(const char *source, struct codefile **ret_file)
{
	_cleanup_(codefile_freep) struct codefile *file = calloc(1, sizeof(*file));

	if (!file)
		return -ENOMEM;
	file->object.id.source = strdup(source);
	if (!file->object.id.source)
		return -ENOMEM;
	*ret_file = TAKE(file);
	return 0;
}

int codefile_new_missing(const struct buildid *id, struct codefile **ret_file)
{
	struct codefile *file = calloc(1, sizeof(*file));

	if (!file)
		return -ENOMEM;
	set_build_id(&file->object, id);
	*ret_file = file;
	return 0;
}

/* The bytes of the file at @path, or open at @fd if that is not -1; whatever they are. */
static int load_bytes(const char *path, int fd, struct codefile **ret_file)
{
	_cleanup_(codefile_freep) struct codefile *file = NULL;
	int r;

	r = codefile_new(path, &file);
	if (r < 0)
		return r;

	r = fd < 0 ? mapfile_init(&file->map, AT_FDCWD, path) : mapfile_init_fd(&file->map, fd);
	if (r < 0)
		return r;
	file->object.bytes = file->map.bytes;
	file->object.size = file->map.size;
	*ret_file = TAKE(file);
	return 0;
}

int codefile_load(const char *path, int fd, struct codefile **ret_file)
{
	_cleanup_(codefile_freep) struct codefile *file = NULL;
	struct buildid id;
	int r;

	r = load_bytes(path, fd, &file);
	if (r < 0)
		return r;

	buildid_read_bytes(file->map.bytes, file->map.size, &id);
	set_build_id(&file->object, &id);

	r = read_elf(file);
	if (r < 0)
		return r;
	*ret_file = TAKE(file);
	return 0;
}

int codefile_load_memory(const char *path, uint64_t address, struct codefile **ret_file)
{
	_cleanup_(codefile_freep) struct codefile *file = NULL;
	int r;

	r = load_bytes(path, -1, &file);
	if (r < 0)
		return r;
	r = vec_push(&file->segments, { .size = file->map.size, .address = address });
	if (r < 0)
		return r;
	*ret_file = TAKE(file);
	return 0;
}

int object_add_part(struct object *object, uint64_t offset, uint64_t size, uint64_t address)
{
	struct codefile *file = (struct codefile *)object;

	return vec_push(&file->segments, { .offset = offset, .size = size, .address = address });
}

uint64_t object_address(const struct object *object, uint64_t offset)
{
	const struct codefile *file = (const struct codefile *)object;

	if (!object->is_elf) {
		const size_t n = vec_bisect(&file->segments, segment, segment->offset <= offset);

		if (n > 0 &&
		    offset - file->segments.items[n - 1].offset < file->segments.items[n - 1].size)
			return file->segments.items[n - 1].address +
			       (offset - file->segments.items[n - 1].offset);
		return offset;
	}
	for (size_t i = 0; i < file->segments.n; i++) {
		const struct codefile_segment *s = &file->segments.items[i];

		if (offset >= s->offset && offset - s->offset < s->size)
			return s->address + (offset - s->offset);
	}
	return offset;
}

void object_span(const struct object *object, uint64_t *ret_start, uint64_t *ret_end)
{
	const struct codefile *file = (const struct codefile *)object;
	uint64_t start = UINT64_MAX, end = 0;

	for (size_t i = 0; i < file->segments.n; i++) {
		const struct codefile_segment *s = &file->segments.items[i];

		start = s->address < start ? s->address : start;
		end = s->address + s->size > end ? s->address + s->size : end;
	}
	*ret_start = start;
	*ret_end = end;
}

static const char *display_name(const char *path)
{
	return strcmp(path, "//anon") == 0 ? "[anon]" : path;
}

int codefiles_adopt(struct codefiles *files, const char *path, enum object_state state,
		    struct codefile **file)
{
	struct object *object = &(*file)->object;
	int r;

	object->state = state;
	object->id.id = (uint32_t)files->files.n;
	object->id.name = arena_strdup(&files->names, display_name(path));
	if (!object->id.name)
		return -ENOMEM;
	r = vec_push(&files->files, *file);
	if (r < 0)
		return r;
	if (state == OBJECT_OK && object->is_elf) {
		elf_source_init(&(*file)->elf, files->debug_places, &object->id, object->bytes,
				object->size);
		object->symbols = &(*file)->elf.source;
	}
	*file = NULL;
	return 0;
}

int codefiles_make_readable(struct codefiles *files, int fd, struct codefile *file)
{
	_cleanup_(fd_closep) int there = regular_open(AT_FDCWD, file->object.id.source, 0);
	_cleanup_(fd_closep) int copy = -1;
	char *source;
	int r;

	if (there >= 0 || files->copies.n >= COPIES_MAX ||
	    file->map.size > COPIES_SIZE_MAX - files->copies_size)
		return 0;
	r = vec_reserve(&files->copies, 1);
	if (r < 0)
		return r;
	copy = memfd_create("ptd-code", MFD_CLOEXEC);
	if (copy < 0 || copyfile_fd(fd, copy, &(struct effort){ .size_max = file->map.size }) < 0)
		return 0;
	if (asprintf(&source, "/proc/self/fd/%d", copy) < 0)
		return -ENOMEM;
	free((void *)(uintptr_t)file->object.id.source);
	file->object.id.source = source;
	files->copies_size += file->map.size;
	files->copies.items[files->copies.n++] = copy;
	copy = -1;
	return 0;
}

void codefiles_deinit(struct codefiles *files)
{
	for (size_t i = 0; i < files->files.n; i++)
		(void)codefile_free(files->files.items[i]);
	vec_deinit(&files->files);
	for (size_t i = 0; i < files->copies.n; i++)
		(void)fd_close(files->copies.items[i]);
	vec_deinit(&files->copies);
	arena_deinit(&files->names);
}
