/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Patch
 *
 * A difference between two versions of the same code: the bytes that a JIT compiler noted, and
 * those that were in memory later. A direct branch whose target alone changed (a link) is marked:
 * compilers link code that was made, and may have run, long before.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "util/vec.h"

struct patch {
	size_t offset; /* in the code */
	size_t size;
	bool is_link;    /* the patch is one whole direct branch, and only its target changed */
	uint64_t target; /* of a link: the later target */
};

struct patches {
	VEC(struct patch) list; /* by offset; they do not overlap */
	size_t n_bytes;         /* bytes that differ */
};

/*
 * Compare two versions, @noted and @now, of @size bytes of 64-bit code at @address.
 *
 * Return: 0 or -ENOMEM; in both cases the caller deinitializes @ret_patches.
 */
_must_check_ int patches_find(const uint8_t *noted, const uint8_t *now, size_t size,
			      uint64_t address, struct patches *ret_patches);
void patches_deinit(struct patches *patches);
