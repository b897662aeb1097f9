/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * When
 *
 * The times between which a stretch of user code ran. A stretch begins at a TIP.PGE, at the FUP
 * behind an overflow, or at the TIP by which the kernel, if it is traced, returns to user code.
 * Threads switch between stretches, and the time that is known where a stretch begins may be from
 * before a switch. The packets that lie ahead say more: the first time that is told inside a
 * stretch is a time at which its thread ran. The kernel's code is taken to be of the thread of the
 * time known.
 *
 * What is found ahead is remembered, so each packet is looked at once, however many stretches there
 * are, and only where a stretch begins without a time of its own.
 */

#include <stdint.h>

struct walk;

/* TSC, both inclusive; 0: the time that is known where the stretch begins. */
struct when_bounds {
	uint64_t from;
	uint64_t to; /* UINT64_MAX: nothing later is told */
};

/* The next time that packets state. {} at the start. */
struct when {
	uint64_t from, until; /* offsets between which it is the next time */
	uint64_t t;           /* UINT64_MAX: there is none */
	uint64_t ended;       /* where between them the last stretch ended; 0: none did */
};

/*
 * Find the bounds of the stretch that begins at @ip, where @walk stands: right behind the packet
 * that says so. They are
 *	the time known there, if it is the stretch's own (walk->is_timed) or of the kernel's code;
 *	the first time told in the stretch, if one is;
 *	otherwise anything between the time known there and that which is told next behind it.
 */
struct when_bounds when_find(struct when *when, struct walk *walk, uint64_t ip);
