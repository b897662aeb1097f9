/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/config/ptterms.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/number.h"

static const struct {
	const char *name;
	int8_t max;
} known[_PTTERMS] = {
	[PTTERM_PT] = { "pt", 1 },
	[PTTERM_CYC] = { "cyc", 1 },
	[PTTERM_PWR_EVT] = { "pwr_evt", 1 },
	[PTTERM_FUP_ON_PTW] = { "fup_on_ptw", 1 },
	[PTTERM_MTC] = { "mtc", 1 },
	[PTTERM_TSC] = { "tsc", 1 },
	[PTTERM_NORETCOMP] = { "noretcomp", 1 },
	[PTTERM_PTW] = { "ptw", 1 },
	[PTTERM_BRANCH] = { "branch", 1 },
	[PTTERM_MTC_PERIOD] = { "mtc_period", 15 },
	[PTTERM_CYC_THRESH] = { "cyc_thresh", 15 },
	[PTTERM_PSB_PERIOD] = { "psb_period", 15 },
	[PTTERM_EVENT] = { "event", 1 },
	[PTTERM_NOTNT] = { "notnt", 1 },
};

void ptterms_init(struct ptterms *ret_terms)
{
	for (size_t i = 0; i < _PTTERMS; i++)
		ret_terms->values[i] = PTTERMS_UNSET;
}

const char *ptterms_name(enum ptterm term)
{
	return known[term].name;
}

uint32_t ptterms_get(const struct ptterms *terms, enum ptterm term, uint32_t fallback)
{
	return terms->values[term] == PTTERMS_UNSET ? fallback : (uint32_t)terms->values[term];
}

/* Parse a decimal number from 0 to @max. No text at all means 1. */
static int parse_value(const char *text, int8_t max, int8_t *ret_value)
{
	uint64_t n = 1;

	if (text && number_parse(text, (uint64_t)max, &n) < 0)
		return -EINVAL;
	*ret_value = (int8_t)n;
	return 0;
}

int ptterms_set(struct ptterms *terms, const char *text, char *reterr_message, size_t message_size)
{
	const size_t length = strcspn(text, "=");

	for (size_t i = 0; i < _PTTERMS; i++) {
		if (strlen(known[i].name) != length || strncmp(known[i].name, text, length) != 0)
			continue;
		if (parse_value(text[length] ? text + length + 1 : NULL, known[i].max,
				&terms->values[i]) == 0)
			return 0;
		(void)snprintf(reterr_message, message_size,
			       "PT term \"%s\": expected a number from 0 to %d", text,
			       known[i].max);
		return -EINVAL;
	}
	(void)snprintf(reterr_message, message_size, "unknown PT term \"%s\"", text);
	return -EINVAL;
}
