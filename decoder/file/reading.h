/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Reading
 *
 * What all steps share by which an input is read: how much they may put into temporary files, and
 * how far they have come. A NULL reading has no limits, and nobody waits for it.
 */

#include "util/progress.h"
#include "util/spill.h"

struct reading {
	struct spills spills;
	struct progress progress;
};

static inline struct spills *reading_spills(struct reading *reading)
{
	return reading ? &reading->spills : NULL;
}

static inline struct progress *reading_progress(struct reading *reading)
{
	return reading ? &reading->progress : NULL;
}
