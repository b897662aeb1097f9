/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Perf records as a source writes them, for the tests of the daemon: each function appends one to a
 * buffer that grows.
 */

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/lib/perfbuild.h"
#include "util/buildid.h"
#include "util/perf/record.h"

struct records {
	uint8_t *bytes;
	size_t size;
	size_t room; /* bytes allocated */
};

/* Few records lie in hardly more memory than they need, so that a sanitizer sees who reads beyond
 * them; many are not copied again for each one. */
static inline void records_add(struct records *r, const void *bytes, size_t size)
{
	const size_t few = (size_t)1 << 16;
	const size_t end = r->size + size;

	if (end >= r->room) {
		r->room = end < few ? end + 1 : 2 * end;
		r->bytes = realloc(r->bytes, r->room);
	}
	if (!r->bytes)
		abort();
	memcpy(r->bytes + r->size, bytes, size);
	r->size += size;
}

static inline void records_deinit(struct records *r)
{
	free(r->bytes);
	*r = (struct records){};
}

/* Take over what was built from @at on. */
static inline void records_take(struct records *r, const struct perfbuild *b, size_t at)
{
	const size_t size = b->size - at;

	if (size > sizeof(b->bytes))
		abort();
	records_add(r, b->bytes + at, size);
}

/* The CPU that task records name. */
static uint32_t records_at_cpu;

/* A builder of records that task @pid makes on @cpu at @time. */
static inline struct perfbuild *records_at(uint32_t pid, uint64_t time, uint32_t cpu)
{
	static struct perfbuild b;

	perfbuild_begin(&b, false);
	perfbuild_at(&b, time, cpu, pid, pid);
	return &b;
}

/* @tid comes to @cpu, or leaves it. */
static inline void records_switch(struct records *r, uint32_t tid, bool out, uint64_t time,
				  uint32_t cpu)
{
	struct perfbuild *b = records_at(tid, time, cpu);

	records_take(r, b, perfbuild_switch_wide(b, out, 0, 0));
}

static inline void records_comm(struct records *r, uint32_t tid, const char *comm, uint64_t time)
{
	struct perfbuild *b = records_at(tid, time, records_at_cpu);

	records_take(r, b, perfbuild_comm(b, false, tid, tid, comm));
}

static inline void records_fork(struct records *r, uint32_t pid, uint32_t ppid, uint64_t time)
{
	struct perfbuild *b = records_at(pid, time, records_at_cpu);

	records_take(r, b, perfbuild_fork(b, pid, ppid, pid, ppid));
}

/* A mapping of the first 12 KiB at 0x400000, executable; @id may be NULL. */
static inline void records_mmap2(struct records *r, uint32_t pid, const char *path,
				 const struct buildid *id, uint64_t time)
{
	struct perfbuild *b = records_at(pid, time, records_at_cpu);
	struct record_mmap2 mmap = {
		.misc = PERF_RECORD_MISC_USER,
		.pid = pid,
		.tid = pid,
		.addr = 0x400000,
		.len = 0x3000,
		.prot = PROT_READ | PROT_EXEC,
		.name = path,
	};

	if (id)
		mmap.build_id = *id;
	records_take(r, b, perfbuild_mapping(b, PERF_RECORD_MMAP2, &mmap));
}
