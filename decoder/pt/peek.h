/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Peek
 *
 * A look at the packets that lie ahead of a walk, which changes nothing of the walk (but for the
 * window through which it looks). Some packets can only be understood by what follows them: where
 * execution goes on behind an overflow, for example, where errata spoil that.
 */

#include <stdbool.h>
#include <stdint.h>

#include "decoder/pt/walk.h"

struct peek {
	struct walk *walk; /* borrowed */
	uint64_t offset;   /* of the next packet */
	struct packet_reader reader;
	int r; /* why the next packet could not be read */
};

struct peek peek_from(struct walk *walk, uint64_t offset);

/* Read the next packet. Return: whether there is one; if not, @r is set. */
bool peek_next(struct peek *peek, struct packet *ret_packet);

/* Read the next packet that is of no type in @set. Return: as peek_next(). */
bool peek_past(struct peek *peek, uint32_t set, struct packet *ret_packet);

/*
 * Return: whether a TIP.PGE comes next behind @offset, where a PSB+ has a FUP. By erratum BDM70,
 *         packets were off then, and the FUP says nothing.
 */
bool peek_has_pge(struct walk *walk, uint64_t offset);

/* How an overflow ends. */
struct peek_overflow {
	enum {
		PEEK_OFF, /* packets are off behind it */
		PEEK_FUP, /* a FUP says where execution goes on */
		PEEK_ON,  /* it goes on at @ip, although no FUP says so */
		PEEK_BAD, /* the packets behind it make no sense */
	} end;
	uint64_t offset; /* packets before this offset say no more than time */
	uint64_t ip;
};

/* Return: how the overflow ends whose OVF the walk has just passed. */
struct peek_overflow peek_overflow(struct walk *walk);

/*
 * The times between which a stretch of user code ran. A stretch begins at a TIP.PGE, at the FUP
 * behind an overflow, or at the TIP by which the kernel, if it is traced, returns to user code.
 * Threads switch between stretches, and the time that is known where a stretch begins may be from
 * before a switch. The packets that lie ahead say more: the first time that is told inside a
 * stretch is a time at which its thread ran. The kernel's code is taken to be of the thread of the
 * time known.
 */

/* TSC, both inclusive; 0: the time that is known where the stretch begins. */
struct when_bounds {
	uint64_t from;
	uint64_t to; /* UINT64_MAX: nothing later is told */
};

/*
 * The next time that packets state. {} at the start. What is found is remembered, so each packet is
 * looked at once, however many stretches there are, and only where a stretch begins without a time
 * of its own.
 */
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
