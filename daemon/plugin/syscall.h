/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Syscall
 *
 * The system calls that change which memory is executable, which threads run, and how signals are
 * handled. Records are written when the call has returned and before the thread's packets continue.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/plugin/target.h"
#include "daemon/plugin/thread.h"

enum syscall_kind {
	SYSCALL_OTHER,
	SYSCALL_MMAP,
	SYSCALL_MMAP_OLD, /* i386: its arguments are in memory */
	SYSCALL_MPROTECT,
	SYSCALL_MUNMAP,
	SYSCALL_MREMAP,
	SYSCALL_SIGACTION,
	SYSCALL_SIGACTION_OLD, /* i386 */
	SYSCALL_PRCTL,
	SYSCALL_EXECVE,
	SYSCALL_EXECVEAT,
	SYSCALL_EXIT, /* of the thread, or of the process if it has no other thread */
	SYSCALL_EXIT_GROUP,
};

/* Return: which system call of the target @number is. */
enum syscall_kind syscall_kind(const struct target *target, int64_t number);

/* The thread, which has left user code, enters a system call; and returns from it with @result. */
void syscall_enter(struct thread *thread, enum syscall_kind kind, const uint64_t args[static 6]);
void syscall_return(struct thread *thread, enum syscall_kind kind, int64_t result);

/* Return: whether the call executes a program. */
static inline bool syscall_executes(enum syscall_kind kind)
{
	return kind == SYSCALL_EXECVE || kind == SYSCALL_EXECVEAT;
}

/* Return: whether the thread may end in the call. */
static inline bool syscall_ends(enum syscall_kind kind)
{
	return kind == SYSCALL_EXIT || kind == SYSCALL_EXIT_GROUP || syscall_executes(kind);
}
