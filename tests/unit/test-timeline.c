/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Timeline: each row is a list of sideband records, and what a CPU's stays (or a thread's) must be
 * from them:
 *
 *	start:pid/tid(comm)[mapped files at its end] …
 *
 * where "?" stands for an unknown thread, and without [] there is no address space.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/file/perfdata.h"
#include "decoder/image/layout.h"
#include "decoder/sideband/timeline.h"
#include "ptd/record.h"
#include "tests/lib/mempages.h"
#include "tests/lib/perfbuild.h"
#include "tests/lib/perfbytes.h"
#include "tests/lib/perfsched.h"
#include "tests/lib/tempdir.h"

#define NO UINT32_MAX

struct event {
	enum {
		END,
		OUT,
		IN,
		LEAVE,
		ENTER,
		ITRACE,
		FORK,
		EXIT,
		COMM,
		EXEC,
		MAP,
		IDS,
		SCHED,
		LOST
	} kind;
	uint64_t time;
	uint32_t cpu, pid, tid; /* trailer; and the subject of COMM, EXIT, MAP */
	uint32_t pid2, tid2;    /* next, prev, started or forked task */
	const char *text;
};

struct row {
	const char *name;
	struct event events[12];
	uint32_t cpu; /* or tid */
	const char *expected;
	size_t n_skipped;
};

static struct perfbuild b;

/* An entry of perf's table: the build-id of /x/a. */
static void add_build_id(void)
{
	perfbuild_build_id(&b, &(struct buildid){ .bytes = { 0xab, 0xcd }, .size = 20 }, "/x/a");
}

static void add(const struct event *e)
{
	char path[16];

	perfbuild_at(&b, e->time, e->cpu, e->pid, e->tid);
	switch (e->kind) {
	case OUT:
	case IN:
		perfbuild_switch_wide(&b, e->kind == OUT, e->pid2, e->tid2);
		break;
	case LEAVE:
	case ENTER:
		perfbuild_switch(&b, e->kind == LEAVE);
		break;
	case ITRACE:
		perfbuild_itrace(&b, e->pid2, e->tid2);
		break;
	case FORK:
		perfbuild_fork(&b, e->pid2, e->pid, e->tid2, e->tid);
		break;
	case EXIT:
		perfbuild_exit(&b, e->pid, e->tid);
		break;
	case COMM:
	case EXEC:
		perfbuild_comm(&b, e->kind == EXEC, e->pid, e->tid, e->text);
		break;
	case MAP:
		snprintf(path, sizeof(path), "/x/%s", e->text);
		perfbuild_mmap2(&b, e->pid, e->tid, 0x400000, path);
		break;
	case IDS:
		add_build_id();
		break;
	case SCHED:
		perfsched_sample(&b, e->tid, e->tid2);
		break;
	case LOST:
		perfbuild_lost(&b, 1);
		break;
	case END:
		break;
	}
}

struct made {
	struct trace *trace;
	struct objects *objects;
	struct timeline *timeline;
};

static struct made make(const struct event *events)
{
	uint8_t formats[4096];
	struct made m = {};
	char *message = NULL;

	perfbuild_begin(&b, false);
	perfsched_begin(&b, formats, perfsched_formats(formats));
	for (const struct event *e = events; e->kind != END; e++)
		add(e);
	perfbuild_end(&b);
	if (perfbytes_parse(b.bytes, b.size, "FILE", &m.trace, &message) < 0)
		fail_msg("%s", message);
	assert_int_equal(objects_new(NULL, &m.objects), 0);
	assert_int_equal(timeline_new(m.trace, m.objects, &m.timeline), 0);
	return m;
}

static void unmake(struct made *m)
{
	assert_null(timeline_free(m->timeline));
	objects_free(m->objects);
	trace_free(m->trace);
}

typedef void at_fn(const struct timeline *, uint32_t, uint64_t, struct stay *);

static char *render(const struct timeline *timeline, at_fn *at, uint32_t owner)
{
	struct stay stay = {};
	uint64_t time = 0;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	do {
		at(timeline, owner, time, &stay);
		assert_int_equal(stay.start, time);
		assert_true(stay.end > time);
		fprintf(f, "%s%" PRIu64 ":", time ? " " : "", time);
		if (stay.pid == PTD_ID_UNKNOWN)
			fprintf(f, "?");
		else
			fprintf(f, "%u/%u", stay.pid, stay.tid);
		if (stay.comm[0])
			fprintf(f, "(%s)", stay.comm);
		if (stay.space) {
			const size_t n = space_generation(stay.space, stay.end - 1);

			fprintf(f, "[");
			for (size_t i = 0; i < n; i++)
				fprintf(f, "%s", space_mapping(stay.space, i)->object->id.name + 3);
			fprintf(f, "]");
		}
		time = stay.end;
	} while (time != UINT64_MAX);
	fclose(f);
	return text;
}

static void run(const struct row *rows, size_t n_rows, at_fn *at)
{
	for (size_t i = 0; i < n_rows; i++) {
		struct made m = make(rows[i].events);
		char *text = render(m.timeline, at, rows[i].cpu);

		print_message("  %s\n", rows[i].name);
		assert_string_equal(text, rows[i].expected);
		assert_int_equal(timeline_n_skipped(m.timeline), rows[i].n_skipped);
		free(text);
		unmake(&m);
	}
}

static void cpus(void **state)
{
	static const struct row rows[] = {
		{ "nothing is known", {}, 0, "0:?", 0 },
		{ "of another cpu", { { OUT, 5, 1, 9, 9, 0, 0, NULL } }, 0, "0:?", 0 },
		{ "an out names who ran and who comes",
		  { { OUT, 5, 0, 9, 9, 7, 8, NULL } },
		  0,
		  "0:9/9[] 5:7/8[]",
		  0 },
		{ "an in alone, too", { { IN, 5, 0, 7, 8, 9, 9, NULL } }, 0, "0:9/9[] 5:7/8[]", 0 },
		{ "the in agrees with the out",
		  { { OUT, 5, 0, 9, 9, 7, 8, NULL }, { IN, 6, 0, 7, 8, 9, 9, NULL } },
		  0,
		  "0:9/9[] 5:7/8[]",
		  0 },
		{ "the in corrects the out",
		  { { OUT, 5, 0, 9, 9, 7, 8, NULL }, { IN, 6, 0, 7, 7, 9, 9, NULL } },
		  0,
		  "0:9/9[] 5:7/8[] 6:7/7[]",
		  0 },
		{ "idle",
		  { { OUT, 5, 0, 9, 9, 0, 0, NULL }, { OUT, 8, 0, 0, 0, 9, 9, NULL } },
		  0,
		  "0:9/9[] 5:0/0 8:9/9[]",
		  0 },
		{ "idle before", { { IN, 5, 0, 9, 9, 0, 0, NULL } }, 0, "0:0/0 5:9/9[]", 0 },
		{ "one that is gone leaves no name",
		  { { OUT, 5, 0, NO, NO, 7, 7, NULL } },
		  0,
		  "0:? 5:7/7[]",
		  0 },
		{ "records of the own task only",
		  { { ENTER, 5, 0, 7, 7, 0, 0, NULL },
		    { LEAVE, 8, 0, 7, 7, 0, 0, NULL },
		    { ENTER, 9, 0, 7, 8, 0, 0, NULL } },
		  0,
		  "0:? 5:7/7[] 8:? 9:7/8[]",
		  0 },
		{ "a leave is proof, too",
		  { { LEAVE, 8, 0, 7, 7, 0, 0, NULL } },
		  0,
		  "0:7/7[] 8:?",
		  0 },
		{ "ITRACE_START",
		  { { ITRACE, 5, 0, 0, 0, 7, 8, NULL }, { OUT, 9, 0, 7, 8, 0, 0, NULL } },
		  0,
		  "0:? 5:7/8[] 9:0/0",
		  0 },
		{ "records out of order in the file",
		  { { OUT, 9, 0, 7, 8, 0, 0, NULL }, { ITRACE, 5, 0, 0, 0, 7, 8, NULL } },
		  0,
		  "0:? 5:7/8[] 9:0/0",
		  0 },
		{ "two threads share a cpu",
		  { { COMM, 0, 0, 7, 7, 0, 0, "one" },
		    { FORK, 0, 0, 7, 7, 7, 8, NULL },
		    { MAP, 0, 0, 7, 7, 0, 0, "a" },
		    { OUT, 5, 0, 7, 7, 7, 8, NULL },
		    { OUT, 6, 0, 7, 8, 7, 7, NULL },
		    { OUT, 7, 0, 7, 7, 7, 8, NULL } },
		  0,
		  "0:7/7(one)[a] 5:7/8(one)[a] 6:7/7(one)[a] 7:7/8(one)[a]",
		  0 },
		{ "a thread migrates: where it leaves",
		  { { OUT, 5, 0, 7, 7, 0, 0, NULL }, { IN, 6, 1, 7, 7, 0, 0, NULL } },
		  0,
		  "0:7/7[] 5:0/0",
		  0 },
		{ "a thread migrates: where it comes",
		  { { OUT, 5, 0, 7, 7, 0, 0, NULL }, { IN, 6, 1, 7, 7, 0, 0, NULL } },
		  1,
		  "0:0/0 6:7/7[]",
		  0 },
		{ "it was elsewhere before",
		  { { OUT, 5, 0, 7, 7, 0, 0, NULL }, { OUT, 9, 1, 7, 7, 0, 0, NULL } },
		  1,
		  "0:? 5:7/7[] 9:0/0",
		  0 },
		{ "it was not there before it was forked",
		  { { FORK, 5, 0, 7, 7, 8, 8, NULL }, { OUT, 9, 1, 8, 8, 0, 0, NULL } },
		  1,
		  "0:? 5:8/8[] 9:0/0",
		  0 },
		{ "time-0 records come first, wherever they are",
		  { { OUT, 5, 0, 7, 7, 0, 0, NULL },
		    { COMM, 0, 0, 7, 7, 0, 0, "one" },
		    { MAP, 0, 0, 7, 7, 0, 0, "a" } },
		  0,
		  "0:7/7(one)[a] 5:0/0",
		  0 },
		{ "synthesized forks copy nothing and undo nothing",
		  { { COMM, 0, 0, 1, 1, 0, 0, "init" },
		    { MAP, 0, 0, 1, 1, 0, 0, "i" },
		    { FORK, 0, 0, 1, 1, 7, 7, NULL },
		    { COMM, 0, 0, 7, 7, 0, 0, "one" },
		    { MAP, 0, 0, 7, 7, 0, 0, "a" },
		    { FORK, 0, 0, 1, 1, 7, 7, NULL },
		    { OUT, 5, 0, 7, 7, 0, 0, NULL } },
		  0,
		  "0:7/7(one)[a] 5:0/0",
		  0 },
		{ "a fork copies what was there",
		  { { COMM, 0, 0, 7, 7, 0, 0, "one" },
		    { MAP, 0, 0, 7, 7, 0, 0, "a" },
		    { FORK, 5, 0, 7, 7, 8, 8, NULL },
		    { MAP, 6, 0, 7, 7, 0, 0, "b" },
		    { OUT, 9, 0, 7, 7, 8, 8, NULL } },
		  0,
		  "0:7/7(one)[ab] 9:8/8(one)[a]",
		  0 },
		{ "what a child maps is its own",
		  { { MAP, 0, 0, 7, 7, 0, 0, "a" },
		    { FORK, 5, 0, 7, 7, 8, 8, NULL },
		    { MAP, 6, 0, 8, 8, 0, 0, "b" },
		    { OUT, 9, 0, 7, 7, 8, 8, NULL } },
		  0,
		  "0:7/7[a] 9:8/8[ab]",
		  0 },
		{ "what a thread maps is its process's",
		  { { FORK, 5, 0, 7, 7, 7, 8, NULL },
		    { MAP, 6, 0, 7, 8, 0, 0, "b" },
		    { OUT, 9, 0, 7, 7, 7, 8, NULL } },
		  0,
		  "0:7/7[b] 9:7/8[b]",
		  0 },
		{ "an exec ends a stay",
		  { { COMM, 0, 0, 7, 7, 0, 0, "one" },
		    { MAP, 0, 0, 7, 7, 0, 0, "a" },
		    { ITRACE, 2, 0, 7, 7, 7, 7, NULL },
		    { EXEC, 5, 0, 7, 7, 0, 0, "two" },
		    { MAP, 6, 0, 7, 7, 0, 0, "b" },
		    { OUT, 9, 0, 7, 7, 0, 0, NULL } },
		  0,
		  "0:? 2:7/7(one)[a] 5:7/7(two)[b] 9:0/0",
		  0 },
		{ "an exec before the first switch",
		  { { COMM, 0, 0, 7, 7, 0, 0, "one" },
		    { MAP, 0, 0, 7, 7, 0, 0, "a" },
		    { EXEC, 5, 0, 7, 7, 0, 0, "two" },
		    { MAP, 6, 0, 7, 7, 0, 0, "b" },
		    { OUT, 9, 0, 7, 7, 0, 0, NULL } },
		  0,
		  "0:7/7(one)[a] 5:7/7(two)[b] 9:0/0",
		  0 },
		{ "an exec by another thread than the first",
		  { { FORK, 0, 0, 7, 7, 7, 8, NULL },
		    { MAP, 0, 0, 7, 7, 0, 0, "a" },
		    { ITRACE, 2, 0, 7, 8, 7, 8, NULL },
		    { EXIT, 4, 1, 7, 7, 0, 0, NULL },
		    { EXEC, 5, 0, 7, 7, 0, 0, "two" },
		    { MAP, 6, 0, 7, 7, 0, 0, "b" } },
		  0,
		  "0:? 2:7/8[a] 5:7/7(two)[b]",
		  0 },
		{ "an exec is of no other process",
		  { { ITRACE, 2, 0, 9, 9, 9, 9, NULL }, { EXEC, 5, 1, 7, 7, 0, 0, "two" } },
		  0,
		  "0:? 2:9/9[]",
		  0 },
		{ "a new name is none of the address space's",
		  { { ITRACE, 2, 0, 7, 7, 7, 7, NULL },
		    { MAP, 3, 0, 7, 7, 0, 0, "a" },
		    { COMM, 5, 0, 7, 7, 0, 0, "two" },
		    { OUT, 9, 0, 7, 7, 0, 0, NULL },
		    { OUT, 10, 0, 0, 0, 7, 7, NULL } },
		  0,
		  "0:? 2:7/7[a] 9:0/0 10:7/7(two)[a]",
		  0 },
		{ "a pid is used again",
		  { { MAP, 0, 0, 7, 7, 0, 0, "a" },
		    { OUT, 5, 0, 7, 7, 0, 0, NULL },
		    { EXIT, 5, 0, 7, 7, 0, 0, NULL },
		    { FORK, 6, 0, 1, 1, 7, 7, NULL },
		    { MAP, 7, 0, 7, 7, 0, 0, "b" },
		    { OUT, 9, 0, 0, 0, 7, 7, NULL } },
		  0,
		  "0:7/7[a] 5:0/0 9:7/7[b]",
		  0 },
		{ "a pid is used again, and the fork was lost",
		  { { MAP, 0, 0, 7, 7, 0, 0, "a" },
		    { OUT, 5, 0, 7, 7, 0, 0, NULL },
		    { EXIT, 5, 0, 7, 7, 0, 0, NULL },
		    { MAP, 7, 0, 7, 7, 0, 0, "b" },
		    { OUT, 9, 0, 0, 0, 7, 7, NULL } },
		  0,
		  "0:7/7[a] 5:0/0 9:7/7[b]",
		  0 },
		{ "a tid is used again by another process",
		  { { OUT, 5, 0, 7, 8, 0, 0, NULL }, { OUT, 9, 0, 0, 0, 8, 8, NULL } },
		  0,
		  "0:7/8[] 5:0/0 9:8/8[]",
		  0 },
		{ "one that has exited still runs to its end",
		  { { ITRACE, 2, 0, 7, 7, 7, 7, NULL },
		    { MAP, 3, 0, 7, 7, 0, 0, "a" },
		    { EXIT, 5, 0, 7, 7, 0, 0, NULL },
		    { OUT, 6, 0, 7, 7, 0, 0, NULL },
		    { OUT, 7, 0, 0, 0, 7, 7, NULL } },
		  0,
		  "0:? 2:7/7[a] 6:0/0 7:7/7[a]",
		  0 },
		{ "records of nobody",
		  { { COMM, 5, 0, 0, 0, 0, 0, "swapper" },
		    { MAP, 6, 0, 0, 0, 0, 0, "a" },
		    { FORK, 7, 0, 1, 1, 0, 0, NULL },
		    { ITRACE, 9, NO, 7, 7, 7, 7, NULL } },
		  0,
		  "0:?",
		  4 },
	};

	(void)state;
	run(rows, ARRAY_LEN(rows), timeline_at);
}

/* Who comes is told by a tid alone. */
static void samples(void **state)
{
	static const struct row rows[] = {
		{ "of processes that are known",
		  { { COMM, 0, 0, 7, 7, 0, 0, "one" },
		    { FORK, 0, 0, 7, 7, 7, 8, NULL },
		    { SCHED, 5, 0, 7, 7, 0, 8, NULL },
		    { SCHED, 6, 0, 7, 8, 0, 0, NULL },
		    { SCHED, 9, 0, 0, 0, 0, 7, NULL } },
		  0,
		  "0:7/7(one)[] 5:7/8(one)[] 6:0/0 9:7/7(one)[]",
		  0 },
		{ "whose it is is told when it leaves",
		  { { SCHED, 5, 0, 0, 0, 0, 8, NULL }, { SCHED, 6, 0, 7, 8, 0, 0, NULL } },
		  0,
		  "0:0/0 5:7/8[] 6:0/0",
		  0 },
		{ "and never is that of one that stays",
		  { { SCHED, 5, 0, 0, 0, 0, 8, NULL } },
		  0,
		  "0:0/0 5:?",
		  0 },
		{ "two that are not known, one after the other",
		  { { SCHED, 5, 0, 0, 0, 0, 8, NULL },
		    { SCHED, 6, 0, NO, NO, 0, 9, NULL },
		    { SCHED, 8, 0, 9, 9, 0, 0, NULL } },
		  0,
		  "0:0/0 5:? 6:9/9[] 8:0/0",
		  0 },
		{ "records were lost between",
		  { { SCHED, 5, 0, 0, 0, 0, 8, NULL },
		    { LOST, 6, 0, 0, 0, 0, 0, NULL },
		    { SCHED, 8, 0, 7, 8, 0, 0, NULL } },
		  0,
		  "0:0/0 5:? 8:0/0",
		  0 },
		{ "another leaves than came",
		  { { COMM, 0, 0, 7, 7, 0, 0, "one" },
		    { SCHED, 5, 0, 0, 0, 0, 7, NULL },
		    { SCHED, 6, 0, 7, 7, 0, 0, NULL },
		    { SCHED, 8, 0, 7, 7, 0, 0, NULL } },
		  0,
		  "0:0/0 5:7/7(one)[] 6:? 8:?",
		  0 },
		{ "on another CPU, too: then the last one says nothing",
		  { { COMM, 0, 0, 7, 7, 0, 0, "one" },
		    { SCHED, 5, 1, 7, 7, 0, 0, NULL },
		    { SCHED, 6, 1, 7, 7, 0, 0, NULL },
		    { SCHED, 7, 0, 0, 0, 0, 7, NULL },
		    { SCHED, 8, 0, 7, 7, 0, 0, NULL } },
		  0,
		  "0:0/0 7:7/7(one)[] 8:?",
		  0 },
		{ "an exec gives it another number",
		  { { FORK, 0, 0, 7, 7, 7, 8, NULL },
		    { SCHED, 5, 0, 0, 0, 0, 8, NULL },
		    { EXEC, 6, 0, 7, 7, 0, 0, "two" },
		    { SCHED, 8, 0, 7, 7, 0, 0, NULL } },
		  0,
		  "0:0/0 5:7/8[] 6:7/7(two)[] 8:0/0",
		  0 },
		{ "beside switch records they are not looked at",
		  { { OUT, 5, 0, 9, 9, 7, 8, NULL }, { SCHED, 5, 0, 9, 9, 0, 1, NULL } },
		  0,
		  "0:9/9[] 5:7/8[]",
		  0 },
	};

	(void)state;
	run(rows, ARRAY_LEN(rows), timeline_at);
}

static void threads(void **state)
{
	static const struct row rows[] = {
		{ "nobody", {}, 7, "0:?", 0 },
		{ "of a mapping alone", { { MAP, 0, 0, 7, 8, 0, 0, "a" } }, 8, "0:7/8[a]", 0 },
		{ "from its fork on",
		  { { MAP, 0, 0, 7, 7, 0, 0, "a" }, { FORK, 5, 0, 7, 7, 8, 8, NULL } },
		  8,
		  "0:? 5:8/8[a]",
		  0 },
		{ "an exec, and a new name",
		  { { COMM, 0, 0, 7, 7, 0, 0, "one" },
		    { MAP, 0, 0, 7, 7, 0, 0, "a" },
		    { EXEC, 5, 0, 7, 7, 0, 0, "two" },
		    { MAP, 6, 0, 7, 7, 0, 0, "b" },
		    { COMM, 8, 0, 7, 7, 0, 0, "three" } },
		  7,
		  "0:7/7(one)[a] 5:7/7(two)[b] 8:7/7(three)[b]",
		  0 },
		{ "switches do not matter",
		  { { ENTER, 5, 0, 7, 8, 0, 0, NULL },
		    { LEAVE, 6, 0, 7, 8, 0, 0, NULL },
		    { ENTER, 7, 1, 7, 8, 0, 0, NULL } },
		  8,
		  "0:7/8[]",
		  0 },
		{ "a tid is used again",
		  { { COMM, 0, 0, 7, 8, 0, 0, "one" },
		    { EXIT, 4, 0, 7, 8, 0, 0, NULL },
		    { FORK, 6, 0, 9, 9, 9, 8, NULL } },
		  8,
		  "0:7/8(one)[] 6:9/8[]",
		  0 },
	};

	(void)state;
	run(rows, ARRAY_LEN(rows), timeline_at_tid);
}

/* What the kernel maps, and what is not executable, is not code of a process. */
static void only_code(void **state)
{
	struct made m;
	char *text;
	size_t at;

	(void)state;
	perfbuild_begin(&b, false);
	at = perfbuild_mmap2(&b, 7, 7, 0x1000, "/x/d");
	b.bytes[at + 8 + 56] = 3; /* PROT_READ | PROT_WRITE */
	at = perfbuild_mmap2(&b, 7, 7, 0x2000, "/x/k");
	b.bytes[at + 4] = PERF_RECORD_MISC_KERNEL;
	perfbuild_mmap2(&b, UINT32_MAX, 0, 0x2000, "/x/k");
	at = perfbuild_mmap2(&b, 7, 7, 0x3000, "/x/c");
	b.bytes[at + 8 + 56] = 4;                           /* PROT_EXEC */
	at = perfbuild_mmap2(&b, 7, 7, UINT64_MAX, "/x/w"); /* its end does not fit */
	perfbuild_end(&b);

	m = (struct made){};
	assert_int_equal(perfbytes_parse(b.bytes, b.size, "FILE", &m.trace, &text), 0);
	assert_int_equal(objects_new(NULL, &m.objects), 0);
	assert_int_equal(timeline_new(m.trace, m.objects, &m.timeline), 0);
	text = render(m.timeline, timeline_at_tid, 7);
	assert_string_equal(text, "0:7/7[c]");
	assert_int_equal(timeline_n_skipped(m.timeline), 1);
	free(text);
	unmake(&m);
}

/* perf's table names the build-ids of mappings that do not state theirs. */
static void build_ids(void **state)
{
	static const struct event events[] = {
		{ MAP, 0, 0, 7, 7, 0, 0, "a" },
		{ MAP, 0, 0, 7, 7, 0, 0, "b" },
		{ IDS, 0, 0, 0, 0, 0, 0, NULL },
		{ END, 0, 0, 0, 0, 0, 0, NULL },
	};
	const struct object *a, *other;
	struct made m = make(events);
	struct stay stay;

	(void)state;
	timeline_at_tid(m.timeline, 7, 0, &stay);
	assert_int_equal(space_generation(stay.space, 0), 2);
	a = space_mapping(stay.space, 0)->object;
	other = space_mapping(stay.space, 1)->object;
	assert_int_equal(a->id.build_id_size, 20);
	assert_int_equal(a->id.build_id[0], 0xab);
	assert_int_equal(other->id.build_id_size, 0);
	unmake(&m);
}

/* The hint must not matter: any order of questions gives the same answers. */
static void any_order(void **state)
{
	struct made m;
	uint32_t seed = 1;
	struct stay stay;
	char *message = NULL;

	(void)state;
	perfbuild_begin(&b, false);
	for (uint32_t i = 0; i < 200; i++) {
		perfbuild_at(&b, 10 + 10 * i, 0, 1 + i, 1 + i);
		perfbuild_switch_wide(&b, true, 2 + i, 2 + i);
	}
	perfbuild_end(&b);
	m = (struct made){};
	assert_int_equal(perfbytes_parse(b.bytes, b.size, "FILE", &m.trace, &message), 0);
	assert_int_equal(objects_new(NULL, &m.objects), 0);
	assert_int_equal(timeline_new(m.trace, m.objects, &m.timeline), 0);

	for (uint32_t i = 0; i < 5000; i++) {
		const uint64_t time = i < 2100 ? i : (seed = seed * 1664525 + 1013904223) >> 20;
		const uint64_t expected = time >= 2000 ? 201 : time / 10 + 1;

		timeline_at(m.timeline, 0, time, &stay);
		assert_int_equal(stay.pid, expected);
		assert_true(stay.start <= time && time < stay.end);
	}
	unmake(&m);
}

/* What @pid has at 0x400000 at @time; @first 0: it has no bytes. */
static void has_then(const struct timeline *timeline, uint32_t pid, uint64_t time, const char *name,
		     char first)
{
	const struct extent *extent;
	struct layout layout;
	struct stay stay;
	uint64_t at;

	timeline_at_tid(timeline, pid, time, &stay);
	assert_non_null(stay.space);
	layout_init(&layout, stay.space);
	while (layout.generation < space_generation(stay.space, time))
		assert_int_equal(layout_advance(&layout), 0);
	extent = layout_find(&layout, 0x400000);
	assert_non_null(extent);
	assert_string_equal(extent->object->id.name, name);
	at = extent->kind == MAPPING_MEMORY ? extent->offset : 0; /* files' offsets are far */
	assert_int_equal(extent->object->size > at ? *object_bytes(extent->object, at, 1) : 0,
			 first);
	layout_deinit(&layout);
}

static void has_there(const struct timeline *timeline, uint32_t pid, const char *name, char first)
{
	has_then(timeline, pid, 100, name, first);
}

/* The vDSO is the same of all, but for whose memory in its place the snapshot has. */
static void vdso(void **state)
{
	char dir[TEMPDIR_SIZE];
	struct timeline *timeline;
	struct objects *objects;
	struct trace *trace;
	char *message = NULL;

	(void)state;
	tempdir_make("timeline", dir);
	tempdir_put_text(dir, "objects/.build-id/ab/cd/vdso", "the kernel's");
	tempdir_put_text(dir, "objects.map", "abcd\t[vdso]\n");
	mempages_put(dir, 8, 0x400000, "its own", 7);
	perfbuild_begin(&b, false);
	perfbuild_at(&b, 10, 0, 7, 7);
	perfbuild_mmap2(&b, 7, 7, 0x400000, "[vdso]");
	perfbuild_mmap2(&b, 8, 8, 0x400000, "[vdso]");
	perfbuild_end(&b);
	assert_int_equal(perfbytes_parse(b.bytes, b.size, "FILE", &trace, &message), 0);
	assert_int_equal(objects_new(dir, &objects), 0);
	assert_int_equal(timeline_new(trace, objects, &timeline), 0);
	has_there(timeline, 7, "[vdso]", 't');
	has_there(timeline, 8, "[anon]", 'i');
	timeline_free(timeline);
	objects_free(objects);
	trace_free(trace);
	tempdir_remove(dir);
}

/* What was kept of a process's memory is its last program's, not that of one before, nor another
 * process's. */
static void memory(void **state)
{
	char dir[TEMPDIR_SIZE];
	struct timeline *timeline;
	struct objects *objects;
	struct trace *trace;
	char *message = NULL;

	(void)state;
	tempdir_make("timeline", dir);
	mempages_put(dir, 8, 0x400000, "the last", 8);
	mempages_add(dir, 9, 0x400000, "of 9", 4);
	/* A mapping begins and ends inside what was kept. */
	mempages_add(dir, 10, 0x3ffff8, "not hereinside", 14);
	mempages_add(dir, 11, 0x3ffff8, "just not", 8);
	perfbuild_begin(&b, false);
	perfbuild_at(&b, 10, 0, 7, 7);
	perfbuild_fork(&b, 8, 7, 8, 7);
	perfbuild_mmap2(&b, 8, 8, 0x400000, "//anon");
	perfbuild_mmap2(&b, 9, 9, 0x400000, "//anon");
	perfbuild_mmap2(&b, 10, 10, 0x400000, "//anon");
	perfbuild_mmap2(&b, 11, 11, 0x400000, "//anon");
	perfbuild_at(&b, 20, 0, 8, 8);
	perfbuild_comm(&b, true, 8, 8, "second");
	perfbuild_mmap2(&b, 8, 8, 0x400000, "//anon");
	perfbuild_at(&b, 30, 0, 7, 7);
	perfbuild_fork(&b, 8, 7, 8, 7);
	perfbuild_mmap2(&b, 8, 8, 0x400000, "//anon");
	perfbuild_end(&b);
	assert_int_equal(perfbytes_parse(b.bytes, b.size, "FILE", &trace, &message), 0);
	assert_int_equal(objects_new(dir, &objects), 0);
	assert_int_equal(timeline_new(trace, objects, &timeline), 0);
	has_then(timeline, 8, 15, "[anon]", 0);
	has_then(timeline, 8, 25, "[anon]", 0);
	has_then(timeline, 8, 35, "[anon]", 't');
	has_then(timeline, 9, 15, "[anon]", 'o');
	has_then(timeline, 10, 15, "[anon]", 'i');
	has_then(timeline, 11, 15, "[anon]", 0);
	timeline_free(timeline);
	objects_free(objects);
	trace_free(trace);
	tempdir_remove(dir);
}

/* The kernel calls all processes 0 that are outside the recorder's PID namespace. */
static void outside_pid_namespace(void **state)
{
	static const struct event events[] = {
		{ COMM, 0, 0, 7, 7, 0, 0, "in" }, { MAP, 0, 0, 7, 7, 0, 0, "a" },
		{ OUT, 2, 0, 7, 7, 0, 0, NULL },  { EXEC, 3, 0, 0, 0, 0, 0, "out" },
		{ MAP, 4, 0, 0, 0, 0, 0, "b" },   { EXEC, 5, 0, 0, 0, 0, 0, "other" },
		{ IN, 6, 0, 7, 7, 0, 0, NULL },   { END }
	};
	struct made m = make(events);
	char *text = render(m.timeline, timeline_at, 0);
	const char *const *complaints;
	size_t n;

	(void)state;
	assert_string_equal(text, "0:7/7(in)[a] 2:0/0 6:7/7(in)[a]");
	complaints = timeline_complaints(m.timeline, &n);
	assert_int_equal(n, 1);
	assert_string_equal(complaints[0], "the recorder had a PID namespace of its own: processes "
					   "outside of it have no number, and what they ran is in "
					   "gaps");
	free(text);
	unmake(&m);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(outside_pid_namespace),
		cmocka_unit_test(cpus),
		cmocka_unit_test(threads),
		cmocka_unit_test(only_code),
		cmocka_unit_test(build_ids),
		cmocka_unit_test(any_order),
		cmocka_unit_test(vdso),
		cmocka_unit_test(memory),
		cmocka_unit_test(samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
