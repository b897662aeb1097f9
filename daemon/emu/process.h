/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Process
 *
 * All that is known about the recorded process this plugin is in: its blocks, handlers, mappings
 * and threads. It is made when QEMU loads the plugin, starts with the first block that runs, and
 * ends with the program. A forked child does not belong to the recording: there it is over at once.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/emu/attach.h"
#include "daemon/emu/block.h"
#include "daemon/emu/guest.h"
#include "daemon/emu/log.h"
#include "daemon/emu/maps.h"

/* Of threads beyond, the leader is taken for the parent. */
#define PROCESS_PARENTS_MAX 4096

struct thread;

enum process_register {
	PROCESS_RSP,
	PROCESS_RIP,
};

/* Return: a register of the vCPU, which is at the start of a block or does not run. */
typedef uint64_t (*process_register_fn)(unsigned vcpu, enum process_register which);

enum process_state {
	PROCESS_LOADING,
	PROCESS_RUNS,
	PROCESS_OVER,
};

struct process {
	struct attach attach;
	const uintptr_t *guest_base; /* borrowed; known when the program is loaded */
	process_register_fn read_register;
	uint32_t pid;
	uint32_t parent_pid;
	char *log_dir;     /* NULL: no log is wanted */
	_Atomic int state; /* enum process_state */
	struct maps maps;

	/* Protected by the lock. */
	pthread_mutex_t lock;
	struct blocks blocks;
	struct guest_handlers handlers;
	struct log_file *block_log;
	struct thread *threads;                /* owned */
	uint32_t parents[PROCESS_PARENTS_MAX]; /* by vCPU: tid of the thread that made it */
	uint64_t n_surprises;                  /* code in memory that no call made executable */
};

/*
 * Make what is needed before the program is loaded. Takes over @attach; @log_dir may be NULL.
 *
 * Return: 0; or negative errno if the log's directory cannot be used.
 */
_must_check_ int process_init(struct process *process, const struct attach *attach,
			      const char *log_dir, const uintptr_t *guest_base,
			      process_register_fn read_register);

/*
 * The main thread is about to run its first instruction: write the records of a program that
 * starts.
 */
void process_start(struct process *process, struct sideband_who who, uint64_t rsp);

/*
 * The program ends, all threads but the calling one stand still: stop their packets, write the last
 * records, complete the log.
 */
void process_end(struct process *process);

/* This is a forked child: leave everything alone, it is the parent's. */
void process_leave(struct process *process);

/*
 * Return: the block of a translation; NULL without memory, or if the process is over. @self is the
 * calling thread, NULL before the first block runs.
 */
const struct block *process_translate(struct process *process, struct thread *self, uint64_t ip,
				      const struct block_insn *insns, size_t n);

/* The calling thread made a vCPU for a new one. */
void process_note_parent(struct process *process, unsigned vcpu, uint32_t tid);

/* Add and remove a thread. process_add() gives its parent's tid, 0 for the first. */
uint32_t process_add(struct process *process, struct thread *thread);
void process_remove(struct process *process, struct thread *thread);

/* The program registers a signal handler by the struct sigaction at @act. */
void process_note_handler(struct process *process, uint64_t act);

/*
 * If @ip with stack @rsp is the entry of a signal handler, where was the thread interrupted?
 * Return: whether it is.
 */
bool process_at_handler(struct process *process, uint64_t ip, uint64_t rsp, uint64_t *ret_ip);

/* Write what is pending of the description of blocks. */
void process_flush_blocks(struct process *process);
