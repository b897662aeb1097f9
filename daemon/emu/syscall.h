/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Syscall
 *
 * The system calls that change what is executable, who runs, and what signals do. Records are
 * written when the call has returned, which is before the thread's packets go on again.
 */

#include <stdint.h>

#include "daemon/emu/thread.h"

/* The thread, which has left user code, calls @number; then it returns with @result. */
void syscall_enter(struct thread *thread, int64_t number, const uint64_t args[static 6]);
void syscall_return(struct thread *thread, int64_t number, int64_t result);

/* Return: whether the thread may end in this call; whether it executes a program. */
bool syscall_ends(int64_t number);
bool syscall_executes(int64_t number);
