/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Layout
 *
 * What a space looks like at one generation: extents, by address, which are the parts of its
 * mappings that are not covered by later ones. A layout only moves forward in time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/image/object.h"
#include "decoder/image/space.h"
#include "decoder/util/ranges.h"
#include "util/vec.h"

/*
 * A mapping that does not cover everything must look at the extents below it. This limits how many
 * extents are looked at; real spaces need fewer.
 */
#define LAYOUT_WORK_MIN         (UINT64_C(1) << 20)
#define LAYOUT_WORK_PER_MAPPING 4096
#define LAYOUT_WORK_COVER       16 /* what a mapping costs that covers an extent in part */

/* A range, see ranges.h. */
struct extent {
	uint64_t start;
	uint64_t last;   /* inclusive: an extent may end at the top of the address space */
	uint64_t offset; /* of the byte at @start in the object */
	const struct object *object;
	enum mapping_kind kind; /* never MAPPING_RETIRE */
};

/* Addresses where it is not known which of two versions of the code ran. */
struct doubt {
	uint64_t start;
	uint64_t last; /* inclusive */
};

struct layout {
	const struct space *space; /* borrowed; NULL: nothing is mapped */
	size_t generation;         /* that the layout has */
	struct space_place place;  /* of the generation */
	struct ranges extents;     /* of struct extent */
	const struct extent *hint; /* that some thread found last; or NULL */
	uint64_t work;             /* how many extents may still be looked at */

	VEC(struct extent) added; /* by the last call of layout_advance() */

	/* Code that changes from one generation to another. */
	VEC(struct doubt) doubts; /* by address; they do not overlap */
	size_t doubted_from, doubted_until;
};

void layout_init(struct layout *layout, const struct space *space);
void layout_deinit(struct layout *layout);

/*
 * Apply the space's next mapping; see @added. When the limit of work is reached, the
 * rest of a mapping that does not cover everything is mapped without bytes.
 *
 * Return: 0; or -ENOMEM, and then the layout may only be deinitialized.
 */
_must_check_ int layout_advance(struct layout *layout);

/*
 * Several threads may look for extents at the same time.
 *
 * Return: the extent at @address, which is valid until the layout advances; NULL if nothing is
 *         mapped there.
 */
const struct extent *layout_find(struct layout *layout, uint64_t address);

/*
 * Doubt all code that the mappings up to generation @until replace by other code. The doubts hold
 * until the next call, or until the layout advances.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int layout_doubt(struct layout *layout, size_t until);

/*
 * Apply the mappings up to @generation, and doubt all code that they replace by other code. This
 * may be called once, for a layout that does not advance afterwards; @added is of no use then.
 *
 * Return: as layout_advance().
 */
_must_check_ int layout_advance_doubting(struct layout *layout, size_t generation);

/*
 * Cut *@last, which is not below @address, to the last address at which an instruction may begin
 * without reaching code that is in doubt.
 *
 * Return: whether an instruction may begin at @address.
 */
_must_check_ bool layout_is_sure(const struct layout *layout, uint64_t address, uint64_t *last);
