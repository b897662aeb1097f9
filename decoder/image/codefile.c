/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/image/codefile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "decoder/symbol/elfbytes.h"
#include "util/regular.h"

#define SEGMENTS_MAX 256 /* loadable ones; real files have four to ten */

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
	_cleanup_(elfbytes_endp) Elf *elf = elfbytes_begin(file->object.file);
	size_t n_headers;
	int r;

	if (!elf || elf_getphdrnum(elf, &n_headers) < 0)
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
	(void)filebytes_unref(file->object.file);
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
	file->object.id.source = source ? strdup(source) : NULL;
	if (source && !file->object.id.source)
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

/* Give @file the bytes of @bytes, which is taken over. */
static void set_bytes(struct codefile *file, struct filebytes *bytes)
{
	file->object.file = bytes;
	file->object.size = filebytes_size(bytes);
}

int codefile_load(struct fileset *set, const char *path, int *fd, struct codefile **ret_file)
{
	_cleanup_(codefile_freep) struct codefile *file = NULL;
	const bool is_given = *fd >= 0;
	struct filebytes *bytes;
	struct buildid id;
	int r;

	if (!is_given)
		*fd = regular_open(AT_FDCWD, path, 0);
	if (*fd < 0)
		return *fd;
	r = buildid_read(*fd, &id);
	if (r == 0)
		r = codefile_new(path, &file);
	if (r == 0)
		r = filebytes_new(set, path, fd, is_given, &bytes);
	if (r < 0)
		return r;
	set_bytes(file, bytes);
	set_build_id(&file->object, &id);
	r = read_elf(file);
	if (r < 0)
		return r;
	*ret_file = TAKE(file);
	return 0;
}

int codefile_load_memory(struct fileset *set, const char *path, struct codefile **ret_file)
{
	_cleanup_(codefile_freep) struct codefile *file = NULL;
	_cleanup_(fd_closep) int fd = regular_open(AT_FDCWD, path, 0);
	struct filebytes *bytes;
	int r;

	if (fd < 0)
		return fd;
	r = codefile_new(path, &file);
	if (r == 0)
		r = filebytes_new(set, path, &fd, false, &bytes);
	if (r < 0)
		return r;
	set_bytes(file, bytes);
	r = vec_push(&file->segments, { .size = file->object.size });
	if (r < 0)
		return r;
	*ret_file = TAKE(file);
	return 0;
}

int codefile_share(const struct codefile *file, bool is_plain, struct codefile **ret_file)
{
	_cleanup_(codefile_freep) struct codefile *shared = NULL;
	int r;

	r = codefile_new(file->object.id.source, &shared);
	if (r < 0)
		return r;
	set_bytes(shared, filebytes_ref(file->object.file));
	shared->object.is_elf = file->object.is_elf;
	shared->object.id.build_id_size = file->object.id.build_id_size;
	memcpy(shared->object.id.build_id, file->object.id.build_id,
	       sizeof(file->object.id.build_id));
	r = vec_reserve(&shared->segments, is_plain ? 1 : file->segments.n);
	if (r < 0)
		return r;
	if (is_plain)
		r = vec_push(&shared->segments, { .size = shared->object.size });
	for (size_t i = 0; !is_plain && i < file->segments.n; i++)
		shared->segments.items[shared->segments.n++] = file->segments.items[i];
	if (r == 0)
		*ret_file = TAKE(shared);
	return r;
}

const uint8_t *object_bytes(const struct object *object, uint64_t offset, uint64_t size)
{
	return object->file ? filebytes_get(object->file, offset, size) : NULL;
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

const uint8_t *object_code(const struct object *object, uint64_t address, uint64_t size,
			   uint64_t *ret_size)
{
	const struct codefile *file = (const struct codefile *)object;

	if (object->state != OBJECT_OK || !object->is_elf)
		return NULL;
	for (size_t i = 0; i < file->segments.n; i++) {
		const struct codefile_segment *s = &file->segments.items[i];
		const uint64_t at = address - s->address;

		if (address < s->address || at >= s->size)
			continue;
		*ret_size = size < s->size - at ? size : s->size - at;
		return object_bytes(object, s->offset + at, *ret_size);
	}
	return NULL;
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
		elf_source_init(&(*file)->elf, files->debug_places, &object->id, object->file);
		object->symbols = &(*file)->elf.source;
	}
	*file = NULL;
	return 0;
}

void codefiles_init(struct codefiles *files)
{
	*files = (struct codefiles){};
	fileset_init(&files->fileset);
}

void codefiles_deinit(struct codefiles *files)
{
	vec_deinit_each(&files->files, file, codefile_free(*file));
	fileset_deinit(&files->fileset);
	arena_deinit(&files->names);
}
