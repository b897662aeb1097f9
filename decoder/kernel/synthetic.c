/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/kernel/synthetic.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "decoder/util/filebytes.h"

void synthetics_init(struct synthetics *synthetics, struct objects *objects)
{
	*synthetics = (struct synthetics){ .objects = objects };
}

void synthetics_deinit(struct synthetics *synthetics)
{
	if (synthetics->bytes)
		(void)munmap(synthetics->bytes, SYNTHETICS_BYTES_MAX);
	map_deinit(&synthetics->by_content);
	vec_deinit(&synthetics->parts);
	vec_deinit(&synthetics->list);
}

static int reserve_memory(struct synthetics *synthetics)
{
	void *bytes;

	if (synthetics->bytes)
		return 0;
	bytes = mmap(NULL, SYNTHETICS_BYTES_MAX, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (bytes == MAP_FAILED)
		return -ENOMEM;
	synthetics->bytes = bytes;
	return 0;
}

int synthetics_new_object(struct synthetics *synthetics, const char *name,
			  struct object **ret_object)
{
	int r;

	r = reserve_memory(synthetics);
	if (r == 0)
		r = vec_reserve(&synthetics->list, 1);
	if (r == 0)
		r = objects_add_synthetic(synthetics->objects, name, ret_object);
	if (r == 0)
		synthetics->list.items[synthetics->list.n++] = *ret_object;
	return r;
}

static uint64_t hash_of_part(const struct object *object, uint64_t address, const uint8_t *bytes,
			     size_t size)
{
	const uint64_t key[] = { object->id.id, address, size, map_hash(bytes, size) };

	return map_hash(key, sizeof(key));
}

int synthetics_add_code(struct synthetics *synthetics, struct object *object, uint64_t address,
			const uint8_t *bytes, size_t size, uint64_t *ret_offset)
{
	const uint64_t key = hash_of_part(object, address, bytes, size);
	const uint64_t *known = map_get(&synthetics->by_content, key);
	int r;

	if (known) {
		const struct synthetic_part *p = &synthetics->parts.items[*known];

		if (p->object == object && p->address == address && p->size == size &&
		    memcmp(synthetics->bytes + p->offset, bytes, size) == 0) {
			*ret_offset = p->offset;
			return 0;
		}
	}
	if (synthetics->parts.n == SYNTHETICS_PARTS_MAX ||
	    size > SYNTHETICS_BYTES_MAX - synthetics->size)
		return SYNTHETICS_FULL;

	*ret_offset = synthetics->size;
	r = object_add_part(object, synthetics->size, size, address);
	if (r == 0)
		r = map_put(&synthetics->by_content, key, synthetics->parts.n);
	if (r == 0)
		r = vec_push(&synthetics->parts, { .object = object,
						   .address = address,
						   .offset = synthetics->size,
						   .size = size });
	if (r < 0)
		return r;
	memcpy(synthetics->bytes + synthetics->size, bytes, size);
	synthetics->size += size;
	return 0;
}

int synthetics_finish(struct synthetics *synthetics)
{
	struct filebytes *file;
	const int r = filebytes_new_in_memory(synthetics->bytes, synthetics->size, &file);

	if (r < 0)
		return r;
	for (size_t i = 0; i < synthetics->list.n; i++) {
		struct object *object = synthetics->list.items[i];

		object->file = filebytes_ref(file);
		object->size = synthetics->size;
	}
	(void)filebytes_unref(file);
	return 0;
}
