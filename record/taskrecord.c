/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/taskrecord.h"

#include <limits.h>
#include <string.h>

#include "record/record.h"

static struct perfabi_trailer trailer_of(uint32_t pid, uint32_t tid, uint64_t time)
{
	return (struct perfabi_trailer){
		.pid = pid, .tid = tid, .time = time, .id = RECORD_ID_SIDEBAND
	};
}

struct taskrecord_lost taskrecord_lost(uint64_t lost, uint64_t time)
{
	return (struct taskrecord_lost){
		.header = { .type = PERF_RECORD_LOST, .size = sizeof(struct taskrecord_lost) },
		.id = RECORD_ID_SIDEBAND,
		.lost = lost,
		.trailer = trailer_of(0, 0, time),
	};
}

int taskrecord_comm(uint32_t pid, uint32_t tid, const char *comm, uint64_t time,
		    taskrecord_put_fn put, void *userdata)
{
	struct {
		struct perf_event_header header;
		uint32_t pid, tid;
		char comm[TASKRECORD_COMM_SIZE];
		struct perfabi_trailer trailer;
	} record = {
		.header = { .type = PERF_RECORD_COMM, .size = sizeof(record) },
		.pid = pid,
		.tid = tid,
		.trailer = trailer_of(pid, tid, time),
	};

	(void)strncpy(record.comm, comm, sizeof(record.comm) - 1);
	return put(userdata, &record, sizeof(record));
}

int taskrecord_mmap2(const struct record_mmap2 *mmap, uint64_t time, taskrecord_put_fn put,
		     void *userdata)
{
	struct head {
		struct perf_event_header header;
		uint32_t pid, tid;
		uint64_t addr, len, pgoff;
		union {
			struct {
				uint32_t maj, min;
				uint64_t ino, ino_generation;
			};
			struct {
				uint8_t id_size, reserved[3];
				uint8_t id[BUILDID_MAX];
			};
		};
		uint32_t prot, flags;
	} head = {
		.header = { .type = PERF_RECORD_MMAP2, .misc = PERF_RECORD_MISC_USER },
		.pid = mmap->pid,
		.tid = mmap->tid,
		.addr = mmap->addr,
		.len = mmap->len,
		.pgoff = mmap->pgoff,
		.maj = mmap->maj,
		.min = mmap->min,
		.ino = mmap->ino,
		.prot = mmap->prot,
		.flags = mmap->flags,
	};
	const struct perfabi_trailer trailer = trailer_of(mmap->pid, mmap->tid, time);
	const char *name = strlen(mmap->name) < PATH_MAX ? mmap->name : "//toolong";
	const size_t padded = (strlen(name) + 8) & ~(size_t)7;
	uint8_t bytes[sizeof(head) + PATH_MAX + 8 + sizeof(trailer)] = {};

	if (mmap->build_id.size > 0) {
		head.header.misc |= PERF_RECORD_MISC_MMAP_BUILD_ID;
		head.ino_generation = 0;
		memset(head.reserved, 0, sizeof(head.reserved));
		head.id_size = mmap->build_id.size;
		memcpy(head.id, mmap->build_id.bytes, sizeof(head.id));
	}
	head.header.size = (uint16_t)(sizeof(head) + padded + sizeof(trailer));
	memcpy(bytes, &head, sizeof(head));
	memcpy(bytes + sizeof(head), name, strlen(name));
	memcpy(bytes + sizeof(head) + padded, &trailer, sizeof(trailer));
	return put(userdata, bytes, head.header.size);
}
