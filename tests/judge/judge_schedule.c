/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/judge/judge_schedule.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/drmemtrace/container.h"
#include "util/map.h"
#include "util/message.h"

#define ENTRY_SIZE 32

static_assert(sizeof(struct schedule_entry) == ENTRY_SIZE, "entries are as in the files");

void schedule_deinit(struct schedule *schedule)
{
	vec_deinit(&schedule->entries);
}

int schedule_add(struct schedule *schedule, struct schedule_entry entry)
{
	const size_t n = schedule->entries.n;

	if (n > schedule->first &&
	    memcmp(&schedule->entries.items[n - 1], &entry, sizeof(entry)) == 0)
		return 0;
	return n == SCHEDULE_MAX ? -E2BIG : vec_push(&schedule->entries, entry);
}

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int by_time(const void *left, const void *right)
{
	const struct schedule_entry *a = left, *b = right;
	int r = compare(a->time, b->time);

	if (r == 0)
		r = compare(a->cpu, b->cpu);
	if (r == 0)
		r = compare(a->tid, b->tid);
	return r ? r : compare(a->n_insns, b->n_insns);
}

static int by_cpu_and_time(const void *left, const void *right)
{
	const struct schedule_entry *a = left, *b = right;
	const int r = compare(a->cpu, b->cpu);

	return r ? r : by_time(left, right);
}

static int read_entries(const char *path, size_t n_max, struct schedule_entry **ret_entries,
			size_t *ret_n)
{
	char *bytes;
	size_t size;
	int r;

	r = container_read_all(path, n_max * ENTRY_SIZE, &bytes, &size);
	if (r < 0)
		return r;
	if (size % ENTRY_SIZE) {
		free(bytes);
		return -EBADMSG;
	}
	*ret_entries = (struct schedule_entry *)(void *)bytes;
	*ret_n = size / ENTRY_SIZE;
	return 0;
}

static char *describe(const struct schedule_entry *entry)
{
	char *text;

	if (!entry)
		return strdup("nothing");
	if (asprintf(&text,
		     "thread %" PRIu64 " at %" PRIu64 " on cpu %" PRIu64 " behind %" PRIu64
		     " instructions",
		     entry->tid, entry->time, entry->cpu, entry->n_insns) < 0)
		return NULL;
	return text;
}

static int refuse(size_t i, const struct schedule_entry *found,
		  const struct schedule_entry *expected, char **ret_fault)
{
	_cleanup_(freep) char *left = describe(found), *right = describe(expected);

	if (!left || !right)
		return -ENOMEM;
	return message_set(ret_fault, 1, "entry %zu is %s, but the trace has %s", i, left, right);
}

/* Entries in the order of a file: all, or those of a cpu. */
struct group {
	const struct schedule_entry *expected;
	size_t start, end; /* of the group in them */
	size_t next;       /* which comes next */
};

/* Begin with the entries of @cpu. */
static struct group find_group(const struct schedule *schedule, const struct map *cursors,
			       bool by_cpu, uint64_t cpu)
{
	struct group g = { .expected = schedule->entries.items, .end = schedule->entries.n };
	const uint64_t *cursor = map_get(cursors, by_cpu ? cpu : 0);

	if (by_cpu) {
		g.start = vec_bisect(&schedule->entries, entry, entry->cpu < cpu);
		g.end = vec_bisect(&schedule->entries, entry, entry->cpu <= cpu);
	}
	g.next = cursor ? (size_t)*cursor : g.start;
	return g;
}

/* Pass over entries of the same thread as the one before, up to @found; NULL: all of them. */
static void pass_over(struct group *g, const struct schedule_entry *found)
{
	while (g->next > g->start && g->next < g->end &&
	       (!found || by_time(&g->expected[g->next], found) != 0) &&
	       g->expected[g->next].tid == g->expected[g->next - 1].tid)
		g->next++;
}

static int compare_entries(const struct schedule *schedule, const struct schedule_entry *entries,
			   size_t n, bool by_cpu, struct map *cursors, char **ret_fault)
{
	struct group g;
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		g = find_group(schedule, cursors, by_cpu, entries[i].cpu);
		pass_over(&g, &entries[i]);
		if (g.next == g.end || by_time(&g.expected[g.next], &entries[i]) != 0)
			return refuse(i, &entries[i], g.next < g.end ? &g.expected[g.next] : NULL,
				      ret_fault);
		r = map_put(cursors, by_cpu ? entries[i].cpu : 0, g.next + 1);
	}
	for (size_t i = 0; i < schedule->entries.n && r == 0; i = g.end) {
		g = find_group(schedule, cursors, by_cpu, schedule->entries.items[i].cpu);
		pass_over(&g, NULL);
		if (g.next < g.end)
			return refuse(n, NULL, &g.expected[g.next], ret_fault);
	}
	return r;
}

int schedule_compare(struct schedule *schedule, const char *path, bool by_cpu, char **ret_fault)
{
	_cleanup_(freep) struct schedule_entry *entries = NULL;
	struct map cursors = {};
	size_t n;
	int r;

	if (schedule->entries.n > 0)
		qsort(schedule->entries.items, schedule->entries.n, ENTRY_SIZE,
		      by_cpu ? by_cpu_and_time : by_time);
	r = read_entries(path, schedule->entries.n + 1, &entries, &n);
	if (r == -EBADMSG || r == -EFBIG)
		return message_set(ret_fault, 1, "%s",
				   r == -EFBIG
				       ? "it has more entries than the trace"
				       : "it is damaged, or no list of entries of 32 bytes");
	if (r < 0)
		return r;
	r = compare_entries(schedule, entries, n, by_cpu, &cursors, ret_fault);
	map_deinit(&cursors);
	return r;
}
