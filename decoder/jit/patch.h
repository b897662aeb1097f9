/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Patch
 *
 * Where code differs from what its maker noted of it: two versions of the same bytes, and what is
 * between them. A direct branch that only leads elsewhere is told apart: compilers link code so
 * that was made, and may have run, long before.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "util/vec.h"

struct patch {
	size_t offset;
	size_t size;
	bool is_link;    /* one direct branch, whole, whose displacement is another */
	uint64_t target; /* of a link: where it leads now */
};

struct patches {
	VEC(struct patch) list; /* by offset; they do not overlap */
	size_t n_bytes;         /* that differ */
};

/*
 * Compare the @size bytes of 64-bit code at @noted with those at @now; it runs at @address.
 *
 * Return: 0 or -ENOMEM, with what was found so far.
 */
_must_check_ int patches_find(const uint8_t *noted, const uint8_t *now, size_t size,
			      uint64_t address, struct patches *ret_patches);
void patches_deinit(struct patches *patches);
