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

/* Go to the next PSB, from a packet that could not be read. Return: whether there is one. */
bool peek_sync(struct peek *peek);

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
