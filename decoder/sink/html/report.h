/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Report
 *
 * The data of the page, as elements that its scripts read: the document "report" in JSON, and
 * "spans" and "nodes" as packed numbers. model.js reads them.
 *
 * Times are relative to the first one that is shown, "base".
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/sink/answer/profile.h"
#include "decoder/sink/export/stacktree.h"
#include "decoder/sink/html/flametree.h"
#include "decoder/sink/html/trackspans.h"
#include "ptd/calls.h"
#include "ptd/record.h"
#include "ptd/sink.h"

#define REPORT_FUNCTIONS  20000               /* further ones have no row */
#define REPORT_NAMES_SIZE (UINT64_C(6) << 20) /* nor have those whose names need more bytes */
#define REPORT_NAME_MAX   512                 /* bytes of a name; longer ones are cut */

struct report {
	/* The caller sets these, which are finished, and borrowed. */
	const struct ptd_info *info;
	const struct ptd_stats *stats;
	const struct profile *profile;
	const struct stacktree *tree;
	const struct trackspans *trackspans;

	VEC(const struct profile_function *) functions; /* those that were called, by their cost */
	size_t n_listed;                                /* of these */
	uint32_t *numbers; /* in the list, + 1, by their ids; 0: it is not listed */
	struct flametree flame;
	uint64_t base;
};

/* Write the elements. Return: 0 or negative errno. */
_must_check_ int report_put(struct report *report, struct ptd_output *output);
void report_deinit(struct report *report);
