/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Thread
 *
 * One thread of the recorded program. It takes a virtual CPU when it runs user code, writes the
 * packets of its blocks, and gives the CPU back when it enters the kernel, when other threads wait
 * for a CPU, or when it ends. The thread itself calls all functions except thread_stop().
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/plugin/flow.h"
#include "daemon/plugin/lease.h"
#include "daemon/plugin/process.h"

struct thread {
	/* What every block needs. */
	struct flow flow;
	uint64_t published; /* the published head of the packets */
	uint32_t flushed;   /* value of emu_pool.flush that was obeyed */
	uint64_t changes;   /* handover_changes() before the last time packet */
	uint32_t patience;  /* blocks until the next check whether the quantum is over */

	struct lease lease;
	struct process *process; /* borrowed */
	unsigned vcpu;
	uint32_t n_unrecorded; /* blocks run without a CPU since it last asked for one */
	bool unrecorded;       /* runs unrecorded, because there was no CPU */
	bool wants_tsc;        /* a time packet is needed to order packets and coming records */
	uint32_t maps;         /* maps_version() before the last time packet */
	bool hidden;           /* packets are off, because ptd does not have the code */
	uint32_t due; /* a condition holds since the thread took a signal: its index plus 1 */
	uint32_t due_signal; /* that signal */

	bool halted; /* the process was halted to execute a program that is not recorded */
	int call;    /* enum syscall_kind of the system call that the thread is in */
	uint64_t args[6];
	char name[16]; /* the name that the thread is about to give itself */

	/* Held during its own system calls, so that another thread cannot end the process then. */
	pthread_mutex_t leaving;
	struct thread *next;
};

/* Make the state of the calling thread, add it to the process, and write its record. Return: the
 * state; NULL without memory, or if the process is not recorded any more. */
struct thread *thread_new(struct process *process, unsigned vcpu);

/* The thread is now the only one of a forked child, with another number. */
void thread_fork_child(struct thread *thread);

/* The thread ends. Return: NULL. */
struct thread *thread_free(struct thread *thread);

/* A block begins. */
void thread_begin_block(struct thread *thread, const struct block *block);

/* The last instruction of the block begins. Not called if the block has only one. */
static inline void thread_begin_last(struct thread *thread)
{
	thread->flow.last_began = true;
}

/* The thread enters the kernel by system call @number. With @ending it may not return. */
void thread_leave(struct thread *thread, int64_t number, bool ending);

/* Stop the packets of a thread that will not run any more. */
void thread_stop(struct thread *thread);
