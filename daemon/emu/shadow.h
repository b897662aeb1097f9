/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Shadow
 *
 * A copy of the code of the recorded program as it was last handed over to ptd, byte by byte: the
 * code that a decoder has. A forked child inherits it with the memory.
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
	SHADOW_PART,    /* some were handed over, and are unchanged */
	SHADOW_SAME,    /* all were handed over, and are unchanged */
	SHADOW_CHANGED, /* some were handed over, and are others now */
};

void shadow_deinit(struct shadow *shadow);

/*
 * Compare the @size bytes of code at @address with the copy; with @only_changed, only with bytes
 * that replaced others when they were handed over.
 */
enum shadow_verdict shadow_compare(const struct shadow *shadow, uint64_t address,
				   const uint8_t *bytes, size_t size, bool only_changed);

/* Make room for the bytes. Return: 0; -ENOMEM; or -ENOSPC if there would be more than
 * SHADOW_PAGES_MAX pages. */
_must_check_ int shadow_reserve(struct shadow *shadow, uint64_t address, size_t size);

/* Copy bytes that were handed over; @changed: they replaced others. shadow_reserve() has made
 * room. */
void shadow_put(struct shadow *shadow, uint64_t address, const uint8_t *bytes, size_t size,
		bool changed);
