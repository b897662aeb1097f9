/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/record.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Bytes a body has at least, by type; 0 stands for a type that does not belong in a snapshot. */
static const uint16_t body_min[] = {
	[PERF_RECORD_LOST] = 16,        [PERF_RECORD_COMM] = 16,
	[PERF_RECORD_EXIT] = 24,        [PERF_RECORD_FORK] = 24,
	[PERF_RECORD_MMAP2] = 72,       [PERF_RECORD_ITRACE_START] = 8,
	[PERF_RECORD_LOST_SAMPLES] = 8, [PERF_RECORD_SWITCH_CPU_WIDE] = 8,
	[PERF_RECORD_KSYMBOL] = 24,     [PERF_RECORD_BPF_EVENT] = 16,
	[PERF_RECORD_TEXT_POKE] = 16,
};

/* Offset of the string that must end within the body, by type; 0 if there is none. */
static uint16_t string_at(uint32_t type)
{
	switch (type) {
	case PERF_RECORD_COMM:
		return 8;
	case PERF_RECORD_MMAP2:
		return 64;
	case PERF_RECORD_KSYMBOL:
		return 16;
	default:
		return 0;
	}
}

int record_next(struct cursor *c, struct record *ret_record)
{
	struct cursor at = *c, whole, trailer;
	struct record r = {};
	size_t body;
	uint16_t string;

	if (cursor_left(&at) == 0)
		return RECORD_END;
	r.bytes = at.pos;
	whole = at;
	if (cursor_get(&at, sizeof(r.header), &r.header) < 0)
		return -EBADMSG;
	if (r.header.type >= ARRAY_LEN(body_min) || body_min[r.header.type] == 0)
		return -EBADMSG;
	if (r.header.size % 8 != 0 ||
	    r.header.size < sizeof(r.header) + body_min[r.header.type] + sizeof(r.trailer))
		return -EBADMSG;

	body = r.header.size - sizeof(r.header) - sizeof(r.trailer);
	if (cursor_get_sub(&at, body, &r.body) < 0)
		return -EBADMSG;
	trailer = at;
	if (cursor_get(&trailer, sizeof(r.trailer), &r.trailer) < 0)
		return -EBADMSG;
	if (r.trailer.id > RECORD_ID_SIDEBAND)
		return -EBADMSG;
	string = string_at(r.header.type);
	if (string > 0 && !memchr(r.body.pos + string, 0, body - string))
		return -EBADMSG;

	*c = cursor_from(whole.pos + r.header.size, cursor_left(&whole) - r.header.size);
	*ret_record = r;
	return 0;
}

int record_get_mmap2(const struct record *record, struct record_mmap2 *ret_mmap2)
{
	struct cursor c = record->body;
	struct {
		uint32_t pid, tid;
		uint64_t addr, len, pgoff;
		uint8_t id[24];
		uint32_t prot, flags;
	} raw;
	struct record_mmap2 m;

	if (record->header.type != PERF_RECORD_MMAP2 || cursor_get(&c, sizeof(raw), &raw) < 0 ||
	    !memchr(c.pos, 0, cursor_left(&c)))
		return -EBADMSG;

	m = (struct record_mmap2){
		.pid = raw.pid,
		.tid = raw.tid,
		.addr = raw.addr,
		.len = raw.len,
		.pgoff = raw.pgoff,
		.prot = raw.prot,
		.flags = raw.flags,
		.name = (const char *)c.pos,
	};
	/* With the flag the device and inode numbers make place for {u8 size, 3 zeros, u8[20]}. */
	if (record->header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
		if (raw.id[0] > BUILDID_MAX)
			return -EBADMSG;
		m.build_id.size = raw.id[0];
		memcpy(m.build_id.bytes, raw.id + 4, raw.id[0]);
	} else {
		memcpy(&m.maj, raw.id, sizeof(m.maj));
		memcpy(&m.min, raw.id + 4, sizeof(m.min));
		memcpy(&m.ino, raw.id + 8, sizeof(m.ino));
	}
	*ret_mmap2 = m;
	return 0;
}

int record_get_task(const struct record *record, struct record_task *ret_task)
{
	struct cursor c = record->body;

	if (record->header.type != PERF_RECORD_FORK && record->header.type != PERF_RECORD_EXIT)
		return -EBADMSG;
	return cursor_get(&c, sizeof(*ret_task), ret_task);
}

static bool is_switch(const struct record *r, uint32_t cpu)
{
	return (r->header.type == PERF_RECORD_SWITCH_CPU_WIDE ||
		r->header.type == PERF_RECORD_ITRACE_START || r->header.type == PERF_RECORD_LOST) &&
	       r->trailer.cpu == cpu;
}

/*
 * Judged from the end, because the end is the one place where a record is known to stop: a position
 * is good if a switch record begins there and what follows it is the end or a good, not earlier
 * one. Every position is looked at once, whatever the bytes are.
 */
int record_resync(const uint8_t *bytes, size_t size, uint32_t cpu, size_t *ret_start)
{
	const size_t skew = size % 8, n = size / 8;
	_cleanup_(freep) uint64_t *times = NULL; /* of the record at a good position, plus 1 */
	size_t start = size;

	times = calloc(n + 1, sizeof(*times));
	if (!times)
		return -ENOMEM;

	times[n] = UINT64_MAX;
	for (size_t i = n; i-- > 0;) {
		struct cursor c = cursor_from(bytes + skew + 8 * i, 8 * (n - i));
		struct record r;
		uint64_t next;

		if (record_next(&c, &r) != 0 || !is_switch(&r, cpu) ||
		    r.trailer.time >= UINT64_MAX - 1)
			continue;
		next = times[i + r.header.size / 8];
		if (next == 0 || next <= r.trailer.time)
			continue;
		times[i] = r.trailer.time + 1;
		start = skew + 8 * i;
	}
	*ret_start = start;
	return 0;
}
