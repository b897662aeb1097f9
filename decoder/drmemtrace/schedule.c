/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/drmemtrace/schedule.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "decoder/drmemtrace/out.h"
#include "decoder/util/zip.h"

/* What deflateInit2() takes, and stands around the deflated bytes. */
enum wrapping {
	WRAP_RAW = -MAX_WBITS,
	WRAP_GZIP = MAX_WBITS + 16,
};

typedef VEC(uint8_t) bytes_t;

void memtrace_schedule_deinit(struct memtrace_schedule *schedule)
{
	vec_deinit(&schedule->items);
}

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int by_time(const void *left, const void *right)
{
	const struct memtrace_scheduled *a = left, *b = right;

	return compare(a->stamp, b->stamp)
		   ?: compare(a->cpu, b->cpu)
			  ?: compare(a->tid, b->tid) ?: compare(a->n_insns, b->n_insns);
}

static int by_cpu(const void *left, const void *right)
{
	const struct memtrace_scheduled *a = left, *b = right;

	return compare(a->cpu, b->cpu) ?: by_time(left, right);
}

/* Of items of one thread that follow each other, keep the first. Return: how many are left. */
static size_t collapse(struct memtrace_scheduled *items, size_t n, bool by_cpus)
{
	size_t n_kept = 0;

	for (size_t i = 0; i < n; i++)
		if (n_kept == 0 || items[i].tid != items[n_kept - 1].tid ||
		    (by_cpus && items[i].cpu != items[n_kept - 1].cpu))
			items[n_kept++] = items[i];
	return n_kept;
}

/*
 * Forget the items that neither file needs, among those whose neighbours are all known. Those that
 * begin a stay of a thread, in the order of all CPUs or of one, stay, and so the next time the same
 * ones do.
 *
 * Return: 0 or -ENOMEM.
 */
static int thin(struct memtrace_schedule *schedule)
{
	struct memtrace_scheduled *items = schedule->items.items;
	const size_t n = schedule->items.n;
	_cleanup_(freep) struct memtrace_scheduled *on_cpus = NULL;
	size_t n_settled = 0, n_on_cpus, n_kept = 0;
	uint64_t last_tid = 0;

	qsort(items, n, sizeof(*items), by_time);
	while (n_settled < n && items[n_settled].stamp < schedule->settled)
		n_settled++;
	on_cpus = malloc((n_settled + 1) * sizeof(*items));
	if (!on_cpus)
		return -ENOMEM;
	memcpy(on_cpus, items, n_settled * sizeof(*items));
	qsort(on_cpus, n_settled, sizeof(*items), by_cpu);
	n_on_cpus = collapse(on_cpus, n_settled, true);
	qsort(on_cpus, n_on_cpus, sizeof(*items), by_time);

	for (size_t i = 0, k = 0; i < n; i++) {
		const bool begins = i == 0 || items[i].tid != last_tid;
		bool begins_on_cpu;

		while (k < n_on_cpus && by_time(&on_cpus[k], &items[i]) < 0)
			k++;
		begins_on_cpu = k < n_on_cpus && by_time(&on_cpus[k], &items[i]) == 0;
		last_tid = items[i].tid;
		if (begins || begins_on_cpu || i >= n_settled)
			items[n_kept++] = items[i];
	}
	schedule->items.n = n_kept;
	return 0;
}

int memtrace_schedule_add(struct memtrace_schedule *schedule, uint64_t tid, uint64_t stamp,
			  uint64_t cpu, uint64_t n_insns)
{
	int r = 0;

	if (schedule->is_too_long)
		return 0;
	if (schedule->items.n == MEMTRACE_SCHEDULED_MAX) {
		r = thin(schedule);
		/* To look again for every few items would take too long. */
		schedule->is_too_long = schedule->items.n > MEMTRACE_SCHEDULED_MAX / 4 * 3;
	}
	if (r < 0)
		return r;
	if (schedule->is_too_long) {
		vec_deinit(&schedule->items);
		return 0;
	}
	return vec_push(&schedule->items, { tid, stamp, cpu, n_insns });
}

/* Add the @n items, deflated, to @bytes. Return: 0 or -ENOMEM. */
static int add_deflated(bytes_t *bytes, struct memtrace_scheduled *items, size_t n,
			enum wrapping wrapping)
{
	z_stream stream = {};
	int r;

	if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, wrapping, MAX_MEM_LEVEL,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	r = vec_reserve(bytes, deflateBound(&stream, n * sizeof(*items)));
	if (r == 0) {
		stream.next_in = (uint8_t *)items;
		stream.avail_in = (uInt)(n * sizeof(*items));
		stream.next_out = bytes->items + bytes->n;
		stream.avail_out = (uInt)(bytes->n_capacity - bytes->n);
		(void)deflate(&stream, Z_FINISH);
		bytes->n += stream.total_out;
	}
	(void)deflateEnd(&stream);
	return r;
}

/* Add a member of the archive: what ran on the CPU of @items. */
static int add_member(bytes_t *bytes, struct memtrace_scheduled *items, size_t n,
		      struct zip_member *ret_member)
{
	struct zip_member member = { .offset = bytes->n, .size = n * sizeof(*items) };
	uint8_t header[ZIP_HEADER_MAX];
	size_t header_size;
	int r;

	(void)snprintf(member.name, sizeof(member.name), "%" PRIu64, items->cpu);
	member.crc = (uint32_t)crc32_z(0, (const uint8_t *)items, member.size);
	header_size = zip_put_header(&member, header);
	r = vec_reserve(bytes, header_size);
	if (r < 0)
		return r;
	bytes->n += header_size;
	r = add_deflated(bytes, items, n, WRAP_RAW);
	member.packed_size = bytes->n - member.offset - header_size;
	(void)zip_put_header(&member, header);
	memcpy(bytes->items + member.offset, header, header_size);
	*ret_member = member;
	return r;
}

/* Add the members of all CPUs. */
static int add_members(bytes_t *bytes, struct memtrace_scheduled *items, size_t n,
		       struct zip_member *ret_members, size_t *ret_n_members)
{
	size_t n_members = 0;
	int r = 0;

	for (size_t i = 0, end; i < n && r == 0; i = end) {
		for (end = i + 1; end < n && items[end].cpu == items[i].cpu;)
			end++;
		r = add_member(bytes, items + i, end - i, &ret_members[n_members++]);
	}
	*ret_n_members = n_members;
	return r;
}

static size_t count_cpus(struct memtrace_scheduled *items, size_t n)
{
	size_t n_cpus = 0;

	for (size_t i = 0; i < n; i++)
		n_cpus += i == 0 || items[i].cpu != items[i - 1].cpu;
	return n_cpus;
}

static int make_archive(bytes_t *bytes, struct memtrace_scheduled *items, size_t n)
{
	_cleanup_(freep) struct zip_member *members =
	    calloc(count_cpus(items, n), sizeof(*members));
	_cleanup_(freep) uint8_t *directory = NULL;
	size_t n_members, size;
	int r;

	if (!members)
		return -ENOMEM;
	r = add_members(bytes, items, n, members, &n_members);
	if (r == 0)
		r = zip_directory(members, n_members, bytes->n, &directory, &size);
	if (r == 0)
		r = vec_reserve(bytes, size);
	if (r < 0)
		return r;
	memcpy(bytes->items + bytes->n, directory, size);
	bytes->n += size;
	return 0;
}

/* Write one of the two files. */
static int write_file(struct memtrace_schedule *schedule, struct memtrace_out_pool *pool,
		      bool by_cpus)
{
	const size_t n = schedule->items.n;
	_cleanup_(freep) struct memtrace_scheduled *items = malloc(n * sizeof(*items));
	bytes_t bytes = {};
	size_t n_kept;
	int r;

	if (!items)
		return -ENOMEM;
	memcpy(items, schedule->items.items, n * sizeof(*items));
	qsort(items, n, sizeof(*items), by_cpus ? by_cpu : by_time);
	n_kept = collapse(items, n, by_cpus);
	r = by_cpus ? make_archive(&bytes, items, n_kept)
		    : add_deflated(&bytes, items, n_kept, WRAP_GZIP);
	if (r == 0)
		r = memtrace_out_whole(
		    pool, by_cpus ? "trace/cpu_schedule.bin.zip" : "trace/serial_schedule.bin.gz",
		    bytes.items, bytes.n);
	vec_deinit(&bytes);
	return r;
}

int memtrace_schedule_write(struct memtrace_schedule *schedule, struct memtrace_out_pool *pool)
{
	int r;

	if (schedule->items.n == 0 || schedule->is_too_long)
		return 0;
	r = write_file(schedule, pool, false);
	return r < 0 ? r : write_file(schedule, pool, true);
}
