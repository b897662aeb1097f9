/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Ptclock
 *
 * PT counts TSC ticks, the kernel's records count the ns of a clock of its own, people use two
 * more. The kernel says how the first two belong together; once a second a sample of the TSC and
 * the other clocks is kept, so that a time in an old ring can be told in any of them although they
 * drift.
 */

#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>

#include "base/base.h"
#include "record/tsc.h"

struct ptclock_sample {
	uint64_t tsc;
	uint64_t monotonic_ns;
	uint64_t realtime_ns;
};

/* Read it from the control page of an event. Return: 0; -EOPNOTSUPP if the kernel does not trust
 * the TSC, so that PT has no time. */
_must_check_ int ptclock_read(const struct perf_event_mmap_page *page, struct tsc_conv *ret_conv);

/* All clocks now, as close together as can be had. */
struct ptclock_sample ptclock_sample(void);

/*
 * The samples that were kept: dense ones of the last quarter of an hour or more, and ever fewer of
 * what was before, in memory that does not grow. One thread may add while another one prints.
 */
struct ptclock_log;

_must_check_ int ptclock_log_new(struct ptclock_log **ret_log);
struct ptclock_log *ptclock_log_free(struct ptclock_log *log);

DEFINE_CLEANUP(struct ptclock_log *, ptclock_log_free);

/* Return: 0 and another log with the same samples; -ENOMEM. */
_must_check_ int ptclock_log_copy(struct ptclock_log *log, struct ptclock_log **ret_copy);

void ptclock_log_add(struct ptclock_log *log, const struct ptclock_sample *sample);

/* Forget all. */
void ptclock_log_clear(struct ptclock_log *log);

/* Print "tsc monotonic_ns realtime_ns" of each sample from the last one at or before @since (a TSC)
 * on, oldest first. */
void ptclock_log_print(struct ptclock_log *log, uint64_t since, FILE *f);
