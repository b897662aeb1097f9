/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/snapshot/cpucopy.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/snapshot/psbtime.h"
#include "daemon/source/ptclock.h"
#include "daemon/source/ring.h"
#include "ptd/snapshot.h"
#include "record/record.h"

#define SLICE_SIZE ((size_t)1 << 20)
#define LARGE_PAGE ((size_t)2 << 20)

/* How many bytes at the start of a view were written before the head @since. */
static size_t before(const struct source_view *v, uint64_t since)
{
	const size_t size = v->a_size + v->b_size;

	return since >= v->head ? size : v->head - since < size ? size - (v->head - since) : 0;
}

/* Move @start, which is in the copy of a view without its first @skip bytes, behind all that may
 * have been overwritten by now. */
static int find_start(const struct cpucopy *copy, struct source *source, uint32_t cpu, size_t skip,
		      size_t *start)
{
	uint64_t gone, switches;
	int r;

	r = source->ops->overtaken(source, cpu, &gone, &switches);
	if (r < 0)
		return r;
	if (gone > skip + *start)
		*start = gone - skip < copy->pt_size ? gone - skip : copy->pt_size;
	return 0;
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

static int copy_pt(struct cpucopy *copy, struct source *source, uint32_t cpu, uint64_t pt_since)
{
	struct source_view v;
	size_t skip, at, start = 0;
	int r;

	r = source->ops->view_aux(source, cpu, &v);
	if (r < 0)
		return r;
	skip = before(&v, pt_since);
	copy->pt_head = v.head;
	copy->pt_overwritten = v.head > pt_since ? v.head - pt_since : 0;
	copy->end = v.end;
	copy->pt_size = at = v.a_size + v.b_size - skip;
	if (at == 0)
		return 0;
	r = get_room(copy, at);
	if (r < 0)
		return r;

	while (at > start) {
		const size_t n = at - start < SLICE_SIZE ? at - start : SLICE_SIZE;

		at -= n;
		ring_copy(&v, skip + at, n, copy->pt + at);
		r = find_start(copy, source, cpu, skip, &start);
		if (r < 0)
			return r;
	}
	if (source->ops->settle) {
		source->ops->settle(source, cpu);
		r = find_start(copy, source, cpu, skip, &start);
		if (r < 0)
			return r;
	}
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

int cpucopy_pt(struct cpucopy *copy, struct source *source, uint32_t cpu, uint64_t pt_since)
{
	int r;

	r = copy_pt(copy, source, cpu, pt_since);
	if (source->ops->gap)
		copy->gap_ns = source->ops->gap(source, cpu);
	return r;
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

/* Of a source that overwrites its ring forwards, as it does AUX. */
static int view_switches(struct cpucopy *copy, struct source *source, uint32_t cpu,
			 uint64_t switches_since)
{
	struct source_view v;
	uint64_t pt, gone;
	size_t start;
	int r;

	r = source->ops->view_switch(source, cpu, &v);
	if (r < 0)
		return r;
	copy->switches_size = v.a_size + v.b_size;
	copy->switches = malloc(copy->switches_size + 1);
	if (!copy->switches)
		return -ENOMEM;
	ring_copy(&v, 0, copy->switches_size, copy->switches);

	r = source->ops->overtaken(source, cpu, &pt, &gone);
	if (r < 0)
		return r;
	if (gone < before(&v, switches_since))
		gone = before(&v, switches_since);
	r = record_resync(copy->switches + gone, copy->switches_size - gone, cpu, &start);
	if (r < 0)
		return r;
	copy->switches_start = gone + start;
	copy->switches_cut = v.head > copy->switches_size || copy->switches_start > 0;
	return 0;
}

int cpucopy_switches(struct cpucopy *copy, struct source *source, uint32_t cpu,
		     uint64_t switches_since)
{
	int r;

	if (source->ops->copy_switches)
		r = source->ops->copy_switches(source, cpu, &copy->switches, &copy->switches_size,
					       &copy->switches_cut);
	else
		r = view_switches(copy, source, cpu, switches_since);
	if (r == 0)
		note_times(copy);
	return r;
}

struct cursor cpucopy_records(const struct cpucopy *copy)
{
	if (!copy->switches)
		return cursor_from(NULL, 0);
	return cursor_from(copy->switches + copy->switches_start,
			   copy->switches_size - copy->switches_start);
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
	*copy = (struct cpucopy){};
}

void cpucopy_print(const struct cpucopy *copy, uint32_t cpu, FILE *f)
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
