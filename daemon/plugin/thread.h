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
	bool is_plain;               /* nothing is due at a block but the last one's packets */
	bool left;                   /* QEMU has left the last block before its end, or at it */
	uint32_t news;               /* of the pool, that were heard of */
	uint32_t maps;               /* maps_version() before the last time packet */
	uint64_t changes;            /* handover_changes() before the last time packet */
	struct flow flow;            /* of the packets */
	const struct emu_pool *pool; /* the process's */
	_Atomic uint64_t *aux_head;  /* of the CPU that the thread has */
	struct process *process;     /* borrowed */

	struct flow truth; /* what retired, if there is a log; from callbacks of its own */
	struct lease lease;
	unsigned vcpu;
	uint32_t flushed;      /* value of emu_pool.flush that was obeyed */
	uint32_t patience;     /* blocks until the next check whether the quantum is over */
	uint32_t n_unrecorded; /* blocks run without a CPU since it last asked for one */
	bool unrecorded;       /* runs unrecorded, because there was no CPU */
	bool wants_tsc;        /* a time packet is needed to order packets and coming records */
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

/*
 * Return: whether nothing is due at @block but the packets of the last one. It is one branch, for
 * all: branches here make the CPU forget those of the program.
 */
static inline bool thread_is_plain_at(const struct thread *thread, const struct block *block)
{
	const uint32_t news = atomic_load_explicit(&thread->pool->news, memory_order_relaxed);
	const uint32_t maps = atomic_load_explicit(&block->maps, memory_order_acquire);
	const uint64_t version = atomic_load_explicit(&block->version, memory_order_acquire);
	const uint16_t marks = atomic_load_explicit(&block->marks, memory_order_relaxed);

	return ((news ^ thread->news) | marks | (uint32_t)!thread->is_plain |
		(uint32_t)(maps > thread->maps) | (uint32_t)(version > thread->changes)) == 0;
}

/* A block begins. */
void thread_begin_block(struct thread *thread, const struct block *block);

/* The same if nothing is due, but the last block does not simply lead to @block. */
void thread_begin_far(struct thread *thread, const struct block *block);

/* Write a full packet, before the instruction at @ip. */
void thread_put_full(struct thread *thread, uint64_t ip);

/*
 * A block begins at which nothing is due. A program under QEMU is here most of the time, so that
 * this calls nothing but what comes last.
 */
static inline void thread_begin_plain(struct thread *thread, const struct block *block)
{
	struct encode *e = &thread->lease.encode;

	if (__builtin_expect(!flow_leads(thread->flow.block, block->ip, e), 0)) {
		thread_begin_far(thread, block);
		return;
	}
	thread->flow.block = block;
	if (__builtin_expect(encode_is_full(e), 0))
		thread_put_full(thread, block->ip);
}

/* QEMU leaves the block that runs, by an exception, or to run one of its instructions alone. That
 * can be its last instruction, which may then have retired. */
static inline void thread_leave_block(struct thread *thread)
{
	thread->left = true;
	thread->is_plain = false;
}

/* Of each block with a log: it begins, after thread_begin_block(); and its last instruction does,
 * which is not called if it is the only one. */
void thread_log_block(struct thread *thread, const struct block *block);
static inline void thread_log_last(struct thread *thread)
{
	thread->truth.last_began = true;
}

/* A time packet is needed to order packets and coming records. */
static inline void thread_want_time(struct thread *thread)
{
	thread->wants_tsc = true;
	thread->is_plain = false;
}

/* The thread enters the kernel by system call @number. With @ending it may not return. */
void thread_leave(struct thread *thread, int64_t number, bool ending);

/* Stop the packets of a thread that will not run any more. */
void thread_stop(struct thread *thread);
