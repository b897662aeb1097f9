/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/pt/when.h"

#include <errno.h>
#include <stdlib.h>

#include "decoder/pt/ipt_walk.h"
#include "decoder/pt/ticks.h"

/* What is known of the stretch that the near walk is in. */
enum stretch {
	STRETCH_NONE, /* it is in none, or was lost */
	STRETCH_OPEN,
	STRETCH_OWN,  /* the time known where it begins is its own */
	STRETCH_TOLD, /* a packet in it told when->told */
};

struct when {
	struct ipt_walk near;
	struct ticks ticks; /* there */
	enum stretch stretch;
	uint64_t told;
	bool in_psb;
	bool is_own;      /* what was told of time belongs to the packet that follows */
	bool is_overflow; /* the FUP that follows begins a stretch */

	struct ipt_walk far; /* at the time that is told next */
	struct ticks far_ticks;
	bool has_later;
};

int when_new(const struct pt_config *config, struct when **ret_when)
{
	_cleanup_(when_freep) struct when *when = calloc(1, sizeof(*when));

	if (!when || ipt_walk_init(&when->near, config) < 0 ||
	    ipt_walk_init(&when->far, config) < 0)
		return -ENOMEM;
	ticks_init(&when->ticks, config);
	ticks_init(&when->far_ticks, config);
	*ret_when = TAKE(when);
	return 0;
}

struct when *when_free(struct when *when)
{
	if (!when)
		return NULL;
	ipt_walk_deinit(&when->near);
	ipt_walk_deinit(&when->far);
	free(when);
	return NULL;
}

static void begin(struct when *when, bool is_own)
{
	when->stretch = is_own ? STRETCH_OWN : STRETCH_OPEN;
	when->is_overflow = false;
}

/* A packet of time, or one of state that may stand between it and the TIP.PGE that it belongs to. */
static void take_time(struct when *when, const struct pt_packet *packet)
{
	const bool is_told = ticks_take(&when->ticks, packet);

	if (packet->type == ppt_tsc || packet->type == ppt_cyc)
		when->is_own = !when->in_psb;
	if (packet->type == ppt_mtc)
		when->is_own = false;
	if (is_told && when->stretch == STRETCH_OPEN) {
		when->stretch = STRETCH_TOLD;
		when->told = ticks_now(&when->ticks);
	}
}

/* Take the packet that the near walk read. Return: whether a stretch ends there. */
static bool take(struct when *when, const struct pt_packet *packet)
{
	const bool was_own = when->is_own;

	switch (packet->type) {
	case ppt_pad:
	case ppt_mode:
	case ppt_pip:
	case ppt_cyc:
	case ppt_tsc:
	case ppt_tma:
	case ppt_mtc:
		take_time(when, packet);
		return false;
	default:
		when->is_own = false;
	}

	switch (packet->type) {
	case ppt_psb:
	case ppt_psbend:
		when->in_psb = packet->type == ppt_psb;
		return false;
	case ppt_tip_pge:
		begin(when, was_own);
		return false;
	case ppt_fup:
		/* A PSB+ says the time of what goes on there. */
		if (when->is_overflow || (when->in_psb && when->stretch == STRETCH_NONE))
			begin(when, when->in_psb);
		return false;
	case ppt_ovf:
		when->in_psb = false;
		when->is_overflow = true;
		when->stretch = STRETCH_NONE;
		return true;
	case ppt_tip_pgd:
		when->stretch = STRETCH_NONE;
		return true;
	default:
		return false;
	}
}

/* Return: the first time told behind @offset. */
static uint64_t later(struct when *when, uint64_t offset)
{
	struct pt_packet packet;

	if (when->has_later && when->far.offset >= offset)
		return ticks_now(&when->far_ticks);
	when->has_later = false;
	while (ipt_walk_next(&when->far, &packet)) {
		if (!ticks_take(&when->far_ticks, &packet) || when->far.offset < offset)
			continue;
		when->has_later = true;
		return ticks_now(&when->far_ticks);
	}
	return UINT64_MAX;
}

struct when_bounds when_find(struct when *when, uint64_t offset)
{
	struct ipt_walk *near = &when->near;
	struct pt_packet packet;
	bool ends = false;

	while (!ends && (near->end < offset || when->stretch < STRETCH_OWN) &&
	       ipt_walk_next(near, &packet)) {
		if (near->was_lost)
			when->stretch = STRETCH_NONE;
		ends = (take(when, &packet) || near->was_lost) && near->offset >= offset;
	}
	if (near->end >= offset && when->stretch == STRETCH_OWN)
		return (struct when_bounds){};
	if (near->end >= offset && when->stretch == STRETCH_TOLD)
		return (struct when_bounds){ when->told, when->told };
	return (struct when_bounds){ .to = later(when, near->end > offset ? near->end : offset) };
}
