/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Code map
 *
 * Finds the code that an address space had at an address and at a time, whether or not it was
 * executed. The layout of the space that was asked for last is kept, so a caller should ask for all
 * addresses of one space and time before it asks for others.
 */

#include <stdint.h>

#include "base/base.h"
#include "decoder/image/layout.h"

struct codemap {
	struct layout layout; /* of the last space; without one, nothing was asked for */
};

void codemap_deinit(struct codemap *map);

/*
 * Find what @space, which must outlive the map, had at @ip at @t.
 *
 * Return: 0, and @ret_object, NULL if nothing was mapped there, and the address of the code as
 *         object_address() has it; or -ENOMEM.
 */
_must_check_ int codemap_find(struct codemap *map, const struct space *space, uint64_t t,
			      uint64_t ip, const struct object **ret_object, uint64_t *ret_address);
