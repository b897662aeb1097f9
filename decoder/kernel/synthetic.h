/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Synthetic objects
 *
 * Objects whose code is in no file, because the decoder computed it: the versions of kernel code
 * that was changed while it was recorded. All synthetic objects share one piece of memory.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/image/objects.h"
#include "util/map.h"
#include "util/vec.h"

#define SYNTHETICS_BYTES_MAX (UINT64_C(64) << 20)

/* Kernels that people run change code in fewer places. */
#define SYNTHETICS_PARTS_MAX 8192

enum {
	_SYNTHETICS_SUCCESS,

	SYNTHETICS_FULL, /* a limit is reached */
};

/* Code of one object at one address. */
struct synthetic_part {
	const struct object *object;
	uint64_t address;
	uint64_t offset; /* of the bytes in the shared memory */
	size_t size;
};

struct synthetics {
	struct objects *objects; /* borrowed */
	uint8_t *bytes;          /* addresses of SYNTHETICS_BYTES_MAX of them; NULL: none yet */
	size_t size;             /* bytes in use */
	struct map by_content;   /* hash → index into parts */
	VEC(struct synthetic_part) parts;
	VEC(struct object *) list;
};

void synthetics_init(struct synthetics *synthetics, struct objects *objects);

/* Unmap the code. The objects, which belong to @synthetics->objects, must not be used any more. */
void synthetics_deinit(struct synthetics *synthetics);

/*
 * Add an object that is called @name and has no code yet.
 *
 * Return: 0, and @ret_object, which belongs to @synthetics->objects; SYNTHETICS_FULL; -ENOMEM.
 */
_must_check_ int synthetics_new_object(struct synthetics *synthetics, const char *name,
				       struct object **ret_object);

/*
 * Copy @size bytes of code into @object, as the code at @address. If @object has the same bytes at
 * @address already, nothing is copied.
 *
 * Return: 0, and @ret_offset, the place of the bytes in @object; SYNTHETICS_FULL; -ENOMEM.
 */
_must_check_ int synthetics_add_code(struct synthetics *synthetics, struct object *object,
				     uint64_t address, const uint8_t *bytes, size_t size,
				     uint64_t *ret_offset);

/* Let the objects have their code. No code may be added afterwards. Return: 0 or -ENOMEM. */
_must_check_ int synthetics_finish(struct synthetics *synthetics);
