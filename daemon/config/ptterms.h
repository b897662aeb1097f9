/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Ptterms
 *
 * What can be asked of PT's packets, in the terms of perf: "mtc=1,psb_period=3". Each is a field of
 * perf_event_attr.config; where it lies, and which values a CPU takes, daemon/pt/pmu.h knows.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

enum ptterm {
	PTTERM_PT,
	PTTERM_CYC,
	PTTERM_PWR_EVT,
	PTTERM_FUP_ON_PTW,
	PTTERM_MTC,
	PTTERM_TSC,
	PTTERM_NORETCOMP,
	PTTERM_PTW,
	PTTERM_BRANCH,
	PTTERM_MTC_PERIOD,
	PTTERM_CYC_THRESH,
	PTTERM_PSB_PERIOD,
	PTTERM_EVENT,
	PTTERM_NOTNT,
	_PTTERMS,
};

#define PTTERMS_UNSET (-1)

struct ptterms {
	int8_t values[_PTTERMS]; /* PTTERMS_UNSET: what the source takes by default */
};

void ptterms_init(struct ptterms *ret_terms);

/* Return: the name of a term, as in the PMU's format/ directory. */
const char *ptterms_name(enum ptterm term);

/* Return: what @term is set to, or @fallback. */
uint32_t ptterms_get(const struct ptterms *terms, enum ptterm term, uint32_t fallback);

/*
 * Take one term: "name" (as good as "name=1") or "name=number".
 *
 * Return: 0; or -EINVAL, and @reterr_message says what is wrong with it.
 */
_must_check_ int ptterms_set(struct ptterms *terms, const char *text, char *reterr_message,
			     size_t message_size);
