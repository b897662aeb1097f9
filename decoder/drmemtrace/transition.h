/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memtrace transition
 *
 * How control came from one instruction of a program to the next: it fell through, it followed a
 * branch, it came out of a system call, or a signal diverted it, which the stream shows only by the
 * address at which the thread went on. If no marker explains a transition, thread->gap is set, so
 * that a new window is written.
 *
 * The functions that return int return 0 or negative errno.
 */

#include <stdint.h>

#include "base/base.h"
#include "decoder/drmemtrace/thread.h"

/* Control came to @ip from the last instruction. */
_must_check_ int memtrace_thread_follow(struct memtrace_thread *thread, uint64_t ip);

/* Control is at @ip of the program. */
_must_check_ int memtrace_thread_arrive_in_program(struct memtrace_thread *thread, uint64_t ip);

/*
 * The thread left for code that is not written, as the kernel's, by its last instruction: there is
 * no hole if it goes on as a thread does behind a system call or an interrupt.
 */
void memtrace_thread_leave_by_insn(struct memtrace_thread *thread);
