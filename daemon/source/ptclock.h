/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * PT clock
 *
 * PT counts ticks of the TSC, the kernel's records count ns of a clock of their own, and people use
 * CLOCK_MONOTONIC and CLOCK_REALTIME. The kernel says how the first two relate. For the others, one
 * sample of all clocks a second is kept, so that a time in an old ring can be stated in any of them
 * although they drift.
 */

#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>

#include "base/base.h"
#include "util/perf/tsc.h"

struct ptclock_sample {
	uint64_t tsc;
	uint64_t monotonic_ns;
	uint64_t realtime_ns;
};

/* Read the conversion of TSC to the records' clock from the control page of an event. Return: 0; or
 * -EOPNOTSUPP if the kernel does not trust the TSC, so that PT has no time. */
_must_check_ int ptclock_read(const struct perf_event_mmap_page *page, struct tsc_conv *ret_conv);

/* Return: all clocks now, read as close together as possible. */
struct ptclock_sample ptclock_sample(void);

/*
 * The samples that were kept, in memory that does not grow: one for each second of the last quarter
 * of an hour or more, and ever fewer of the time before. One thread may add samples while another
 * one copies or writes them.
 */
struct ptclock_log;

_must_check_ int ptclock_log_new(struct ptclock_log **ret_log);

/* Go on with the samples of another process, which may have been killed at any instruction, in its
 * file @fd. Return: 0, and @fd is the log's; -EBADMSG if it has none; or negative errno. */
_must_check_ int ptclock_log_resume(int fd, struct ptclock_log **ret_log);
struct ptclock_log *ptclock_log_free(struct ptclock_log *log);

DEFINE_CLEANUP(struct ptclock_log *, ptclock_log_free);

/* Return: the file that the samples are in, which stays the log's. */
int ptclock_log_fd(const struct ptclock_log *log);

/* Return: 0 and another log with the same samples, which is the caller's; or -ENOMEM. */
_must_check_ int ptclock_log_copy(struct ptclock_log *log, struct ptclock_log **ret_copy);

void ptclock_log_add(struct ptclock_log *log, const struct ptclock_sample *sample);

/* Forget all samples. */
void ptclock_log_clear(struct ptclock_log *log);

/* Write a line "tsc monotonic_ns realtime_ns" for each sample, oldest first, beginning with the
 * last one at or before @since, a TSC. */
void ptclock_log_write(struct ptclock_log *log, uint64_t since, FILE *f);
