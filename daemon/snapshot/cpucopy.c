/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/snapshot/cpucopy.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cursor.h"
#include "daemon/source/ptclock.h"
#include "daemon/source/ring.h"
#include "ptd/snapshot.h"
#include "util/perf/record.h"
#include "util/psb.h"

#define SLICE_SIZE ((size_t)1 << 20)
#define LARGE_PAGE ((size_t)2 << 20)

/* Move @start, which is in the copy of a view without its first @skip bytes, behind all that may
 * have been overwritten by the time of @view. */
static void skip_overwritten(const struct cpucopy *copy, const struct source_view *view,
			     size_t skip, size_t *start)
{
	const uint64_t gone = view->overwritten;

	if (gone > skip + *start)
		*start = gone - skip < copy->pt_size ? gone - skip : copy->pt_size;
}

/* Map memory that begins where a large page can. NULL: there is none. */
static uint8_t *map_aligned(size_t size)
{
	uint8_t *map, *start;

	map = mmap(NULL, size + LARGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		   0);
	if (map == MAP_FAILED)
		return NULL;
	start = map + (-(uintptr_t)map & (LARGE_PAGE - 1));
	if (start > map)
		(void)munmap(map, (size_t)(start - map));
	(void)munmap(start + size, LARGE_PAGE - (size_t)(start - map));
	return start;
}

static int get_room(struct cpucopy *copy, size_t size)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const size_t room = (size + page - 1) / page * page;

	if (room <= copy->pt_room)
		return 0;
	cpucopy_forget_pt(copy);
	copy->pt = map_aligned(room);
	if (!copy->pt)
		return -ENOMEM;
	copy->pt_room = room;
	return 0;
}

/* What the kernel cannot do now it does when the memory is written to. */
void cpucopy_reserve(struct cpucopy *copy, size_t size, bool large)
{
	if (size == 0 || get_room(copy, size) < 0)
		return;
	if (large)
		(void)madvise(copy->pt, copy->pt_room, MADV_HUGEPAGE);
	(void)madvise(copy->pt, copy->pt_room, MADV_POPULATE_WRITE);
}

int cpucopy_pt(struct cpucopy *copy, struct source *source, uint32_t cpu, uint64_t since_ns)
{
	const struct source_ops *ops = source->ops;
	struct source_view v, now;
	size_t skip, at, start = 0;
	int r;

	r = ops->view(source, cpu, since_ns, false, &v);
	if (r < 0)
		return r;
	skip = ring_before(&v, v.since);
	copy->pt_head = v.head;
	copy->pt_overwritten = v.head > v.since ? v.head - v.since : 0;
	copy->end = v.end;
	copy->gap_ns = v.gap_ns;
	copy->pt_size = at = v.a_size + v.b_size - skip;
	if (at == 0)
		return 0;
	r = get_room(copy, at);
	while (r == 0 && at > start) {
		const size_t n = at - start < SLICE_SIZE ? at - start : SLICE_SIZE;

		at -= n;
		ring_copy(&v, skip + at, n, copy->pt + at);
		r = ops->view(source, cpu, since_ns, false, &now);
		if (r == 0)
			skip_overwritten(copy, &now, skip, &start);
	}
	if (r == 0)
		r = ops->view(source, cpu, since_ns, true, &now);
	if (r < 0)
		return r;
	skip_overwritten(copy, &now, skip, &start);
	copy->gap_ns = now.gap_ns;
	copy->pt_start = start;
	copy->pt_dropped = start;
	copy->pt_bytes = copy->pt_size - start;
	copy->pt_overwritten -= copy->pt_bytes;
	return 0;
}

void cpucopy_find_oldest(struct cpucopy *copy, const struct source_facts *facts, uint64_t now_ns)
{
	uint64_t low;

	if (!copy->pt || !psbtime_find(copy->pt + copy->pt_start, copy->pt_bytes, &low))
		return;
	copy->pt_oldest =
	    tsc_to_ns(&facts->tsc, psbtime_tsc(low, tsc_from_ns(&facts->tsc, now_ns)));
}

static void note_times(struct cpucopy *copy)
{
	struct cursor c = cpucopy_records(copy);
	struct record record;

	while (record_next(&c, &record) == 0) {
		if (copy->switches_oldest == 0)
			copy->switches_oldest = record.trailer.time;
		copy->switches_newest = record.trailer.time;
	}
}

int cpucopy_switches(struct cpucopy *copy, struct source *source, uint32_t cpu, uint64_t since_ns)
{
	int r;

	r = source->ops->copy_switches(source, cpu, since_ns, &copy->switches, &copy->switches_size,
				       &copy->switches_cut);
	if (r < 0)
		return r;
	note_times(copy);
	return source->facts.gives_events
		   ? source->ops->copy_events(source, cpu, since_ns, &copy->events, &copy->n_events)
		   : 0;
}

struct cursor cpucopy_records(const struct cpucopy *copy)
{
	if (!copy->switches)
		return cursor_from(NULL, 0);
	return cursor_from(copy->switches, copy->switches_size);
}

void cpucopy_forget_pt(struct cpucopy *copy)
{
	if (copy->pt)
		(void)munmap(copy->pt, copy->pt_room);
	copy->pt = NULL;
	copy->pt_room = 0;
}

void cpucopy_deinit(struct cpucopy *copy)
{
	cpucopy_forget_pt(copy);
	free(copy->switches);
	free(copy->events);
	*copy = (struct cpucopy){};
}

void cpucopy_write_manifest(const struct cpucopy *copy, uint32_t cpu, FILE *f)
{
	static const char *const ends[] = {
		[SOURCE_END_IDLE] = "idle",
		[SOURCE_END_FLUSHED] = "flushed",
		[SOURCE_END_LATE] = "late",
		[SOURCE_END_OFFLINE] = "offline",
	};

	if (copy->pt_head == 0 && copy->switches_newest == 0)
		return;
	fprintf(f, "cpu.%" PRIu32 ".bytes=%" PRIu64 "\n", cpu, copy->pt_bytes);
	fprintf(f, "cpu.%" PRIu32 ".head=%" PRIu64 "\n", cpu, copy->pt_head);
	fprintf(f, "cpu.%" PRIu32 ".dropped=%" PRIu64 "\n", cpu, copy->pt_dropped);
	fprintf(f, "cpu.%" PRIu32 ".overwritten=%" PRIu64 "\n", cpu, copy->pt_overwritten);
	if (copy->pt_oldest > 0)
		fprintf(f, "cpu.%" PRIu32 ".oldest_ns=%" PRIu64 "\n", cpu, copy->pt_oldest);
	fprintf(f, "cpu.%" PRIu32 ".end=%s\n", cpu, ends[copy->end]);
	if (copy->gap_ns > 0)
		fprintf(f, "cpu.%" PRIu32 ".gap_ns=%" PRIu64 "\n", cpu, copy->gap_ns);
	fprintf(f, "cpu.%" PRIu32 "." PTD_MANIFEST_SWITCH_OLDEST "=%" PRIu64 "\n", cpu,
		copy->switches_oldest);
	fprintf(f, "cpu.%" PRIu32 ".switch_newest_ns=%" PRIu64 "\n", cpu, copy->switches_newest);
	fprintf(f, "cpu.%" PRIu32 "." PTD_MANIFEST_SWITCH_COMPLETE "=%s\n", cpu,
		copy->switches_cut ? "no" : "yes");
}

/* --- PSB time --------------------------------------------------------------------------------- */

#define TSC_BYTES 7u /* of the packet's payload */
#define TSC_MASK  ((UINT64_C(1) << 8 * TSC_BYTES) - 1)

enum {
	PACKET_PAD = 0x00,
	PACKET_TSC = 0x19,
};

/* The packet behind a PSB. */
static bool read_tsc(struct cursor *c, uint64_t *ret_tsc)
{
	uint8_t byte = PACKET_PAD, bytes[sizeof(uint64_t)] = {};

	while (byte == PACKET_PAD)
		if (cursor_get(c, 1, &byte) < 0)
			return false;
	if (byte != PACKET_TSC || cursor_get(c, TSC_BYTES, bytes) < 0)
		return false;
	memcpy(ret_tsc, bytes, sizeof(*ret_tsc));
	return true;
}

bool psbtime_find(const uint8_t *pt, size_t size, uint64_t *ret_tsc)
{
	const uint8_t *at = pt, *end = pt + size;

	while ((at = memmem(at, (size_t)(end - at), psb_bytes, PSB_SIZE))) {
		struct cursor c = cursor_from(at + PSB_SIZE, (size_t)(end - at) - PSB_SIZE);

		if (read_tsc(&c, ret_tsc))
			return true;
		/* The end of another packet may look like the beginning of a PSB. */
		at += 2;
	}
	return false;
}

uint64_t psbtime_tsc(uint64_t low, uint64_t now)
{
	return now - ((now - low) & TSC_MASK);
}
