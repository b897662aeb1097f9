/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Pool rings
 *
 * The rings of the virtual CPUs of a pool: PT, switch records and events, which programs overwrite
 * at any time. A hold notes how far each has been written; a bookmark, how far each had been
 * written when a program began. Whoever copies a ring after a hold learns what was overwritten
 * meanwhile. Nothing is judged here: the bytes are whatever a program wrote.
 *
 * The event loop sets bookmarks; the thread of a snapshot calls all from poolrings_ask_flush() on.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/plugin/pool.h"
#include "daemon/source/source.h"

#define POOLRINGS_BOOKMARKS 16u

/* How many bytes were ever written to the rings of a CPU. */
struct poolrings_heads {
	uint64_t aux, switches, events;
};

/* The rings of a CPU at the last hold. */
struct poolrings_held {
	struct poolrings_heads heads;
	enum source_end end;
};

struct poolrings_bookmark {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	struct poolrings_heads heads[EMU_CPUS_MAX];
};

struct poolrings {
	int fd;                               /* of the pool; borrowed */
	uint8_t *map;                         /* the pool; borrowed */
	const struct emu_pool_layout *layout; /* borrowed */
	struct poolrings_held held[EMU_CPUS_MAX];
	uint32_t generation; /* of the last flush that was asked for */

	pthread_mutex_t lock; /* of the next two */
	struct poolrings_bookmark bookmarks[POOLRINGS_BOOKMARKS];
	size_t n_bookmarks; /* ever made; the latest ones are there */
};

/* @fd, @map, @layout: of the pool, for as long as the rings are used */
void poolrings_init(struct poolrings *rings, int fd, uint8_t *map,
		    const struct emu_pool_layout *layout);
void poolrings_deinit(struct poolrings *rings);

/* Set a bookmark, and have free CPUs begin with a PSB. */
void poolrings_mark(struct poolrings *rings);

/* Return: about how many bytes the rings hold now. */
uint64_t poolrings_bytes_held(const struct poolrings *rings);

/* Ask the programs that run to publish how much they have written. */
void poolrings_ask_flush(struct poolrings *rings);

/* Return: whether all programs that were asked have published it. */
bool poolrings_is_flushed(const struct poolrings *rings);

/* Read the heads of all rings, as nearly at one moment as can be. The rings have everything that
 * ran until @ret_complete_ns, on the records' clock. */
void poolrings_hold(struct poolrings *rings, uint64_t *ret_complete_ns);

/* The three rings of @cpu, which counts from 0, as they were at the hold, and from the last
 * bookmark on that is not later than @since_ns, if that is not 0. */

/* Show the PT where it lies, as source_ops.view. */
void poolrings_view(struct poolrings *rings, uint32_t cpu, uint64_t since_ns,
		    struct source_view *ret_view);

/*
 * Copy switch records, from the first on that is whole.
 *
 * @ret_cut: there were earlier ones
 *
 * Return: 0, and @ret_bytes is the caller's; or negative errno.
 */
_must_check_ int poolrings_copy_switches(struct poolrings *rings, uint32_t cpu, uint64_t since_ns,
					 uint8_t **ret_bytes, size_t *ret_size, bool *ret_cut);

/* Copy events. Return: 0, and @ret_events is the caller's; or -ENOMEM. */
_must_check_ int poolrings_copy_events(struct poolrings *rings, uint32_t cpu, uint64_t since_ns,
				       struct emu_event **ret_events, size_t *ret_n);
