/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Sunk
 *
 * What a sink writes, for tests: a sink of any kind whose output is memory.
 */

#include "decoder/sink/sink.h"

struct sunk {
	struct sink *sink;
	struct ptd_info info;
	int fd;     /* of what it writes */
	char *text; /* all of it, after sunk_end() */
};

/* Open a sink of the kind @name with @options, which end with NULL; or with none (NULL). */
void sunk_begin(struct sunk *sunk, const char *name, enum ptd_clock clock,
		const char *const *options);

/* Finish the sink and return what it wrote, which belongs to @sunk. */
const char *sunk_end(struct sunk *sunk, const struct ptd_stats *stats);

void sunk_deinit(struct sunk *sunk);
