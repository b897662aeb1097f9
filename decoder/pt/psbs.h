/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * PSBs
 *
 * The PSBs of a span of PT, and the times around them. They are found by reading a few bytes at the
 * places that are asked about, and nothing is decoded. What a PSB+ says of the time is parsed by
 * the walk and tsc.h.
 */

#include <stdint.h>

#include "decoder/pt/walk.h"

struct engine_config;

struct psbs {
	struct walk walk; /* over the span; it stands anywhere */
};

/* Begin on the PT of @pt, which is borrowed. @config says how times are to be read. */
void psbs_init(struct psbs *psbs, const struct fileparts *pt, const struct engine_config *config);
void psbs_deinit(struct psbs *psbs);

/*
 * Return: negative errno if PT could not be read, as of walk_read_error(); else 0. Then what is
 *         found is as if the PT ended there.
 */
int psbs_error(const struct psbs *psbs);

/* Return: the offset of the first PSB at or after @from; the size of the span if there is none. */
uint64_t psbs_find(struct psbs *psbs, uint64_t from);

/* Return: the TSC that the PSB+ at @offset states; 0: none. */
uint64_t psbs_time(struct psbs *psbs, uint64_t offset);

/*
 * Return: how far it is, in the PT of @pt, from the PSB at @offset to behind the TSC of its PSB+;
 *         0: it has none, or not the whole.
 */
uint64_t psbs_timed_size(struct window *pt, uint64_t offset);

/* Return: the last TSC of the span that can be found; 0: none. */
uint64_t psbs_last_time(struct psbs *psbs);

/*
 * Return: the offset behind the first packet or PSB+ that states a TSC later than @time; the size
 *         of the span if none can be found.
 */
uint64_t psbs_find_later(struct psbs *psbs, uint64_t time);
