/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Handover
 *
 * Hands code that is in no file over to ptd, through the code ring of the pool: each version of
 * each byte once, when it is translated, which is before it runs. A version that replaces another
 * gets a number: who runs it must have told the time since, or a decoder would take the version
 * before (see thread.h).
 *
 * Nothing here waits for ptd: of code that finds no room in the ring, or no memory, the caller
 * keeps packets off.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/emu/attach.h"
#include "daemon/emu/shadow.h"

/* In the place of a version's number: the code is not known to ptd. */
#define HANDOVER_HIDDEN UINT64_MAX

struct handover {
	const struct attach *attach; /* borrowed */
	struct shadow shadow;
	uint32_t pid;
	bool started;               /* ptd knows of the program */
	uint64_t start;             /* when it began, which is its name */
	_Atomic uint64_t n_changes; /* versions that replaced others */

	/* Of a fork whose beginning was not said yet. */
	uint32_t parent_pid;
	uint64_t parent_start;
	uint64_t forked; /* when */
};

/* Where code lies, as far as it matters to what ptd has of it. */
enum handover_place {
	HANDOVER_MEMORY,  /* in no file */
	HANDOVER_FILE,    /* as the file has it */
	HANDOVER_WRITTEN, /* in a file, but it may have been written to since it was mapped */
};

void handover_init(struct handover *handover, const struct attach *attach);
void handover_deinit(struct handover *handover);

/* The program of process @pid begins; the record of its exec has been written. */
void handover_start(struct handover *handover, uint32_t pid);

/*
 * Around a fork: nothing is handed over until the child is there; and the caller is the child, its
 * record has been written: what its parent handed over is its own, too.
 */
void handover_fork_prepare(struct handover *handover);
void handover_fork_child(struct handover *handover, uint32_t pid);

/*
 * The @size bytes of code at @address were translated; the caller sees to it that no two threads
 * do this at once.
 *
 * Return: the number of the last version that replaced another, if these bytes may be part of it;
 *         0 if they are not, and HANDOVER_HIDDEN if ptd does not have them.
 */
uint64_t handover_code(struct handover *handover, enum handover_place place, uint64_t address,
		       const uint8_t *bytes, size_t size);

/* Return: how many versions replaced others: packets whose time is read after this can follow all
 *         of them. */
static inline uint64_t handover_changes(const struct handover *handover)
{
	return atomic_load_explicit(&handover->n_changes, memory_order_acquire);
}
