/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Attach
 *
 * The pool as a recorded process sees it. Every recorded program can write to the header in the
 * shared memory, at any time. So it is copied once, the copy is checked, and only the copy is used.
 */

#include <stdint.h>
#include <time.h>

#include "base/base.h"
#include "base/clock.h"
#include "daemon/emu/pool.h"

struct attach {
	struct emu_pool *pool;
	struct emu_pool_layout layout;
	struct emu_pool_home home;
};

/*
 * Map the pool in the memfd @fd, which may be closed afterwards.
 *
 * Return: 0; or negative errno, with what is wrong in @reterr_what (a constant).
 */
_must_check_ int attach_init(struct attach *attach, int fd, const char **reterr_what);
void attach_deinit(struct attach *attach);

/*
 * Can the calling process be recorded into the pool, or do its numbers or its clock mean something
 * else to ptd?
 *
 * Return: NULL, or why it cannot be (a constant).
 */
const char *attach_obstacle(const struct attach *attach);

static inline uint8_t *attach_at(const struct attach *attach, uint64_t offset)
{
	return (uint8_t *)attach->pool + offset;
}

static inline struct emu_cpu *attach_cpu(const struct attach *attach, uint32_t cpu)
{
	return (struct emu_cpu *)attach_at(attach, emu_cpu_offset(&attach->layout, cpu));
}

/* The clock of everything that is recorded: packets and records. */
static inline uint64_t attach_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}
