/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Shadow
 *
 * The code of the recorded program that was handed over to ptd, byte by byte as it was handed over
 * last: what a decoder takes to be there. A forked child inherits it with the memory.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "util/arena.h"
#include "util/map.h"

#define SHADOW_PAGES_MAX (1u << 17) /* 512 MiB of code */

struct shadow {
	struct map pages; /* number of page → struct shadow_page * */
	struct arena arena;
	size_t n_pages;
};

enum shadow_verdict {
	SHADOW_NONE,    /* none of the bytes was handed over */
	SHADOW_PART,    /* some were, as they are */
	SHADOW_SAME,    /* all were, as they are */
	SHADOW_CHANGED, /* some were, and are others */
};

void shadow_deinit(struct shadow *shadow);

/*
 * Compare the @size bytes of code at @address with what was handed over; or, with @only_changed,
 * with that which was handed over in the place of something else.
 */
enum shadow_verdict shadow_compare(const struct shadow *shadow, uint64_t address,
				   const uint8_t *bytes, size_t size, bool only_changed);

/* Make room for them. Return: 0; -ENOMEM; or -ENOSPC if that is more than the shadow takes. */
_must_check_ int shadow_reserve(struct shadow *shadow, uint64_t address, size_t size);

/* They were handed over, if @changed in the place of something else; there is room. */
void shadow_put(struct shadow *shadow, uint64_t address, const uint8_t *bytes, size_t size,
		bool changed);
