/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Pool
 *
 * The shared memory between ptd and the programs it records through the software PT source: a pool
 * of virtual CPUs, each with an AUX ring and a switch ring, and for all of them one ring of task
 * records and one of code that is in no file (coderecord.h).
 * ptd makes it (a memfd sealed against growing and shrinking), remembers the layout it asked for,
 * and believes nothing else that is in it: a traced program can scribble over it. For the same
 * reason a program uses a checked copy of the header only, and no address of a process is stored
 * in it.
 *
 *	header page | n_cpus x (cpu page(s) | switch ring | AUX ring) | task ring | code ring
 *
 * Rings are powers of two. A head is a running count of bytes ever written, published with release
 * order at the end of a packet or record; its reader loads it with acquire order. The AUX and the
 * switch rings are overwritten; the task ring is drained by ptd, which publishes tail, and when it
 * is full records are counted in @task_lost and a PERF_RECORD_LOST follows as soon as there is
 * room. The code ring is drained, too; code that finds no room in it runs without packets.
 *
 * Time is CLOCK_MONOTONIC in ns, and the TSC of the packets is that same number: the conversion
 * (shift 0, mult 1, zero 0) is exact.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/base.h"
#include "daemon/emu/encode.h"

#define EMU_POOL_MAGIC   UINT64_C(0x006c6f6f70647470) /* "ptdpool" */
#define EMU_POOL_VERSION 6u
#define EMU_CPUS_MAX     256u

struct emu_pool_layout {
	uint32_t n_cpus;     /* how many exist: 1..EMU_CPUS_MAX */
	uint32_t n_busy_max; /* how many are handed out before a thread waits for one; the rest is
			      * for threads that waited in vain */
	uint64_t aux_size;
	uint64_t switch_size;
	uint64_t task_size;
	uint64_t code_size;
	uint32_t psb_period;
	uint32_t quantum_us; /* a thread gives its CPU back after so much time if another waits */
	bool return_compression;
	struct encode_timing timing;
};

/* Inode numbers of the namespaces in which ptd reads what is recorded: numbers of processes and
 * the clock mean something else in others. 0: not known. */
struct emu_pool_home {
	uint64_t pid_ns;
	uint64_t time_ns;
};

/* What ptd writes once, for the programs to copy. */
struct emu_pool_header {
	uint64_t magic;
	uint32_t version;
	struct emu_pool_layout layout;
	struct emu_pool_home home;
};

/* First page. */
struct emu_pool {
	struct emu_pool_header header;

	/* Some thread waits for a CPU, but none beyond this time; 0: none does. Whoever is killed
	 * while it waits leaves it behind, so that a count would not do. */
	_Atomic uint64_t wait_until_ns;
	_Atomic uint32_t released;   /* counts releases: futex that waiters sleep on */
	_Atomic uint32_t freeze;     /* ptd adds 1: every CPU in use flushes at its next block */
	_Atomic uint32_t n_attached; /* processes that map the pool */
	_Atomic uint64_t exhausted; /* stays of threads that found no CPU at all and ran untraced */

	_Atomic uint32_t task_lock; /* tid of the holder or 0 */
	_Atomic uint64_t task_head;
	_Atomic uint64_t task_tail; /* ptd's */
	_Atomic uint64_t task_lost; /* records dropped since the last PERF_RECORD_LOST */

	_Atomic uint32_t code_lock; /* tid of the holder or 0 */
	_Atomic uint64_t code_head;
	_Atomic uint64_t code_tail; /* ptd's */
	_Atomic uint64_t code_lost; /* translations that found no room */
};

/* First page(s) of a CPU's part. */
struct emu_cpu {
	_Atomic uint64_t owner; /* pid << 32 | tid of the thread that runs on it; 0 = free */
	_Atomic uint64_t aux_head;
	_Atomic uint64_t switch_head;
	_Atomic uint32_t freeze_done; /* value of emu_pool.freeze up to which it has flushed */

	/* Owner's only. */
	uint32_t current_pid; /* whom the switch records say runs here; 0 = idle */
	uint32_t current_tid;
	uint64_t released_ns; /* when it was last given back */
	uint32_t is_used;     /* @encode is what an owner left; no bool, as others write here */
	struct encode_state encode;
};

static inline uint64_t emu_namespace(const char *name)
{
	char path[64];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
	return stat(path, &st) < 0 ? 0 : st.st_ino;
}

/* Return: the namespaces of the calling process. */
static inline struct emu_pool_home emu_pool_here(void)
{
	return (struct emu_pool_home){ emu_namespace("pid"), emu_namespace("time") };
}

static inline uint64_t emu_page_up(uint64_t n)
{
	return (n + 4095) & ~UINT64_C(4095);
}

static inline uint64_t emu_cpu_stride(const struct emu_pool_layout *l)
{
	return emu_page_up(sizeof(struct emu_cpu)) + l->switch_size + l->aux_size;
}

static inline uint64_t emu_cpu_offset(const struct emu_pool_layout *l, uint32_t cpu)
{
	return emu_page_up(sizeof(struct emu_pool)) + cpu * emu_cpu_stride(l);
}

static inline uint64_t emu_switch_offset(const struct emu_pool_layout *l, uint32_t cpu)
{
	return emu_cpu_offset(l, cpu) + emu_page_up(sizeof(struct emu_cpu));
}

static inline uint64_t emu_aux_offset(const struct emu_pool_layout *l, uint32_t cpu)
{
	return emu_switch_offset(l, cpu) + l->switch_size;
}

static inline uint64_t emu_task_offset(const struct emu_pool_layout *l)
{
	return emu_cpu_offset(l, l->n_cpus);
}

static inline uint64_t emu_code_offset(const struct emu_pool_layout *l)
{
	return emu_task_offset(l) + l->task_size;
}

static inline uint64_t emu_pool_size(const struct emu_pool_layout *l)
{
	return emu_code_offset(l) + l->code_size;
}
