/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Thread
 *
 * One thread of the recorded program: it takes a CPU when it runs user code, has its blocks judged,
 * and gives the CPU back when it leaves for the kernel, when others wait for one, or when it ends.
 * All functions are called by the thread itself, but for thread_stop().
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/emu/flow.h"
#include "daemon/emu/lease.h"
#include "daemon/emu/process.h"

struct thread {
	/* What every block needs. */
	struct flow flow;
	uint64_t published; /* head of the packets that the reader knows */
	uint32_t frozen;    /* value of emu_pool.freeze that was obeyed */
	uint64_t changes;   /* of code, that the packets' last time is behind */
	uint32_t patience;  /* blocks until the clock is asked whether the quantum is over */

	struct lease lease;
	struct process *process; /* borrowed */
	unsigned vcpu;
	uint32_t n_blind; /* blocks run without a CPU since it last asked for one */
	bool blind;       /* runs untraced: there was no CPU */
	bool wants_tsc;   /* records are due that the packets have to be ordered with */
	uint32_t maps;    /* version of the process's maps that the packets' last time is behind */
	bool hidden;      /* packets are off, since ptd does not have the code */

	bool halted; /* so was the process, in order to execute a program unseen */
	int call;    /* enum syscall_kind and arguments of the system call it is in */
	uint64_t args[6];
	char name[16]; /* that it is about to give itself */

	/* Its own system calls against the end of the process, which another thread brings. */
	pthread_mutex_t leaving;
	struct thread *next;
};

/* Return: the calling thread's state, known to the process and the sideband; NULL without memory,
 * or if the process is not recorded any more. */
struct thread *thread_new(struct process *process, unsigned vcpu);

/* It is that of a forked child now: another process, another number, nobody else. */
void thread_fork_child(struct thread *thread);

/* The thread ends. Return: NULL. */
struct thread *thread_free(struct thread *thread);

/* A block begins; and its last instruction begins, if it has more than one. */
void thread_begin_block(struct thread *thread, const struct block *block);

static inline void thread_begin_last(struct thread *thread)
{
	thread->flow.last_began = true;
}

/* The thread is in the kernel now. With @ending it may not come back. */
void thread_leave(struct thread *thread, bool ending);

/* Stop the packets of a thread that stands still for good. */
void thread_stop(struct thread *thread);
