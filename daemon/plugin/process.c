/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "daemon/plugin/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/plugin/thread.h"
#include "util/mutex.h"

#define VSYSCALL_PAGE UINT64_C(0xffffffffff600000)
#define PAGE          UINT64_C(4096)

/* Make the dictionary, with a number that no earlier program of this process, or of a process with
 * the same pid, has. */
static int open_block_log(struct process *process)
{
	char name[64];
	int r;

	process->log_number = process->generation;
	for (;;) {
		(void)snprintf(name, sizeof(name), "%u.%u.blocks", process->pid,
			       process->log_number);
		r = truthlog_new(process->log_dir, name, O_EXCL, &process->block_log);
		if (r != -EEXIST)
			return r;
		process->log_number++;
	}
}

struct truthlog *process_open_log(const struct process *process, uint32_t tid)
{
	struct truthlog *file;
	char name[64];

	if (!process->log_dir)
		return NULL;
	(void)snprintf(name, sizeof(name), "%u.%u.%u.log", process->pid, tid, process->log_number);
	/* An earlier thread may have had the same number. */
	return truthlog_new(process->log_dir, name, O_APPEND, &file) < 0 ? NULL : file;
}

int process_init(struct process *process, const struct process_origin *origin)
{
	int r = 0;

	*process = (struct process){
		.attach = origin->attach,
		.fdholder = origin->fdholder,
		.target = origin->target,
		.blocks = { .mode = origin->target.mode },
		.read_register = origin->read_register,
		.pid = (uint32_t)getpid(),
		.parent_pid = (uint32_t)getppid(),
		.generation = origin->generation,
		.comm = origin->comm,
		.timing = origin->timing,
		.fork_fd = -1,
		.tripwire = origin->tripwire,
	};
	if (origin->timing)
		process->attach.layout.timing.mtc = process->attach.layout.timing.cyc = true;
	(void)pthread_mutex_init(&process->lock, NULL);
	maps_init(&process->maps, &process->attach, &process->target);
	process->maps.watch.conditions = process->tripwire.conditions;
	process->maps.watch.n_conditions = process->tripwire.n_conditions;
	handover_init(&process->handover, &process->attach);
	if (origin->log_dir) {
		/* The path is absolute, because the program may change its directory. */
		process->log_dir = realpath(origin->log_dir, NULL);
		r = process->log_dir ? open_block_log(process) : -errno;
	}
	if (r == 0)
		atomic_fetch_add(&process->attach.pool->n_attached, 1);
	return r;
}

/* Get the name of the process in the kernel. */
static void read_comm(const struct process *process, uint64_t execfn, char ret_comm[16])
{
	char path[PATH_MAX] = "";
	const char *base;

	if (process->comm)
		(void)snprintf(path, sizeof(path), "%s", process->comm);
	else if (execfn == 0 ||
		 target_read_string(&process->target, execfn, path, sizeof(path)) < 0)
		path[0] = '\0';
	base = strrchr(path, '/');
	(void)snprintf(ret_comm, 16, "%.15s", base ? base + 1 : path);
}

/* --- code ------------------------------------------------------------------------------------- */

static void hand_over(struct process *process, struct block *block, const uint8_t *bytes,
		      size_t size)
{
	const enum handover_place place = maps_place(&process->maps, block->ip, size);
	const uint64_t version = handover_code(&process->handover, place, block->ip, bytes, size);

	atomic_store_explicit(&block->version, version, memory_order_release);
}

/* Hand the block's bytes over. Before the program begins it is not known where they are. */
static void hand_over_insns(struct process *process, struct block *block,
			    const struct block_insn *insns)
{
	static uint8_t bytes[PROCESS_CODE_MAX]; /* protected by the lock */
	struct process_early *early = &process->early;
	size_t size = 0;

	for (size_t i = 0; i < block->n; i++) {
		memcpy(bytes + size, insns[i].bytes, insns[i].size);
		size += insns[i].size;
	}
	if (size == 0 || block->ip >= VSYSCALL_PAGE)
		return;
	if (atomic_load(&process->state) == PROCESS_RUNS) {
		hand_over(process, block, bytes, size);
		return;
	}
	/* QEMU translates the next block only when this one has run. */
	*early = (struct process_early){ .block = block, .size = size };
	memcpy(early->bytes, bytes, size);
}

/* The program begins, and its mappings are known now. */
static void start_handover(struct process *process)
{
	struct process_early *early = &process->early;

	HOLD(&process->lock);
	handover_start(&process->handover, process->pid);
	if (early->block)
		hand_over(process, early->block, early->bytes, early->size);
	early->block = NULL;
}

/* --- the program's beginning and end ---------------------------------------------------------- */

void process_announce(struct process *process, struct poolrecord_who who)
{
	/* A process that executes a program exists already. */
	if (process->generation == 0)
		poolrecord_fork(&process->attach, who, process->parent_pid, process->parent_pid);
}

void process_start(struct process *process, struct poolrecord_who who, uint64_t rsp)
{
	struct target_start start;
	char comm[16];

	if (target_read_start(&process->target, rsp, &start) < 0)
		start = (struct target_start){};
	read_comm(process, start.execfn, comm);
	poolrecord_comm(&process->attach, who, comm, true);
	if (start.phdr)
		maps_add_image(&process->maps, who, start.phdr);
	if (start.base)
		maps_add_image(&process->maps, who, start.base);
	start_handover(process);
	atomic_store(&process->state, PROCESS_RUNS);
}

void process_note_killed(struct process *process, uint32_t tid, uint32_t signal)
{
	HOLD(&process->lock);
	process->killed_tid = tid;
	process->killed_by = signal;
}

static void end_thread_locked(struct process *process, struct thread *t)
{
	thread_stop(t);
	poolrecord_exit(&process->attach, t->lease.who, process->parent_pid,
			t->lease.who.tid == process->killed_tid ? process->killed_by : 0);
	truthlog_end(t->truth.log);
}

void process_end(struct process *process)
{
	struct thread *leader = NULL;

	HOLD(&process->lock);
	if (atomic_exchange(&process->state, PROCESS_OVER) != PROCESS_RUNS)
		return;
	if (process->block_log)
		(void)truthlog_flush(process->block_log);
	if (process->n_surprises > 0 && process->log_dir)
		fprintf(stderr,
			"ptd-emu.so: %" PRIu64
			" times code ran that no system call had made executable\n",
			process->n_surprises);
	/* As in the kernel, the leader ends last. */
	for (struct thread *t = process->threads; t; t = t->next) {
		if (t->lease.who.tid == process->pid)
			leader = t;
		else
			end_thread_locked(process, t);
	}
	if (leader)
		end_thread_locked(process, leader);
	atomic_fetch_sub(&process->attach.pool->n_attached, 1);
}

void process_halt(struct process *process, struct thread *self)
{
	HOLD(&process->lock);
	if (process->block_log)
		(void)truthlog_flush(process->block_log);
	for (struct thread *t = process->threads; t; t = t->next) {
		/* A thread that executes a program becomes the leader, with its number. */
		if (t != self && t->lease.who.tid != process->pid) {
			end_thread_locked(process, t);
			continue;
		}
		thread_stop(t);
		truthlog_end(t->truth.log);
	}
	atomic_fetch_sub(&process->attach.pool->n_attached, 1);
}

void process_go_on(struct process *process)
{
	atomic_fetch_add(&process->attach.pool->n_attached, 1);
}

/* --- fork ------------------------------------------------------------------------------------- */

void process_fork_prepare(struct process *process)
{
	(void)pthread_mutex_lock(&process->lock);
	maps_fork_prepare(&process->maps);
	/* The child's dictionary refers to this one, which must be complete even if the parent is
	 * killed. */
	if (process->block_log)
		(void)truthlog_flush(process->block_log);
	process->fork_fd = fdholder_borrow(&process->fdholder);
	handover_fork_prepare(&process->handover);
}

void process_fork_parent(struct process *process)
{
	process->fork_fd = fd_close(process->fork_fd);
	maps_fork_parent(&process->maps);
	(void)pthread_mutex_unlock(&process->lock);
}

/* The other threads belong to the parent, and so do the pending words of all logs. */
static void forget_others(struct process *process, struct thread *self)
{
	struct thread *next;

	for (struct thread *t = process->threads; t; t = next) {
		next = t->next;
		if (t == self)
			continue;
		t->truth.log = truthlog_forget(t->truth.log);
		free(t);
	}
	process->threads = self;
	self->next = NULL;
}

static void fork_logs(struct process *process, struct thread *self, uint32_t parent_number)
{
	self->truth.log = truthlog_forget(self->truth.log);
	process->block_log = truthlog_forget(process->block_log);
	if (!process->log_dir || open_block_log(process) < 0)
		return;
	truthlog_inherit(process->block_log, process->blocks.n, process->parent_pid, parent_number);
	(void)truthlog_flush(process->block_log);
	self->truth.log = process_open_log(process, self->lease.who.tid);
}

/* Do not record the child or programs that it executes. */
static void leave_child_alone(struct process *process, struct thread *self, const char *why)
{
	fprintf(stderr, "ptd-emu.so: a child of process %u: not recorded: %s\n", process->pid, why);
	atomic_store(&process->state, PROCESS_OVER);
	process->fdholder = (struct fdholder){};
	process->fork_fd = fd_close(process->fork_fd);
	process->block_log = truthlog_forget(process->block_log);
	self->truth.log = truthlog_forget(self->truth.log);
	(void)thread_free(self);
}

bool process_fork_child(struct process *process, struct thread *self)
{
	const uint32_t parent_tid = self->lease.who.tid, log_number = process->log_number;
	const char *why = attach_obstacle(&process->attach);

	(void)pthread_mutex_init(&process->lock, NULL);
	maps_fork_child(&process->maps);
	forget_others(process, self);
	if (why) {
		leave_child_alone(process, self, why);
		return false;
	}

	process->parent_pid = process->pid;
	process->pid = (uint32_t)getpid();
	process->generation = 0;
	process->n_surprises = 0;
	thread_fork_child(self);
	fork_logs(process, self, log_number);

	/* Without the descriptor, programs that the child executes are not recorded. */
	process->fdholder = (struct fdholder){};
	if (process->fork_fd >= 0 && fdholder_start(&process->fdholder, process->fork_fd) < 0)
		process->fdholder = (struct fdholder){};
	process->fork_fd = fd_close(process->fork_fd);

	if (atomic_load(&process->state) == PROCESS_RUNS) {
		atomic_fetch_add(&process->attach.pool->n_attached, 1);
		poolrecord_fork(&process->attach, self->lease.who, process->parent_pid, parent_tid);
		handover_fork_child(&process->handover, process->pid);
	}
	return true;
}

/* --- what threads tell ------------------------------------------------------------------------ */

/* Code is about to run that no known call made executable. Its record must be written before it
 * runs, and the packets get a time, so that the code comes after the record. */
static void surprise(struct process *process, struct thread *self, uint64_t ip)
{
	if (vec_push(&process->surprises.list, ip & ~(PAGE - 1)) < 0)
		return;
	process->n_surprises++;
	thread_want_time(self);
}

void process_record_surprises(struct process *process, struct poolrecord_who who)
{
	struct process_pages pages;

	(void)pthread_mutex_lock(&process->lock);
	pages = process->surprises;
	process->surprises = (struct process_pages){};
	(void)pthread_mutex_unlock(&process->lock);
	for (size_t i = 0; i < pages.list.n; i++)
		if (!maps_has(&process->maps, pages.list.items[i], 1))
			(void)maps_add(&process->maps, who, pages.list.items[i], PAGE,
				       PROT_READ | PROT_EXEC);
	vec_deinit(&pages.list);
}

/* @condition: index plus 1; 0: none. The caller holds the lock. */
static void watch_block(struct block *block, uint32_t condition)
{
	const uint16_t others = atomic_load(&block->marks) & (uint16_t)~BLOCK_WATCHED;

	atomic_store(&block->marks, (uint16_t)(others | (condition & BLOCK_WATCHED)));
}

const struct block *process_translate(struct process *process, struct thread *self, uint64_t ip,
				      const struct block_insn *insns, size_t n)
{
	struct block *block = NULL;
	int r;

	if (atomic_load(&process->state) == PROCESS_OVER)
		return NULL;
	HOLD(&process->lock);
	r = blocks_get(&process->blocks, ip, insns, n, &block);
	if (r == BLOCKS_NEW) {
		if (target_handlers_have(&process->handlers, ip))
			(void)atomic_fetch_or(&block->marks, BLOCK_HANDLER);
		if (process->block_log) {
			truthlog_describe(process->block_log, block);
			/* If the process is killed, its log needs the dictionary. */
			(void)truthlog_flush(process->block_log);
		}
	}
	if (block) {
		hand_over_insns(process, block, insns);
		atomic_store(&block->maps, maps_version(&process->maps));
	}

	if (block && process->tripwire.n_conditions > 0)
		watch_block(block, maps_watched(&process->maps, ip));
	if (self && ip < VSYSCALL_PAGE && !maps_has(&process->maps, ip, 1))
		surprise(process, self, ip);
	return block;
}

void process_note_parent(struct process *process, unsigned vcpu, uint32_t tid)
{
	HOLD(&process->lock);
	if (vcpu < ARRAY_LEN(process->parents))
		process->parents[vcpu] = tid;
}

uint32_t process_add(struct process *process, struct thread *thread)
{
	uint32_t parent = 0;
	bool first;

	(void)pthread_mutex_lock(&process->lock);
	first = !process->threads && atomic_load(&process->state) == PROCESS_LOADING;
	if (thread->vcpu < ARRAY_LEN(process->parents))
		parent = process->parents[thread->vcpu];
	thread->next = process->threads;
	process->threads = thread;
	(void)pthread_mutex_unlock(&process->lock);
	if (first)
		return 0;
	return parent ? parent : process->pid;
}

void process_remove(struct process *process, struct thread *thread)
{
	HOLD(&process->lock);
	for (struct thread **at = &process->threads; *at; at = &(*at)->next) {
		if (*at == thread) {
			*at = thread->next;
			break;
		}
	}
	/* If the process has ended, process_end() has written the record. */
	if (atomic_load(&process->state) == PROCESS_RUNS)
		poolrecord_exit(&process->attach, thread->lease.who, process->parent_pid, 0);
}

void process_note_handler(struct process *process, enum target_action kind, uint64_t act)
{
	uint64_t handler;

	HOLD(&process->lock);
	handler = target_handlers_add(&process->handlers, &process->target, kind, act);
	if (handler)
		blocks_mark_handler(&process->blocks, handler);
}

bool process_at_handler(struct process *process, uint64_t ip, uint64_t rsp, uint64_t *ret_ip)
{
	HOLD(&process->lock);
	return target_at_handler(&process->handlers, &process->target, ip, rsp, ret_ip);
}

/* --- tripwire --------------------------------------------------------------------------------- */

int tripwire_init(struct tripwire *tripwire, const char *socket, const char *text)
{
	_cleanup_(freep) char *copy = strdup(text);
	char *rest = copy, *one;
	int r = 0;

	*tripwire = (struct tripwire){ .socket = socket, .text = text };
	if (!copy)
		return -ENOMEM;
	while (r == 0 && (one = strsep(&rest, (char[]){ CONDITION_SEPARATOR, 0 }))) {
		if (tripwire->n_conditions == CONDITIONS_MAX)
			return -EINVAL;
		r = condition_parse(one, &tripwire->conditions[tripwire->n_conditions]);
		if (r == 0)
			tripwire->n_conditions++;
	}
	return r;
}

static bool holds(const struct condition *condition, enum condition_kind kind, uint32_t number)
{
	if (condition->kind != kind)
		return false;
	return condition->number == number ||
	       (condition->number == CONDITION_ANY_STATUS && number != 0);
}

uint32_t tripwire_holds(const struct tripwire *tripwire, enum condition_kind kind, uint32_t number)
{
	if (atomic_load_explicit(&tripwire->is_over, memory_order_relaxed))
		return 0;
	for (uint32_t i = 0; i < tripwire->n_conditions; i++)
		if (holds(&tripwire->conditions[i], kind, number))
			return i + 1;
	return 0;
}

/* Connect to ptctl. Return: the socket, or negative errno. */
static int connect_ptctl(const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const size_t n = strlen(name);
	_cleanup_(fd_closep) int fd = -1;
	socklen_t size;

	if (n >= sizeof(address.sun_path) - 1)
		return -ENAMETOOLONG;
	memcpy(address.sun_path + 1, name, n);
	size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, size) < 0)
		return -errno;
	return TAKE_FD(fd);
}

/* Wait for the answer. Without one the thread goes on. */
static enum condition_answer await_answer(int fd)
{
	const uint64_t end_ns =
	    clock_ns(CLOCK_MONOTONIC) + TRIPWIRE_PATIENCE_MS * UINT64_C(1000000);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint8_t answer;
	int left_ms;

	/* Signals of the program interrupt poll(). */
	while ((left_ms = clock_ms_until(end_ns)) > 0) {
		if (poll(&p, 1, left_ms) <= 0)
			continue;
		if (recv(fd, &answer, sizeof(answer), MSG_DONTWAIT) != sizeof(answer))
			break;
		return answer;
	}
	return CONDITION_GO_ON;
}

void tripwire_pull(struct tripwire *tripwire, const struct condition_event *event)
{
	_cleanup_(fd_closep) int fd = -1;

	if (atomic_load(&tripwire->is_over))
		return;
	fd = connect_ptctl(tripwire->socket);
	/* ptctl has ended. */
	if (fd == -ECONNREFUSED ||
	    (fd >= 0 && (send(fd, event, sizeof(*event), MSG_NOSIGNAL) != sizeof(*event) ||
			 await_answer(fd) == CONDITION_OVER)))
		atomic_store(&tripwire->is_over, true);
}
