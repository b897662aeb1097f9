/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/pt/ipt.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/pt/errata.h"

#define REWOUND_MAX (UINT64_C(1) << 18) /* mappings that are applied anew because time went back */

/* For errata about what ends a stretch of filtered code. */
static void set_filters(struct pt_config *c, const struct engine_filter *filters, size_t n)
{
	struct pt_conf_addr_filter *f = &c->addr_filter;
	uint64_t *const ranges[ENGINE_FILTERS_MAX][2] = {
		{ &f->addr0_a, &f->addr0_b },
		{ &f->addr1_a, &f->addr1_b },
		{ &f->addr2_a, &f->addr2_b },
		{ &f->addr3_a, &f->addr3_b },
	};

	for (size_t i = 0; i < n; i++) {
		*ranges[i][0] = filters[i].first;
		*ranges[i][1] = filters[i].last;
		/* As in RTIT_CTL: four bits for each. */
		f->config.addr_cfg |= (filters[i].stops ? UINT64_C(2) : 1) << (4 * i);
	}
}

/* Our table, and not libipt's, which does not have newer CPUs. */
static struct pt_errata errata_of(const struct engine_config *config)
{
	const uint32_t errata = errata_find(config->cpu_family, config->cpu_model);

	return (struct pt_errata){
		.bdm70 = !!(errata & ERRATUM_BDM70),
		.bdm64 = !!(errata & ERRATUM_BDM64),
		.skd007 = !!(errata & ERRATUM_SKD007),
		.skd022 = !!(errata & ERRATUM_SKD022),
		.skd010 = !!(errata & ERRATUM_SKD010),
		.skl014 = !!(errata & ERRATUM_SKL014),
		.apl12 = !!(errata & ERRATUM_APL12),
		.apl11 = !!(errata & ERRATUM_APL11),
		.skl168 = !!(errata & ERRATUM_SKL168),
		.skz84 = !!(errata & ERRATUM_SKZ84),
	};
}

static void set_cpu(struct pt_config *c, const struct engine_config *config)
{
	if (config->cpu_family == 0)
		return;
	c->cpu = (struct pt_cpu){ .vendor = pcv_intel,
				  .family = config->cpu_family,
				  .model = config->cpu_model,
				  .stepping = config->cpu_stepping };
	c->errata = errata_of(config);
}

bool ipt_has_skl014(const struct engine_config *config)
{
	return config->n_filters > 0 && errata_of(config).skl014;
}

int ipt_engine_new(const struct engine_ops *engine_ops, const struct ipt_ops *ops,
		   const struct pt_conf_flags *flags, const struct engine_config *config,
		   struct engine **ret_engine)
{
	_cleanup_(engine_freep) struct engine *guard = NULL;
	struct ipt_engine *e = calloc(1, sizeof(*e));
	struct pt_config *c;

	if (!e)
		return -ENOMEM;
	*e = (struct ipt_engine){
		.engine = { .ops = engine_ops },
		.ops = ops,
		.config = *config,
		.mode = 64,
		.pause = UINT64_MAX,
	};
	guard = &e->engine;
	c = &e->pt_config;

	e->empty = pt_image_alloc(NULL);
	if (!e->empty)
		return -ENOMEM;

	pt_config_init(c);
	c->begin = ipt_bytes(config);
	c->end = c->begin + config->pt.size;
	c->flags = *flags;
	c->decode.callback = ipt_newer_packet;
	c->decode.context = &e->newer;
	c->mtc_freq = config->mtc_freq;
	c->nom_freq = config->nom_freq;
	c->cpuid_0x15_eax = config->cpuid_15_eax;
	c->cpuid_0x15_ebx = config->cpuid_15_ebx;
	set_filters(c, config->filters, config->n_filters);
	set_cpu(c, config);

	if (config->has_threads && config->pt.size > 0 && when_new(c, &e->when) < 0)
		return -ENOMEM;
	if (config->pt.size == 0) {
		e->ended = true;
	} else {
		e->decoder = ops->alloc(c);
		if (!e->decoder)
			return -ENOMEM;
		if (ops->set_image(e->decoder, e->empty) < 0)
			return -EINVAL;
	}

	*ret_engine = TAKE(guard);
	return 0;
}

struct engine *ipt_engine_free(struct engine *engine)
{
	struct ipt_engine *e = (struct ipt_engine *)engine;

	if (e->decoder)
		e->ops->free(e->decoder);
	for (size_t i = 0; i < e->images.n; i++)
		ipt_image_free(e->images.items[i]);
	vec_deinit(&e->images);
	map_deinit(&e->image_of);
	(void)scan_free(e->scan);
	(void)when_free(e->when);
	ipt_iflag_deinit(&e->iflag);
	pt_image_free(e->empty);
	free(e);
	return NULL;
}

static int image_of(struct ipt_engine *e, const struct space *space, struct ipt_image **ret_image)
{
	const uint64_t *i = map_get(&e->image_of, (uintptr_t)space);
	int r;

	if (i) {
		*ret_image = e->images.items[*i];
		return 0;
	}
	r = vec_reserve(&e->images, 1);
	if (r == 0)
		r = map_put(&e->image_of, (uintptr_t)space, e->images.n);
	if (r == 0)
		r = ipt_image_new(e->config.code, space, ret_image);
	if (r == 0)
		e->images.items[e->images.n++] = *ret_image;
	return r;
}

/*
 * Time went back: only a broken packet can have said that it was later. Mappings are applied once
 * more then; if that was asked too often, nothing is there.
 */
static int advance(struct ipt_engine *e, struct ipt_image *image, size_t generation, size_t until)
{
	if (generation < image->layout.generation) {
		if (e->n_rewound + generation > REWOUND_MAX)
			return IPT_IMAGE_FULL;
		e->n_rewound += generation + 1;
		ipt_image_rewind(image);
	}
	return ipt_image_advance(image, generation, until);
}

int ipt_engine_set_space(struct engine *engine, const struct space *space, size_t generation,
			 size_t until)
{
	struct ipt_engine *e = (struct ipt_engine *)engine;
	struct ipt_image *image = NULL;
	int r;

	if (!e->decoder)
		return 0;
	if (e->image)
		e->image->in_use = false;
	if (space) {
		r = image_of(e, space, &image);
		if (r < 0)
			return r;
		image->in_use = true;
		r = advance(e, image, generation, until);
		if (r < 0)
			return r;
		image->in_use = r == 0;
		image = r == 0 ? image : NULL;
	}
	if (image == e->image)
		return 0;

	e->image = image;
	if (image)
		image->mode = e->mode;
	return e->ops->set_image(e->decoder, image ? image->image : e->empty) < 0 ? -EINVAL : 0;
}

uint8_t ipt_mode_bits(enum pt_exec_mode mode)
{
	switch (mode) {
	case ptem_16bit:
		return 16;
	case ptem_32bit:
		return 32;
	default:
		return 64;
	}
}

/* Why there is no code at the address where libipt stopped. */
static enum ptd_gap_reason why_no_code(struct ipt_engine *e)
{
	const struct extent *extent = e->image ? layout_find(&e->image->layout, e->ip) : NULL;

	if (extent && extent->object->state == OBJECT_MISSING)
		return PTD_GAP_NO_OBJECT;
	if (extent && extent->object->state == OBJECT_WRONG_ID)
		return PTD_GAP_WRONG_OBJECT;
	return PTD_GAP_NO_CODE;
}

/* Why libipt could not go on. */
static enum ptd_gap_reason reason_of(struct ipt_engine *e, int status)
{
	switch (-status) {
	case pte_nomap:
		/* Without an address it means that packets do not say where execution is. */
		return e->ip ? why_no_code(e) : PTD_GAP_BAD_FLOW;
	case pte_overflow:
		return PTD_GAP_OVERFLOW;
	case pte_bad_opc:
	case pte_bad_packet:
	case pte_bad_context:
	/* It has room for some events of one place; more are there only if packets are broken. */
	case pte_nomem:
		return PTD_GAP_BAD_PACKET;
	case pte_eos:
		return PTD_GAP_CUT;
	default:
		return PTD_GAP_BAD_FLOW;
	}
}

void ipt_begin_stretch(struct ipt_engine *e, uint64_t offset, uint64_t ip, bool counts)
{
	if (!e->when)
		return;
	e->bounds = when_find(e->when, offset, counts);
	e->bounds_t = e->t;
	e->is_user = !ipt_is_kernel(ip);
}

static void stop(const struct ipt_engine *e, enum engine_stop why, uint64_t ip,
		 struct engine_step *ret_step)
{
	ret_step->stop = why;
	ret_step->t = e->t;
	ret_step->ip = ip;
}

/*
 * Go to the next PSB. A PSB+ that is itself broken is passed over.
 *
 * Return: its offset; the size of the span if there is none.
 */
static uint64_t sync_forward(struct ipt_engine *e)
{
	uint64_t offset, tried = 0;

	for (;;) {
		e->status = e->ops->sync_forward(e->decoder);
		if (e->status == -pte_eos || e->ops->get_sync_offset(e->decoder, &offset) < 0)
			break;
		if (e->status >= 0) {
			e->ask = true;
			(void)e->ops->get_time(e->decoder, &e->t);
			return offset;
		}
		if (offset <= tried && tried)
			break;
		tried = offset;
	}
	e->ended = true;
	return e->config.pt.size;
}

/* Is there code at @ip, as far as is known before the caller was asked? */
static bool has_code(struct ipt_engine *e, uint64_t ip)
{
	const struct extent *extent = e->image ? layout_find(&e->image->layout, ip) : NULL;

	return extent && extent->object->state == OBJECT_OK;
}

/*
 * Go on behind @point: the bytes before it have been used up, so a PSB+ that says what is known
 * there takes their place. Return: whether that could be done.
 */
static bool sync_at(struct ipt_engine *e, const struct scan_point *point)
{
	uint8_t psb[SCAN_PSB_MAX];
	const size_t size = scan_make_psb(e->scan, point->ip, psb);
	uint64_t t = 0;

	if (size == 0 || size > point->offset)
		return false;
	ipt_begin_stretch(e, point->offset, point->ip, false);
	memcpy(ipt_bytes(&e->config) + point->offset - size, psb, size);
	e->status = e->ops->sync_set(e->decoder, point->offset - size);
	if (e->status < 0)
		return false;
	if (e->ops->get_time(e->decoder, &t) == 0 && t > e->t)
		e->t = t;
	e->bounds_t = e->t;
	e->ask = true;
	return true;
}

/*
 * Find a packet behind @lost_from, but before the next PSB, that says where execution is. One that
 * leads to where there is no code is of use only if that may be another thread's.
 *
 * Return: whether decoding goes on at @ret_offset.
 */
static bool recover(struct ipt_engine *e, uint64_t lost_from, uint64_t *ret_offset)
{
	struct scan_point point;
	bool asks = false;

	if (!e->scan && scan_new(&e->pt_config, &e->scan) < 0)
		return false;
	while (scan_find(e->scan, lost_from, &point) == 0) {
		lost_from = point.offset;
		/* What told of another page table may have been read already, but not have come to
		 * effect. */
		asks = asks || point.asks ||
		       (point.has_paging && (point.cr3 != e->cr3 || point.non_root != e->non_root));
		if ((asks || has_code(e, point.ip)) && sync_at(e, &point)) {
			*ret_offset = point.offset;
			return true;
		}
	}
	return false;
}

/* Go on as soon as it is certain where execution is; what lies between that and @lost_from is a
 * gap. */
static void resync(struct ipt_engine *e, enum ptd_gap_reason reason, uint64_t lost_from,
		   struct engine_step *ret_step)
{
	*ret_step = (struct engine_step){
		.stop = ENGINE_GAP,
		.n_runs = ret_step->n_runs,
		.t = e->t,
		.ip = e->ip,
		.reason = reason,
		.offset = lost_from,
	};
	e->flow.way = IPT_FLOW_ANYWHERE;
	e->spin_insns = e->n_direct = 0;
	e->newer.n = e->newer.n_standing = 0;
	e->newer.at = false;
	e->bounds = (struct when_bounds){};
	e->has_event = false;
	if (!e->started || !recover(e, lost_from, &e->from))
		e->from = sync_forward(e);
	e->started = true;
	/* libipt may have read the start of a PSB as something else: those bytes are accounted
	 * for. */
	if (e->from < lost_from)
		e->from = lost_from;
	e->ip = 0;
	ret_step->n_bytes = e->from - lost_from;
}

uint64_t ipt_offset(const struct ipt_engine *e)
{
	uint64_t offset;

	if (e->ops->get_offset(e->decoder, &offset) < 0 || offset < e->from)
		return e->from;
	return offset;
}

uint64_t ipt_engine_decoded(const struct engine *engine)
{
	const struct ipt_engine *e = (const struct ipt_engine *)engine;

	return e->decoded + (e->ended || !e->started ? 0 : ipt_offset(e) - e->from);
}

uint64_t ipt_engine_offset(const struct engine *engine)
{
	const struct ipt_engine *e = (const struct ipt_engine *)engine;

	return e->ended ? e->config.pt.size : e->started ? ipt_offset(e) : 0;
}

void ipt_engine_pause_at(struct engine *engine, uint64_t offset)
{
	struct ipt_engine *e = (struct ipt_engine *)engine;

	e->pause = offset;
	e->passed = false;
}

/* Return: whether code has been running for too long without using up packets. */
static bool spins(struct ipt_engine *e, uint64_t n_taken)
{
	const uint64_t offset = ipt_offset(e);
	const uint64_t n_bytes = offset > e->paid ? offset - e->paid : 0;

	if (offset != e->spin_offset) {
		e->spin_offset = offset;
		e->spin_insns = 0;
	}
	e->paid += n_bytes;
	e->spin_insns += n_taken;
	return !ipt_code_take(e->config.code, n_taken, n_bytes) || e->spin_insns > ENGINE_SPIN_MAX;
}

/*
 * Return: whether the code leads back to where it has been since packets were last asked for a way:
 * then it does so for ever. Only each branch whose number is a power of two is kept in mind, so
 * that this takes a few rounds.
 */
static bool circles(struct ipt_engine *e)
{
	switch (e->flow.way) {
	case IPT_FLOW_ON:
		return false;
	case IPT_FLOW_TARGET:
		break;
	default:
		e->n_direct = 0;
		return false;
	}
	if (e->n_direct > 0 && e->flow.target == e->circle_ip)
		return true;
	if ((e->n_direct & (e->n_direct - 1)) == 0)
		e->circle_ip = e->flow.target;
	e->n_direct++;
	return false;
}

static int fail(struct ipt_engine *e, struct engine_step *ret_step)
{
	const int status = e->status;
	const uint64_t lost_from = ipt_offset(e);

	if (e->no_memory || (e->image && e->image->no_memory) ||
	    (status == -pte_nomem && !ipt_code_has_memory(e->config.code)))
		return -ENOMEM;

	e->decoded += lost_from - e->from;
	if (status == -pte_eos && lost_from >= e->config.pt.size) {
		e->ended = true;
		stop(e, ENGINE_END, 0, ret_step);
		return 0;
	}
	resync(e, reason_of(e, status), lost_from, ret_step);
	return 0;
}

/* If what was executed last is a branch, it is what the packets do not fit; not what lies behind
 * it. */
static void blame_branch(struct ipt_engine *e)
{
	if (e->flow.way != IPT_FLOW_ON && reason_of(e, e->status) == PTD_GAP_BAD_FLOW)
		e->ip = e->flow.ip;
}

/*
 * May the kernel have returned to the user's code, by a packet behind @offset? Then the caller must
 * say whose that is, before it is looked at.
 */
static bool leaves_kernel(struct ipt_engine *e, uint64_t offset)
{
	if (!e->when || !ipt_is_kernel(e->flow.ip))
		return false;
	e->has_kernel = true;
	if (!e->flow.is_far_return)
		return false;
	e->bounds = offset < UINT64_MAX ? when_find_tip(e->when, offset)
					: (struct when_bounds){ .to = UINT64_MAX };
	e->bounds_t = e->t;
	e->is_user = true;
	return true;
}

/* See to what libipt must not see, before it reads that. */
static void look_ahead(struct ipt_engine *e)
{
	if (e->config.has_events)
		ipt_iflag_look(&e->iflag, &e->pt_config, e->started ? ipt_offset(e) : 0);
}

/* Instructions were taken, of which packets from @offset on may tell. Return: whether the caller
 * must be asked now. */
static bool look_back(struct ipt_engine *e, struct ipt_output *output, uint64_t offset,
		      struct engine_step *ret_step)
{
	const bool asks = leaves_kernel(e, offset);

	if (e->newer.at)
		ipt_newer_take_instruction(&e->newer);
	if (asks)
		stop(e, ENGINE_ASK, 0, ret_step);
	if (!ipt_pass_branch(e, output, offset, ret_step) && !asks)
		return false;
	ret_step->n_runs = output->n;
	return true;
}

/* Go on until something stops it. */
static int walk(struct ipt_engine *e, struct ipt_output *output, struct engine_step *ret_step)
{
	while (!e->ended) {
		const uint64_t n_before = output->n_insns;
		/* Of interest only then, and it takes time. */
		const uint64_t offset =
		    e->has_kernel || e->pause < UINT64_MAX ? ipt_offset(e) : UINT64_MAX;

		ret_step->n_runs = output->n;
		look_ahead(e);
		if (e->passed) {
			ipt_pass(e, output->n, ret_step);
			return 0;
		}
		if (ipt_newer_is_due(e)) {
			ipt_take_newer(e, ret_step);
			return 0;
		}
		if (e->status < 0)
			return fail(e, ret_step);
		if (e->has_event || (e->status & pts_event_pending)) {
			e->passed = offset > e->pause;
			e->n_direct = 0;
			if (ipt_take_event(e, ret_step))
				return 0;
		} else if (e->status & pts_eos) {
			e->status = -pte_eos;
		} else if (output->n + ENGINE_STEP_RUNS_MAX > output->n_max) {
			stop(e, ENGINE_FULL, 0, ret_step);
			return 0;
		} else {
			e->status = e->ops->step(e, output);
			if (e->status < 0 && output->n_insns > n_before)
				blame_branch(e);
			if (e->status < 0)
				continue;
			ret_step->n_runs = output->n;
			if (output->n_insns > n_before && look_back(e, output, offset, ret_step))
				return 0;
			if (!(output->n_insns > n_before && circles(e)) &&
			    !spins(e, output->n_insns - n_before))
				continue;
			e->decoded += ipt_offset(e) - e->from;
			resync(e, PTD_GAP_NO_PROGRESS, ipt_offset(e), ret_step);
			return 0;
		}
	}

	stop(e, ENGINE_END, 0, ret_step);
	return 0;
}

/* Between which times what follows ran. */
static void tell_bounds(const struct ipt_engine *e, struct engine_step *ret_step)
{
	const bool holds = e->when && e->bounds_t == e->t;

	ret_step->t_from = holds && e->bounds.from ? e->bounds.from : e->t;
	ret_step->t_to = holds && e->bounds.to ? e->bounds.to : e->t;
	ret_step->is_user = holds && e->is_user;
}

int ipt_engine_next(struct engine *engine, struct ptd_run *runs, size_t n_runs_max,
		    struct engine_step *ret_step)
{
	struct ipt_engine *e = (struct ipt_engine *)engine;
	struct ipt_output output = { .runs = runs, .n_max = n_runs_max };
	int r = 0;

	assert(n_runs_max >= ENGINE_STEP_RUNS_MAX);
	*ret_step = (struct engine_step){};

	look_ahead(e);
	if (!e->ended && !e->started) {
		resync(e, PTD_GAP_NO_SYNC, 0, ret_step);
		if (e->ended)
			ret_step->reason = PTD_GAP_EMPTY;
		if (ret_step->n_bytes > 0)
			return 0;
	}
	if (e->ask) {
		e->ask = false;
		stop(e, ENGINE_ASK, 0, ret_step);
	} else {
		r = walk(e, &output, ret_step);
	}
	if (r == 0 && ret_step->stop == ENGINE_ASK)
		tell_bounds(e, ret_step);
	return r;
}
