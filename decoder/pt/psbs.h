/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * PSBs
 *
 * The PSBs of a span, and the times around them, found by reading a few bytes at the places that
 * are asked about. Nothing but the packets of time is understood.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/pt/tsc.h"
#include "util/fileparts.h"
#include "util/window.h"

struct psbs {
	struct window window;
};

/* The parts of @pt are borrowed. */
void psbs_init(struct psbs *psbs, const struct fileparts *pt);
void psbs_deinit(struct psbs *psbs);

/* Return: the offset of the first PSB at or after @from; the size of the span if there is none. */
uint64_t psbs_next(struct psbs *psbs, uint64_t from);

/* Return: the TSC that the PSB+ at @offset states; 0: none. */
uint64_t psbs_time(struct psbs *psbs, uint64_t offset);

/* Return: the last TSC of the span that can be found; 0: none. @tsc has the timing parameters. */
uint64_t psbs_last_time(struct psbs *psbs, const struct tsc *tsc);

/* Return: 0; or negative errno of reading, since psbs_init(). */
_must_check_ int psbs_error(const struct psbs *psbs);
