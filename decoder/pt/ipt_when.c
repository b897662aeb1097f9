/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/pt/ipt_when.h"

#include "decoder/pt/errata.h"

void ipt_when_init(struct ipt_when *when, const struct engine_config *config)
{
	*when = (struct ipt_when){};
	walk_init(&when->walk, &(struct walk_config){
				   .pt = config->pt,
				   .errata = errata_find(config->cpu_family, config->cpu_model),
				   .mtc_freq = config->mtc_freq,
				   .nom_freq = config->nom_freq,
				   .cpuid_15_eax = config->cpuid_15_eax,
				   .cpuid_15_ebx = config->cpuid_15_ebx,
				   .has_events = config->has_events,
			       });
}

void ipt_when_deinit(struct ipt_when *when)
{
	walk_deinit(&when->walk);
}

static bool is_in_kernel(const struct walk *walk)
{
	return walk->last_ip >> 63;
}

/*
 * Return: the bounds of the stretch that begins at @ip, where the walk stands. The time known there
 * is the walk's: libipt measures cycles in another way, and a switch may lie between the two.
 */
static struct when_bounds find_here(struct ipt_when *when, uint64_t ip)
{
	struct when_bounds bounds = when_find(&when->when, &when->walk, ip);

	if (ip >> 63)
		return bounds;
	if (when->walk.tsc.now > when->t)
		when->t = when->walk.tsc.now;
	return (struct when_bounds){ .from = bounds.from ?: when->t, .to = bounds.to ?: when->t };
}

/* A stretch of code begins at @ip, where the walk stands. */
static void begin(struct ipt_when *when, uint64_t ip)
{
	when->has_begun = true;
	when->ip = ip;
	when->bounds = find_here(when, ip);
}

/* Take one branch or event. Return: what it was. */
static enum walk_next take_next(struct ipt_when *when)
{
	struct walk *walk = &when->walk;
	const bool was_in_kernel = is_in_kernel(walk);
	enum walk_next next = walk_ahead(walk);
	struct walk_event event;
	uint64_t unused;
	bool has_ip;

	switch (next) {
	case WALK_TNT:
		(void)walk_take_tnt(walk, &unused);
		break;
	case WALK_TIP:
		if (!walk_take_tip(walk, &unused) || !was_in_kernel || is_in_kernel(walk))
			break;
		walk->is_timed = false;
		begin(when, walk->last_ip);
		break;
	case WALK_EVENT:
		if (!walk_take_event(walk, &event))
			next = WALK_ERROR;
		else if (event.kind == WALK_ENABLED ||
			 (event.kind == WALK_OVERFLOW && event.has_ip))
			begin(when, event.ip);
		break;
	default:
		break;
	}
	if (next != WALK_ERROR)
		return next;
	when->t = 0;
	return walk_sync(walk, walk->offset + 1, &unused, &has_ip) ? WALK_ERROR : WALK_END;
}

/* Return: the bounds of a stretch of which only is known what comes behind it. */
static struct when_bounds find_later(struct ipt_when *when)
{
	const bool is_timed = when->walk.is_timed;
	uint64_t to;

	when->walk.is_timed = false;
	to = when_find(&when->when, &when->walk, 0).to;
	when->walk.is_timed = is_timed;
	return (struct when_bounds){ .to = to };
}

/* Return: whether the stretch that began last is the one at @ip that libipt has come to. */
static bool is_at(const struct ipt_when *when, uint64_t ip)
{
	return when->has_begun && when->ip == ip;
}

struct when_bounds ipt_when_find(struct ipt_when *when, uint64_t offset, uint64_t ip)
{
	struct walk *walk = &when->walk;

	if (ip >> 63)
		return (struct when_bounds){};
	if (walk->offset < offset)
		when->has_begun = false;
	while (walk->offset < offset)
		if (take_next(when) == WALK_END)
			break;
	/* libipt may have read the end of a short stretch already: packets are off then. */
	while (!walk->enabled && !is_at(when, ip))
		if (take_next(when) == WALK_END)
			break;
	return is_at(when, ip) ? when->bounds : find_later(when);
}

struct when_bounds ipt_when_find_point(struct ipt_when *when, uint64_t offset, uint64_t ip)
{
	struct walk *walk = &when->walk;

	while (walk->offset < offset && take_next(when) != WALK_END)
		;
	if (walk->offset != offset)
		return find_later(when);
	walk->is_timed = walk->is_timed && walk->tsc.fast == 0;
	return find_here(when, ip);
}

struct when_bounds ipt_when_find_tip(struct ipt_when *when, uint64_t offset)
{
	struct walk *walk = &when->walk;

	while (walk_ahead(walk) != WALK_END && walk->offset < offset && take_next(when) != WALK_END)
		;
	/* The TIP may have been used up already. */
	while (is_in_kernel(walk) && walk->enabled) {
		const enum walk_next next = take_next(when);

		if (next == WALK_TIP || next == WALK_END)
			break;
	}
	/* Behind a TIP.PGD nothing follows until a TIP.PGE. */
	return walk->enabled && !is_in_kernel(walk) ? when->bounds : (struct when_bounds){};
}
