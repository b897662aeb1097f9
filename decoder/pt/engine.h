/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Engine
 *
 * An engine turns one span of PT bytes into runs of blocks. It knows packets and code, but not
 * threads. Wherever another thread may have come, or mappings may have changed, it stops with
 * ENGINE_ASK. The caller then looks up who ran at that time, sets the space, and goes on. Engines
 * are interchangeable, and must agree on each instruction.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/image/cache.h"
#include "decoder/image/layout.h"
#include "ptd/record.h"
#include "util/fileparts.h"

/* A CPU has no more address filters. */
#define ENGINE_FILTERS_MAX 4

/* Room, in runs, that one step of an engine may need. */
#define ENGINE_STEP_RUNS_MAX 2048

/*
 * Instruction budget shared by all engines of a decoder: an initial allowance, plus an amount for
 * each byte of packets. Real code takes less than 1000 a byte; a file that is made for it can have
 * a million, and would be decoded for hours.
 */
#define ENGINE_INSNS_MIN      (UINT64_C(1) << 32)
#define ENGINE_INSNS_PER_BYTE (UINT64_C(1) << 16)

struct engine_budget {
	uint64_t n_insns; /* that are left; ENGINE_INSNS_MIN at the start */
};

enum engine_stop {
	ENGINE_FULL, /* no room for more runs: call again */
	ENGINE_ASK,  /* control may be with another thread from here on: see @t */
	ENGINE_MARK, /* something of kind @mark happened */
	ENGINE_GAP,  /* @n_bytes at @offset gave nothing */
	ENGINE_JOIN, /* behind the PSB+ to join at, which begins at @offset; ENGINE_ASK follows */
	ENGINE_END,  /* the span is over */
};

struct engine_step {
	enum engine_stop stop;
	size_t n_runs; /* filled in before the stop */

	/* Packets at or after the offset to pause at report what begins with run @n_before; if that
	 * is @n_runs, it begins behind this step. */
	bool passed;
	size_t n_before;

	uint64_t t; /* TSC as far as known; 0 before the first TSC packet */

	/* Of ENGINE_ASK: the code up to the next one ran at a time between these, inclusive. */
	uint64_t t_from;
	uint64_t t_to; /* UINT64_MAX: no later packet says a time */
	bool is_user;  /* that code begins below the kernel's half of addresses */

	uint64_t ip;
	enum ptd_mark_kind mark;
	uint64_t value, extra;      /* of the mark */
	enum ptd_gap_reason reason; /* of a gap */
	uint64_t offset;            /* in the span */
	uint64_t n_bytes;           /* of a gap */
};

/*
 * What an engine knows behind a PSB+ that it was to join at (engine_join_at()): two engines of the
 * same span that stopped there and know the same go on alike.
 */
struct engine_joint {
	uint64_t words[64];
};

struct engine_config {
	struct fileparts pt; /* its parts are borrowed */
	uint16_t cpu_family; /* 0: not known, no errata are worked around */
	uint8_t cpu_model;
	uint8_t mtc_freq;
	uint8_t nom_freq;
	uint32_t cpuid_15_eax;
	uint32_t cpuid_15_ebx;
	/* The recording's address filters: PT is of these ranges only, or stops at them. */
	struct engine_filter {
		uint64_t first, last; /* inclusive */
		bool stops;
	} filters[ENGINE_FILTERS_MAX];
	size_t n_filters;
	bool has_events;     /* event trace may be among the packets */
	bool has_threads;    /* t_from and t_to are of interest */
	struct cache *cache; /* borrowed, like what follows */
	struct views *views; /* of the spaces' code */
	struct engine_budget *budget;

	/* Only of an engine that can join: the PSB to begin at, at which it joins, too; or 0. */
	uint64_t from;
};

struct engine;
struct engine_ops;

/* Our own walk; and libipt's instruction decoder, the reference. */
extern const struct engine_ops engine_flow, engine_insn;

/*
 * Take @n_insns from the budget, for which @n_bytes of packets were used up. Return: whether there
 * were as many.
 */
_must_check_ static inline bool engine_budget_take(struct engine_budget *budget, uint64_t n_insns,
						   uint64_t n_bytes)
{
	budget->n_insns += n_bytes * ENGINE_INSNS_PER_BYTE;
	if (n_insns > budget->n_insns)
		return false;
	budget->n_insns -= n_insns;
	return true;
}

/* Return: the engine called @name, or NULL; engine flow if @name is NULL. */
const struct engine_ops *engine_find(const char *name);

/* Return: whether the engine can begin anew at a PSB: see engine_join_at(). */
bool engine_can_join(const struct engine_ops *ops);

/*
 * Start on a span.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int engine_new(const struct engine_ops *ops, const struct engine_config *config,
			    struct engine **ret_engine);
struct engine *engine_free(struct engine *engine);

/*
 * Set the space of the code that follows: @space at @generation; NULL: no code is known. Code that
 * mappings replace between @generation and @until is taken as not known. Generations go backwards
 * only if the input is broken, and not without end.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int engine_set_space(struct engine *engine, const struct space *space,
				  size_t generation, size_t until);

/*
 * Promise that the space set last holds until the TSC reaches @t, unless packets say that another
 * page table is used, or that packets were lost. The engine need not ask before that time. Setting
 * a space takes the promise back.
 */
void engine_set_limit(struct engine *engine, uint64_t t);

/* Another thread runs from here on. */
void engine_change_thread(struct engine *engine);

/*
 * Go on until something stops it. After ENGINE_END, only ENGINE_END follows. @n_runs_max must be at
 * least ENGINE_STEP_RUNS_MAX.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int engine_next(struct engine *engine, struct ptd_run *runs, size_t n_runs_max,
			     struct engine_step *ret_step);

/*
 * Find runs that the last engine_next() filled in and whose blocks had not been shown then
 * (cache.h): the first run of each such block, and maybe more of them.
 *
 * Return: their indices, in order, which are valid until the next engine_next(); and @ret_n.
 */
const uint32_t *engine_new_runs(const struct engine *engine, size_t *ret_n);

/* Return: bytes that were decoded so far, not counting those of gaps. */
uint64_t engine_decoded(const struct engine *engine);

/* Return: where in the span it stands. */
uint64_t engine_offset(const struct engine *engine);

/*
 * Stop once, with ENGINE_ASK, at the first instruction that packets at or after @offset report. If
 * that instruction is lost, the engine does not stop for it.
 */
void engine_pause_at(struct engine *engine, uint64_t offset);

/*
 * Begin anew at the PSB at @offset, if it is reached and makes sense: the engine then forgets all
 * that the PSB+ does not say, and stops with ENGINE_JOIN. So what is decoded from there on is the
 * same however the engine came there. An engine that cannot do that goes on.
 */
void engine_join_at(struct engine *engine, uint64_t offset);

/* Find out what the engine, which stopped with ENGINE_JOIN, knows. */
void engine_get_joint(const struct engine *engine, struct engine_joint *ret_joint);

/* Let the engine, which stopped with ENGINE_JOIN, use what @config shares with others. */
void engine_move(struct engine *engine, const struct engine_config *config);

DEFINE_CLEANUP(struct engine *, engine_free);
