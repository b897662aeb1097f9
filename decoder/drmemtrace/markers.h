/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memtrace markers
 *
 * What stands between the instructions of a thread's file: timestamps, the numbers of system calls,
 * windows, calls and returns, and the return from a signal's handler; and the branch that waits
 * until it is known where it leads.
 *
 * The functions that return int return 0 or negative errno.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/drmemtrace/thread.h"

/* How old a timestamp may become after an event, at which the kernel may have run for long, in
 * ticks of the stream's clock. */
#define MEMTRACE_PAIR_EVENT 1000u

/* What comes next has the time @t. */
void memtrace_thread_set_now(struct memtrace_thread *thread, uint64_t t);

/* Write the timestamp and the CPU of the next record. */
_must_check_ int memtrace_thread_write_pair(struct memtrace_thread *thread);

/* Return: whether the timestamp has become too old. */
bool memtrace_thread_is_pair_due(const struct memtrace_thread *thread);

/*
 * Return: the time before which the kernel was entered, if the thread has come back from it: the
 *         stream's time may be much older than that, unless it went on meanwhile.
 */
uint64_t memtrace_thread_entered_until(const struct memtrace_thread *thread);

/* Write marker 25 if it is due: the last record is a system call. The thread has gone on at
 * thread->now, or ends. */
_must_check_ int memtrace_thread_write_syscall(struct memtrace_thread *thread);

/* Write what must stand before the next record: the start of the file, or a window that is due. */
_must_check_ int memtrace_thread_make_ready(struct memtrace_thread *thread);

/* Write marker 1 (struct memtrace_frames) if it is due. */
_must_check_ int memtrace_thread_write_xfer(struct memtrace_thread *thread);

/*
 * Write the markers of functions that were entered or left, if the last record is a branch. Should
 * the return address that a marker must have be unknown, no more functions are marked.
 */
_must_check_ int memtrace_thread_write_calls(struct memtrace_thread *thread);

/* The record of @insn was written, a call or a return as a rule. Return: 0 or -ENOMEM. */
_must_check_ int memtrace_thread_note_return(struct memtrace_thread *thread,
					     const struct memtrace_insn *insn);

/* If a branch waits for its outcome, leave it out. */
void memtrace_thread_drop_branch(struct memtrace_thread *thread);

/* Write the branch that waits for its outcome: it went to @target. If it cannot go there, it is
 * left out, and a new window is due. */
_must_check_ int memtrace_thread_write_branch(struct memtrace_thread *thread, uint64_t target);

/* Return: whether the last instruction is a system call whose number has to be written. */
bool memtrace_thread_is_numbered(const struct memtrace_thread *thread);

/* @run was written, but perhaps for a branch at its end. */
void memtrace_thread_set_last(struct memtrace_thread *thread, const struct ptd_run *run);
