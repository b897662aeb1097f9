/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Progress
 *
 * How far work on many bytes has come, for a caller who wants to know, and may stop it. A NULL
 * progress is not reported.
 */

#include <errno.h>
#include <stdint.h>

#include "base/base.h"

#define PROGRESS_STEP (UINT64_C(1) << 20) /* bytes between two reports */

struct progress {
	/* Return: 0 to go on. */
	int (*report)(void *userdata, uint64_t done, uint64_t total);
	void *userdata;
	uint64_t done, total; /* bytes */
	uint64_t next;        /* when it is reported again */
};

/* @n more bytes will have to be done. */
static inline void progress_expect(struct progress *progress, uint64_t n)
{
	if (progress)
		progress->total += n;
}

/* @n more bytes are done. Return: 0, or -ECANCELED if the caller does not want the rest. */
_must_check_ static inline int progress_add(struct progress *progress, uint64_t n)
{
	if (!progress || !progress->report)
		return 0;
	progress->done += n;
	if (progress->done < progress->next)
		return 0;
	progress->next = progress->done + PROGRESS_STEP;
	return progress->report(progress->userdata, progress->done, progress->total) ? -ECANCELED
										     : 0;
}
