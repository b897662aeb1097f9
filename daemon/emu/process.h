/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Process
 *
 * All that is known about the recorded process this plugin is in: its blocks, handlers, mappings
 * and threads. It is made when QEMU loads the plugin, starts with the first block that runs, and
 * ends with the program. A forked child is another process, which goes on from its parent's; a
 * program that is executed begins anew, as the next generation of the process.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/emu/attach.h"
#include "daemon/emu/block.h"
#include "daemon/emu/fdholder.h"
#include "daemon/emu/handover.h"
#include "daemon/emu/maps.h"
#include "daemon/emu/target.h"
#include "daemon/emu/truthlog.h"
#include "util/vec.h"

/* Of threads beyond, the leader is taken for the parent. */
#define PROCESS_PARENTS_MAX 4096

#define PROCESS_CODE_MAX (BLOCK_INSNS_MAX * 15u) /* bytes of a block */

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

/* What a process begins with. All but @attach is borrowed. */
struct process_origin {
	struct attach attach;
	struct fdholder fdholder;
	struct target target;
	process_register_fn read_register;
	const char *log_dir; /* NULL: no log is wanted */
	uint32_t generation; /* programs that the process executed in our sight before this one */
	const char *comm;    /* what the kernel would call it; NULL: as the program's file */
};

/* Addresses of pages. */
struct process_pages {
	VEC(uint64_t) list;
};

/* Code that was translated before the program began. */
struct process_early {
	struct block *block; /* NULL: there is none */
	size_t size;
	uint8_t bytes[PROCESS_CODE_MAX];
};

struct process {
	struct attach attach;
	struct fdholder fdholder;
	struct target target;
	process_register_fn read_register;
	uint32_t pid;
	uint32_t parent_pid;
	uint32_t generation;
	const char *comm;    /* borrowed */
	char *log_dir;       /* NULL: no log is wanted */
	uint32_t log_number; /* of this program, in the names of its logs */
	int fork_fd;         /* the pool's, while a fork is under way; else -1 */
	_Atomic int state;   /* enum process_state */
	struct maps maps;

	/* Protected by the lock. */
	pthread_mutex_t lock;
	struct blocks blocks;
	struct handover handover; /* whose number of changes is read without the lock */
	struct process_early early;
	struct target_handlers handlers;
	struct truthlog *block_log;
	struct thread *threads;                /* owned */
	uint32_t parents[PROCESS_PARENTS_MAX]; /* by vCPU: tid of the thread that made it */
	struct process_pages surprises; /* code that no call made executable, to be recorded */
	uint64_t n_surprises;           /* how much there was */
};

/*
 * Make what is needed before the program is loaded. Takes over @origin's attach.
 *
 * Return: 0; or negative errno if the log's directory cannot be used.
 */
_must_check_ int process_init(struct process *process, const struct process_origin *origin);

/*
 * The main thread is about to run its first instruction: write the records of a program that
 * starts. process_announce() is due before the thread has a CPU, process_start() when it has one,
 * as @who says: a reader takes the record of an exec for a proof of who runs there.
 */
void process_announce(struct process *process, struct poolrecord_who who);
void process_start(struct process *process, struct poolrecord_who who, uint64_t rsp);

/*
 * The program ends, all threads but the calling one stand still: stop their packets, write the last
 * records, complete the log.
 */
void process_end(struct process *process);

/*
 * @self executes another program, and all other threads stand still: stop their packets and
 * complete the log. If it comes to nothing after all, the process goes on.
 */
void process_halt(struct process *process, struct thread *self);
void process_go_on(struct process *process);

/*
 * Around a fork by @self: hold still, so that the child finds all in order; go on in the parent;
 * and in the child, become the process that it is, known to the sideband.
 *
 * Return: whether the child can be recorded. If not, which is said on stderr, @self is freed.
 */
void process_fork_prepare(struct process *process);
void process_fork_parent(struct process *process);
bool process_fork_child(struct process *process, struct thread *self);

/* Return: the log of the process's thread @tid; NULL if none is wanted or possible. */
struct truthlog *process_open_log(const struct process *process, uint32_t tid);

/*
 * Return: the block of a translation; NULL without memory, or if the process is over. @self is the
 * calling thread, NULL before the first block runs.
 */
const struct block *process_translate(struct process *process, struct thread *self, uint64_t ip,
				      const struct block_insn *insns, size_t n);

/*
 * Write the records of the pages whose translation was a surprise. That is not done in the
 * translation, where all other threads would wait with us if the records must.
 */
void process_tell_surprises(struct process *process, struct poolrecord_who who);

/* The calling thread made a vCPU for a new one. */
void process_note_parent(struct process *process, unsigned vcpu, uint32_t tid);

/* Add and remove a thread. process_add() gives its parent's tid, 0 for the first. */
uint32_t process_add(struct process *process, struct thread *thread);
void process_remove(struct process *process, struct thread *thread);

/* The program registers a signal handler by the structure at @act. */
void process_note_handler(struct process *process, enum target_action kind, uint64_t act);

/*
 * If @ip with stack @rsp is the entry of a signal handler, where was the thread interrupted?
 * Return: whether it is.
 */
bool process_at_handler(struct process *process, uint64_t ip, uint64_t rsp, uint64_t *ret_ip);
