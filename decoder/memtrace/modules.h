/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Modules
 *
 * modules.log of a drmemtrace directory that DynamoRIO wrote: which file was mapped where. It is
 * about one process, and states no times.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "util/vec.h"

struct object;
struct objects;

struct modules_segment {
	uint64_t start, end;         /* of the mapping; @end is behind it */
	uint64_t offset;             /* of its first byte in the file */
	const char *path;            /* borrowed from the text */
	const struct object *object; /* NULL until it was asked for */
};

struct modules {
	char *text;
	VEC(struct modules_segment) segments; /* by address */
};

/*
 * Read the file at @path. Lines that are not as they should be are passed over.
 *
 * Return: 0; -EFBIG if it is too large; or another negative errno.
 */
_must_check_ int modules_read(const char *path, struct modules *ret_modules);
void modules_deinit(struct modules *modules);

/*
 * Find what was mapped at @pc.
 *
 * Return: 0, @ret_object, NULL if nothing is known, and @ret_offset of @pc in it; or -ENOMEM.
 */
_must_check_ int modules_find(struct modules *modules, struct objects *objects, uint64_t pc,
			      const struct object **ret_object, uint64_t *ret_offset);
