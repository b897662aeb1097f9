/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "daemon/emu/lease.h"

#include <assert.h>
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WAIT_NS       UINT64_C(2000000)
#define WAIT_SLICE_NS 200000

static uint64_t owner_of(struct sideband_who who)
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

static bool claim(struct lease *lease, uint32_t i, uint64_t from)
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
	if (lease->who.cpu >= from && lease->who.cpu < to && claim(lease, lease->who.cpu, 0))
		return true;
	for (uint32_t i = from; i < to; i++)
		if (claim(lease, i, 0))
			return true;
	return false;
}

/*
 * Take the CPU of an owner that was killed. What it did last is not known, so that a decoder has to
 * be told that packets are missing.
 */
static bool claim_orphan(struct lease *lease)
{
	for (uint32_t i = 0; i < lease->attach->layout.n_cpus; i++) {
		const uint64_t owner = atomic_load(&attach_cpu(lease->attach, i)->owner);
		const pid_t pid = (pid_t)(owner >> 32), tid = (pid_t)(uint32_t)owner;

		if (pid <= 0 || tid <= 0)
			continue;
		if (syscall(SYS_tgkill, pid, tid, 0) == 0 || errno != ESRCH)
			continue;
		if (claim(lease, i, owner)) {
			lease_cpu(lease)->released_ns = attach_now_ns();
			lease->lost = true;
			return true;
		}
	}
	return false;
}

static bool claim_waiting(struct lease *lease, bool yield)
{
	const uint32_t n_busy_max = lease->attach->layout.n_busy_max;
	const uint64_t until = attach_now_ns() + WAIT_NS;
	struct emu_pool *pool = lease->attach->pool;
	uint32_t seen = atomic_load(&pool->released);
	bool got = false;

	if (yield)
		futex_wait(&pool->released, seen);
	atomic_fetch_add(&pool->waiters, 1);
	for (;;) {
		seen = atomic_load(&pool->released);
		got = claim_free(lease, 0, n_busy_max);
		if (got || attach_now_ns() >= until)
			break;
		futex_wait(&pool->released, seen);
	}
	atomic_fetch_sub(&pool->waiters, 1);
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

static void begin(struct lease *lease)
{
	const struct emu_pool_layout *l = &lease->attach->layout;
	struct emu_cpu *cpu = lease_cpu(lease);
	struct encode *e = &cpu->encode;

	if (e->ring_size == 0)
		encode_init(e, l->aux_size, l->psb_period, l->return_compression);
	/* Where the ring is in this process, and how it is to be used, no other process may tell. */
	e->ring = attach_at(lease->attach, emu_aux_offset(l, lease->who.cpu));
	e->ring_size = l->aux_size;
	e->psb_period = l->psb_period;
	e->return_compression = l->return_compression;

	lease->since_ns = attach_now_ns();
	sideband_run(lease->attach, lease->who, lease->since_ns);
	if (lease->lost || e->enabled || e->n_tnt > 0)
		encode_overflow(e, lease->since_ns);
	lease->lost = false;
	atomic_store(&cpu->freeze_done, atomic_load(&lease->attach->pool->freeze));
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
	begin(lease);
	return 0;
}

void lease_give(struct lease *lease, bool idle)
{
	struct emu_pool *pool = lease->attach->pool;
	struct emu_cpu *cpu = lease_cpu(lease);

	assert(lease->held && !cpu->encode.enabled);

	cpu->released_ns = attach_now_ns();
	if (idle)
		sideband_idle(lease->attach, lease->who.cpu, cpu->released_ns);
	atomic_store_explicit(&cpu->aux_head, cpu->encode.head, memory_order_release);
	lease->held = false;
	atomic_store(&cpu->owner, 0);
	if (atomic_load(&pool->waiters) > 0) {
		atomic_fetch_add(&pool->released, 1);
		futex_wake_one(&pool->released);
	}
}
