/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * View
 *
 * The code of one address space as it is mapped at one generation, cut into segments. A segment is
 * the way from an address to the next instruction whose target only packets can tell: the
 * runs on the way, over direct jumps and calls, and the return addresses that calls on the way
 * push. It is made once, from blocks of the cache, and linked to the segments that follow it, so
 * that code that runs again costs neither a look-up nor the decoding of an instruction.
 *
 * When mappings change, the segments that touch the pages concerned are marked as gone, and made
 * anew when they are next reached; all others, and the links between them, stay.
 *
 * Views are kept together in struct views, for all engines. Engines that stand at the same
 * generation of a space share its view; one that stands elsewhere has another.
 *
 * Engines of several threads may share views, too. What one thread makes or links, the others find.
 * So links are read and set by seg_link() and seg_set_link(), a segment is new until
 * seg_set_shown(), and all else in it stays as it is while an engine stands in the view: mappings
 * are applied to views in which none stands.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/image/cache.h"
#include "decoder/image/layout.h"
#include "decoder/x86/insn.h"
#include "ptd/record.h"

/* Longer ways go on in another segment. */
#define SEG_RUNS_MAX 32

/* Of all layouts together. */
#define VIEWS_EXTENTS_MAX (1u << 25)

/* Mappings that are applied once more, because time went back or to make room. */
#define VIEWS_AGAIN_MAX (UINT64_C(1) << 25)

/*
 * The memory of the segments that are kept. If they take more, those of the views that have been
 * without an engine for longest are forgotten; if that does not suffice, all are. So the memory
 * does not grow with the number of processes. One process of gcc's cc1 needs some 40 MiB.
 */
#define VIEWS_SEG_BYTES_MAX (UINT64_C(1) << 27)

/* What a segment ends with. */
enum seg_kind {
	SEG_COND,     /* a conditional branch: to_ip[taken] */
	SEG_RETURN,   /* a near return */
	SEG_INDIRECT, /* a near indirect jump or call */
	SEG_FAR,      /* anything else that packets have to tell of: a system call, iret, … */
	SEG_ON,       /* nothing: it goes on at to_ip[0] */
	SEG_NOWHERE,  /* there is no code at to_ip[0]: see @reason */
	SEG_GONE,     /* it does not hold any more */
};

struct seg;

/* A call on the way. */
struct seg_call {
	uint64_t ret;     /* the address that it pushes */
	struct seg *back; /* a link: NULL, or the segment there: see view_epoch() */
};

struct seg {
	uint8_t kind; /* enum seg_kind */
	uint8_t mode;
	uint8_t n_runs, n_calls;
	uint8_t reason; /* enum ptd_gap_reason */
	bool is_new;    /* see seg_is_new() */
	uint32_t n_insns;
	uint64_t ip;
	uint64_t to_ip[2]; /* not of a return or an indirect branch */
	/* Links; NULL: not linked yet. A return or an indirect branch has two of the segments to
	 * which it led. */
	struct seg *to[2];
	struct ptd_run *runs;
	struct seg_call *calls; /* in the order in which they push */
};

/* Return: the segment to which @link leads; NULL if it is not linked yet. */
static inline struct seg *seg_link(struct seg *const *link)
{
	return __atomic_load_n(link, __ATOMIC_ACQUIRE);
}

static inline void seg_set_link(struct seg **link, struct seg *to)
{
	__atomic_store_n(link, to, __ATOMIC_RELEASE);
}

/* Return: whether blocks of the segment may not have been shown. Any thread may ask. */
static inline bool seg_is_new(const struct seg *seg)
{
	return __atomic_load_n(&seg->is_new, __ATOMIC_RELAXED);
}

/* All blocks of the segment have been shown. */
static inline void seg_set_shown(struct seg *seg)
{
	__atomic_store_n(&seg->is_new, false, __ATOMIC_RELAXED);
}

static inline const struct ptd_insn *run_last(const struct ptd_run *run)
{
	return &run->block->insns[run->first + run->n - 1];
}

/* Return: the address behind @run. */
static inline uint64_t run_next(const struct ptd_run *run)
{
	const struct ptd_insn *last = run_last(run);

	return insn_wrap(run->block->mode, run->base + last->offset + last->size);
}

/* Return: where @run leads if it ends with a direct near branch that is taken. */
static inline uint64_t run_target(const struct ptd_run *run)
{
	const struct ptd_insn *last = run_last(run);

	return insn_target(run->block->mode, run->block->bytes + last->offset, last->size,
			   run->base + (uint64_t)run->block->target);
}

/*
 * Find where @run leads: SEG_ON: to @ret_to[0]; SEG_COND: as to_ip of a segment; anything else:
 * only packets say it.
 */
enum seg_kind run_leads(const struct ptd_run *run, uint64_t ret_to[static 2]);

/* Return: whether @run ends with a near call that pushes an address which returns come back to.
 * @kind and @to are as of run_leads(). */
static inline bool run_pushes(const struct ptd_run *run, enum seg_kind kind,
			      const uint64_t to[static 2])
{
	const enum ptd_insn_class iclass = run_last(run)->iclass;

	/* A direct call of what follows it only finds out where it is. */
	return (iclass == PTD_INSN_CALL && kind == SEG_ON && to[0] != run_next(run)) ||
	       (iclass == PTD_INSN_CALL_INDIRECT && kind == SEG_INDIRECT);
}

/* Return: the address of instruction @i of @seg. */
static inline uint64_t seg_ip(const struct seg *seg, size_t i)
{
	const struct ptd_run *run = seg->runs;

	for (; i >= run->n; run++)
		i -= run->n;
	return ptd_run_ip(run, i);
}

enum {
	VIEWS_FULL = 1, /* there would be too many mappings: nothing of the space is known */
};

struct view;
struct views;

_must_check_ int views_new(struct cache *cache, struct views **ret_views);
struct views *views_free(struct views *views);

/*
 * Let engines of several threads use the views. They may then take three quarters of the memory
 * for segments that views of one thread may take, and half of that for mappings: one thread has its
 * own views beside them, which it rarely uses.
 */
void views_share(struct views *views);

/*
 * Get the view of @space at @generation, but for what is replaced up to the one of @until, or was
 * since that. @view, if not NULL, is given back in exchange.
 *
 * Return: 0; VIEWS_FULL or -ENOMEM, and @ret_view is NULL.
 */
_must_check_ int views_get(struct views *views, const struct space *space, size_t generation,
			   size_t until, struct view *view, struct view **ret_view);
void view_put(struct view *view);

/*
 * Find the segment at @ip in code of @mode. It is valid until the engine calls views_get() again or
 * gives the view back; or longer: see view_epoch().
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int view_find(struct view *view, uint64_t ip, uint8_t mode, struct seg **ret_seg);

/*
 * Return: a number that is another one for each view, and after the view has forgotten its
 *         segments. While the number is the same, pointers to segments of the view stay valid for
 *         those that stand in it.
 */
uint64_t view_epoch(const struct view *view);

/*
 * Find what is mapped at @ip. Its bytes are those from @ret_offset of the object on, up to the
 * address @ret_last.
 *
 * Return: 0, or 1 + the reason (enum ptd_gap_reason) why there are none.
 */
int view_find_code(struct view *view, uint64_t ip, const struct extent **ret_extent,
		   uint64_t *ret_offset, uint64_t *ret_last);

/*
 * Find the straight-line code from @ip on, as far as it is known.
 *
 * Return: 0; 1 + the reason (enum ptd_gap_reason) why there is none; -ENOMEM.
 */
_must_check_ int view_find_run(struct view *view, uint64_t ip, uint8_t mode,
			       struct ptd_run *ret_run);

/* Return: whether bytes of code are known at @ip. */
bool view_has_code(struct view *view, uint64_t ip);

DEFINE_CLEANUP(struct views *, views_free);
