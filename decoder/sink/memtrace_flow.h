/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memtrace flow
 *
 * How control came from one instruction of a thread to the next: by itself, by a branch, out of a
 * system call, or by a signal, which the stream tells only by where the thread went on. Writes the
 * markers that say so.
 *
 * Every transition that no marker explains sets thread->gap, so that a new window is written.
 */

#include <stdint.h>

#include "base/base.h"

struct memtrace_thread;

/*
 * Control is at @ip now: write what explains how it came there, as of thread->now.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int memtrace_flow_arrive(struct memtrace_thread *thread, uint64_t ip);

/*
 * Write the branch that waits for its outcome, which is @target; or leave it out if it cannot go
 * there.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int memtrace_flow_settle(struct memtrace_thread *thread, uint64_t target);

/*
 * Write marker 1, if it is due.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int memtrace_flow_xfer(struct memtrace_thread *thread);

/* Leave the branch out that waits for its outcome, if there is one. */
void memtrace_flow_drop(struct memtrace_thread *thread);
