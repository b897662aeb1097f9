/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Process
 *
 * The recorded process in which this plugin is: its blocks, signal handlers, mappings and threads.
 * It is made when QEMU loads the plugin, starts with the first block that runs, and ends with the
 * program. A forked child is another process that continues with a copy of its parent's state. A
 * program that the process executes starts from nothing, as the next generation of the process.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/plugin/attach.h"
#include "daemon/plugin/block.h"
#include "daemon/plugin/fdholder.h"
#include "daemon/plugin/handover.h"
#include "daemon/plugin/maps.h"
#include "daemon/plugin/target.h"
#include "daemon/plugin/truthlog.h"
#include "util/condition.h"
#include "util/vec.h"

/*
 * The conditions on which ptctl takes a snapshot of the recorded process, and how ptctl learns that
 * one holds. A forked child and programs that the process executes have the same conditions.
 *
 * A thread for which a condition holds calls tripwire_pull() with its packets written and its CPU
 * given back, so that the snapshot ends with the thread's last instruction before the condition.
 */

/* A thread waits for the answer no longer. */
#define TRIPWIRE_PATIENCE_MS 10000

struct tripwire {
	const char
	    *socket; /* name of ptctl's socket in the abstract namespace; NULL: no conditions */
	const char *text; /* the conditions, as in the option of the plugin */
	struct condition conditions[CONDITIONS_MAX];
	size_t n_conditions;
	_Atomic bool is_over; /* ptctl waits for no condition any more */
};

/*
 * Read the conditions from @text, which has CONDITION_SEPARATOR between them. Both strings are
 * borrowed.
 *
 * Return: 0; -EINVAL if one is not a condition; or -ENOMEM.
 */
_must_check_ int tripwire_init(struct tripwire *tripwire, const char *socket, const char *text);

/*
 * Return: the index of the first condition of kind @kind, which is not CONDITION_ENTER, that holds
 *         with @number, plus 1; 0: none holds, or no condition is waited for.
 */
uint32_t tripwire_holds(const struct tripwire *tripwire, enum condition_kind kind, uint32_t number);

/* Tell ptctl of @event, and wait until it has taken a snapshot, or for TRIPWIRE_PATIENCE_MS. */
void tripwire_pull(struct tripwire *tripwire, const struct condition_event *event);

/* If there are more threads, the thread group's leader stands for the parent of the others. */
#define PROCESS_PARENTS_MAX 4096

#define PROCESS_CODE_MAX (BLOCK_INSNS_MAX * 15u) /* bytes of a block */

struct thread;

enum process_register {
	PROCESS_RSP,
	PROCESS_RIP,
	PROCESS_SIGNAL, /* the argument that is the number of the signal when its handler begins */
};

/* Return: a register of the vCPU, which is at the start of a block or does not run. */
typedef uint64_t (*process_register_fn)(unsigned vcpu, enum process_register which);

enum process_state {
	PROCESS_LOADING,
	PROCESS_RUNS,
	PROCESS_OVER,
};

/* What a process begins with. Everything except @attach is borrowed. */
struct process_origin {
	struct attach attach;
	struct fdholder fdholder;
	struct target target;
	process_register_fn read_register;
	const char *log_dir; /* NULL: no log is wanted */
	uint32_t generation; /* number of recorded programs of the process before this one */
	const char *comm;    /* name of the process in the kernel; NULL: that of the file */
	bool timing;         /* MTC and CYC packets are written, whatever the pool asks for */
	struct tripwire tripwire;
};

/* Addresses of pages. */
struct process_pages {
	VEC(uint64_t) list;
};

/* Code that QEMU translated before the program began. */
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
	bool timing;         /* as of its origin */
	char *log_dir;       /* NULL: no log is wanted */
	uint32_t log_number; /* of this program, in the names of its logs */
	int fork_fd;         /* the pool's, while a fork is under way; else -1 */
	_Atomic int state;   /* enum process_state */
	struct maps maps;
	struct tripwire tripwire;

	/* Protected by the lock. */
	pthread_mutex_t lock;
	struct blocks blocks;
	struct handover handover; /* whose number of changes is read without the lock */
	struct process_early early;
	struct target_handlers handlers;
	struct truthlog *block_log;
	struct thread *threads;                /* owned */
	uint32_t parents[PROCESS_PARENTS_MAX]; /* by vCPU: tid of the thread that made it */
	struct process_pages surprises; /* code that no call made executable, without record yet */
	uint64_t n_surprises;           /* how many such pages there were */
	uint32_t killed_tid; /* the thread that took the signal which kills the process */
	uint32_t killed_by;  /* that signal; 0: none kills it */
};

/*
 * Initialize the process before the program is loaded. @origin->attach is taken over.
 *
 * Return: 0; or negative errno if the directory of the log cannot be used.
 */
_must_check_ int process_init(struct process *process, const struct process_origin *origin);

/*
 * The main thread is about to run its first instruction: write the records of a program that
 * starts. process_announce() is to be called before the thread has a CPU, and process_start() when
 * it has the CPU in @who, because a reader concludes from the record of an exec which thread runs
 * on the CPU.
 */
void process_announce(struct process *process, struct poolrecord_who who);
void process_start(struct process *process, struct poolrecord_who who, uint64_t rsp);

/* The thread @tid took a signal that kills the process, which is about to end. */
void process_note_killed(struct process *process, uint32_t tid, uint32_t signal);

/*
 * The program ends, and all threads except the calling one stand still. Stop their packets, write
 * the last records, and complete the log.
 */
void process_end(struct process *process);

/*
 * @self executes another program, and all other threads stand still. process_halt() stops their
 * packets and completes the log. If the execution fails, process_go_on() continues the process.
 */
void process_halt(struct process *process, struct thread *self);
void process_go_on(struct process *process);

/*
 * Around a fork by @self. process_fork_prepare() takes the locks, so that the child gets consistent
 * state. process_fork_parent() continues in the parent. process_fork_child() makes the process that
 * of the child and writes its records.
 *
 * Return: whether the child can be recorded. If not, a message on standard error says so, and @self
 *         is freed.
 */
void process_fork_prepare(struct process *process);
void process_fork_parent(struct process *process);
bool process_fork_child(struct process *process, struct thread *self);

/* Return: the truth log of the thread @tid; NULL if none is wanted or it cannot be made. */
struct truthlog *process_open_log(const struct process *process, uint32_t tid);

/*
 * Get the block of a translation. @self is the calling thread, or NULL before the first block runs.
 *
 * Return: the block; NULL without memory, or if the process is over.
 */
const struct block *process_translate(struct process *process, struct thread *self, uint64_t ip,
				      const struct block_insn *insns, size_t n);

/*
 * Write the records of pages with code that no call made executable. This is not done during the
 * translation, because all other threads would have to wait if the ring has no room.
 */
void process_record_surprises(struct process *process, struct poolrecord_who who);

/* Note that the thread @tid, which calls this, made @vcpu for a new thread. */
void process_note_parent(struct process *process, unsigned vcpu, uint32_t tid);

/* Add and remove a thread. process_add() returns the tid of its parent, 0 for the first thread. */
uint32_t process_add(struct process *process, struct thread *thread);
void process_remove(struct process *process, struct thread *thread);

/* Note that the program registers the signal handler in the structure at @act. */
void process_note_handler(struct process *process, enum target_action kind, uint64_t act);

/*
 * If @ip with stack @rsp is the entry of a signal handler, find out where the thread was
 * interrupted.
 *
 * Return: whether it is.
 */
bool process_at_handler(struct process *process, uint64_t ip, uint64_t rsp, uint64_t *ret_ip);
