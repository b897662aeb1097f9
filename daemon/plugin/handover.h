/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Handover
 *
 * Hands code that is in no file over to ptd through the code ring of the pool: each version of each
 * byte once, when QEMU translates it, which is before it runs. A version that replaces another one
 * gets a number. A thread that runs it must have written a time packet since it was handed over;
 * otherwise a decoder would use the earlier version (see thread.h).
 *
 * This module does not wait for ptd. If there is no room in the ring, or no memory, the caller
 * switches packets off while the code runs.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/plugin/attach.h"
#include "util/arena.h"
#include "util/map.h"

/*
 * A copy of the code of the recorded program as it was last handed over to ptd, byte by byte: the
 * code that a decoder has. A forked child inherits it with the memory.
 */

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

/* Instead of the number of a version: ptd does not have the code. */
#define HANDOVER_HIDDEN UINT64_MAX

struct handover {
	const struct attach *attach; /* borrowed */
	struct shadow shadow;
	uint32_t pid;
	bool started;               /* ptd has been told that the program began */
	uint64_t start;             /* when it began, in ns, which identifies it */
	_Atomic uint64_t n_changes; /* versions that replaced others */

	/* Of a fork whose beginning has not been handed over yet. */
	uint32_t parent_pid;
	uint64_t parent_start;
	uint64_t forked; /* when, in ns */
};

/* Where code is, which decides whether ptd has it already. */
enum handover_place {
	HANDOVER_MEMORY,  /* in no file */
	HANDOVER_FILE,    /* in a file, and unchanged */
	HANDOVER_WRITTEN, /* in a file, but may have been written to since it was mapped */
};

void handover_init(struct handover *handover, const struct attach *attach);

/* The program of process @pid begins. The record of its exec has been written. */
void handover_start(struct handover *handover, uint32_t pid);

/*
 * Around a fork. After handover_fork_prepare() nothing is handed over until the fork is done.
 * handover_fork_child() is called in the child, whose record has been written; what the parent
 * handed over is the child's code, too.
 */
void handover_fork_prepare(struct handover *handover);
void handover_fork_child(struct handover *handover, uint32_t pid);

/*
 * Hand over the @size bytes of code at @address, which were translated. Only one thread may call
 * this at a time.
 *
 * Return: the number of the last version that replaced another one, if these bytes may be part of
 *         it; 0 if they are not; HANDOVER_HIDDEN if ptd does not have the bytes.
 */
uint64_t handover_code(struct handover *handover, enum handover_place place, uint64_t address,
		       const uint8_t *bytes, size_t size);

/* Return: how many versions replaced others. A time packet whose time is read after this call
 *         covers all of them. */
static inline uint64_t handover_changes(const struct handover *handover)
{
	return atomic_load_explicit(&handover->n_changes, memory_order_acquire);
}
