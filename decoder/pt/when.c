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
	STRETCH_OWN,     /* the time known where it begins is its own */
	STRETCH_COUNTED, /* that is, if the cycles up to there were counted */
	STRETCH_TOLD,    /* a packet in it told when->told */
	/* It is of the kernel's code, in which threads switch: any time is its own. */
	STRETCH_KERNEL,
};

struct when {
	struct ipt_walk near;
	struct ticks ticks; /* there */
	enum stretch stretch;
	/* The packet that is asked for, if it is asked for, begins or ends there or behind it. */
	uint64_t began;
	uint64_t told;
	bool in_psb;
	bool is_psb_told; /* that PSB+ told of time */
	/* OPEN, or OWN or COUNTED: what was told of time belongs to the packet that follows. */
	enum stretch own;
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
	when->own = STRETCH_OPEN;
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

/* A stretch begins at the address of the packet that was read; what is known of it if it is the
 * user's. */
static void begin(struct when *when, enum stretch user)
{
	when->began = when->near.offset;
	when->stretch = ipt_is_kernel(when->near.ip) ? STRETCH_KERNEL : user;
	when->is_overflow = false;
}

/*
 * Control goes to the address of a TIP: from the kernel to the user's code, or back. The time that
 * a packet before it told is not known to the decoder when it gets there.
 *
 * Return: whether a stretch ends there.
 */
static bool take_tip(struct when *when)
{
	if (!when->near.has_ip || when->stretch == STRETCH_NONE ||
	    ipt_is_kernel(when->near.ip) == (when->stretch == STRETCH_KERNEL))
		return false;
	begin(when, STRETCH_OPEN);
	when->began = when->near.end;
	return true;
}

/* A packet of time, or one of state that may stand between it and the TIP.PGE that it belongs
 * to. */
static void take_time(struct when *when, const struct pt_packet *packet)
{
	const bool is_told = ticks_take(&when->ticks, packet);

	if (packet->type == ppt_tsc && !when->in_psb)
		when->own = STRETCH_OWN;
	/* Cycles alone say less and less of time. */
	if (packet->type == ppt_cyc && !when->in_psb && when->own != STRETCH_OWN)
		when->own = when->ticks.has_crystal ? STRETCH_COUNTED : STRETCH_OPEN;
	when->is_psb_told = when->is_psb_told || packet->type == ppt_tsc;
	if (packet->type == ppt_mtc)
		when->own = STRETCH_OPEN;
	if (is_told && when->stretch == STRETCH_OPEN) {
		when->stretch = STRETCH_TOLD;
		when->told = ticks_now(&when->ticks);
	}
}

/* Take the packet that the near walk read. Return: whether a stretch ends there. */
static bool take(struct when *when, const struct pt_packet *packet)
{
	const enum stretch own = when->own;

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
		when->own = STRETCH_OPEN;
	}

	switch (packet->type) {
	case ppt_psb:
	case ppt_psbend:
		when->in_psb = packet->type == ppt_psb;
		when->is_psb_told = false;
		return false;
	case ppt_tip_pge:
		begin(when, own);
		return false;
	case ppt_tip:
		return take_tip(when);
	case ppt_fup:
		/* A PSB+ says the time of what goes on there. */
		if (when->is_overflow || (when->in_psb && when->stretch == STRETCH_NONE))
			begin(when, when->in_psb && when->is_psb_told ? STRETCH_OWN : STRETCH_OPEN);
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

/* Read a packet and take it. Return: whether there was one. */
static bool advance(struct when *when, struct pt_packet *packet, bool *ret_ends)
{
	if (!ipt_walk_next(&when->near, packet))
		return false;
	if (when->near.was_lost)
		when->stretch = STRETCH_NONE;
	*ret_ends = take(when, packet) || when->near.was_lost;
	return true;
}

struct when_bounds when_find(struct when *when, uint64_t offset, bool counts)
{
	const struct ipt_walk *near = &when->near;
	struct pt_packet packet;
	bool ends = false;

	while (!ends && (near->end < offset || when->stretch < STRETCH_OWN) &&
	       advance(when, &packet, &ends))
		ends = ends && near->offset >= offset;
	/* Where it is known to be too far ahead, it found nothing that was told of the stretch. */
	if (!ends && near->end >= offset && when->began <= offset) {
		if (when->stretch == STRETCH_OWN || when->stretch == STRETCH_KERNEL ||
		    (when->stretch == STRETCH_COUNTED && counts))
			return (struct when_bounds){};
		if (when->stretch == STRETCH_TOLD)
			return (struct when_bounds){ when->told, when->told };
	}
	return (struct when_bounds){ .to = later(when, near->end > offset ? near->end : offset) };
}

struct when_bounds when_find_tip(struct when *when, uint64_t offset)
{
	const struct ipt_walk *near = &when->near;
	struct pt_packet packet;
	bool ends;

	while (near->end < offset && advance(when, &packet, &ends))
		;
	if (near->end > offset)
		return (struct when_bounds){ .to = later(when, offset) };
	/* It may have been used up already. */
	while (when->stretch == STRETCH_KERNEL && advance(when, &packet, &ends))
		if (packet.type == ppt_tip)
			break;
	/* If it was none, but a TIP.PGD, nothing follows until a TIP.PGE. */
	return when->stretch == STRETCH_NONE ? (struct when_bounds){}
					     : when_find(when, near->end, false);
}
