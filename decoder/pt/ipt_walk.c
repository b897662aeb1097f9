/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/pt/ipt_walk.h"

#include <string.h>

void ipt_walk_init(struct ipt_walk *w, const struct walk_config *config)
{
	*w = (struct ipt_walk){};
	walk_init(&w->walk, config);
}

void ipt_walk_deinit(struct ipt_walk *w)
{
	walk_deinit(&w->walk);
}

static bool is_in_kernel(const struct ipt_walk *w)
{
	return w->walk.last_ip >> 63;
}

/*
 * The time known where the stretch begins is the walk's: libipt measures cycles in another way, and
 * a switch may lie between the two.
 */
struct when_bounds ipt_walk_find_here(struct ipt_walk *w, uint64_t ip)
{
	struct when_bounds bounds = when_find(&w->when, &w->walk, ip);

	if (ip >> 63)
		return bounds;
	if (w->walk.tsc.now > w->t)
		w->t = w->walk.tsc.now;
	return (struct when_bounds){ .from = bounds.from ?: w->t, .to = bounds.to ?: w->t };
}

/* A stretch of code begins at @ip, where the walk stands. */
static void begin(struct ipt_walk *w, uint64_t ip)
{
	w->has_begun = true;
	w->ip = ip;
	w->bounds = ipt_walk_find_here(w, ip);
}

/* Take one branch or event. Return: what it was. */
static enum walk_next take_next(struct ipt_walk *w)
{
	const bool was_in_kernel = is_in_kernel(w);
	enum walk_next next = walk_ahead(&w->walk);
	struct walk_event event;
	uint64_t unused;
	bool has_ip;

	switch (next) {
	case WALK_TNT:
		(void)walk_take_tnt(&w->walk, &unused);
		break;
	case WALK_TIP:
		if (!walk_take_tip(&w->walk, &unused) || !was_in_kernel || is_in_kernel(w))
			break;
		w->walk.is_timed = false;
		begin(w, w->walk.last_ip);
		break;
	case WALK_EVENT:
		if (!walk_take_event(&w->walk, &event))
			next = WALK_ERROR;
		else if (event.kind == WALK_ENABLED ||
			 (event.kind == WALK_OVERFLOW && event.has_ip))
			begin(w, event.ip);
		break;
	default:
		break;
	}
	if (next != WALK_ERROR)
		return next;
	w->t = 0;
	return walk_sync(&w->walk, w->walk.offset + 1, &unused, &has_ip) ? WALK_ERROR : WALK_END;
}

static void pass(struct ipt_walk *w, uint64_t offset)
{
	while (w->walk.offset < offset && take_next(w) != WALK_END)
		;
}

void ipt_walk_follow(struct ipt_walk *w, uint64_t offset)
{
	while (walk_ahead(&w->walk) != WALK_END && w->walk.offset < offset &&
	       take_next(w) != WALK_END)
		;
}

/* Return: whether the stretch that began last is the one at @ip that libipt has come to. */
static bool is_at(const struct ipt_walk *w, uint64_t ip)
{
	return w->has_begun && w->ip == ip;
}

struct when_bounds ipt_walk_find(struct ipt_walk *w, uint64_t offset, uint64_t ip)
{
	if (ip >> 63)
		return (struct when_bounds){};
	if (w->walk.offset < offset)
		w->has_begun = false;
	pass(w, offset);
	/* libipt may have read the end of a short stretch already: packets are off then. */
	while (!w->walk.enabled && !is_at(w, ip))
		if (take_next(w) == WALK_END)
			break;
	return is_at(w, ip) ? w->bounds : (struct when_bounds){};
}

struct when_bounds ipt_walk_find_tip(struct ipt_walk *w, uint64_t offset)
{
	enum walk_next next = WALK_TNT;

	ipt_walk_follow(w, offset);
	/* The TIP may have been used up already. */
	while (is_in_kernel(w) && w->walk.enabled && next != WALK_TIP && next != WALK_END)
		next = take_next(w);
	/* Behind a TIP.PGD nothing follows until a TIP.PGE. */
	return w->walk.enabled && !is_in_kernel(w) ? w->bounds : (struct when_bounds){};
}

static uint8_t *put(uint8_t *p, const void *bytes, size_t n)
{
	memcpy(p, bytes, n);
	return p + n;
}

size_t ipt_walk_make_psb(const struct walk *walk, uint64_t ip,
			 uint8_t ret_bytes[static IPT_WALK_PSB_MAX])
{
	const struct walk_state *state = &walk->state;
	const uint64_t pip = state->cr3 >> 5 << 1 | (state->non_root & 1), vmcs = state->vmcs >> 12;
	const uint8_t mode = state->mode == 64 ? 1 : state->mode == 32 ? 2 : 0;
	uint8_t *p = ret_bytes;

	for (size_t i = 0; i < 8; i++)
		p = put(p, "\x02\x82", 2);
	if (walk->tsc.has_tsc)
		p = put(put(p, "\x19", 1), &walk->tsc.base, 7);
	if (walk->tsc.has_tsc && tsc_counts(&walk->tsc))
		p = put(put(put(p, "\x02\x73", 2), &walk->tsc.ctc, 2), "\0\0\0", 3);
	if (state->cbr)
		p = put(put(put(p, "\x02\x03", 2), &state->cbr, 1), "\0", 1);
	if (state->has_cr3)
		p = put(put(p, "\x02\x43", 2), &pip, 6);
	if (state->has_vmcs)
		p = put(put(p, "\x02\xc8", 2), &vmcs, 5);
	if (state->mode)
		p = put(put(p, "\x99", 1), &mode, 1);
	if (state->tsx & PACKET_TSX_BEGIN)
		p = put(p, "\x99\x21", 2);
	p = put(put(p, "\xdd", 1), &ip, 8); /* FUP */
	p = put(p, "\x02\x23", 2);
	return (size_t)(p - ret_bytes);
}
