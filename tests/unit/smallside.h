/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Small sideband
 *
 * The sideband of a trace of one CPU, 0, for units: process 10 executes a program at BASE, and
 * threads come and go.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/base.h"
#include "tests/unit/tracerecord.h"

#define BASE 0x401000

/* From this time on the thread runs on CPU 0. */
struct switch_in {
	uint64_t time;
	uint32_t pid, tid;
};

/* The trace's records, and the bytes they point to. */
struct sideband {
	struct trace_record records[16];
	size_t n;
	uint8_t bytes[16][256];
};

/* Where the next record is to be written. */
#define AT(s)   ((s)->bytes[(s)->n])
#define ROOM(s) sizeof(AT(s))

/* A record of @size bytes was. */
static inline void added(struct sideband *s, size_t size)
{
	assert_true(s->n < ARRAY_LEN(s->records));
	s->records[s->n] = tracerecord_from(AT(s), size);
	s->n++;
}

static inline struct trailer made_by(uint32_t cpu, uint64_t time, uint32_t pid, uint32_t tid)
{
	return (struct trailer){ .pid = pid, .tid = tid, .time = time, .cpu = cpu };
}

static inline void add_map(struct sideband *s, uint32_t cpu, uint64_t time, uint64_t addr,
			   const char *path)
{
	const struct record_mmap2 map = { .misc = PERF_RECORD_MISC_USER,
					  .pid = 10,
					  .tid = 10,
					  .addr = addr,
					  .len = 4096,
					  .prot = PROT_READ | PROT_EXEC,
					  .name = path };
	const struct trailer trailer = made_by(cpu, time, 10, 10);

	added(s, record_write_mmap2(&map, &trailer, AT(s), ROOM(s)));
}

static inline void add_program(struct sideband *s, uint32_t cpu, uint64_t time, const char *path)
{
	const struct record_comm comm = { .exec = true, .pid = 10, .tid = 10, .comm = "prog" };
	const struct trailer trailer = made_by(cpu, time, 10, 10);

	added(s, record_write_comm(&comm, &trailer, AT(s), ROOM(s)));
	add_map(s, cpu, time, BASE, path);
}

static inline void add_fork(struct sideband *s, uint64_t time, uint32_t pid, uint32_t tid)
{
	const struct record_task fork = { pid, 10, tid, 10, time, 0 };
	const struct trailer trailer = made_by(9, time, pid, tid);

	added(s, record_write_fork(&fork, &trailer, AT(s), ROOM(s)));
}

static inline int by_time(const void *a, const void *b)
{
	const struct trace_record *x = a, *y = b;

	return x->time < y->time ? -1 : x->time > y->time;
}

static inline void add_switch(struct sideband *s, const struct switch_in *to)
{
	const struct record_switch in = {};
	const struct trailer trailer = made_by(0, to->time, to->pid, to->tid);

	added(s, record_write_switch_cpu_wide(&in, &trailer, AT(s), ROOM(s)));
}

static inline void sort_sideband(struct sideband *s)
{
	/* Pairs of one time are in order already, and glibc's qsort keeps them so. */
	qsort(s->records, s->n, sizeof(s->records[0]), by_time);
}
