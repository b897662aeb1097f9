/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/pt/engine.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/pt/engine_base.h"
#include "decoder/pt/errata.h"
#include "util/psb.h"

/* How much of the PT an engine reads at once that begins in its midst: it may not go far. */
#define FROM_WINDOW ((size_t)1 << 14)

/* The default one is the first. */
static const struct engine_ops *const engines[] = { &engine_flow, &engine_insn };

const struct engine_ops *engine_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(engines); i++)
		if (!name || strcmp(engines[i]->name, name) == 0)
			return engines[i];
	return NULL;
}

bool engine_can_join(const struct engine_ops *ops)
{
	return ops->get_joint;
}

int engine_new(const struct engine_ops *ops, const struct engine_config *config,
	       struct engine **ret_engine)
{
	struct engine *e = calloc(1, ops->size);
	int r;

	if (!e)
		return -ENOMEM;
	*e = (struct engine){
		.ops = ops,
		.config = *config,
		.mode = 64,
		.pause = UINT64_MAX,
		.ended = config->pt.size == 0,
	};
	(void)errata_find(config->cpu_family, config->cpu_model, &e->errata);
	walk_init(&e->walk, &(struct walk_config){
				.pt = config->pt,
				.window = config->from ? FROM_WINDOW : 0,
				.errata = e->errata,
				.mtc_freq = config->mtc_freq,
				.nom_freq = config->nom_freq,
				.cpuid_15_eax = config->cpuid_15_eax,
				.cpuid_15_ebx = config->cpuid_15_ebx,
				.has_events = config->has_events,
			    });
	if (config->from)
		e->walk.join = config->from;
	r = ops->init ? ops->init(e) : 0;
	if (r < 0) {
		(void)engine_free(e);
		return r;
	}
	*ret_engine = e;
	return 0;
}

struct engine *engine_free(struct engine *engine)
{
	if (!engine)
		return NULL;
	view_put(engine->view);
	vec_deinit(&engine->new_runs);
	if (engine->ops->deinit)
		engine->ops->deinit(engine);
	walk_deinit(&engine->walk);
	free(engine);
	return NULL;
}

int engine_set_space(struct engine *e, const struct space *space, size_t generation, size_t until)
{
	int r;

	e->limit = 0;
	if (!space) {
		view_put(e->view);
		e->view = NULL;
		return 0;
	}
	r = views_get(e->config.views, space, generation, until, e->view, &e->view);
	return r < 0 ? r : 0;
}

void engine_change_thread(struct engine *e)
{
	e->interrupted = 0;
}

void engine_set_limit(struct engine *e, uint64_t t)
{
	e->limit = t;
}

/*
 * Events
 */

void engine_pass(struct engine *e, size_t n_before, struct engine_step *ret_step)
{
	engine_pause_at(e, UINT64_MAX);
	ret_step->passed = true;
	ret_step->n_before = n_before;
	engine_stop(e, ENGINE_ASK, 0, ret_step);
}

bool engine_note_run(struct engine *e, const struct ptd_block *block, size_t i)
{
	if (cache_has_shown(block))
		return false;
	if (vec_push(&e->new_runs, (uint32_t)i) < 0)
		e->error = -ENOMEM;
	return true;
}

static bool report_mark(const struct engine *e, enum ptd_mark_kind kind,
			const struct walk_event *event, uint64_t value,
			struct engine_step *ret_step)
{
	ret_step->mark = kind;
	ret_step->value = value;
	ret_step->extra = event->extra;
	/* What event trace says, and the C-state that is entered, have no address of their own. */
	engine_stop(e, ENGINE_MARK, kind == PTD_MARK_CFE || kind == PTD_MARK_PWRE ? 0 : event->ip,
		    ret_step);
	return true;
}

static bool report_tsx(struct engine *e, const struct walk_event *event,
		       struct engine_step *ret_step)
{
	const bool begins = event->value & PACKET_TSX_BEGIN;
	const bool aborts = event->value & PACKET_TSX_ABORT;
	const bool is_new = aborts || begins != e->news.in_transaction;

	e->news.in_transaction = begins;
	return is_new && report_mark(e, PTD_MARK_TSX, event,
				     aborts   ? PTD_TSX_ABORT
				     : begins ? PTD_TSX_BEGIN
					      : PTD_TSX_COMMIT,
				     ret_step);
}

static bool is_other_table(const struct engine *e, uint64_t cr3, uint64_t non_root)
{
	return cr3 != e->news.cr3 || non_root != e->news.non_root;
}

/* Another page table: it may be another process's. */
static bool report_paging(struct engine *e, const struct walk_event *event,
			  struct engine_step *ret_step)
{
	if (!is_other_table(e, event->value, event->extra)) {
		engine_stop(e, ENGINE_ASK, 0, ret_step);
		return true;
	}
	e->news.cr3 = event->value;
	e->news.non_root = event->extra;
	e->ask = true;
	return report_mark(e, PTD_MARK_PAGING, event, event->value, ret_step);
}

static bool report_if_new(struct engine *e, enum ptd_mark_kind kind, uint64_t *known,
			  const struct walk_event *event, struct engine_step *ret_step)
{
	if (*known == event->value)
		return false;
	*known = event->value;
	return report_mark(e, kind, event, event->value, ret_step);
}

bool engine_report(struct engine *e, const struct walk_event *event, struct engine_step *ret_step)
{
	switch (event->kind) {
	case WALK_DISABLED:
		return report_mark(e, PTD_MARK_OFF, event, 0, ret_step);
	case WALK_ASYNC:
	case WALK_ASYNC_DISABLED:
		return report_mark(e, PTD_MARK_ASYNC, event, 0, ret_step);
	case WALK_OVERFLOW:
		/* What was lost may have been a switch. */
		e->ask = true;
		/* No byte is lost but what the CPU did not write. */
		ret_step->reason = PTD_GAP_OVERFLOW;
		engine_stop(e, ENGINE_GAP, event->ip, ret_step);
		return true;
	case WALK_MODE:
		e->mode = (uint8_t)event->value;
		return false;
	case WALK_TSX:
		return report_tsx(e, event, ret_step);
	case WALK_PAGING:
		return report_paging(e, event, ret_step);
	case WALK_VMCS:
		return report_if_new(e, PTD_MARK_VMCS, &e->news.vmcs, event, ret_step);
	case WALK_MARK:
		if (event->mark == PTD_MARK_CBR)
			return report_if_new(e, PTD_MARK_CBR, &e->news.cbr, event, ret_step);
		return report_mark(e, event->mark, event, event->value, ret_step);
	default:
		return false;
	}
}

/*
 * Errors
 */

/* Find a packet before the next PSB that says where execution is. One that leads to where there is
 * no code is of use only if that may be another thread's. */
static bool recover(struct engine *e, uint64_t *ret_offset)
{
	const struct walk_state *state = &e->walk.state;
	struct walk_point point;
	bool asks = false;

	while (walk_recover(&e->walk, &point)) {
		asks = asks || point.asks ||
		       (state->has_cr3 && is_other_table(e, state->cr3, state->non_root));
		if (!asks && !(e->view && view_has_code(e->view, point.ip)))
			continue;
		walk_resume(&e->walk, &point);
		*ret_offset = point.offset;
		if (e->ops->go_on_at(e, &point))
			return true;
	}
	return false;
}

/*
 * Go to the next PSB, or behind one whose PSB+ is broken.
 *
 * Return: where it goes on; the size of all if there is no such place. @ret_why is why what lies
 *         before that place is lost, should there be no other reason.
 */
static uint64_t sync_forward(struct engine *e, uint64_t from, enum ptd_gap_reason *ret_why)
{
	uint64_t offset, recovered;
	bool has_ip;

	*ret_why = PTD_GAP_NO_SYNC;
	for (;; from = offset + PSB_SIZE) {
		while (walk_sync_broken(&e->walk, from, &offset)) {
			*ret_why = PTD_GAP_BAD_PACKET;
			if (recover(e, &recovered))
				return recovered;
			from = offset + PSB_SIZE;
		}
		if (!walk_sync(&e->walk, from, &offset, &has_ip))
			break;
		if (e->ops->sync_at(e, offset, has_ip))
			return offset;
	}
	if (*ret_why == PTD_GAP_NO_SYNC)
		*ret_why = psb_find(&e->walk.window, e->config.from) < e->config.pt.size
			       ? PTD_GAP_CUT
			       : PTD_GAP_EMPTY;
	e->ended = true;
	return e->config.pt.size;
}

/* Go on as soon as it is certain where execution is; what lies between that and @lost_from is a
 * gap. */
static void resync(struct engine *e, enum ptd_gap_reason reason, uint64_t ip, uint64_t lost_from,
		   struct engine_step *ret_step)
{
	const bool was_started = e->started;
	enum ptd_gap_reason why = reason;

	*ret_step = (struct engine_step){ .reason = reason, .offset = lost_from };
	engine_stop(e, ENGINE_GAP, ip, ret_step);
	e->spin_insns = e->circle.n = 0;
	e->bounds = (struct when_bounds){};
	e->ops->forget(e, lost_from);
	if (!e->started || !recover(e, &e->from))
		e->from = sync_forward(e, lost_from, &why);
	e->ask = !e->ended;
	e->started = true;
	/* What was there before may have been taken for a part of something else. */
	if (e->from < lost_from)
		e->from = lost_from;
	e->paid = e->from;
	ret_step->n_bytes = e->from - lost_from;
	if (!was_started)
		ret_step->reason = why;
}

/*
 * Return: whether a return at @ip may be one to a call in code that was not to be had: the CPU
 * compresses a return only if it has written no PSB since the call.
 */
static bool is_call_hidden(struct engine *e, uint64_t ip, uint64_t offset)
{
	struct ptd_run run;
	int r;

	if (offset > e->hidden.psb || !e->view)
		return false;
	r = view_find_run(e->view, ip, e->mode, &run);
	if (r < 0)
		e->error = r;
	return r == 0 && run_last(&run)->iclass == PTD_INSN_RETURN;
}

/* What begins at @offset is lost because an object is not to be had. */
static void note_hidden(struct engine *e, uint64_t offset, enum ptd_gap_reason reason)
{
	if (offset > e->hidden.psb || e->hidden.psb == 0)
		e->hidden.psb = psb_find(&e->walk.window, offset);
	e->hidden.reason = reason;
}

void engine_lose(struct engine *e, enum ptd_gap_reason reason, uint64_t ip,
		 struct engine_step *ret_step)
{
	const uint64_t lost_from = engine_used(e);

	if (reason == PTD_GAP_BAD_FLOW && is_call_hidden(e, ip, lost_from))
		reason = e->hidden.reason;
	if (reason == PTD_GAP_NO_OBJECT || reason == PTD_GAP_WRONG_OBJECT)
		note_hidden(e, lost_from, reason);
	e->decoded += lost_from - e->from;
	resync(e, reason, ip, lost_from, ret_step);
}

void engine_end(struct engine *e, struct engine_step *ret_step)
{
	e->decoded += e->config.pt.size - e->from;
	e->ended = true;
	engine_stop(e, ENGINE_END, 0, ret_step);
}

bool engine_can_pay(struct engine *e, uint64_t n_insns)
{
	const uint64_t used = engine_used(e), n_bytes = used > e->paid ? used - e->paid : 0;

	e->paid += n_bytes;
	return engine_budget_take(e->config.budget, n_insns, n_bytes);
}

/*
 * Steps
 */

/* Between which times what follows ran. */
static void tell_bounds(const struct engine *e, struct engine_step *ret_step)
{
	const bool holds = e->config.has_threads && e->bounds_t == e->t;

	ret_step->t_from = holds && e->bounds.from ? e->bounds.from : e->t;
	ret_step->t_to = holds && e->bounds.to ? e->bounds.to : e->t;
	ret_step->is_user = holds && e->is_user;
}

static void make_step(struct engine *e, struct runlist *out, struct engine_step *ret_step)
{
	if (!e->ended && !e->started) {
		resync(e, PTD_GAP_NO_SYNC, 0, e->config.from, ret_step);
		if (ret_step->n_bytes > 0)
			return;
	}
	if (e->ended) {
		engine_stop(e, ENGINE_END, 0, ret_step);
	} else if (e->ask) {
		e->ask = false;
		engine_stop(e, ENGINE_ASK, 0, ret_step);
	} else {
		e->ops->go(e, out, ret_step);
	}
	/* At a joint, nothing behind it has been looked at. */
	if (e->ops->look_ahead && !e->ended && ret_step->stop != ENGINE_JOIN)
		e->ops->look_ahead(e);
	/* The caller may ask for the offset: it is behind the event that comes next. */
	if (ret_step->stop == ENGINE_GAP && ret_step->reason == PTD_GAP_OVERFLOW)
		ret_step->offset = engine_used(e);
	if (ret_step->stop == ENGINE_ASK)
		tell_bounds(e, ret_step);
}

int engine_next(struct engine *e, struct ptd_run *runs, size_t n_runs_max,
		struct engine_step *ret_step)
{
	struct runlist out = { .runs = runs, .n_max = n_runs_max };

	assert(n_runs_max >= ENGINE_STEP_RUNS_MAX);
	*ret_step = (struct engine_step){};
	e->new_runs.n = 0;
	make_step(e, &out, ret_step);
	ret_step->n_runs = out.n;
	/* What seems to be the end of the PT may be where it cannot be read. */
	return e->error ?: walk_read_error(&e->walk);
}

const uint32_t *engine_new_runs(const struct engine *e, size_t *ret_n)
{
	*ret_n = e->new_runs.n;
	return e->new_runs.items;
}

uint64_t engine_decoded(const struct engine *e)
{
	return e->decoded + (e->ended || !e->started ? 0 : engine_used(e) - e->from);
}

uint64_t engine_offset(const struct engine *e)
{
	return e->ended ? e->config.pt.size : e->started ? engine_used(e) : 0;
}

void engine_pause_at(struct engine *e, uint64_t offset)
{
	e->pause = offset;
	e->passed = false;
	e->walk.quick_max = offset;
	if (e->walk.quick > offset)
		e->walk.quick = offset;
}

void engine_join_at(struct engine *e, uint64_t offset)
{
	if (engine_can_join(e->ops))
		e->walk.join = offset;
}

void engine_get_joint(const struct engine *e, struct engine_joint *ret_joint)
{
	e->ops->get_joint(e, ret_joint);
}

void engine_move(struct engine *e, const struct engine_config *config)
{
	assert(!e->view);
	e->config.views = config->views;
	e->config.budget = config->budget;
}
