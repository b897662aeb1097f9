/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "daemon/share/share.h"
#include "daemon/sideband/sideband.h"
#include "daemon/source/kept.h"
#include "tests/lib/failing.h"
#include "tests/unit/records.h"
#include "tests/unit/sources.h"

#define MEBI (UINT64_C(1) << 20)

struct summary {
	size_t n_comm;
	uint64_t lost; /* as LOST records say */
	uint64_t first, last;
};

static struct summary summarize(const struct sideband_view *view)
{
	struct summary s = {};

	for (size_t i = 0; i < view->n_spans; i++) {
		struct cursor c = view->spans[i];
		struct record record;
		int r;

		while ((r = record_next(&c, &record)) == 0) {
			uint64_t lost[2];

			if (record.header.type == PERF_RECORD_LOST) {
				assert_int_equal(cursor_get(&record.body, 16, lost), 0);
				s.lost += lost[1];
				continue;
			}
			assert_true(record.trailer.time >= s.last);
			s.first = s.first ? s.first : record.trailer.time;
			s.last = record.trailer.time;
			s.n_comm++;
		}
		assert_int_equal(r, RECORD_END);
	}
	return s;
}

static struct summary look(const struct sideband *sideband)
{
	struct sideband_view view;
	struct summary s;

	assert_int_equal(sideband_view_init(sideband, &view), 0);
	s = summarize(&view);
	sideband_view_deinit(&view);
	return s;
}

/* @n COMM records (56 bytes each) with times from @time on. */
static int add(struct sideband *sideband, size_t n, uint64_t time)
{
	struct records r = {};
	int result = 0;

	for (size_t i = 0; i < n; i++) {
		int one;

		r.size = 0;
		records_comm(&r, 1, "x", time + i);
		one = sideband_add(sideband, r.bytes, r.size);
		result = result ? result : one;
	}
	records_deinit(&r);
	return result;
}

static void keeps_what_it_is_given(void **state)
{
	_cleanup_(sideband_freep) struct sideband *s = NULL;
	struct summary seen;

	(void)state;
	assert_int_equal(sideband_new(4 * MEBI, NULL, &source_that_knows, &s), 0);
	assert_int_equal(look(s).n_comm, 0);
	assert_int_equal(add(s, 20000, 1), 0);
	seen = look(s);
	assert_int_equal(seen.n_comm, 20000);
	assert_int_equal(seen.last, 20000);
	assert_int_equal(seen.lost, 0);
	assert_in_range(sideband_stats(s).bytes, 20000 * 56, 2 * MEBI);
}

/* What a snapshot looks at does not change under it, nor go away. */
static void a_view_stays(void **state)
{
	_cleanup_(sideband_freep) struct sideband *s = NULL;
	struct sideband_view view;

	(void)state;
	assert_int_equal(sideband_new(MEBI, NULL, &source_that_knows, &s), 0);
	assert_int_equal(add(s, 10, 1), 0);
	assert_int_equal(sideband_view_init(s, &view), 0);
	assert_int_equal(add(s, 50000, 11), 0);
	assert_int_equal(summarize(&view).n_comm, 10);
	s = sideband_free(s);
	assert_int_equal(summarize(&view).n_comm, 10);
	sideband_view_deinit(&view);
}

/* However many records come, memory stays, and the newest of them are there. */
static void the_limit_holds(void **state)
{
	_cleanup_(sideband_freep) struct sideband *s = NULL;
	struct sideband_view view;
	struct summary seen;

	(void)state;
	assert_int_equal(sideband_new(MEBI, NULL, &source_that_knows, &s), 0);
	assert_int_equal(add(s, 100000, 1), 0);
	assert_in_range(sideband_stats(s).bytes, MEBI / 2, MEBI);
	assert_int_equal(sideband_stats(s).lost, 0);
	assert_int_equal(sideband_view_init(s, &view), 0);
	seen = summarize(&view);
	assert_int_equal(seen.last, 100000);
	/* What was known when the older epoch began, then all that came after. */
	assert_int_equal(seen.first, view.since_ns);
	assert_int_equal(seen.n_comm, 1 + 100000 - view.since_ns);
	assert_in_range(seen.n_comm, MEBI / 4 / 64, 100000);
	sideband_view_deinit(&view);
}

static void the_limit_changes(void **state)
{
	_cleanup_(sideband_freep) struct sideband *s = NULL;

	(void)state;
	assert_int_equal(sideband_new(4 * MEBI, NULL, &source_that_knows, &s), 0);
	assert_int_equal(add(s, 100000, 1), 0);
	assert_in_range(sideband_stats(s).bytes, 2 * MEBI, 4 * MEBI);
	sideband_set_max(s, MEBI);
	assert_int_equal(sideband_stats(s).bytes_max, MEBI);
	assert_int_equal(add(s, 100000, 100001), 0);
	assert_in_range(sideband_stats(s).bytes, MEBI / 2, MEBI);
	assert_int_equal(look(s).last, 200000);
	sideband_set_max(s, 4 * MEBI);
	assert_int_equal(add(s, 100000, 200001), 0);
	assert_in_range(sideband_stats(s).bytes, 2 * MEBI, 4 * MEBI);
	assert_int_equal(sideband_stats(s).lost, 0);
}

static bool pid_is_odd(uint32_t pid)
{
	return pid % 2;
}

struct found {
	size_t n_comm, n_mmap;
	uint64_t start, size, pgoff;
	const char *name;
};

/* What the records of @view say of @pid in the end. */
static struct found find(const struct sideband_view *view, uint32_t pid)
{
	struct found f = {};

	for (size_t i = 0; i < view->n_spans; i++) {
		struct cursor c = view->spans[i];
		struct record_mmap2 mmap;
		struct record record;

		while (record_next(&c, &record) == 0) {
			if (record.trailer.pid != pid)
				continue;
			f.n_comm += record.header.type == PERF_RECORD_COMM;
			if (record_get_mmap2(&record, &mmap) < 0)
				continue;
			f.n_mmap++;
			f.start = mmap.addr;
			f.size = mmap.len;
			f.pgoff = mmap.pgoff;
			f.name = mmap.name;
		}
	}
	return f;
}

/* Who lives keeps name and mappings through all epochs; who died without a word is forgotten. */
static void who_lives_is_not_forgotten(void **state)
{
	_cleanup_(sideband_freep) struct sideband *s = NULL;
	struct sideband_view view;
	struct records r = {};
	struct found f;

	(void)state;
	assert_int_equal(sideband_new(MEBI, pid_is_odd, &source_that_knows, &s), 0);
	records_comm(&r, 101, "old", 1);
	records_mmap2(&r, 101, "/bin/old", NULL, 2);
	records_fork(&r, 103, 101, 3);
	records_comm(&r, 200, "killed", 4);
	records_mmap2(&r, 200, "/bin/killed", NULL, 5);
	assert_int_equal(sideband_add(s, r.bytes, r.size), 0);
	records_deinit(&r);
	assert_int_equal(add(s, 200000, 10), 0);

	assert_int_equal(sideband_view_init(s, &view), 0);
	assert_true(view.since_ns > 5);
	f = find(&view, 101);
	assert_int_equal(f.n_comm, 1);
	assert_int_equal(f.n_mmap, 1);
	assert_int_equal(f.start, 0x400000);
	assert_int_equal(f.size, 0x3000);
	assert_string_equal(f.name, "/bin/old");
	f = find(&view, 103);
	assert_int_equal(f.n_comm, 1);
	assert_int_equal(f.n_mmap, 1);
	assert_string_equal(f.name, "/bin/old");
	f = find(&view, 200);
	assert_int_equal(f.n_comm + f.n_mmap, 0);
	sideband_view_deinit(&view);
}

/* A process maps and unmaps the same code as quickly as it can: the others' records stay. */
static void a_storm_of_mappings(void **state)
{
	for (unsigned looks = 0; looks < 2; looks++) {
		_cleanup_(sideband_freep) struct sideband *s = NULL;
		struct sideband_view view;
		struct records r = {};
		uint64_t time = 10;

		(void)state;
		assert_int_equal(
		    sideband_new(MEBI, NULL, looks ? &source_that_looks : &source_that_knows, &s),
		    0);
		if (looks)
			sideband_end_look(s);
		records_comm(&r, 9, "other", 1);
		records_mmap2(&r, 9, "/bin/other", NULL, 2);
		records_comm(&r, 7, "stormy", 3);
		assert_int_equal(sideband_add(s, r.bytes, r.size), 0);
		for (unsigned i = 0; i < 100000; i++) {
			r.size = 0;
			records_mmap2(&r, 7, i == 50000 ? "/bin/b" : "/bin/a", NULL, time++);
			assert_int_equal(sideband_add(s, r.bytes, r.size), 0);
		}
		records_deinit(&r);
		assert_int_equal(sideband_view_init(s, &view), 0);
		assert_int_equal(view.since_ns, 0);
		assert_int_equal(find(&view, 9).n_mmap, 1);
		/* /bin/a, /bin/b, and /bin/a again. */
		assert_int_equal(find(&view, 7).n_mmap, 3);
		assert_int_equal(sideband_stats(s).n_repeats, 100000 - 3);
		assert_int_equal(sideband_stats(s).lost, 0);
		sideband_view_deinit(&view);
	}
}

static void add_lost(struct sideband *s, uint64_t time)
{
	struct perfbuild *b = records_at(1, time, 0);
	struct records r = {};

	records_take(&r, b, perfbuild_lost(b, 7));
	assert_int_equal(sideband_add(s, r.bytes, r.size), 0);
	records_deinit(&r);
}

/* A source that lost records has them counted; what was told before is not relied on. */
static void what_the_source_lost(void **state)
{
	_cleanup_(sideband_freep) struct sideband *s = NULL;
	struct sideband_view view;
	struct summary seen;

	(void)state;
	assert_int_equal(sideband_new(MEBI, NULL, &source_that_knows, &s), 0);
	assert_int_equal(add(s, 10, 1), 0);
	add_lost(s, 20);
	assert_int_equal(sideband_stats(s).lost, 7);
	assert_int_equal(add(s, 5, 30), 0);
	assert_int_equal(sideband_view_init(s, &view), 0);
	assert_int_equal(view.since_ns, 20);
	seen = summarize(&view);
	assert_int_equal(seen.lost, 7);
	assert_int_equal(seen.n_comm, 1 + 5); /* one is what was known */
	assert_int_equal(seen.first, 20);
	sideband_view_deinit(&view);
}

/* --- a source that tells of all tasks -------------------------------------------------------- */

static uint64_t since(const struct sideband *s)
{
	struct sideband_view view;
	uint64_t since_ns;

	assert_int_equal(sideband_view_init(s, &view), 0);
	since_ns = view.since_ns;
	sideband_view_deinit(&view);
	return since_ns;
}

/* It tells of @pid, and of what that has mapped. */
static void tell(struct sideband *s, uint32_t pid, const char *path, uint64_t time)
{
	struct records r = {};
	size_t size;

	records_comm(&r, pid, "told", time);
	size = r.size;
	records_mmap2(&r, pid, path, NULL, time);
	assert_int_equal(sideband_add_found(s, r.bytes, size), 0);
	assert_int_equal(sideband_add_found(s, r.bytes + size, r.size - size), 0);
	records_deinit(&r);
}

static void told_of_all_tasks(void **state)
{
	_cleanup_(sideband_freep) struct sideband *s = NULL;
	struct sideband_view view;

	(void)state;
	assert_int_equal(sideband_new(MEBI, NULL, &source_that_looks, &s), 0);
	assert_true(sideband_wants_look(s));
	assert_int_equal(since(s), SIDEBAND_NEVER);
	tell(s, 7, "/bin/a", 100);
	assert_int_equal(add(s, 10, 101), 0);
	assert_int_equal(since(s), SIDEBAND_NEVER);
	tell(s, 8, "//anon", 150);
	sideband_end_look(s);
	assert_false(sideband_wants_look(s));
	assert_int_equal(sideband_view_init(s, &view), 0);
	assert_int_equal(view.since_ns, 150);
	assert_string_equal(find(&view, 7).name, "/bin/a");
	assert_string_equal(find(&view, 8).name, "//anon");
	assert_int_equal(find(&view, 1).n_comm, 10);
	assert_int_equal(view.n_ranges, 1);
	assert_int_equal(view.ranges[0].pid, 8);
	sideband_view_deinit(&view);
}

/* Until the new epoch is complete, the older one stays; then it goes when the next one begins. */
static void epochs_by_size(void **state)
{
	_cleanup_(sideband_freep) struct sideband *s = NULL;
	struct sideband_view view;
	uint64_t time = 1000;

	(void)state;
	assert_int_equal(sideband_new(MEBI, NULL, &source_that_looks, &s), 0);
	tell(s, 7, "/bin/a", 100);
	sideband_end_look(s);
	assert_int_equal(sideband_epochs(s), 1);
	while (!sideband_wants_look(s))
		assert_int_equal(add(s, 1, time++), 0);
	assert_int_equal(sideband_epochs(s), 2);
	assert_int_equal(since(s), 100);
	tell(s, 7, "/bin/b", time);
	tell(s, 9, "//anon", time);
	assert_int_equal(since(s), 100);
	assert_int_equal(sideband_view_init(s, &view), 0);
	assert_string_equal(find(&view, 7).name, "/bin/a");
	assert_int_equal(view.n_ranges, 0);
	sideband_view_deinit(&view);

	sideband_end_look(s);
	assert_int_equal(since(s), 100);
	assert_int_equal(sideband_view_init(s, &view), 0);
	assert_int_equal(view.n_ranges, 1);
	sideband_view_deinit(&view);
	time += 10;
	while (!sideband_wants_look(s))
		assert_int_equal(add(s, 1, time++), 0);
	assert_true(since(s) > 1000);
	assert_int_equal(sideband_view_init(s, &view), 0);
	assert_string_equal(find(&view, 7).name, "/bin/b");
	sideband_view_deinit(&view);
	assert_int_equal(sideband_stats(s).lost, 0);

	/* Records were lost, and more come than the rest of an epoch takes, before all has been
	 * told of: they are lost, too. */
	add_lost(s, time++);
	assert_int_equal(add(s, 100000, time), -ENOSPC);
	assert_in_range(sideband_stats(s).lost, 7 + 1, 100000);
	assert_in_range(sideband_stats(s).bytes, MEBI / 2, MEBI);
	time += 100000;
	tell(s, 7, "/bin/c", time);
	sideband_end_look(s);
	/* So it is not the end: all is to be told of again. */
	assert_true(sideband_wants_look(s));
	assert_int_equal(since(s), SIDEBAND_NEVER);
	tell(s, 7, "/bin/d", ++time);
	sideband_end_look(s);
	assert_false(sideband_wants_look(s));
	assert_int_equal(since(s), time);
	assert_int_equal(add(s, 1, time + 1), 0);
	assert_int_equal(look(s).lost, sideband_stats(s).lost - 7);
}

/* An epoch that begins is full again before the source has looked at all tasks, and again: nothing
 * is lost for that, and what was known stays known. */
static void full_before_it_has_looked(void **state)
{
	(void)state;
	for (unsigned begun = 0; begun < 2; begun++) {
		_cleanup_(sideband_freep) struct sideband *s = NULL;
		struct sideband_view view;
		uint64_t time = 1000, complete;

		assert_int_equal(sideband_new(MEBI, NULL, &source_that_looks, &s), 0);
		tell(s, 7, "/bin/a", 100);
		tell(s, 8, "/bin/b", 100);
		sideband_end_look(s);
		while (!sideband_wants_look(s))
			assert_int_equal(add(s, 1, time++), 0);
		if (begun) {
			tell(s, 7, "/bin/a", time);
			tell(s, 9, "/bin/missed", time);
		}
		for (unsigned i = 0; i < 1000; i++, time += 100) {
			assert_int_equal(add(s, 100, time), 0);
			assert_in_range(sideband_stats(s).bytes, MEBI / 8, MEBI);
			assert_in_range(since(s), 100, time + 99);
			if (i % 100 != 99)
				continue;
			assert_int_equal(sideband_view_init(s, &view), 0);
			assert_string_equal(find(&view, 7).name, "/bin/a");
			assert_string_equal(find(&view, 8).name, "/bin/b");
			assert_int_equal(find(&view, 1).n_comm, time + 100 - view.since_ns);
			sideband_view_deinit(&view);
		}
		assert_true(sideband_wants_look(s));
		/* An epoch and a part of another one, as at other times. */
		assert_in_range(since(s), time - MEBI / 56, time - MEBI / 4 / 56);
		tell(s, 8, "/bin/b", ++time);
		complete = since(s);
		sideband_end_look(s);
		assert_false(sideband_wants_look(s));
		assert_in_range(since(s), complete, time);
		assert_int_equal(sideband_view_init(s, &view), 0);
		assert_string_equal(find(&view, 8).name, "/bin/b");
		sideband_view_deinit(&view);
		/* What no record had said, but the source saw, is there in the end. */
		for (uint64_t n = sideband_epochs(s); sideband_epochs(s) < n + 3; time++)
			assert_int_equal(add(s, 1, time), 0);
		assert_int_equal(sideband_view_init(s, &view), 0);
		assert_string_equal(find(&view, 8).name, "/bin/b");
		if (begun)
			assert_string_equal(find(&view, 9).name, "/bin/missed");
		sideband_view_deinit(&view);
		assert_int_equal(sideband_stats(s).lost, 0);
	}
}

/* The same before it has ever looked at all tasks: then they are all complete. */
static void full_before_its_first_look(void **state)
{
	_cleanup_(sideband_freep) struct sideband *s = NULL;
	struct sideband_view view;
	uint64_t time = 1000;

	(void)state;
	assert_int_equal(sideband_new(MEBI, NULL, &source_that_looks, &s), 0);
	tell(s, 7, "/bin/a", 100);
	for (unsigned i = 0; i < 1000; i++, time += 100) {
		assert_int_equal(add(s, 100, time), 0);
		assert_int_equal(since(s), SIDEBAND_NEVER);
	}
	tell(s, 8, "/bin/b", time);
	sideband_end_look(s);
	assert_false(sideband_wants_look(s));
	assert_int_equal(since(s), time);
	assert_int_equal(sideband_view_init(s, &view), 0);
	assert_string_equal(find(&view, 7).name, "/bin/a");
	assert_string_equal(find(&view, 8).name, "/bin/b");
	sideband_view_deinit(&view);
	assert_int_equal(sideband_stats(s).lost, 0);
}

static void epochs_by_age(void **state)
{
	_cleanup_(sideband_freep) struct sideband *s = NULL;
	const uint64_t hour = UINT64_C(3600000000000);

	(void)state;
	assert_int_equal(sideband_new(MEBI, NULL, &source_that_looks, &s), 0);
	tell(s, 7, "/bin/a", 100);
	sideband_end_look(s);
	assert_int_equal(since(s), 100);
	assert_int_equal(add(s, 1, hour), 0);
	assert_int_equal(add(s, 1, hour + 200), 0);
	assert_false(sideband_wants_look(s));
	assert_int_equal(add(s, 1, hour + 201), 0);
	assert_true(sideband_wants_look(s));
	assert_int_equal(since(s), 100);
}

/* Whatever was lost, and whenever: what is older than the next complete telling is not relied
 * on. */
static void lost_records(void **state)
{
	_cleanup_(sideband_freep) struct sideband *s = NULL;

	(void)state;
	assert_int_equal(sideband_new(MEBI, NULL, &source_that_looks, &s), 0);
	add_lost(s, 50); /* while it tells */
	tell(s, 7, "/bin/a", 100);
	sideband_end_look(s);
	assert_true(sideband_wants_look(s));
	assert_int_equal(since(s), SIDEBAND_NEVER);
	tell(s, 7, "/bin/a", 200);
	sideband_end_look(s);
	assert_int_equal(since(s), 200);
	add_lost(s, 300);
	assert_true(sideband_wants_look(s));
	assert_int_equal(since(s), SIDEBAND_NEVER);
	tell(s, 7, "/bin/a", 400);
	sideband_end_look(s);
	assert_false(sideband_wants_look(s));
	assert_int_equal(since(s), 400);
	assert_int_equal(sideband_stats(s).lost, 14);
}

/* However much is added before it tells: what comes since then is complete. */
static void told_late(void **state)
{
	_cleanup_(sideband_freep) struct sideband *s = NULL;
	struct sideband_view view;

	(void)state;
	assert_int_equal(sideband_new(MEBI, NULL, &source_that_looks, &s), 0);
	add_lost(s, 50);
	assert_int_equal(add(s, 100000, 100), 0);
	assert_true(sideband_stats(s).bytes <= MEBI);
	tell(s, 7, "/bin/a", 200000);
	assert_int_equal(add(s, 10, 200001), 0);
	sideband_end_look(s);
	assert_false(sideband_wants_look(s));
	assert_int_equal(sideband_view_init(s, &view), 0);
	assert_int_equal(view.since_ns, 200000);
	assert_string_equal(find(&view, 7).name, "/bin/a");
	assert_true(find(&view, 1).n_comm >= 10);
	sideband_view_deinit(&view);
	assert_int_equal(sideband_stats(s).lost, 7);
}

/* Return: how many records the LOST records of the view tell of. */
static uint64_t lost_in(const struct sideband_view *view)
{
	uint64_t n = 0;

	for (size_t i = 0; i < view->n_spans; i++) {
		struct cursor c = view->spans[i];
		struct record record;

		while (record_next(&c, &record) == 0) {
			uint64_t lost[2];

			if (record.header.type == PERF_RECORD_LOST &&
			    cursor_get(&record.body, sizeof(lost), lost) == 0)
				n += lost[1];
		}
	}
	return n;
}

/* Records were lost, so that nothing is complete before the source has looked twice: what finds no
 * room until then is told of all the same. */
static void lost_while_asking(void **state)
{
	_cleanup_(sideband_freep) struct sideband *s = NULL;
	struct sideband_view view;
	uint64_t time = 100;

	(void)state;
	assert_int_equal(sideband_new(MEBI, NULL, &source_that_looks, &s), 0);
	tell(s, 7, "/bin/a", time);
	sideband_end_look(s);
	while (!sideband_wants_look(s))
		assert_int_equal(add(s, 100, time += 100), 0);
	tell(s, 7, "/bin/a", time += 100);
	add_lost(s, time += 100);
	while (sideband_stats(s).lost == 7)
		(void)add(s, 100, time += 100);
	assert_true(sideband_wants_look(s));
	assert_int_equal(sideband_view_init(s, &view), 0);
	assert_int_equal(lost_in(&view), sideband_stats(s).lost);
	sideband_view_deinit(&view);
}

/* --- what another process goes on from -------------------------------------------------------- */

/* Return: the kept state that a process finds which is started at this moment: a copy, so that this
 * process can go on. */
static struct kept *copy_kept(const struct kept *kept)
{
	const int fd = memfd_create("copy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct kept *copy;
	struct stat st;
	void *bytes;

	assert_int_equal(fstat(kept_fd(kept), &st), 0);
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, kept_fd(kept), 0);
	assert_true(bytes != MAP_FAILED);
	assert_int_equal(write(fd, bytes, (size_t)st.st_size), st.st_size);
	(void)munmap(bytes, (size_t)st.st_size);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	assert_int_equal(kept_resume(fd, &copy), 0);
	return copy;
}

static struct records records_of(const struct sideband *s)
{
	struct records all = {};
	struct sideband_view view;

	assert_int_equal(sideband_view_init(s, &view), 0);
	for (size_t i = 0; i < view.n_spans; i++)
		records_add(&all, view.spans[i].pos, cursor_left(&view.spans[i]));
	records_add(&all, &view.since_ns, sizeof(view.since_ns));
	sideband_view_deinit(&view);
	return all;
}

/* Batches of records are added and published, so that epochs begin and end. A process that is
 * killed while it adds one leaves what it has published, exactly; whoever goes on from there does
 * so as it would have. */
static void others_go_on_from_what_is_published(void **state)
{
	struct source sources[2] = { source_that_knows, source_that_knows };
	struct source *from = &sources[0];
	struct sideband *s, *other;
	uint64_t time = 1, n_epochs = 0;

	(void)state;
	assert_int_equal(kept_new(&from->kept), 0);
	assert_int_equal(sideband_new(MEBI, NULL, from, &s), 0);
	sideband_publish(s);
	for (unsigned i = 0; i < 60; i++) {
		struct source *to = from == sources ? &sources[1] : sources;
		const size_t n_published = 1 + i * 97 % 1500, n = 1 + i * 331 % 9000;
		struct records before, found;

		assert_int_equal(add(s, n_published, time), 0);
		time += n_published;
		if (i % 20 == 7)
			add_lost(s, time++);
		sideband_publish(s);
		before = records_of(s);
		/* It is killed behind these. */
		assert_int_equal(add(s, n, time), 0);

		to->kept = copy_kept(from->kept);
		assert_int_equal(sideband_new(MEBI, NULL, to, &other), 0);
		assert_int_equal(sideband_resume(other), 0);
		found = records_of(other);
		assert_int_equal(found.size, before.size);
		assert_memory_equal(found.bytes, before.bytes, before.size);
		assert_int_equal(sideband_stats(other).lost, (i + 13) / 20 * 7);
		records_deinit(&before);
		records_deinit(&found);
		n_epochs += sideband_epochs(s) > sideband_epochs(other);

		/* Both get what the ring still has, and say the same. */
		sideband_publish(other);
		assert_int_equal(add(other, n, time), 0);
		time += n;
		before = records_of(s);
		found = records_of(other);
		assert_int_equal(sideband_epochs(other), sideband_epochs(s));
		assert_int_equal(found.size, before.size);
		assert_memory_equal(found.bytes, before.bytes, before.size);
		records_deinit(&before);
		records_deinit(&found);
		(void)sideband_free(s);
		(void)kept_free(from->kept);
		s = other;
		from = to;
	}
	/* Epochs ended in what was not published. */
	assert_in_range(n_epochs, 5, 60);
	(void)sideband_free(s);
	(void)kept_free(from->kept);
}

/* A source that has to look at the tasks was interrupted, or was not. */
static void a_look_begins_again(void **state)
{
	(void)state;
	for (unsigned ended = 0; ended < 2; ended++) {
		struct source a = source_that_looks, b = source_that_looks;
		struct sideband *s, *other;
		struct sideband_view view;

		assert_int_equal(kept_new(&a.kept), 0);
		assert_int_equal(sideband_new(MEBI, NULL, &a, &s), 0);
		tell(s, 7, "/bin/a", 100);
		assert_int_equal(add(s, 10, 110), 0);
		if (ended)
			sideband_end_look(s);
		sideband_publish(s);

		b.kept = copy_kept(a.kept);
		assert_int_equal(sideband_new(MEBI, NULL, &b, &other), 0);
		assert_int_equal(sideband_resume(other), 0);
		assert_int_equal(sideband_wants_look(other), !ended);
		assert_int_equal(since(other), ended ? 100 : SIDEBAND_NEVER);
		if (!ended) {
			tell(other, 7, "/bin/a", 200);
			sideband_end_look(other);
			assert_int_equal(since(other), 200);
		}
		assert_int_equal(sideband_view_init(other, &view), 0);
		assert_int_equal(find(&view, 7).n_mmap, 1);
		assert_int_equal(find(&view, 1).n_comm, 10);
		sideband_view_deinit(&view);
		(void)sideband_free(other);
		(void)kept_free(b.kept);
		(void)sideband_free(s);
		(void)kept_free(a.kept);
	}
}

/* It was interrupted in a look that takes longer than epochs do; records may have been lost, too.
 */
static void a_long_look_begins_again(void **state)
{
	(void)state;
	for (unsigned lost = 0; lost < 2; lost++) {
		struct source a = source_that_looks, b = source_that_looks;
		struct sideband *s, *other;
		struct sideband_view view;
		uint64_t time = 1000;

		assert_int_equal(kept_new(&a.kept), 0);
		assert_int_equal(sideband_new(MEBI, NULL, &a, &s), 0);
		tell(s, 7, "/bin/a", 100);
		sideband_end_look(s);
		for (; sideband_epochs(s) < 5; time++)
			assert_int_equal(add(s, 1, time), 0);
		if (lost)
			add_lost(s, time++);
		sideband_publish(s);

		b.kept = copy_kept(a.kept);
		assert_int_equal(sideband_new(MEBI, NULL, &b, &other), 0);
		assert_int_equal(sideband_resume(other), 0);
		assert_true(sideband_wants_look(other));
		assert_int_equal(since(other), since(s));
		assert_int_equal(add(other, lost ? 1 : 100000, time), 0);
		time += 100000;
		assert_in_range(since(other), lost ? since(s) : time - 100000, time);
		assert_int_equal(sideband_view_init(other, &view), 0);
		assert_string_equal(find(&view, 7).name, "/bin/a");
		sideband_view_deinit(&view);
		sideband_end_look(other);
		/* What it saw may not be all. */
		assert_int_equal(sideband_wants_look(other), lost);
		assert_int_equal(since(other) == SIDEBAND_NEVER, lost);
		(void)sideband_free(other);
		(void)kept_free(b.kept);
		(void)sideband_free(s);
		(void)kept_free(a.kept);
	}
}

/* What was kept by a source that looks cannot be used: nothing is complete before it has looked. */
static void kept_nonsense_is_not_complete(void **state)
{
	struct source a = source_that_looks, b = source_that_looks;
	struct sideband *s, *other;

	(void)state;
	assert_int_equal(kept_new(&a.kept), 0);
	assert_int_equal(sideband_new(MEBI, NULL, &a, &s), 0);
	sideband_end_look(s);
	assert_int_equal(add(s, 10, 100), 0);
	sideband_publish(s);
	b.kept = copy_kept(a.kept);
	kept_draft(b.kept)->sideband.streams[0].now.body.n_slots++;
	assert_int_equal(sideband_new(MEBI, NULL, &b, &other), 0);
	assert_int_equal(sideband_resume(other), -EBADMSG);
	assert_true(sideband_wants_look(other));
	assert_int_equal(since(other), SIDEBAND_NEVER);
	(void)sideband_free(other);
	(void)kept_free(b.kept);
	(void)sideband_free(s);
	(void)kept_free(a.kept);
}

/* No state makes a sideband of records that are not there, or are none. */
static void kept_nonsense_is_refused(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		struct source a = source_that_knows, b = source_that_knows;
		struct kept_sideband *kept;
		struct kept_stream *root;
		struct sideband *s, *other;

		assert_int_equal(kept_new(&a.kept), 0);
		assert_int_equal(sideband_new(MEBI, NULL, &a, &s), 0);
		assert_int_equal(add(s, 20000, 1), 0);
		sideband_publish(s);
		b.kept = copy_kept(a.kept);
		kept = &kept_draft(b.kept)->sideband;
		root = &kept->streams[0];
		assert_in_range(root->now.body.n_slots, 1, 100);
		if (i == 1)
			root->now.body.n_slots++;
		else if (i == 2)
			root->now.body.last_used = UINT32_MAX;
		else if (i == 3)
			root->now.body.last_used--;
		else if (i == 4)
			root->before.head.n_slots = UINT32_MAX;
		else if (i == 5)
			root->n_epochs += 10;
		assert_int_equal(sideband_new(MEBI, NULL, &b, &other), 0);
		assert_int_equal(sideband_resume(other), i == 0 ? 0 : -EBADMSG);
		/* It knows nothing of the time before, and goes on. */
		if (i > 0) {
			assert_int_equal(since(other), 20000);
			assert_int_equal(look(other).n_comm, 0);
		}
		assert_int_equal(add(other, 100, 30000), 0);
		sideband_publish(other);
		(void)sideband_free(other);
		(void)kept_free(b.kept);
		(void)sideband_free(s);
		(void)kept_free(a.kept);
	}
}

/* --- a share for each user -------------------------------------------------------------------- */

/* A process has the user 1000 + its hundreds; below 100 it is root's. */
static int owner_by_hundreds(struct source *source, uint32_t pid, uid_t *ret_uid)
{
	(void)source;
	if (pid == 99)
		return -ESRCH;
	*ret_uid = pid < 100 ? 0 : 1000 + pid / 100;
	return 0;
}

static const struct source_ops knowing_owners = { .tasks = sources_tell_known,
						  .owner = owner_by_hundreds };
static const struct source_ops looking_for_owners = { .tasks = sources_look,
						      .owner = owner_by_hundreds };

static void add_records(struct sideband *s, struct records *r)
{
	assert_int_equal(sideband_add(s, r->bytes, r->size), 0);
	r->size = 0;
}

/* A program that the process maps at an address of its own. */
static void map_at(struct records *r, uint32_t pid, uint64_t address, const char *path,
		   uint64_t time)
{
	const struct record_mmap2 mmap = { .misc = PERF_RECORD_MISC_USER,
					   .pid = pid,
					   .tid = pid,
					   .addr = address,
					   .len = 0x1000,
					   .prot = PROT_READ | PROT_EXEC,
					   .name = path };
	struct perfbuild *b = records_at(pid, time, records_at_cpu);

	records_take(r, b, perfbuild_mapping(b, PERF_RECORD_MMAP2, &mmap));
}

static void execute(struct records *r, uint32_t pid, const char *comm, uint64_t time)
{
	struct perfbuild *b = records_at(pid, time, records_at_cpu);

	records_take(r, b, perfbuild_comm(b, true, pid, pid, comm));
}

static void end(struct records *r, uint32_t pid, uint64_t time)
{
	struct perfbuild *b = records_at(pid, time, records_at_cpu);

	records_take(r, b, perfbuild_exit(b, pid, pid));
}

/* Mappings of the process, no two of them alike, one each ns. */
static void storm(struct sideband *s, uint32_t pid, unsigned n, uint64_t *time)
{
	struct records r = {};
	char path[32];

	for (unsigned i = 0; i < n; i++) {
		(void)snprintf(path, sizeof(path), "/tmp/%u", i);
		map_at(&r, pid, 0x10000000 + i % 16 * UINT64_C(0x1000), path, ++*time);
		add_records(s, &r);
	}
	records_deinit(&r);
}

/* Whatever one user's programs do, what is known of others reaches back as far as before, what is
 * new of his is there, and what is not is counted. */
static void a_storm_costs_its_user(void **state)
{
	(void)state;
	for (unsigned looks = 0; looks < 2; looks++) {
		struct source source = { .ops = looks ? &looking_for_owners : &knowing_owners };
		_cleanup_(sideband_freep) struct sideband *s = NULL;
		struct sideband_dropped dropped;
		struct sideband_view view;
		struct records r = {};
		uint64_t time = 10, since_ns;

		assert_int_equal(sideband_new(8 * MEBI, NULL, &source, &s), 0);
		if (looks)
			sideband_end_look(s);
		since_ns = since(s);
		records_comm(&r, 9, "root", 1);
		records_mmap2(&r, 9, "/bin/root", NULL, 2);
		records_comm(&r, 201, "other", 3);
		records_mmap2(&r, 201, "/bin/other", NULL, 4);
		records_comm(&r, 101, "stormy", 5);
		records_mmap2(&r, 101, "/bin/stormy", NULL, 6);
		add_records(s, &r);
		assert_false(sideband_next_dropped(s, &dropped));
		storm(s, 101, 400000, &time);

		assert_int_equal(sideband_stats(s).lost, 0);
		assert_in_range(sideband_stats(s).bytes, 2 * MEBI, 8 * MEBI);
		assert_false(sideband_wants_look(s));
		assert_int_equal(sideband_view_init(s, &view), 0);
		assert_int_equal(view.since_ns, since_ns);
		assert_int_equal(find(&view, 9).n_mmap, 1);
		assert_int_equal(find(&view, 201).n_mmap, 1);
		assert_int_equal(view.n_cuts, 1);
		assert_int_equal(view.cuts[0].uid, 1001);
		assert_in_range(view.cuts[0].since_ns, 11, time - 1);
		assert_in_range(view.cuts[0].n_dropped, 1, 400000);
		/* What he has mapped since ever is said again. */
		assert_string_equal(find(&view, 101).name, "/tmp/399999");
		assert_in_range(find(&view, 101).n_mmap + view.cuts[0].n_dropped, 400001, 400200);
		sideband_view_deinit(&view);
		assert_true(sideband_next_dropped(s, &dropped));
		assert_int_equal(dropped.uid, 1001);
		assert_false(sideband_next_dropped(s, &dropped));
		records_deinit(&r);
	}
}

/* Others need room that one user has: he gives it, down to their part, and no further. */
static void parts_are_kept(void **state)
{
	struct source source = { .ops = &knowing_owners };
	_cleanup_(sideband_freep) struct sideband *s = NULL;
	const struct share *share;
	uint64_t time = 10;

	(void)state;
	assert_int_equal(sideband_new(16 * MEBI, NULL, &source, &s), 0);
	share = sideband_share(s);
	storm(s, 101, 200000, &time);
	assert_int_equal(share->users[0].uid, 1001);
	assert_in_range(share->users[0].taken, 6 * MEBI, 14 * MEBI);
	for (unsigned i = 0; i < 20; i++)
		for (uint32_t pid = 101; pid < 500; pid += 100)
			storm(s, pid, 10000, &time);
	for (size_t i = 0; i < share->n_users; i++)
		assert_in_range(share->users[i].taken, share->users[i].uid ? MEBI : 0, 5 * MEBI);
	assert_in_range(share->taken, 6 * MEBI, 16 * MEBI);
	/* Root's are still all there. */
	assert_int_equal(since(s), 0);
	assert_int_equal(add(s, 1000, time), 0);
	assert_int_equal(sideband_stats(s).lost, 0);
	assert_int_equal(since(s), 0);
}

/* What a view says of the last mapping of a process at an address, at the end: NULL after an exec
 * or a fork. */
static const char *mapped_at(const struct sideband_view *view, uint32_t pid, uint64_t address)
{
	const char *name = NULL;
	uint64_t latest = 0;

	for (size_t i = 0; i < view->n_spans; i++) {
		struct cursor c = view->spans[i];
		struct record_mmap2 mmap;
		struct record_task fork;
		struct record_comm comm;
		struct record record;

		while (record_next(&c, &record) == 0) {
			const uint64_t time = record.trailer.time;

			if (record_get_mmap2(&record, &mmap) == 0 && mmap.pid == pid &&
			    mmap.addr <= address && address < mmap.addr + mmap.len &&
			    time >= latest) {
				name = mmap.name;
				latest = time;
			} else if ((record.header.type == PERF_RECORD_COMM &&
				    record_read_comm(record.header.misc, record.body, &comm) == 0 &&
				    comm.exec && comm.pid == pid && time >= latest) ||
				   (record.header.type == PERF_RECORD_FORK &&
				    record_get_task(&record, &fork) == 0 && fork.pid == pid &&
				    time >= latest)) {
				name = NULL;
				latest = time;
			}
		}
	}
	return name;
}

/* Make a sideband whose source has looked at the tasks once, with the records of @r, which are
 * freed, and then so many of root's that the source is to look again. @ret_time is when it is. */
static struct sideband *make_unlooked(struct records *r, uint64_t *ret_time)
{
	static struct source source = { .ops = &looking_for_owners };
	struct sideband *s = NULL;

	assert_int_equal(sideband_new(8 * MEBI, NULL, &source, &s), 0);
	sideband_end_look(s);
	add_records(s, r);
	records_deinit(r);
	for (*ret_time = 10; !sideband_wants_look(s); *ret_time += 100)
		assert_int_equal(add(s, 100, *ret_time), 0);
	return s;
}

/* Add records of root's until the first ones are forgotten. */
static void outlast_first(struct sideband *s, uint64_t *time)
{
	for (; since(s) < 100; *time += 100)
		assert_int_equal(add(s, 100, *time), 0);
}

/* A user's storm while the source has not looked at his processes for the present epoch. */
static void a_storm_before_a_look(void **state)
{
	_cleanup_(sideband_freep) struct sideband *s = NULL;
	struct sideband_view view;
	struct records r = {};
	uint64_t time;
	size_t n_cuts = 0;

	(void)state;
	records_comm(&r, 101, "calm", 5);
	records_mmap2(&r, 101, "/bin/calm", NULL, 6);
	s = make_unlooked(&r, &time);
	for (unsigned i = 0; i < 400; i++) {
		storm(s, 102, 1000, &time);
		/* Then an epoch begins for root's sake. */
		if (i == 200)
			outlast_first(s, &time);
		assert_int_equal(sideband_view_init(s, &view), 0);
		assert_string_equal(find(&view, 101).name, "/bin/calm");
		assert_string_equal(mapped_at(&view, 102, 0x10000000 + 999 % 16 * 0x1000),
				    "/tmp/999");
		/* What is left of his records reaches back to where it is said to. */
		if (view.n_cuts > 0 && i < 200)
			assert_in_range(find(&view, 102).n_mmap, time - view.cuts[0].since_ns,
					time - view.cuts[0].since_ns + 100);
		n_cuts += view.n_cuts;
		sideband_view_deinit(&view);
	}
	assert_true(n_cuts > 300);
	assert_true(sideband_wants_look(s));
	assert_int_equal(sideband_stats(s).lost, 0);
}

/* Whose a process is that the source no longer knows stays known when an epoch ends before the
 * source has looked. */
static void owners_before_a_look(void **state)
{
	_cleanup_(sideband_freep) struct sideband *s = NULL;
	struct sideband_view view;
	struct records r = {};
	uint64_t time;

	(void)state;
	records_comm(&r, 101, "parent", 5);
	records_fork(&r, 99, 101, 6);
	records_mmap2(&r, 99, "/bin/child", NULL, 7);
	s = make_unlooked(&r, &time);
	outlast_first(s, &time);
	assert_true(sideband_wants_look(s));
	storm(s, 99, 10, &time);
	assert_int_equal(sideband_view_init(s, &view), 0);
	assert_string_equal(find(&view, 99).name, "/tmp/9");
	sideband_view_deinit(&view);
	assert_true(share_taken(sideband_share(s), 1001) > 0);
	assert_int_equal(share_taken(sideband_share(s), SHARE_OTHERS), 0);
}

/* A process that another user's was before, by its number or before it executed a program: when the
 * later records are forgotten, the earlier ones are not taken for true. */
static void no_mapping_outlives_its_process(void **state)
{
	struct source source = { .ops = &knowing_owners };
	_cleanup_(sideband_freep) struct sideband *s = NULL;
	struct sideband_view view;
	struct records r = {};
	uint64_t time = 100;

	(void)state;
	assert_int_equal(sideband_new(8 * MEBI, NULL, &source, &s), 0);
	/* Root's 50 forks 150, which executes a program that is user 1001's. */
	records_comm(&r, 50, "root", 1);
	records_mmap2(&r, 50, "/bin/root", NULL, 2);
	records_fork(&r, 150, 50, 3);
	map_at(&r, 150, 0x900000, "/bin/before", 4);
	add_records(s, &r);
	assert_int_equal(sideband_share(s)->n_users, 1);
	execute(&r, 150, "program", 5);
	records_mmap2(&r, 150, "/bin/program", NULL, 6);
	/* 60 of root ends, and its number is given to a child of 150. */
	records_mmap2(&r, 60, "/bin/sixty", NULL, 7);
	end(&r, 60, 8);
	records_fork(&r, 60, 150, 9);
	map_at(&r, 60, 0x700000, "/bin/new", 10);
	add_records(s, &r);
	assert_int_equal(sideband_view_init(s, &view), 0);
	assert_null(mapped_at(&view, 150, 0x900000));
	assert_string_equal(mapped_at(&view, 150, 0x400000), "/bin/program");
	assert_string_equal(mapped_at(&view, 60, 0x700000), "/bin/new");
	sideband_view_deinit(&view);

	/* It maps something else there, and ends; both is forgotten, root's records are not. */
	end(&r, 60, 11);
	add_records(s, &r);
	storm(s, 101, 400000, &time);
	storm(s, 150, 4000, &time);
	assert_int_equal(sideband_view_init(s, &view), 0);
	assert_string_equal(mapped_at(&view, 50, 0x400000), "/bin/root");
	assert_null(mapped_at(&view, 150, 0x900000));
	assert_string_equal(mapped_at(&view, 150, 0x400000), "/bin/program");
	assert_null(mapped_at(&view, 60, 0x400000));
	assert_null(mapped_at(&view, 60, 0x700000));
	sideband_view_deinit(&view);
	records_deinit(&r);
}

/* Whoever goes on knows as well whose records are whose. */
static void shares_are_kept(void **state)
{
	struct source a = { .ops = &knowing_owners }, b = a;
	struct sideband *s, *other;
	struct records before, found;
	uint64_t time = 10;

	(void)state;
	assert_int_equal(kept_new(&a.kept), 0);
	assert_int_equal(sideband_new(8 * MEBI, NULL, &a, &s), 0);
	assert_int_equal(add(s, 100, 1), 0);
	storm(s, 201, 100, &time);
	for (unsigned i = 0; i < 40; i++) {
		storm(s, 101, 7000 + i, &time);
		sideband_publish(s);
		before = records_of(s);
		/* It is killed behind these, some of which begin another epoch. */
		storm(s, 101, 3000, &time);
		b.kept = copy_kept(a.kept);
		assert_int_equal(sideband_new(8 * MEBI, NULL, &b, &other), 0);
		assert_int_equal(sideband_resume(other), 0);
		found = records_of(other);
		assert_int_equal(found.size, before.size);
		assert_memory_equal(found.bytes, before.bytes, before.size);
		records_deinit(&before);
		records_deinit(&found);
		time -= 3000;
		storm(other, 101, 3000, &time);
		before = records_of(s);
		found = records_of(other);
		assert_int_equal(found.size, before.size);
		assert_memory_equal(found.bytes, before.bytes, before.size);
		records_deinit(&before);
		records_deinit(&found);
		(void)sideband_free(other);
		(void)kept_free(b.kept);
	}
	(void)sideband_free(s);
	(void)kept_free(a.kept);
}

/* A source that does not know, and more users than there are accounts: they count as one. */
static void other_users(void **state)
{
	struct source source = { .ops = &knowing_owners };
	_cleanup_(sideband_freep) struct sideband *s = NULL;
	struct sideband_view view;
	uint64_t time = 10;

	(void)state;
	assert_int_equal(sideband_new(8 * MEBI, NULL, &source, &s), 0);
	assert_int_equal(add(s, 10, 1), 0);
	for (uint32_t i = 1; i < 40; i++)
		storm(s, i * 100, 10, &time);
	storm(s, 99, 300000, &time);
	assert_int_equal(sideband_view_init(s, &view), 0);
	assert_int_equal(view.n_cuts, 1);
	assert_int_equal(view.cuts[0].uid, SHARE_OTHERS);
	assert_int_equal(find(&view, 100).n_mmap, 10);
	assert_int_equal(view.since_ns, 0);
	sideband_view_deinit(&view);
	assert_in_range(sideband_stats(s).bytes, MEBI, 8 * MEBI);
}

struct adding {
	struct records records;
	struct sideband *sideband;
	struct sideband_view view;
};

static int add_all(void *userdata)
{
	struct adding *a = userdata;
	int r;

	r = sideband_new(MEBI, NULL, &source_that_knows, &a->sideband);
	if (r < 0)
		return r;
	r = sideband_add(a->sideband, a->records.bytes, a->records.size);
	if (r == 0)
		r = sideband_view_init(a->sideband, &a->view);
	if (r < 0)
		a->sideband = sideband_free(a->sideband);
	return r;
}

static void all_are_there(void *userdata)
{
	struct adding *a = userdata;
	const struct summary seen = summarize(&a->view);

	/* What there was no memory for is said to be lost. */
	assert_int_equal(seen.n_comm + seen.lost, 2000);
	sideband_view_deinit(&a->view);
	a->sideband = sideband_free(a->sideband);
}

static void calls_that_fail(void **state)
{
	struct adding a = {};

	(void)state;
	for (size_t i = 0; i < 2000; i++)
		records_comm(&a.records, 1 + (uint32_t)i % 100, "x", 1 + i);
	failing_each(add_all, all_are_there, &a);
	records_deinit(&a.records);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_what_it_is_given),
		cmocka_unit_test(a_view_stays),
		cmocka_unit_test(the_limit_holds),
		cmocka_unit_test(the_limit_changes),
		cmocka_unit_test(who_lives_is_not_forgotten),
		cmocka_unit_test(a_storm_of_mappings),
		cmocka_unit_test(what_the_source_lost),
		cmocka_unit_test(told_of_all_tasks),
		cmocka_unit_test(epochs_by_size),
		cmocka_unit_test(full_before_it_has_looked),
		cmocka_unit_test(full_before_its_first_look),
		cmocka_unit_test(epochs_by_age),
		cmocka_unit_test(lost_records),
		cmocka_unit_test(told_late),
		cmocka_unit_test(lost_while_asking),
		cmocka_unit_test(others_go_on_from_what_is_published),
		cmocka_unit_test(a_look_begins_again),
		cmocka_unit_test(a_long_look_begins_again),
		cmocka_unit_test(kept_nonsense_is_not_complete),
		cmocka_unit_test(kept_nonsense_is_refused),
		cmocka_unit_test(a_storm_costs_its_user),
		cmocka_unit_test(a_storm_before_a_look),
		cmocka_unit_test(owners_before_a_look),
		cmocka_unit_test(parts_are_kept),
		cmocka_unit_test(no_mapping_outlives_its_process),
		cmocka_unit_test(shares_are_kept),
		cmocka_unit_test(other_users),
		cmocka_unit_test(calls_that_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
