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

/* Where nobody knows which of two versions of the code it was that ran. */
struct doubt {
	uint64_t start;
	uint64_t last; /* inclusive */
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

	/* What changes from one generation to another. */
	VEC(struct doubt) doubts; /* by address; they do not overlap */
	size_t doubted_from, doubted_until;
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

/*
 * Doubt the code that mappings up to generation @until replace with other: until that is called again, or the layout
 * moves on.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int layout_doubt(struct layout *layout, size_t until);

/*
 * Apply the space's mappings up to generation @generation, and doubt the code that they replace with other. Once only,
 * and for a layout that moves no more. What it added is not told.
 *
 * Return: as layout_advance().
 */
_must_check_ int layout_advance_doubting(struct layout *layout, size_t generation);

/*
 * Cut @last, which is not below @address, to what is not in doubt, as far as instructions that begin there go.
 *
 * Return: whether that is so of one that begins at @address.
 */
_must_check_ bool layout_is_sure(const struct layout *layout, uint64_t address, uint64_t *last);
