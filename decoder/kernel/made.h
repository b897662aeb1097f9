/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Made
 *
 * Code whose bytes are in no file, since the decoder put them together itself: versions of code
 * that was changed, as objects. The bytes are in memory that has a path, for who reads code by its
 * path.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/image/object.h"
#include "util/map.h"
#include "util/vec.h"

#define MADE_SIZE_MAX (UINT64_C(64) << 20)
#define MADE_PARTS_MAX \
	8192 /* each is a file of its own to libipt, which looks at all of them for each */

enum {
	_MADE_SUCCESS,

	MADE_FULL, /* what is there is more than the limits allow, or there is no such memory */
};

struct made_part {
	const struct object *object;
	uint64_t address;
	uint64_t offset;
	size_t size;
};

struct made {
	struct objects *objects; /* borrowed */
	int fd;
	char source[32];
	uint8_t *bytes; /* NULL: there are none yet, or never will be */
	size_t size;
	struct map by_content; /* hash → index into parts */
	VEC(struct made_part) parts;
	VEC(struct object *) all;
};

void made_init(struct made *made, struct objects *objects);

/* The bytes stay until then: after who uses the objects. */
void made_deinit(struct made *made);

/* An object of that name, without bytes so far. Return: 0, MADE_FULL or -ENOMEM. */
_must_check_ int made_object(struct made *made, const char *name, struct object **ret_object);

/*
 * Put the @size bytes of code into @object, as what is at @address; the same ones are there only
 * once.
 *
 * Return: 0 and where they are in it; MADE_FULL; -ENOMEM.
 */
_must_check_ int made_add(struct made *made, struct object *object, uint64_t address,
			  const uint8_t *bytes, size_t size, uint64_t *ret_offset);

/* All bytes have been added: the objects may be used. */
void made_finish(struct made *made);
