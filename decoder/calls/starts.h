/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Starts
 *
 * Where functions without a symbol begin, in order, so that the nearest one below an address is
 * found quickly. They come one by one, and one is looked for after each that came. So they lie in
 * parts of bounded size: to add one moves some of its part only.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "util/vec.h"

#define STARTS_PART 256

struct start {
	uint32_t object;
	uint32_t function;
	uint64_t address;
};

/* An empty list has only zeros. */
struct starts {
	VEC(struct starts_part *) parts; /* none is empty; owned */
};

void starts_deinit(struct starts *starts);

/* Add one whose object and address are not in the list. Return: 0 or -ENOMEM. */
_must_check_ int starts_add(struct starts *starts, const struct start *start);

/*
 * Return: the one of @object with the highest address that is at most @address, valid until the
 *         next is added; NULL if there is none.
 */
const struct start *starts_nearest(const struct starts *starts, uint32_t object, uint64_t address);
