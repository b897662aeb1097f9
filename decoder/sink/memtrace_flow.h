/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memtrace flow
 *
 * Finds out how control came from one instruction of a thread to the next, and writes the markers
 * that say so: it fell through, it followed a branch, it came out of a system call, or a signal
 * diverted it. The stream shows a signal only by the address at which the thread went on.
 *
 * If no marker explains a transition, thread->gap is set, so that a new window is written.
 */

#include <stdint.h>

#include "base/base.h"

struct memtrace_thread;

/*
 * Control is at @ip now: write the markers that explain how it came there, with the time
 * thread->now.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int memtrace_flow_arrive(struct memtrace_thread *thread, uint64_t ip);

/*
 * Write the branch that waits for its outcome: it went to @target. If it cannot go there, it is
 * left out, and thread->gap is set.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int memtrace_flow_settle(struct memtrace_thread *thread, uint64_t target);

/*
 * Write marker 1 (struct memtrace_frames) if thread->xfer_due is set.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int memtrace_flow_xfer(struct memtrace_thread *thread);

/* If a branch waits for its outcome, leave it out. */
void memtrace_flow_drop(struct memtrace_thread *thread);
