/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "daemon/plugin/thread.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "util/mutex.h"

#define PATIENCE_BLOCKS   256
#define UNRECORDED_BLOCKS 4096

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

static void start_process(struct thread *thread)
{
	struct process *p = thread->process;
	struct poolrecord_who who = thread->lease.who;

	process_announce(p, who);
	thread->unrecorded = lease_take(&thread->lease, LEASE_WAIT) == LEASE_NONE;
	who.cpu = thread->unrecorded ? POOLRECORD_NO_CPU : thread->lease.who.cpu;
	process_start(p, who, p->read_register(thread->vcpu, PROCESS_RSP));
}

struct thread *thread_new(struct process *process, unsigned vcpu)
{
	const uint32_t tid = (uint32_t)syscall(SYS_gettid);
	struct thread *thread;
	uint32_t parent;

	if (atomic_load(&process->state) == PROCESS_OVER)
		return NULL;
	thread = calloc(1, sizeof(*thread));
	if (!thread)
		return NULL;
	thread->process = process;
	thread->pool = process->attach.pool;
	thread->vcpu = vcpu;
	thread->lease = (struct lease){
		.attach = &process->attach,
		.mode = process->target.mode,
		.who = { .pid = process->pid, .tid = tid },
	};
	(void)pthread_mutex_init(&thread->leaving, NULL);
	thread->truth.log = process_open_log(process, tid);

	parent = process_add(process, thread);
	if (parent != 0)
		poolrecord_fork(&process->attach, thread->lease.who, process->pid, parent);
	else
		start_process(thread);
	return thread;
}

void thread_fork_child(struct thread *thread)
{
	thread->lease.who.pid = thread->process->pid;
	thread->lease.who.tid = (uint32_t)syscall(SYS_gettid);
	(void)pthread_mutex_init(&thread->leaving, NULL);
}

struct thread *thread_free(struct thread *thread)
{
	if (!thread)
		return NULL;
	process_remove(thread->process, thread);
	truthlog_end(thread->truth.log);
	thread->truth.log = truthlog_free(thread->truth.log);
	(void)pthread_mutex_destroy(&thread->leaving);
	free(thread);
	return NULL;
}

static void publish_packets(struct thread *thread)
{
	atomic_store_explicit(thread->aux_head, thread->lease.encode.state.head,
			      memory_order_release);
}

/* Switch packets on. The thread has a CPU. */
static void resume_packets(struct thread *thread, uint64_t ip)
{
	thread->flow.encode = &thread->lease.encode;
	thread->aux_head = &lease_cpu(&thread->lease)->aux_head;
	thread->maps = maps_version(&thread->process->maps);
	thread->changes = handover_changes(&thread->process->handover);
	encode_enable(thread->flow.encode, ip, attach_now_ns());
	publish_packets(thread);
	thread->wants_tsc = false;
}

/* Code that ptd does not have is about to run, and a decoder could only guess. Packets are off
 * until other code runs, and a decoder learns that some are missing. */
static void hide_thread(struct thread *thread, uint64_t ip)
{
	encode_disable_at(thread->flow.encode, ip);
	publish_packets(thread);
	thread->flow.encode = NULL;
	lease_give(&thread->lease, false);
	thread->hidden = true;
}

/* The block is of a version that replaced other code, or of one that ptd does not have. A time
 * packet alone does not say before which instruction the code changed, so packets stop, and start
 * again with the block. */
static void meet_version(struct thread *thread, const struct block *block)
{
	if (atomic_load_explicit(&block->version, memory_order_acquire) == HANDOVER_HIDDEN) {
		hide_thread(thread, block->ip);
		return;
	}
	encode_disable_at(thread->flow.encode, block->ip);
	resume_packets(thread, block->ip);
}

/* Return: whether the thread is at the entry of a signal's handler, which is @block; @ret_ip is
 *         then where the signal interrupted it. */
static bool is_at_handler(struct thread *thread, const struct block *block, uint64_t *ret_ip)
{
	struct process *p = thread->process;

	return block_has_handler(block) &&
	       process_at_handler(p, block->ip, p->read_register(thread->vcpu, PROCESS_RSP),
				  ret_ip);
}

/* Write that the thread took a signal, whose handler @block begins with. The thread has a CPU, and
 * the time packet of the handler is not written yet. */
static void note_signal(struct thread *thread, const struct block *block)
{
	const uint32_t signal =
	    (uint32_t)thread->process->read_register(thread->vcpu, PROCESS_SIGNAL);

	poolrecord_signal(thread->lease.attach, thread->lease.who, signal, block->ip);
	thread->due = tripwire_holds(&thread->process->tripwire, CONDITION_SIGNAL, signal);
	thread->due_signal = signal;
}

static void enter_user_code(struct thread *thread, const struct block *block,
			    enum lease_manner manner)
{
	const uint64_t ip = block->ip;
	uint64_t interrupted;

	if (thread->wants_tsc)
		process_record_surprises(thread->process, thread->lease.who);
	thread->wants_tsc = false;
	if (thread->unrecorded && ++thread->n_unrecorded % UNRECORDED_BLOCKS != 0)
		return;
	if (atomic_load_explicit(&block->version, memory_order_acquire) == HANDOVER_HIDDEN) {
		thread->hidden = true;
		return;
	}
	if (atomic_load_explicit(&thread->process->state, memory_order_relaxed) == PROCESS_OVER)
		return;
	if (!thread->lease.held)
		thread->unrecorded =
		    lease_take(&thread->lease, thread->unrecorded ? LEASE_TRY : manner) ==
		    LEASE_NONE;
	if (thread->unrecorded)
		return;
	if (thread->hidden)
		encode_overflow(&thread->lease.encode, attach_now_ns());
	thread->hidden = false;
	thread->flushed = atomic_load(&thread->process->attach.pool->flush);
	thread->patience = PATIENCE_BLOCKS;
	/* A thread that only gave its CPU to another one has noted the signal already. */
	if (manner != LEASE_YIELD && is_at_handler(thread, block, &interrupted))
		note_signal(thread, block);
	resume_packets(thread, ip);
}

/* ptd is going to read the rings. Write all pending packets, and continue. */
static void flush_and_go_on(struct thread *thread, uint64_t ip, uint32_t flush)
{
	encode_disable_at(thread->flow.encode, ip);
	publish_packets(thread);
	thread->flushed = flush;
	resume_packets(thread, ip);
	/* This comes after the time packet, which shows that the ring is complete up to here. */
	atomic_store(&lease_cpu(&thread->lease)->flush_done, flush);
}

/* Another thread waits for a CPU. Give this one back when the quantum is over. */
static void share_cpu(struct thread *thread, const struct block *block)
{
	const uint64_t quantum_ns = thread->process->attach.layout.quantum_us * UINT64_C(1000);

	uint64_t now;

	if (--thread->patience > 0)
		return;
	thread->patience = PATIENCE_BLOCKS;
	now = attach_now_ns();
	if (!lease_wanted(thread->lease.attach, now) || now - thread->lease.since_ns < quantum_ns)
		return;
	encode_disable_at(thread->flow.encode, block->ip);
	thread->flow.encode = NULL;
	lease_give(&thread->lease, false);
	enter_user_code(thread, block, LEASE_YIELD);
}

/* The block that is about to run may be in memory that became executable, or was changed, after the
 * last time packet; or it is not known to be executable. The time packet is written before the
 * packet that leads to the block, because a decoder looks for the code as soon as it has read that
 * packet. */
static void write_time(struct thread *thread)
{
	if (thread->wants_tsc)
		process_record_surprises(thread->process, thread->lease.who);
	thread->maps = maps_version(&thread->process->maps);
	encode_flush(thread->flow.encode);
	encode_tsc(thread->flow.encode, attach_now_ns());
	thread->wants_tsc = false;
}

/* Do what is rarely due between two blocks. The thread has a CPU and its packets are on. */
static void attend_block(struct thread *thread, const struct block *block)
{
	const struct emu_pool *pool = thread->process->attach.pool;
	struct encode *e = thread->flow.encode;
	const uint32_t flush = atomic_load(&pool->flush);

	if (encode_psb_due(e))
		encode_psb(e, block->ip, attach_now_ns());
	publish_packets(thread);
	if (flush != thread->flushed)
		flush_and_go_on(thread, block->ip, flush);
	if (atomic_load(&pool->wait_until_ns) != 0)
		share_cpu(thread, block);
}

/* Control is at @ip: find out whether the last instruction of the last block began. If QEMU left
 * the block at @ip, and did not come there by a branch, it did not. */
static void settle_block(struct thread *thread, uint64_t ip)
{
	const struct block *block = thread->flow.block;

	thread->flow.last_began = block->n > 0 && !(thread->left && block_index(block, ip) >= 0);
}

/* A signal, or the like, interrupted the thread before @ip. */
static void interrupt_thread(struct thread *thread, uint64_t ip)
{
	settle_block(thread, ip);
	flow_interrupt(&thread->flow, ip);
	if (thread->truth.block)
		flow_interrupt(&thread->truth, ip);
}

/* Judge the last block, now that control is at the start of @block. */
static void judge_thread_block(struct thread *thread, const struct block *block)
{
	uint64_t ip;

	if (is_at_handler(thread, block, &ip)) {
		interrupt_thread(thread, ip);
		note_signal(thread, block);
		resume_packets(thread, block->ip);
		return;
	}
	settle_block(thread, block->ip);
	if (unlikely(flow_step(&thread->flow, block->ip) == FLOW_ODD)) {
		flow_odd(&thread->flow);
		resume_packets(thread, block->ip);
	}
}

/* A condition holds before @block. Give the CPU back, so that the rings are complete and no other
 * thread waits for this one, until ptctl has a snapshot. */
__attribute__((__noinline__)) static void pull_tripwire(struct thread *thread,
							const struct block *block)
{
	const bool is_signal = thread->due != 0;
	const struct condition_event event = {
		.index = (is_signal ? thread->due : block_watched(block)) - 1,
		.pid = thread->lease.who.pid,
		.tid = thread->lease.who.tid,
		.number = is_signal ? thread->due_signal : 0,
		.time_ns = attach_now_ns(),
		.ip = block->ip,
	};
	const bool is_recorded = thread->flow.encode;

	thread->due = 0;
	if (atomic_load(&thread->process->tripwire.is_over))
		return;
	if (is_recorded) {
		encode_disable_at(thread->flow.encode, block->ip);
		thread->flow.encode = NULL;
		lease_give(&thread->lease, false);
	}
	tripwire_pull(&thread->process->tripwire, &event);
	if (is_recorded)
		enter_user_code(thread, block, LEASE_YIELD);
}

/* Write the packets of the last block, and whatever else is due before @block. */
static void begin_block_recorded(struct thread *thread, const struct block *block)
{
	if (encode_is_timed(thread->flow.encode))
		encode_tick(thread->flow.encode, attach_now_ns());
	if (thread->wants_tsc || maps_version(&thread->process->maps) != thread->maps)
		write_time(thread);
	judge_thread_block(thread, block);
	attend_block(thread, block);
	if (thread->flow.encode &&
	    atomic_load_explicit(&block->version, memory_order_acquire) > thread->changes)
		meet_version(thread, block);
}

void thread_begin_block(struct thread *thread, const struct block *block)
{
	const struct emu_pool *pool = thread->pool;

	thread->news = atomic_load(&pool->news);
	if (thread->flow.encode)
		begin_block_recorded(thread, block);
	else
		enter_user_code(thread, block, LEASE_WAIT);
	if (thread->due || block_watched(block))
		pull_tripwire(thread, block);
	thread->flow.block = block;
	thread->left = false;
	thread->is_plain =
	    thread->flow.encode && !thread->wants_tsc && atomic_load(&pool->wait_until_ns) == 0;
}

/* Packets were written, and the instruction at @ip is next. */
static inline void end_packets(struct thread *thread, uint64_t ip)
{
	struct encode *e = &thread->lease.encode;

	if (unlikely(encode_psb_due(e)))
		encode_psb(e, ip, attach_now_ns());
	publish_packets(thread);
}

void thread_put_full(struct thread *thread, uint64_t ip)
{
	struct encode *e = &thread->lease.encode;

	if (unlikely(encode_is_timed(e)))
		encode_tick(e, attach_now_ns());
	encode_flush(e);
	end_packets(thread, ip);
}

void thread_begin_far(struct thread *thread, const struct block *block)
{
	struct encode *e = &thread->lease.encode;
	const struct block *last = thread->flow.block;

	if (encode_is_timed(e) && !(last->end == BLOCK_RETURN && encode_return_waits(e, block->ip)))
		encode_tick(e, attach_now_ns());
	/* A string instruction may go on. */
	if (unlikely(!flow_leads_far(last, block->ip, e) &&
		     !(last->end == BLOCK_REP && block->ip == last->last_ip))) {
		thread_begin_block(thread, block);
		return;
	}
	thread->flow.block = block;
	end_packets(thread, block->ip);
}

void thread_log_block(struct thread *thread, const struct block *block)
{
	struct flow *truth = &thread->truth;

	if (truth->block && flow_step(truth, block->ip) == FLOW_ODD)
		flow_odd(truth);
	truth->block = thread->flow.encode ? block : NULL;
	truth->last_began = block->n == 1;
}

void thread_leave(struct thread *thread, int64_t number, bool ending)
{
	HOLD(&thread->leaving);
	thread->is_plain = false;
	if (thread->flow.encode) {
		if (encode_is_timed(thread->flow.encode))
			encode_tick(thread->flow.encode, attach_now_ns());
		thread->flow.last_began = thread->flow.block->n > 0;
		if (flow_syscall(&thread->flow))
			poolrecord_syscall(thread->lease.attach, thread->lease.who,
					   (uint32_t)number);
		lease_give(&thread->lease, ending);
	}
	if (thread->truth.block)
		(void)flow_syscall(&thread->truth);
	thread->unrecorded = false;
}

void thread_stop(struct thread *thread)
{
	const process_register_fn read_register = thread->process->read_register;

	HOLD(&thread->leaving);
	thread->is_plain = false;
	if (thread->flow.encode) {
		uint64_t ip = read_register(thread->vcpu, PROCESS_RIP);

		/* A signal may already lead to a handler. */
		(void)target_at_handler(&thread->process->handlers, &thread->process->target, ip,
					read_register(thread->vcpu, PROCESS_RSP), &ip);
		interrupt_thread(thread, ip);
		lease_give(&thread->lease, true);
	}
}
