/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Watch
 *
 * The functions whose entry a condition (util/condition.h) waits for, and the addresses at which
 * the program has mapped them. The caller does the locking.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "util/condition.h"
#include "util/vec.h"

/* More places are not watched. */
#define WATCH_PLACES_MAX 1024

struct watch_place {
	uint64_t address;
	uint32_t condition; /* index */
};

struct watch {
	const struct condition *conditions; /* borrowed */
	size_t n_conditions;
	VEC(struct watch_place) places;
};

/* What the program has mapped executable. */
struct watch_mapping {
	const char *path;    /* NULL: no file */
	uint64_t start, end; /* addresses */
	uint64_t offset;     /* in the file, of @start */
};

/* Note where the functions lie that are in @mapping. What was at these addresses is forgotten. */
void watch_map(struct watch *watch, const struct watch_mapping *mapping);

/* Return: the index of the condition that waits for the entry at @address, plus 1; 0: none does. */
uint32_t watch_at(const struct watch *watch, uint64_t address);

void watch_deinit(struct watch *watch);
