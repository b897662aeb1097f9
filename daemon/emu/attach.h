/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Attach
 *
 * The pool as a recorded process sees it. Every recorded program can write to the header in the
 * shared memory, at any time. So it is copied once, the copy is checked, and only the copy is used.
 */

#include <stdbool.h>
#include <stddef.h>
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

/*
 * Take a lock of the pool. It names its holder, so that one that was killed holds up no other
 * process: what it wrote does not count until it published the head.
 *
 * Return: whether it was taken; false if a holder that lives did not give it back for @patience_ns.
 */
_must_check_ bool attach_lock(_Atomic uint32_t *lock, uint64_t patience_ns);
void attach_unlock(_Atomic uint32_t *lock);

/* Copy @size bytes, no more than the ring has, into the ring at @ring_offset, from the running
 * count @head on. */
void attach_put(const struct attach *attach, uint64_t ring_offset, uint64_t ring_size,
		uint64_t head, const void *bytes, size_t size);
