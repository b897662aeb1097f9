/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "daemon/plugin/lease.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/textfile.h"

#define WAIT_NS       UINT64_C(2000000)
#define WAIT_SLICE_NS 200000

static uint64_t owner_of(struct poolrecord_who who)
{
	return (uint64_t)who.pid << 32 | who.tid;
}

static void futex_wait(_Atomic uint32_t *word, uint32_t seen)
{
	const struct timespec slice = { .tv_nsec = WAIT_SLICE_NS };

	(void)syscall(SYS_futex, word, FUTEX_WAIT, seen, &slice, NULL, 0);
}

static void futex_wake_one(_Atomic uint32_t *word)
{
	(void)syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static bool claim_cpu(struct lease *lease, uint32_t i, uint64_t from)
{
	struct emu_cpu *cpu = attach_cpu(lease->attach, i);

	if (atomic_load_explicit(&cpu->owner, memory_order_relaxed) != from)
		return false;
	if (!atomic_compare_exchange_strong(&cpu->owner, &from, owner_of(lease->who)))
		return false;
	lease->who.cpu = i;
	return true;
}

static bool claim_free(struct lease *lease, uint32_t from, uint32_t to)
{
	if (lease->who.cpu >= from && lease->who.cpu < to && claim_cpu(lease, lease->who.cpu, 0))
		return true;
	for (uint32_t i = from; i < to; i++)
		if (claim_cpu(lease, i, 0))
			return true;
	return false;
}

/* Return: whether the thread was killed. Sending signal 0 to it comes first because that does not
 * need /proc, but does not suffice: a zombie process still has its leader. */
static bool is_gone(pid_t pid, pid_t tid)
{
	char path[64], text[128];
	const char *state;

	if (syscall(SYS_tgkill, pid, tid, 0) < 0)
		return errno == ESRCH;
	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	if (textfile_read(AT_FDCWD, path, text, sizeof(text)) < 0)
		return false;
	/* "TID (NAME) STATE …" */
	state = strrchr(text, ')');
	return state && state[1] == ' ' && (state[2] == 'Z' || state[2] == 'X');
}

/* Take the CPU of an owner that was killed. What the owner did last is not known, so packets must
 * say that some are missing. */
static bool claim_orphan(struct lease *lease)
{
	for (uint32_t i = 0; i < lease->attach->layout.n_cpus; i++) {
		const uint64_t owner = atomic_load(&attach_cpu(lease->attach, i)->owner);
		const pid_t pid = (pid_t)(owner >> 32), tid = (pid_t)(uint32_t)owner;

		if (pid > 0 && tid > 0 && is_gone(pid, tid) && claim_cpu(lease, i, owner)) {
			lease_cpu(lease)->released_ns = attach_now_ns();
			lease->lost = true;
			return true;
		}
	}
	return false;
}

bool lease_wanted(const struct attach *attach, uint64_t now_ns)
{
	struct emu_pool *pool = attach->pool;
	uint64_t until = atomic_load(&pool->wait_until_ns);

	if (until == 0)
		return false;
	if (until > now_ns && until - now_ns <= WAIT_NS)
		return true;
	/* A thread that was killed left this behind, unless another thread waits now. */
	(void)atomic_compare_exchange_strong(&pool->wait_until_ns, &until, 0);
	return false;
}

static bool claim_waiting(struct lease *lease, bool yield)
{
	const uint32_t n_busy_max = lease->attach->layout.n_busy_max;
	struct emu_pool *pool = lease->attach->pool;
	uint64_t now = attach_now_ns(), until = now + WAIT_NS, said;
	uint32_t seen = atomic_load(&pool->released);
	bool got;

	if (yield)
		futex_wait(&pool->released, seen);
	for (;;) {
		/* This is set again each time, because another waiting thread may have removed its
		 * own time. */
		said = now + WAIT_NS;
		atomic_store(&pool->wait_until_ns, said);
		atomic_fetch_add(&pool->news, 1);
		seen = atomic_load(&pool->released);
		got = claim_free(lease, 0, n_busy_max);
		now = attach_now_ns();
		if (got || now >= until)
			break;
		futex_wait(&pool->released, seen);
	}
	(void)atomic_compare_exchange_strong(&pool->wait_until_ns, &said, 0);
	return got || claim_orphan(lease);
}

static bool claim_any(struct lease *lease, enum lease_manner manner)
{
	const struct emu_pool_layout *l = &lease->attach->layout;

	if (manner != LEASE_YIELD && claim_free(lease, 0, l->n_busy_max))
		return true;
	if (manner != LEASE_TRY && claim_waiting(lease, manner == LEASE_YIELD))
		return true;
	return claim_free(lease, l->n_busy_max, l->n_cpus);
}

static void begin_lease(struct lease *lease)
{
	const struct emu_pool_layout *l = &lease->attach->layout;
	struct emu_cpu *cpu = lease_cpu(lease);
	struct encode *e = &lease->encode;

	/* The place of the ring and its use come from this process, so that other processes that
	 * write to the shared state cannot change what this thread does. */
	encode_init(e, l->aux_size, l->psb_period, l->return_compression, l->long_tnt);
	e->timing = l->timing;
	e->mode = lease->mode;
	e->ring = attach_at(lease->attach, emu_aux_offset(l, lease->who.cpu));
	if (cpu->is_used)
		lease->lost |= encode_adopt(e, &cpu->encode);
	/* What a killed owner had not published is overwritten. */
	e->state.head = atomic_load_explicit(&cpu->aux_head, memory_order_acquire);

	lease->since_ns = attach_now_ns();
	poolrecord_run(lease->attach, lease->who, lease->since_ns);
	if (lease->lost)
		encode_overflow(e, lease->since_ns);
	lease->lost = false;
	atomic_store(&cpu->flush_done, atomic_load(&lease->attach->pool->flush));
	lease->held = true;
}

int lease_take(struct lease *lease, enum lease_manner manner)
{
	assert(!lease->held);

	if (!claim_any(lease, manner)) {
		if (manner != LEASE_TRY)
			atomic_fetch_add(&lease->attach->pool->exhausted, 1);
		lease->lost = true;
		return LEASE_NONE;
	}
	begin_lease(lease);
	return 0;
}

void lease_give(struct lease *lease, bool idle)
{
	struct emu_pool *pool = lease->attach->pool;
	struct emu_cpu *cpu = lease_cpu(lease);

	assert(lease->held && !lease->encode.state.enabled);

	cpu->released_ns = attach_now_ns();
	if (idle)
		poolrecord_idle(lease->attach, lease->who.cpu, cpu->released_ns);
	cpu->encode = lease->encode.state;
	cpu->is_used = 1;
	atomic_store_explicit(&cpu->aux_head, lease->encode.state.head, memory_order_release);
	lease->held = false;
	atomic_store(&cpu->owner, 0);
	if (atomic_load(&pool->wait_until_ns) != 0) {
		atomic_fetch_add(&pool->released, 1);
		futex_wake_one(&pool->released);
	}
}
