/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/loggedcheck.h"

#include <stdio.h>
#include <stdlib.h>

#include "ptd/calls.h"
#include "ptd/decode.h"
#include "tests/lib/callcheck.h"

static void take_calls(struct ptd_calls *calls, struct callcheck *check)
{
	const struct ptd_call_batch *batch;

	while (ptd_calls_next(calls, &batch) == 0)
		if (callcheck_calls(check, batch) < 0)
			abort();
}

static void follow(struct ptd_decoder *d)
{
	struct callcheck check = { .faults = stderr };
	const struct ptd_logged *logged;
	struct ptd_calls *calls;
	int r;

	if (ptd_calls_new(ptd_decoder_info(d), &calls) < 0)
		abort();
	while ((r = ptd_decoder_next_logged(d, &logged)) == 0) {
		for (size_t i = 0; i < logged->n_calls; i++)
			if (logged->calls[i].symbol == PTD_NO_SYMBOL ||
			    logged->calls[i].symbol >= logged->batch.n_symbols)
				abort();
		for (size_t i = 0; i < logged->batch.n_marks; i++)
			if (logged->batch.marks[i].run > logged->n_calls)
				abort();
		check.n_logged = logged->n_calls;
		if (ptd_calls_logged(calls, logged) < 0)
			abort();
		take_calls(calls, &check);
	}
	/* What was not found damaged at first cannot be later. */
	if (r < 0 || ptd_calls_finish(calls) < 0)
		abort();
	take_calls(calls, &check);
	callcheck_end(&check);
	if (check.n_faults > 0)
		abort();
	callcheck_deinit(&check);
	ptd_calls_free(calls);
}

void loggedcheck(const char *input, const char *map)
{
	const struct ptd_options options = { .size = sizeof(options),
					     .input = input,
					     .instr_map = map };
	struct ptd_decoder *d;
	char *message = NULL;

	if (ptd_decoder_new(&options, &d, &message) < 0) {
		if (!message)
			abort();
		free(message);
		return;
	}
	if (ptd_decoder_info(d)->logs_calls)
		follow(d);
	ptd_decoder_free(d);
}
