/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What when.h says, for engines over libipt, which has no walk: one of our own goes over the same
 * packets, as far as libipt has come.
 */

#include <stdbool.h>
#include <stdint.h>

#include "decoder/pt/engine.h"
#include "decoder/pt/walk.h"
#include "decoder/pt/when.h"

struct ipt_when {
	struct walk walk;
	struct when when;

	uint64_t t; /* the latest TSC that the walk has known at a stretch, since it began anew */

	/* The stretch that began last. */
	bool has_begun; /* since libipt went on */
	uint64_t ip;
	struct when_bounds bounds;
};

void ipt_when_init(struct ipt_when *when, const struct engine_config *config);
void ipt_when_deinit(struct ipt_when *when);

/* The bounds of the stretch that begins at @ip, by a packet that libipt had read at @offset. */
struct when_bounds ipt_when_find(struct ipt_when *when, uint64_t offset, uint64_t ip);

/*
 * The same of code at @ip, by the packet that ends at @offset, where libipt begins anew: it does
 * not know the time that cycles tell.
 */
struct when_bounds ipt_when_find_point(struct ipt_when *when, uint64_t offset, uint64_t ip);

/* The same of what the kernel returns to, by the last packet before @offset or the next TIP. */
struct when_bounds ipt_when_find_tip(struct ipt_when *when, uint64_t offset);
