/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Perf records as a source writes them, for the tests of the daemon. Each function appends one
 * record to a buffer that grows.
 */

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/record.h"
#include "decoder/util/perfabi.h"

struct records {
	uint8_t *bytes;
	size_t size;
};

static inline void records_add(struct records *r, const void *bytes, size_t size)
{
	r->bytes = realloc(r->bytes, r->size + size + 1);
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

/* A record with any body; padded to 8 bytes. */
static inline void records_put(struct records *r, uint32_t type, uint16_t misc, const void *body,
			       size_t body_size, struct perfabi_trailer trailer)
{
	static const uint8_t zeros[8];
	const size_t padding = -body_size % 8;
	const struct perf_event_header header = {
		.type = type,
		.misc = misc,
		.size = (uint16_t)(sizeof(header) + body_size + padding + sizeof(trailer)),
	};

	records_add(r, &header, sizeof(header));
	records_add(r, body, body_size);
	records_add(r, zeros, padding);
	records_add(r, &trailer, sizeof(trailer));
}

static inline struct perfabi_trailer records_trailer(uint32_t tid, uint64_t time, uint32_t cpu)
{
	return (struct perfabi_trailer){
		.pid = tid, .tid = tid, .time = time, .cpu = cpu, .id = RECORD_ID_SIDEBAND
	};
}

/* @tid comes to @cpu, or leaves it. */
static inline void records_switch(struct records *r, uint32_t tid, bool out, uint64_t time,
				  uint32_t cpu)
{
	const uint32_t body[2] = { 0, 0 };

	records_put(r, PERF_RECORD_SWITCH_CPU_WIDE, out ? PERF_RECORD_MISC_SWITCH_OUT : 0, body,
		    sizeof(body), records_trailer(tid, time, cpu));
}

static inline void records_comm(struct records *r, uint32_t tid, const char *comm, uint64_t time)
{
	uint8_t body[24] = {};

	memcpy(body, (uint32_t[]){ tid, tid }, 8);
	strncpy((char *)body + 8, comm, 15);
	records_put(r, PERF_RECORD_COMM, 0, body, sizeof(body), records_trailer(tid, time, 0));
}

static inline void records_fork(struct records *r, uint32_t pid, uint32_t ppid, uint64_t time)
{
	struct {
		uint32_t pid, ppid, tid, ptid;
		uint64_t time;
	} body = { pid, ppid, pid, ppid, time };

	records_put(r, PERF_RECORD_FORK, 0, &body, sizeof(body), records_trailer(pid, time, 0));
}

/* A mapping of the first 12 KiB at 0x400000, executable; @id may be NULL. */
static inline void records_mmap2(struct records *r, uint32_t pid, const char *path,
				 const struct buildid *id, uint64_t time)
{
	uint8_t body[64 + 4096] = {};
	const uint32_t prot = PROT_READ | PROT_EXEC;

	memcpy(body, (uint32_t[]){ pid, pid }, 8);
	memcpy(body + 8, (uint64_t[]){ 0x400000, 0x3000, 0 }, 24);
	if (id) {
		body[32] = id->size;
		memcpy(body + 36, id->bytes, id->size);
	}
	memcpy(body + 56, &prot, 4);
	strncpy((char *)body + 64, path, 4095);
	records_put(r, PERF_RECORD_MMAP2,
		    PERF_RECORD_MISC_USER | (id ? PERF_RECORD_MISC_MMAP_BUILD_ID : 0), body,
		    64 + strlen(path) + 1, records_trailer(pid, time, 0));
}
