/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/file/mmaprec.h"

#include <assert.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>

#include "decoder/file/perfrec.h"

/* What both begin with. */
struct mmap_head {
	uint32_t pid, tid;
	uint64_t address, length, file_offset;
};

/* What MMAP2 has behind it. */
struct mmap2_tail {
	union {
		struct {
			uint32_t major, minor;
			uint64_t inode, inode_generation;
		};
		struct {
			uint8_t build_id_size;
			uint8_t reserved[3];
			uint8_t build_id[BUILDID_MAX];
		};
	};
	uint32_t prot, flags;
};

static_assert(sizeof(struct mmap2_tail) == 32, "as the kernel writes it");

static int read_tail(struct cursor *c, uint16_t misc, struct mmaprec *map)
{
	struct mmap2_tail tail;
	int r;

	r = cursor_get(c, sizeof(tail), &tail);
	if (r < 0)
		return r;

	map->executable = tail.prot & PROT_EXEC;
	map->prot = tail.prot;
	map->flags = tail.flags;
	if (!(misc & PERF_RECORD_MISC_MMAP_BUILD_ID)) {
		map->major = tail.major;
		map->minor = tail.minor;
		map->inode = tail.inode;
		map->inode_generation = tail.inode_generation;
		return 0;
	}
	if (tail.build_id_size > BUILDID_MAX)
		return -EBADMSG;
	map->build_id.size = tail.build_id_size;
	memcpy(map->build_id.bytes, tail.build_id, tail.build_id_size);
	return 0;
}

int mmaprec_read(const struct trace_record *record, struct mmaprec *ret_map)
{
	struct cursor c = cursor_from(record->payload, record->payload_size);
	struct mmap_head head;
	struct mmaprec map;
	int r;

	r = cursor_get(&c, sizeof(head), &head);
	if (r < 0)
		return r;

	map = (struct mmaprec){
		.pid = head.pid,
		.tid = head.tid,
		.start = head.address,
		.size = head.length,
		.offset = head.file_offset,
		.executable = !(record->misc & PERF_RECORD_MISC_MMAP_DATA),
		.kernel = head.pid == UINT32_MAX ||
			  (record->misc & PERF_RECORD_MISC_CPUMODE_MASK) != PERF_RECORD_MISC_USER,
	};
	if (record->type == PERF_RECORD_MMAP2) {
		r = read_tail(&c, record->misc, &map);
		if (r < 0)
			return r;
	}
	r = perfrec_get_string(&c, &map.path);
	if (r < 0)
		return r;

	*ret_map = map;
	return 0;
}
