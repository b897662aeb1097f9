/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Ipt walk
 *
 * A walk of ours over the packets that libipt decodes, as far as libipt has come. It says what
 * libipt does not: between which times a stretch of code ran (when.h), and where execution goes on
 * behind an error. libipt can begin at a PSB+ only, so one is made that a CPU would write there.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/pt/walk.h"
#include "decoder/pt/when.h"

/* Room for the longest PSB+. */
#define IPT_WALK_PSB_MAX 80

struct ipt_walk {
	struct walk walk;
	struct when when;
	uint64_t t; /* the latest TSC at which a stretch began, since the walk began anew */

	/* The stretch that began last, by the packets that were passed last. */
	bool has_begun;
	uint64_t ip;
	struct when_bounds bounds;
};

void ipt_walk_init(struct ipt_walk *ipt_walk, const struct walk_config *config);
void ipt_walk_deinit(struct ipt_walk *ipt_walk);

/* Come to @offset, where libipt stands, or to the first branch or event behind it. */
void ipt_walk_follow(struct ipt_walk *ipt_walk, uint64_t offset);

/*
 * Find the bounds of the stretch of code that begins at @ip: where the walk stands; or by a packet
 * that libipt had read at @offset; or, of what the kernel returns to, by the last packet before
 * @offset or the next TIP. What is {} is not known.
 */
struct when_bounds ipt_walk_find_here(struct ipt_walk *ipt_walk, uint64_t ip);
struct when_bounds ipt_walk_find(struct ipt_walk *ipt_walk, uint64_t offset, uint64_t ip);
struct when_bounds ipt_walk_find_tip(struct ipt_walk *ipt_walk, uint64_t offset);

/* Make the PSB+ for where @walk stands: with execution at @ip. Return: its size. */
size_t ipt_walk_make_psb(const struct walk *walk, uint64_t ip,
			 uint8_t ret_bytes[static IPT_WALK_PSB_MAX]);
