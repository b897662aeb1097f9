/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Pool
 *
 * The memory that ptd shares with the programs that it records through the software source: a pool
 * of virtual CPUs, each with an AUX ring, a switch ring and an event ring; one task ring for all;
 * and one ring of code that is in no file (coderecord.h).
 *
 * ptd makes the pool, a memfd sealed against growing and shrinking. It remembers the layout and
 * trusts nothing in the pool, because a recorded program can overwrite all of it. For the same
 * reason a program uses only a checked copy of the header, and the pool has no addresses of a
 * process.
 *
 *	header page | n_cpus x (cpu page(s) | switch ring | event ring | AUX ring)
 *		    | task ring | code ring
 *
 * The sizes of rings are powers of two. A head is a running count of all bytes written. It is
 * published with release order at the end of a packet or record, and its reader loads it with
 * acquire order. The rings of a CPU are overwritten. ptd drains the task ring and publishes
 * the tail; when the ring is full, lost records are counted in @task_lost, and a PERF_RECORD_LOST
 * follows as soon as there is room. ptd drains the code ring, too; code for which it has no room
 * runs without packets.
 *
 * Times are CLOCK_MONOTONIC in ns, and the TSC in the packets is the same number: the conversion
 * (shift 0, mult 1, zero 0) is exact.
 */

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/base.h"
#include "daemon/plugin/encode.h"

#define EMU_POOL_MAGIC   UINT64_C(0x006c6f6f70647470) /* "ptdpool" */
#define EMU_POOL_VERSION 12u
#define EMU_CPUS_MAX     256u

struct emu_pool_layout {
	uint32_t n_cpus;     /* how many exist: 1..EMU_CPUS_MAX */
	uint32_t n_busy_max; /* how many may be in use before a thread waits for one; the rest is
			      * for threads that waited in vain */
	uint64_t aux_size;
	uint64_t switch_size;
	uint64_t event_size;
	uint64_t task_size;
	uint64_t code_size;
	uint32_t psb_period;
	uint32_t quantum_us; /* a thread gives its CPU back after so much time if another waits */
	bool return_compression;
	bool long_tnt;
	struct encode_timing timing;
};

/* Inode numbers of ptd's namespaces; 0: not known. In other namespaces process numbers and the
 * clock mean something else. */
struct emu_pool_home {
	uint64_t pid_ns;
	uint64_t time_ns;
};

/* ptd writes this once, and each program copies it. */
struct emu_pool_header {
	uint64_t magic;
	uint32_t version;
	struct emu_pool_layout layout;
	struct emu_pool_home home;
};

/* First page. */
struct emu_pool {
	struct emu_pool_header header;

	/* Threads wait for a CPU, and none of them beyond this time; 0: none waits. A count of
	 * waiting threads would stay too high when one of them is killed. */
	_Atomic uint64_t wait_until_ns;
	_Atomic uint32_t released;   /* counts releases: futex that waiters sleep on */
	_Atomic uint32_t flush;      /* ptd adds 1; CPUs in use then flush at their next block */
	_Atomic uint32_t news;       /* grows whenever @flush does, or a thread begins to wait */
	_Atomic uint32_t n_attached; /* processes that map the pool */
	_Atomic uint64_t exhausted;  /* times that a thread got no CPU and ran unrecorded */

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
	_Atomic uint64_t event_head;
	_Atomic uint32_t flush_done; /* value of emu_pool.flush up to which it has flushed */

	/* Owner's only. */
	uint32_t current_pid; /* the thread in the last switch record; 0 = idle */
	uint32_t current_tid;
	uint64_t released_ns; /* when it was last given back */
	uint32_t is_used;     /* an owner left @encode; no bool, since others can write here */
	struct encode_state encode;
};

/*
 * What a thread did on a CPU that packets do not show. The CPU's owner writes these into the event
 * ring, in the order of time. They never cross the end of the ring.
 */
enum emu_event_kind {
	EMU_EVENT_SYSCALL = 1,
	EMU_EVENT_SIGNAL = 2,
};

struct emu_event {
	uint64_t time_ns;
	uint32_t pid;
	uint32_t tid;
	uint32_t kind; /* enum emu_event_kind */
	uint32_t
	    number; /* of the system call that the thread enters, or the signal that it takes */
	uint64_t handler; /* of a signal */
};

static_assert(sizeof(struct emu_event) == 32, "a power of two, as the size of the ring");

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
	return emu_page_up(sizeof(struct emu_cpu)) + l->switch_size + l->event_size + l->aux_size;
}

static inline uint64_t emu_cpu_offset(const struct emu_pool_layout *l, uint32_t cpu)
{
	return emu_page_up(sizeof(struct emu_pool)) + cpu * emu_cpu_stride(l);
}

static inline uint64_t emu_switch_offset(const struct emu_pool_layout *l, uint32_t cpu)
{
	return emu_cpu_offset(l, cpu) + emu_page_up(sizeof(struct emu_cpu));
}

static inline uint64_t emu_event_offset(const struct emu_pool_layout *l, uint32_t cpu)
{
	return emu_switch_offset(l, cpu) + l->switch_size;
}

static inline uint64_t emu_aux_offset(const struct emu_pool_layout *l, uint32_t cpu)
{
	return emu_event_offset(l, cpu) + l->event_size;
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
