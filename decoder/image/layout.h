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
#include "util/ranges.h"
#include "util/vec.h"

/*
 * So many pieces of others may be looked at for mappings that do not cover all: more than real ones
 * need.
 */
#define LAYOUT_WORK_MIN         (UINT64_C(1) << 20)
#define LAYOUT_WORK_PER_MAPPING 4096
#define LAYOUT_WORK_COVER       16 /* so many if it is covered in part */

/* A range, see ranges.h. */
struct extent {
	uint64_t start;
	uint64_t last;   /* inclusive: an extent may end at the top of the address space */
	uint64_t offset; /* of @start in the object's file */
	const struct object *object;
	enum mapping_kind kind; /* never MAPPING_RETIRE */
	uint32_t mark;          /* see layout_mark() */
};

/* Where nobody knows which of two versions of the code it was that ran. */
struct doubt {
	uint64_t start;
	uint64_t last; /* inclusive */
};

struct layout {
	const struct space *space; /* borrowed; NULL: nothing is mapped */
	size_t generation;
	struct space_place place;  /* the same */
	struct ranges extents;     /* of struct extent */
	const struct extent *hint; /* found last; or NULL */
	uint64_t work;             /* left */

	/* What the last step did. */
	VEC(struct extent) added;
	uint32_t covered; /* the highest mark of what is covered by them, or was in part; 0: none */

	/* What changes from one generation to another. */
	VEC(struct doubt) doubts; /* by address; they do not overlap */
	size_t doubted_from, doubted_until;
};

void layout_init(struct layout *layout, const struct space *space);
void layout_deinit(struct layout *layout);

/*
 * Apply the space's next mapping: see @added and @covered. Of the rest of one that lies below
 * others nothing is known when too much has been looked at.
 *
 * Return: 0 or -ENOMEM, and then the layout is of no more use.
 */
_must_check_ int layout_advance(struct layout *layout);

/* Return: the extent at @address, valid until the layout moves on; NULL if nothing is mapped. */
const struct extent *layout_find(struct layout *layout, uint64_t address);

/*
 * Note @mark of the extent at @address, of which there is one: what is left of it keeps that. At
 * first it is 0.
 */
void layout_mark(struct layout *layout, uint64_t address, uint32_t mark);

/*
 * Doubt the code that mappings up to generation @until replace with other: until that is called
 * again, or the layout moves on.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int layout_doubt(struct layout *layout, size_t until);

/*
 * Apply the space's mappings up to generation @generation, and doubt the code that they replace
 * with other. Once only, and for a layout that moves no more. What it added is not told.
 *
 * Return: as layout_advance().
 */
_must_check_ int layout_advance_doubting(struct layout *layout, size_t generation);

/*
 * Cut @last, which is not below @address, to what is not in doubt, as far as instructions that
 * begin there go.
 *
 * Return: whether that is so of one that begins at @address.
 */
_must_check_ bool layout_is_sure(const struct layout *layout, uint64_t address, uint64_t *last);
