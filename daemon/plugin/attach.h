/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Attach
 *
 * The pool as a recorded process uses it. Every recorded program can write to the header in the
 * shared memory at any time, so this module copies the header once, checks the copy, and uses only
 * the copy.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/base.h"
#include "base/clock.h"
#include "daemon/plugin/pool.h"

struct attach {
	struct emu_pool *pool;
	struct emu_pool_layout layout;
	struct emu_pool_home home;
};

/*
 * Map the pool in the memfd @fd, which the caller may close afterwards.
 *
 * Return: 0; or negative errno, and @reterr_what, a constant, says what is wrong.
 */
_must_check_ int attach_init(struct attach *attach, int fd, const char **reterr_what);

/*
 * Check whether the calling process can be recorded into the pool. In other namespaces than ptd's
 * its process numbers or its clock would mean something else to ptd.
 *
 * Return: NULL if it can be recorded, or a constant that says why not.
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

/* Return: the time on the clock of all packets and records. */
static inline uint64_t attach_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/*
 * Take a lock of the pool. The lock names its holder, so it can be taken from a thread that was
 * killed: what that thread wrote does not count before it published the head.
 *
 * Return: whether the lock was taken; false if a living thread held it for @patience_ns.
 */
_must_check_ bool attach_lock(_Atomic uint32_t *lock, uint64_t patience_ns);
void attach_unlock(_Atomic uint32_t *lock);

/* Copy @size bytes, at most as many as the ring has, into the ring at @ring_offset. @head is the
 * running count of bytes before them. */
void attach_put(const struct attach *attach, uint64_t ring_offset, uint64_t ring_size,
		uint64_t head, const void *bytes, size_t size);
