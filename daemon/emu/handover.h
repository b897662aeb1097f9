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
#include "daemon/emu/attach.h"
#include "daemon/emu/shadow.h"

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
void handover_deinit(struct handover *handover);

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
