/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/perf/record.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/perf/perfrec.h"

/* Return: whether a record of this type belongs in a snapshot, and its body can be read. */
static bool is_good(uint32_t type, uint16_t misc, struct cursor body)
{
	struct record_text_poke poke;
	struct record_bpf_event bpf;
	struct record_ksymbol ksymbol;
	struct record_mmap2 mmap;
	struct record_switch sw;
	struct record_comm comm;
	struct record_lost lost;
	struct record_task task;
	struct record_ids who;
	uint64_t n;

	switch (type) {
	case PERF_RECORD_LOST:
		return record_read_lost(body, &lost) == 0;
	case PERF_RECORD_COMM:
		return record_read_comm(misc, body, &comm) == 0 && comm.comm;
	case PERF_RECORD_EXIT:
	case PERF_RECORD_FORK:
		return record_read_task(body, &task) == 0;
	case PERF_RECORD_MMAP2:
		/* A build-id that makes no sense spoils its own mapping, not the walk. */
		return record_read_mmap2(type, 0, body, &mmap) == 0;
	case PERF_RECORD_ITRACE_START:
		return record_read_itrace_start(body, &who) == 0;
	case PERF_RECORD_LOST_SAMPLES:
		return record_read_lost_samples(body, &n) == 0;
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		return record_read_switch(type, misc, body, &sw) == 0;
	case PERF_RECORD_KSYMBOL:
		return record_read_ksymbol(body, &ksymbol) == 0;
	case PERF_RECORD_BPF_EVENT:
		return record_read_bpf_event(body, &bpf) == 0;
	case PERF_RECORD_TEXT_POKE:
		return record_read_text_poke(body, &poke) == 0;
	default:
		return false;
	}
}

int record_next(struct cursor *c, struct record *ret_record)
{
	struct cursor at = *c;
	struct record r = { .bytes = at.pos };
	struct perfrec rec;

	if (cursor_left(&at) == 0)
		return RECORD_END;
	if (perfrec_next(&at, &rec) != 0)
		return -EBADMSG;
	r.header = (struct perf_event_header){ .type = rec.type,
					       .misc = rec.misc,
					       .size = (uint16_t)(at.pos - r.bytes) };
	r.body = rec.body;
	if (r.header.size % 8 != 0 || trailer_take(&r.body, PERFABI_SAMPLE_TYPE, &r.trailer) < 0)
		return -EBADMSG;
	if (r.trailer.id > RECORD_ID_SIDEBAND || !is_good(rec.type, rec.misc, r.body))
		return -EBADMSG;

	*c = at;
	*ret_record = r;
	return 0;
}

int record_get_mmap2(const struct record *record, struct record_mmap2 *ret_mmap2)
{
	if (record->header.type != PERF_RECORD_MMAP2)
		return -EBADMSG;
	return record_read_mmap2(record->header.type, record->header.misc, record->body, ret_mmap2);
}

int record_get_task(const struct record *record, struct record_task *ret_task)
{
	if (record->header.type != PERF_RECORD_FORK && record->header.type != PERF_RECORD_EXIT)
		return -EBADMSG;
	return record_read_task(record->body, ret_task);
}

void record_set_id(uint8_t *bytes, size_t size, uint64_t id)
{
	struct cursor body = cursor_from(bytes, size);
	struct trailer trailer;
	const int r = trailer_take(&body, PERFABI_SAMPLE_TYPE, &trailer);

	assert(r == 0);
	trailer.id = id;
	trailer_write(&trailer, bytes + size - TRAILER_SIZE);
}

void record_set_inode(uint8_t *bytes, uint32_t maj, uint32_t min, uint64_t ino)
{
	/* Behind pid, tid, address, length and offset. */
	const size_t at = sizeof(struct perf_event_header) + 32;
	const struct {
		uint32_t maj, min;
		uint64_t ino, ino_generation;
	} file = { .maj = maj, .min = min, .ino = ino };
	struct perf_event_header header;

	memcpy(&header, bytes, sizeof(header));
	assert(header.type == PERF_RECORD_MMAP2 && header.size >= at + sizeof(file));
	header.misc &= (uint16_t)~PERF_RECORD_MISC_MMAP_BUILD_ID;
	memcpy(bytes, &header, sizeof(header));
	memcpy(bytes + at, &file, sizeof(file));
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
