/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/kernel/made.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

void made_init(struct made *made, struct objects *objects)
{
	*made = (struct made){ .objects = objects, .fd = -1 };
}

void made_deinit(struct made *made)
{
	if (made->bytes)
		(void)munmap(made->bytes, MADE_SIZE_MAX);
	made->fd = fd_close(made->fd);
	map_deinit(&made->by_content);
	vec_deinit(&made->parts);
	vec_deinit(&made->all);
}

/* Where there is none it is as if it were full. */
static int open_memory(struct made *made)
{
	void *bytes;

	if (made->bytes)
		return 0;
	if (made->fd >= 0)
		return MADE_FULL;
	made->fd = memfd_create("ptd-code", MFD_CLOEXEC);
	if (made->fd < 0 || ftruncate(made->fd, (off_t)MADE_SIZE_MAX) < 0)
		return MADE_FULL;
	bytes = mmap(NULL, MADE_SIZE_MAX, PROT_READ | PROT_WRITE, MAP_SHARED, made->fd, 0);
	if (bytes == MAP_FAILED)
		return MADE_FULL;
	made->bytes = bytes;
	(void)snprintf(made->source, sizeof(made->source), "/proc/self/fd/%d", made->fd);
	return 0;
}

int made_object(struct made *made, const char *name, struct object **ret_object)
{
	int r;

	r = open_memory(made);
	if (r == 0)
		r = vec_reserve(&made->all, 1);
	if (r == 0)
		r = objects_add_made(made->objects, made->source, name, ret_object);
	if (r == 0)
		made->all.items[made->all.n++] = *ret_object;
	return r;
}

static uint64_t hash(const struct object *object, uint64_t address, const uint8_t *bytes,
		     size_t size)
{
	const uint64_t key[] = { object->id.id, address, size, map_hash(bytes, size) };

	return map_hash(key, sizeof(key));
}

int made_add(struct made *made, struct object *object, uint64_t address, const uint8_t *bytes,
	     size_t size, uint64_t *ret_offset)
{
	const uint64_t key = hash(object, address, bytes, size);
	const uint64_t *known = map_get(&made->by_content, key);
	int r;

	if (known) {
		const struct made_part *p = &made->parts.items[*known];

		if (p->object == object && p->address == address && p->size == size &&
		    memcmp(made->bytes + p->offset, bytes, size) == 0) {
			*ret_offset = p->offset;
			return 0;
		}
	}
	if (made->parts.n == MADE_PARTS_MAX || size > MADE_SIZE_MAX - made->size)
		return MADE_FULL;

	*ret_offset = made->size;
	r = object_add_part(object, made->size, size, address);
	if (r == 0)
		r = map_put(&made->by_content, key, made->parts.n);
	if (r == 0)
		r = vec_push(
		    &made->parts,
		    { .object = object, .address = address, .offset = made->size, .size = size });
	if (r < 0)
		return r;
	memcpy(made->bytes + made->size, bytes, size);
	made->size += size;
	return 0;
}

void made_finish(struct made *made)
{
	for (size_t i = 0; i < made->all.n; i++) {
		made->all.items[i]->bytes = made->bytes;
		made->all.items[i]->size = made->size;
	}
}
