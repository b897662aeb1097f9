/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Lanes
 *
 * The lanes of all AUX buffers of a trace, each with what threads decode ahead of it, and what they
 * share. They are merged: the batch that comes next is of the lane whose slice begins first.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/pt/engine.h"
#include "decoder/stream/ahead.h"
#include "decoder/stream/lane.h"

/* AUX buffers, of CPUs or threads. Each lane has a buffer for its runs and an engine. */
#define LANES_MAX 4096

struct lanes_config {
	/* But for the queue, and for the views and the budget of the engines. */
	struct lane_config lane;
	struct ptd_threads *threads; /* borrowed; or NULL */
};

struct lanes {
	struct lanes_config config;
	struct engine_budget budget; /* of all engines */
	struct views *views;         /* for the lanes; */
	struct views *part_views;    /* and for parts of them; NULL: no thread decodes such */
	struct runpool *runs;
	struct ahead_counts counts; /* of all lanes, since lanes_init() */

	struct ahead *items;
	size_t n;            /* lanes that were started */
	struct ahead *given; /* the lane whose batch the caller has; NULL: none */
};

/* Make lanes of config->lane.trace, which has LANES_MAX queues at the most. All that @config points
 * to is borrowed. Return: 0 or -ENOMEM; in both cases lanes_deinit() is to be called. */
_must_check_ int lanes_init(struct lanes *lanes, const struct lanes_config *config);
void lanes_deinit(struct lanes *lanes);

/* Let all lanes begin at their beginning. Return: 0, or negative errno. */
_must_check_ int lanes_start(struct lanes *lanes);

/* End all lanes. They may be started again. */
void lanes_stop(struct lanes *lanes);

/*
 * Find the lane whose batch comes next. The caller's batch before it is not to be used any more.
 * All blocks of the batch have their ids, and symbols.
 *
 * Return: 0 and @ret_lane, NULL if all lanes have ended; or negative errno, and it is the lane that
 *         failed.
 */
_must_check_ int lanes_next(struct lanes *lanes, struct ahead **ret_lane);

/* Return: whether all lanes can begin at any section, and what they count is in order of time. */
bool lanes_can_seek(const struct lanes *lanes);

/* Return: the latest time before @time at which something that is asked for ran; 0: none. */
uint64_t lanes_latest_before(const struct lanes *lanes, uint64_t time);

/* Return: bytes of PT that were decoded or passed over, and @ret_total, those that there are. */
uint64_t lanes_done(const struct lanes *lanes, uint64_t *ret_total);

/* --- where the PT ends ------------------------------------------------------------------------ */

/*
 * Find the last time that the PT states, as the stream has times, without decoding it. The PT is
 * read as @config says, but for its span.
 *
 * Return: 0 and @ret_end, 0 if no time is known; or -errno of reading.
 */
_must_check_ int ptend_find(const struct trace *trace, const struct engine_config *config,
			    uint64_t *ret_end);

/*
 * The rings of a snapshot were read one after the other. Leave out what they have of a later time
 * than the one until which all of them are complete: a thread may have run on another CPU before,
 * whose ring lacks it.
 *
 * Return: 0, or -errno of reading.
 */
_must_check_ int ptend_cut(struct trace *trace, const struct engine_config *config);
