/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * PT terms
 *
 * Kinds of PT packets that can be requested, in the terms of perf: "mtc=1,psb_period=3". Each term
 * is a field of perf_event_attr.config. daemon/pt/pmu.h knows where the fields are, and which
 * values a CPU accepts.
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
	int8_t values[_PTTERMS]; /* PTTERMS_UNSET: the source's default */
};

void ptterms_init(struct ptterms *ret_terms);

/* Return: the name of a term in the PMU's format/ directory. */
const char *ptterms_name(enum ptterm term);

/* Return: the value of @term, or @fallback if it is not set. */
uint32_t ptterms_get(const struct ptterms *terms, enum ptterm term, uint32_t fallback);

/*
 * Set one term from @text: "name", which means "name=1", or "name=number".
 *
 * Return: 0; or -EINVAL, and @reterr_message says what is wrong.
 */
_must_check_ int ptterms_set(struct ptterms *terms, const char *text, char *reterr_message,
			     size_t message_size);
