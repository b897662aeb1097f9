/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Layout
 *
 * What a space looks like at one generation: its mappings cut to what is still visible of them,
 * ordered by address. It only moves forward, as a decoder does.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/image/object.h"
#include "decoder/image/space.h"
#include "decoder/util/vec.h"

struct extent {
	uint64_t start;
	uint64_t last;   /* inclusive: an extent may end at the top of the address space */
	uint64_t offset; /* of @start in the object's file */
	const struct object *object;
	enum mapping_kind kind; /* never MAPPING_RETIRE */
};

struct layout {
	const struct space *space; /* borrowed; NULL: nothing is mapped */
	size_t generation;
	struct space_place place; /* the same */
	VEC(struct extent) extents;
	size_t hint; /* index of the extent found last */

	/* What the last step did. */
	VEC(struct extent) added;
	bool bared; /* what has no bytes covers something that may have them */
};

void layout_init(struct layout *layout, const struct space *space);
void layout_deinit(struct layout *layout);

/*
 * Apply the space's next mapping: see @added and @bared.
 *
 * Return: 0 or -ENOMEM, and then the layout is of no more use.
 */
_must_check_ int layout_advance(struct layout *layout);

/* Return: the extent at @address, valid until the layout moves on; NULL if nothing is mapped. */
const struct extent *layout_find(struct layout *layout, uint64_t address);
