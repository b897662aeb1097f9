/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Which records of mappings say nothing new. The judge is the decoder itself: with those left out,
 * every thread must have the same code at every address, at every time.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "daemon/sideband/sideband.h"
#include "daemon/sideband/tasks.h"
#include "decoder/image/layout.h"
#include "decoder/sideband/timeline.h"
#include "tests/lib/failing.h"
#include "tests/unit/records.h"
#include "tests/unit/sources.h"
#include "util/map.h"
#include "util/vec.h"

#define MEBI (UINT64_C(1) << 20)
#define X    (PROT_READ | PROT_EXEC)

struct mmap {
	uint32_t pid, tid;
	uint64_t addr, len, pgoff, ino;
	uint32_t prot;
	uint16_t misc;
	const char *name;
};

static void add_mmap(struct records *r, const struct mmap *m, uint64_t time)
{
	const struct record_mmap2 mmap = {
		.misc = m->misc,
		.pid = m->pid,
		.tid = m->tid,
		.addr = m->addr,
		.len = m->len,
		.pgoff = m->pgoff,
		.maj = 8,
		.min = 1,
		.ino = m->ino,
		.prot = m->prot,
		.flags = MAP_PRIVATE,
		.name = m->name,
	};
	struct perfbuild *b = records_at(m->pid, time, 0);

	records_take(r, b, perfbuild_mapping(b, PERF_RECORD_MMAP2, &mmap));
}

static void add_exec(struct records *r, uint32_t pid, uint64_t time)
{
	struct perfbuild *b = records_at(pid, time, 0);

	records_take(r, b, perfbuild_comm(b, true, pid, pid, "exec"));
}

static void add_exit(struct records *r, uint32_t pid, uint32_t tid, uint64_t time)
{
	struct perfbuild *b = records_at(pid, time, 0);

	records_take(r, b, perfbuild_exit(b, pid, tid));
}

static void add_thread(struct records *r, uint32_t pid, uint32_t tid, uint64_t time)
{
	struct perfbuild *b = records_at(pid, time, 0);

	records_take(r, b, perfbuild_fork(b, pid, pid, tid, pid));
}

/* --- one record ------------------------------------------------------------------------------ */

static const struct mmap first = {
	.pid = 7,
	.tid = 7,
	.addr = 0x400000,
	.len = 0x3000,
	.pgoff = 0x1000,
	.ino = 5,
	.prot = X,
	.misc = PERF_RECORD_MISC_USER,
	.name = "/bin/a",
};

/* What happens between two records, and how the second differs from the first. */
enum between {
	NOTHING,
	ANOTHER_FILE,   /* over its middle */
	ANOTHER_RANGE,  /* beside it */
	NOT_EXECUTABLE, /* over it: no reader takes note of that */
	OF_ANOTHER,     /* another process maps there */
	EXEC,
	EXITED, /* and another has the number */
	JITDUMP,
	DOUBTED,
	LATE,       /* another file, by a record that is older than the first */
	AFTER_LATE, /* the first comes after a record that is younger */
	TOLD,       /* the first is told of, not recorded */
	INHERITED,  /* the first is the parent's */
	THREAD_ENDED,
};

static bool repeats(enum between between, const struct mmap *second)
{
	struct tasks *tasks;
	struct mmap other = first;
	struct records r = {};
	struct record record;
	struct cursor c;
	bool result;

	assert_int_equal(tasks_new(NULL, &tasks), 0);
	records_comm(&r, 7, "x", 1);
	records_comm(&r, 8, "x", 1);
	add_thread(&r, 7, 70, 1);
	other.name = "/bin/other";
	if (between == AFTER_LATE) {
		other.addr += 0x10000;
		add_mmap(&r, &other, 6);
	}
	if (between == INHERITED) {
		other = first;
		other.pid = other.tid = 8;
		add_mmap(&r, &other, 2);
		records_fork(&r, 7, 8, 3);
	} else {
		add_mmap(&r, &first, 5);
	}
	other.addr += between == ANOTHER_RANGE ? 0x3000 : 0x1000;
	other.len = 0x1000;
	other.prot = between == NOT_EXECUTABLE ? PROT_READ : X;
	other.pid = between == OF_ANOTHER ? 8 : 7;
	if (between >= ANOTHER_FILE && between <= OF_ANOTHER)
		add_mmap(&r, &other, 6);
	if (between == LATE)
		add_mmap(&r, &other, 4);
	if (between == EXEC)
		add_exec(&r, 7, 6);
	if (between == EXITED) {
		add_exit(&r, 7, 70, 6);
		add_exit(&r, 7, 7, 6);
		records_comm(&r, 7, "y", 7);
	}
	if (between == THREAD_ENDED)
		add_exit(&r, 7, 70, 6);
	other.name = "/tmp/jit-7.dump";
	other.addr = 0x900000;
	if (between == JITDUMP)
		add_mmap(&r, &other, 6);

	c = cursor_from(r.bytes, r.size);
	while (record_next(&c, &record) == 0)
		assert_int_equal(between == TOLD ? tasks_add_found(tasks, &record)
						 : tasks_add(tasks, &record),
				 0);
	if (between == DOUBTED)
		tasks_reset_repeats(tasks);
	r.size = 0;
	add_mmap(&r, second, 10);
	c = cursor_from(r.bytes, r.size);
	assert_int_equal(record_next(&c, &record), 0);
	result = tasks_repeats(tasks, &record);
	/* Once it is added, it is said. */
	if (between < EXITED && second->tid == 7 && second->prot & PROT_EXEC &&
	    second->misc == PERF_RECORD_MISC_USER) {
		assert_int_equal(tasks_add(tasks, &record), 0);
		assert_true(tasks_repeats(tasks, &record));
	}
	(void)tasks_free(tasks);
	records_deinit(&r);
	return result;
}

#define SECOND(...)                                                                             \
	{                                                                                       \
		.pid = 7, .tid = 7, .addr = 0x400000, .len = 0x3000, .pgoff = 0x1000, .ino = 5, \
		.prot = X, .misc = PERF_RECORD_MISC_USER, .name = "/bin/a", ##__VA_ARGS__       \
	}

static void what_says_nothing_new(void **state)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
	static const struct {
		const char *text;
		enum between between;
		struct mmap second;
		bool expected;
	} rows[] = {
		{ "the same", NOTHING, SECOND(), true },
		{ "by another thread", NOTHING, SECOND(.tid = 70), true },
		{ "by a thread that is not known", NOTHING, SECOND(.tid = 71), false },
		{ "by a thread that has ended", THREAD_ENDED, SECOND(.tid = 70), false },
		{ "another address", NOTHING, SECOND(.addr = 0x401000), false },
		{ "less of it", NOTHING, SECOND(.len = 0x2000), false },
		{ "more of it", NOTHING, SECOND(.len = 0x4000), false },
		{ "another offset", NOTHING, SECOND(.pgoff = 0x2000), false },
		{ "another inode", NOTHING, SECOND(.ino = 6), false },
		{ "another name", NOTHING, SECOND(.name = "/bin/b"), false },
		{ "writable", NOTHING, SECOND(.prot = X | PROT_WRITE), false },
		{ "not executable", NOTHING, SECOND(.prot = PROT_READ), false },
		{ "of the kernel", NOTHING, SECOND(.misc = PERF_RECORD_MISC_KERNEL), false },
		{ "of another process", NOTHING, SECOND(.pid = 8, .tid = 8), false },
		{ "another file between", ANOTHER_FILE, SECOND(), false },
		{ "another range between", ANOTHER_RANGE, SECOND(), true },
		{ "no executable mapping between", NOT_EXECUTABLE, SECOND(), true },
		{ "another process's between", OF_ANOTHER, SECOND(), true },
		{ "an exec between", EXEC, SECOND(), false },
		{ "another process with the number", EXITED, SECOND(), false },
		{ "a jitdump between", JITDUMP, SECOND(), false },
		{ "what was said is doubted", DOUBTED, SECOND(), false },
		{ "a late record between", LATE, SECOND(), false },
		{ "the first was late", AFTER_LATE, SECOND(), false },
		{ "the first was told of", TOLD, SECOND(), false },
		{ "the first was the parent's", INHERITED, SECOND(), false },
	};
#pragma GCC diagnostic pop

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		print_message("  %s\n", rows[i].text);
		assert_int_equal(repeats(rows[i].between, &rows[i].second), rows[i].expected);
	}
}

/* What JITs map page by page, and make writable and executable in turn. */
static void anonymous_memory(void **state)
{
	struct mmap m = first;
	struct tasks *tasks;
	struct records r = {};
	struct record record;
	struct cursor c;

	(void)state;
	assert_int_equal(tasks_new(NULL, &tasks), 0);
	m.name = "//anon";
	m.len = 0x1000;
	records_comm(&r, 7, "x", 1);
	for (uint64_t i = 0; i < 4; i++) {
		m.addr = 0x400000 + i * 0x1000;
		add_mmap(&r, &m, 2 + i);
	}
	c = cursor_from(r.bytes, r.size);
	while (record_next(&c, &record) == 0) {
		assert_false(tasks_repeats(tasks, &record));
		assert_int_equal(tasks_add(tasks, &record), 0);
	}
	for (uint64_t i = 0; i < 4; i++) {
		r.size = 0;
		m.addr = 0x400000 + i * 0x1000;
		m.len = (4 - i) * 0x1000;
		add_mmap(&r, &m, 10);
		m.len += 0x1000;
		add_mmap(&r, &m, 10);
		c = cursor_from(r.bytes, r.size);
		assert_int_equal(record_next(&c, &record), 0);
		assert_true(tasks_repeats(tasks, &record));
		assert_int_equal(record_next(&c, &record), 0);
		assert_false(tasks_repeats(tasks, &record));
	}
	(void)tasks_free(tasks);
	records_deinit(&r);
}

static void a_storm(void **state)
{
	struct tasks_storm storm = {};
	struct tasks *tasks;

	(void)state;
	assert_int_equal(tasks_new(NULL, &tasks), 0);
	for (uint64_t i = 0; i < 3 * TASKS_STORM; i++) {
		/* First too slow, then just as many as that in each second. */
		const uint64_t time = 1 + i * (i < TASKS_STORM ? 1100000 : 900000);
		struct records r = {};
		struct record record;
		struct cursor c;

		if (i == 0)
			records_comm(&r, 7, "stormy", time);
		add_mmap(&r, &first, time);
		c = cursor_from(r.bytes, r.size);
		while (record_next(&c, &record) == 0)
			if (!tasks_repeats(tasks, &record))
				assert_int_equal(tasks_add(tasks, &record), 0);
		records_deinit(&r);
		if (i == TASKS_STORM)
			assert_false(tasks_next_storm(tasks, &storm));
	}
	assert_true(tasks_next_storm(tasks, &storm));
	assert_int_equal(storm.pid, 7);
	assert_string_equal(storm.comm, "stormy");
	assert_false(tasks_next_storm(tasks, &storm));
	(void)tasks_free(tasks);
}

/* --- many records, as the decoder reads them ------------------------------------------------- */

#define PIDS   4u
#define STEPS  600u
#define FILLER 3000u /* records that have an epoch end soon */

struct world {
	uint64_t seed;
	uint64_t time;
	struct records all; /* what the source wrote */
	struct sideband *sideband;
	struct tasks *truth; /* what a scan of all tasks finds */
	bool looks;          /* the source has to look at the tasks */
	bool shared;         /* several users have processes */
	uid_t owner[PIDS];   /* of process 10 + i, as the source says */
	bool alive[PIDS][2]; /* threads of process 10 + i: 10 + i and 110 + i */
	struct mmap last[PIDS][4];
	VEC(uint64_t) living; /* after each step: a bit for each thread */
	VEC(uint64_t) times;
};

static uint64_t draw(struct world *w, uint64_t n)
{
	w->seed = w->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (w->seed >> 33) % n;
}

/* Of the world in which several users are. */
static const struct world *shared_world;

static int world_owner(struct source *source, uint32_t pid, uid_t *ret_uid)
{
	(void)source;
	if (pid == 98)
		return -ESRCH;
	*ret_uid = pid >= 10 && pid < 10 + PIDS ? shared_world->owner[pid - 10]
		   : pid == 96                  ? 1
		   : pid == 97                  ? 2
						: 0;
	return 0;
}

static const struct source_ops world_knows = { .tasks = sources_tell_known, .owner = world_owner };
static const struct source_ops world_looks = { .tasks = sources_look, .owner = world_owner };

static void put(struct world *w, struct records *r)
{
	struct cursor c = cursor_from(r->bytes, r->size);
	struct record record;

	records_add(&w->all, r->bytes, r->size);
	assert_int_equal(sideband_add(w->sideband, r->bytes, r->size), 0);
	while (record_next(&c, &record) == 0)
		assert_int_equal(tasks_add(w->truth, &record), 0);
	r->size = 0;
}

static uint32_t tid_of(size_t i, size_t k)
{
	return (uint32_t)(10 + i + 100 * k);
}

static void map_something(struct world *w, struct records *r, size_t i, size_t k)
{
	static const char *const names[] = { "/a", "/b", "//anon", "//anon", "/memfd:x (deleted)" };
	struct mmap *m = &w->last[i][draw(w, 4)];

	/* Mostly what it mapped before. */
	if (m->len == 0 || draw(w, 10) < 3)
		*m = (struct mmap){
			.pid = tid_of(i, 0),
			.addr = 0x10000 + 0x1000 * draw(w, 8),
			.len = 0x1000 * (1 + draw(w, 3)),
			.pgoff = 0x1000 * draw(w, 2),
			.ino = 1 + draw(w, 2),
			.prot = draw(w, 8) ? X : PROT_READ,
			.misc = PERF_RECORD_MISC_USER,
			.name = names[draw(w, 5)],
		};
	m->tid = tid_of(i, k);
	add_mmap(r, m, w->time);
	if (draw(w, 200) == 0)
		add_mmap(r,
			 &(struct mmap){ .pid = m->pid,
					 .tid = m->tid,
					 .addr = 0x90000,
					 .len = 0x1000,
					 .prot = X,
					 .misc = PERF_RECORD_MISC_USER,
					 .name = "/nowhere/jit-1.dump" },
			 w->time);
}

static void step(struct world *w, struct records *r)
{
	const size_t i = draw(w, PIDS), k = draw(w, 2), parent = draw(w, PIDS);

	w->time += 1 + draw(w, 3);
	if (!w->alive[i][0]) {
		if (parent == i || !w->alive[parent][0])
			return;
		records_fork(r, tid_of(i, 0), tid_of(parent, 0), w->time);
		w->alive[i][0] = true;
	} else if (!w->alive[i][k]) {
		add_thread(r, tid_of(i, 0), tid_of(i, k), w->time);
		w->alive[i][k] = true;
	} else if (draw(w, 40) == 0) {
		w->owner[i] = w->shared ? (uid_t)draw(w, 3) : 0;
		add_exec(r, tid_of(i, 0), w->time);
		w->alive[i][1] = false;
	} else if (draw(w, 30) == 0 && (k == 1 || (!w->alive[i][1] && i > 0))) {
		add_exit(r, tid_of(i, 0), tid_of(i, k), w->time);
		w->alive[i][k] = false;
	} else {
		map_something(w, r, i, k);
	}
}

static void fill(struct world *w, struct records *r)
{
	/* Of root, one of two users, or who is not known. */
	const uint32_t pid = w->shared && draw(w, 20) ? 96 + (uint32_t)draw(w, 3) : 99;

	for (size_t n = 1; n <= FILLER; n++) {
		records_comm(r, pid, "filler", ++w->time);
		if (n % 100 == 0)
			put(w, r);
	}
}

static void scan(struct world *w)
{
	assert_int_equal(tasks_write(w->truth, w->time, sideband_add_found, w->sideband), 0);
	sideband_end_look(w->sideband);
}

static void live(struct world *w)
{
	struct records r = {};
	bool wanted = false;

	records_comm(&r, 10, "x", ++w->time);
	w->alive[0][0] = true;
	put(w, &r);
	for (size_t n = 0; n < STEPS; n++) {
		uint64_t living = 0;

		/* A scan takes its time. */
		if (wanted && draw(w, 20) == 0)
			scan(w);
		wanted = w->looks && sideband_wants_look(w->sideband);
		step(w, &r);
		put(w, &r);
		if (draw(w, w->shared ? 8 : 60) == 0 && !wanted)
			fill(w, &r);
		for (size_t i = 0; i < 2 * PIDS; i++)
			living |= (uint64_t)w->alive[i / 2][i % 2] << i;
		assert_int_equal(vec_push(&w->living, living), 0);
		assert_int_equal(vec_push(&w->times, w->time), 0);
		w->time++;
	}
	if (w->looks && sideband_wants_look(w->sideband))
		scan(w);
	records_deinit(&r);
}

/* What the decoder makes of records. */
struct decoded {
	struct trace trace;
	VEC(struct trace_record) records;
	struct objects *objects;
	struct timeline *timeline;
};

static void read_span(struct decoded *d, struct cursor c)
{
	struct record record;

	while (record_next(&c, &record) == 0)
		assert_int_equal(
		    vec_push(&d->records, { .time = record.trailer.time,
					    .type = record.header.type,
					    .misc = record.header.misc,
					    .cpu = record.trailer.cpu,
					    .pid = record.trailer.pid,
					    .tid = record.trailer.tid,
					    .payload = record.body.pos,
					    .payload_size = cursor_left(&record.body) }),
		    0);
}

/* As the decoder's reader does it: what is told comes before what was recorded at the same time. */
static int by_time(const void *a, const void *b)
{
	const struct trace_record *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->file_offset < y->file_offset ? -1 : x->file_offset > y->file_offset;
}

static void decode(struct decoded *d)
{
	for (size_t i = 0; i < d->records.n; i++)
		d->records.items[i].file_offset = i;
	qsort(d->records.items, d->records.n, sizeof(*d->records.items), by_time);
	d->trace.records = d->records.items;
	d->trace.n_records = d->records.n;
	assert_int_equal(objects_new(NULL, &d->objects), 0);
	assert_int_equal(timeline_new(&d->trace, d->objects, &d->timeline), 0);
}

static void decoded_deinit(struct decoded *d)
{
	(void)timeline_free(d->timeline);
	(void)objects_free(d->objects);
	vec_deinit(&d->records);
}

#define PAGES 12u

/* The code of thread @tid at @time, page by page; 0 where nothing is mapped. */
static void find_code(const struct decoded *d, uint32_t tid, uint64_t time,
		      uint64_t ret_code[static PAGES])
{
	struct layout layout;
	struct stay stay;

	memset(ret_code, 0, PAGES * sizeof(*ret_code));
	timeline_at_tid(d->timeline, tid, time, &stay);
	if (!stay.space)
		return;
	layout_init(&layout, stay.space);
	for (size_t n = space_generation(stay.space, time); layout.generation < n;)
		assert_int_equal(layout_advance(&layout), 0);
	for (size_t i = 0; i < PAGES; i++) {
		const uint64_t page = 0x10000 + 0x1000 * i;
		const struct extent *e = layout_find(&layout, page);
		char text[128];

		if (!e)
			continue;
		(void)snprintf(text, sizeof(text), "%s %d %" PRIx64, e->object->id.name,
			       (int)e->kind,
			       e->kind == MAPPING_FILE ? e->offset + (page - e->start) : 0);
		ret_code[i] = map_hash(text, strlen(text));
	}
	layout_deinit(&layout);
}

struct compared {
	size_t n_times, n_pages, n_unknown;
};

/* Where users have shares, less may be known; but nothing else. */
static void compare(const struct world *w, const struct decoded *all, const struct decoded *left,
		    uint64_t since, struct compared *c)
{
	for (size_t i = 0; i < w->times.n; i += 7)
		for (size_t k = 0; k < 2 * PIDS && w->times.items[i] >= since; k++) {
			/* A thread on a CPU is given the space of its process. */
			const uint32_t tid = tid_of(k / 2, w->shared ? 0 : k % 2);
			const uint64_t time = w->times.items[i];
			uint64_t expected[PAGES], found[PAGES];

			if (!(w->living.items[i] >> k & 1))
				continue;
			find_code(all, tid, time, expected);
			find_code(left, tid, time, found);
			for (size_t p = 0; p < PAGES; p++) {
				const bool unknown = w->shared && expected[p] && !found[p];

				assert_true(unknown || expected[p] == found[p]);
				c->n_unknown += unknown;
				c->n_pages += expected[p] != 0;
			}
			c->n_times++;
		}
}

/* --- limits ---------------------------------------------------------------------------------- */

/* As in daemon/sideband/tasks.c. */
#define PROCESSES_MAX 32768u
#define THREADS_MAX   131072u
#define MAPS_MAX      262144u

#define N_MAPS 1024u /* of one process */

/* Add what was put into @r since. Return: what the last one returned. */
static int add_all(struct tasks *tasks, struct records *r)
{
	struct cursor c = cursor_from(r->bytes, r->size);
	struct record record;
	int result = 0;

	while (record_next(&c, &record) == 0)
		result = tasks_add(tasks, &record);
	r->size = 0;
	return result;
}

static int fork_off(struct tasks *tasks, struct records *r, uint32_t child, uint32_t parent)
{
	records_fork(r, child, parent, 3);
	return add_all(tasks, r);
}

static int end(struct tasks *tasks, struct records *r, uint32_t pid)
{
	add_exit(r, pid, pid, 4);
	return add_all(tasks, r);
}

static struct tasks *with_many_maps(struct records *r, uint32_t pid)
{
	struct mmap m = first;
	struct tasks *tasks;

	assert_int_equal(tasks_new(NULL, &tasks), 0);
	records_comm(r, pid, "x", 1);
	m.pid = m.tid = pid;
	m.len = 0x1000;
	for (unsigned i = 0; i < N_MAPS; i++) {
		m.addr += 0x2000;
		add_mmap(r, &m, 2);
	}
	assert_int_equal(add_all(tasks, r), 0);
	return tasks;
}

/* So many mappings are remembered, but none of processes that ended, or executed a program. */
static void many_maps(void **state)
{
	struct records r = {};
	struct tasks *tasks = with_many_maps(&r, 7);
	uint32_t pid = 8;

	(void)state;
	for (; pid < 7 + MAPS_MAX / N_MAPS; pid++)
		assert_int_equal(fork_off(tasks, &r, pid, 7), 0);
	assert_int_equal(fork_off(tasks, &r, pid, 7), -ENOSPC);
	add_mmap(&r, &first, 5);
	assert_int_equal(add_all(tasks, &r), -ENOSPC);
	assert_int_equal(end(tasks, &r, 8), 0);
	assert_int_equal(fork_off(tasks, &r, pid, 7), 0);
	assert_int_equal(fork_off(tasks, &r, ++pid, 7), -ENOSPC);
	add_exec(&r, 9, 5);
	assert_int_equal(add_all(tasks, &r), 0);
	assert_int_equal(fork_off(tasks, &r, ++pid, 7), 0);
	assert_int_equal(fork_off(tasks, &r, ++pid, 7), -ENOSPC);
	(void)tasks_free(tasks);

	/* However many come and go. */
	tasks = with_many_maps(&r, 7);
	for (unsigned i = 0; i < 2 * MAPS_MAX / N_MAPS; i++) {
		assert_int_equal(fork_off(tasks, &r, 8 + i % 3, 7), 0);
		if (i % 2) {
			add_exec(&r, 8 + i % 3, 4);
			assert_int_equal(add_all(tasks, &r), 0);
		}
		assert_int_equal(end(tasks, &r, 8 + i % 3), 0);
	}
	(void)tasks_free(tasks);
	records_deinit(&r);
}

static int keep(void *userdata, const void *bytes, size_t size)
{
	records_add(userdata, bytes, size);
	return 0;
}

enum { SPACE_PAGES = 4096 };

/* The pages that a mapping's record covers get its inode, and theirs in the file. */
static void cover(uint64_t pages[static SPACE_PAGES], const struct record_mmap2 *m)
{
	for (uint64_t i = 0; i < m->len / 0x1000; i++)
		pages[m->addr / 0x1000 + i] = m->ino << 32 | (m->pgoff / 0x1000 + i + 1);
}

/* Of thousands of mappings that cover each other anywhere, what is left is what a page table has;
 * a child inherits it, and what it maps then is its own. */
static void mappings_anywhere(void **state)
{
	static uint64_t expected[SPACE_PAGES], found[SPACE_PAGES];
	struct records r = {}, written = {};
	struct tasks *tasks;
	struct mmap m = first;
	struct record_mmap2 mmap;
	struct record record;
	struct cursor c;
	uint64_t seed = 1, last = 0;

	(void)state;
	assert_int_equal(tasks_new(NULL, &tasks), 0);
	records_comm(&r, 7, "x", 1);
	records_comm(&r, 8, "y", 1);
	for (unsigned i = 0; i < 20000; i++) {
		seed = seed * 6364136223846793005 + 1442695040888963407;
		m.addr = (seed >> 33) % (SPACE_PAGES - 300) * 0x1000;
		/* Most are small, so that there are many; some cover whole chunks of them. */
		m.len = (seed >> 50) % 512 == 0 && i < 15000 ? 0x12c000
							     : 0x1000 * (1 + (seed >> 60) % 2);
		m.ino = 1 + i;
		m.pgoff = (seed >> 20) % 8 * 0x1000;
		m.pid = m.tid = 7;
		add_mmap(&r, &m, 2);
		cover(expected, &(struct record_mmap2){
				    .addr = m.addr, .len = m.len, .pgoff = m.pgoff, .ino = m.ino });
		assert_int_equal(add_all(tasks, &r), 0);
	}
	assert_int_equal(fork_off(tasks, &r, 9, 7), 0);
	add_exec(&r, 7, 4);
	assert_int_equal(add_all(tasks, &r), 0);
	assert_int_equal(tasks_write(tasks, 5, keep, &written), 0);
	c = cursor_from(written.bytes, written.size);
	while (record_next(&c, &record) == 0) {
		if (record_get_mmap2(&record, &mmap) < 0)
			continue;
		assert_int_equal(mmap.pid, 9);
		assert_true(mmap.addr >= last);
		last = mmap.addr + mmap.len;
		cover(found, &mmap);
	}
	assert_memory_equal(found, expected, sizeof(found));
	(void)tasks_free(tasks);
	records_deinit(&r);
	records_deinit(&written);
}

static bool is_five(void *userdata, uint32_t pid)
{
	(void)userdata;
	return pid == 5;
}

/* What was mapped is not believed when what replaces it cannot be remembered. */
static void no_room_for_what_replaces_it(void **state)
{
	struct records r = {};
	struct tasks *tasks = with_many_maps(&r, 7);
	struct mmap m = first;
	struct records written = {};
	uint32_t pid = 8;

	(void)state;
	m.pid = m.tid = 5;
	add_mmap(&r, &m, 2);
	assert_int_equal(add_all(tasks, &r), 0);
	for (; pid < 6 + MAPS_MAX / N_MAPS; pid++)
		assert_int_equal(fork_off(tasks, &r, pid, 7), 0);
	m.pid = m.tid = 6;
	for (unsigned i = 0; add_mmap(&r, &m, 3), add_all(tasks, &r) == 0; i++)
		m.addr += 0x4000;
	m.pid = m.tid = 5;
	m.addr = first.addr;
	m.name = "/bin/other";
	add_mmap(&r, &m, 4);
	assert_int_equal(add_all(tasks, &r), -ENOSPC);
	assert_int_equal(tasks_write_some(tasks, 9, is_five, keep, &written), 0);
	assert_int_equal(written.size, 0);
	records_deinit(&written);
	(void)tasks_free(tasks);
	records_deinit(&r);
}

/* However many processes one user has, others have theirs. */
static void processes_of_users(void **state)
{
	struct records r = {};
	struct tasks *tasks;
	uint32_t pid = 1;
	uid_t given_by;

	(void)state;
	assert_int_equal(tasks_new(NULL, &tasks), 0);
	tasks_set_user(tasks, 1000);
	for (;; pid++) {
		records_comm(&r, pid, "x", 1);
		if (add_all(tasks, &r) < 0)
			break;
	}
	assert_in_range(pid, PROCESSES_MAX / 2, PROCESSES_MAX - PROCESSES_MAX / 8 + 1);
	assert_false(tasks_next_given(tasks, &given_by));
	/* Another one's first take what is left, then he gives. */
	tasks_set_user(tasks, 1001);
	for (unsigned i = 0; i < PROCESSES_MAX / 4; i++) {
		records_comm(&r, 100000 + i, "x", 2);
		assert_int_equal(add_all(tasks, &r), 0);
	}
	assert_true(tasks_next_given(tasks, &given_by));
	assert_int_equal(given_by, 1000);
	assert_false(tasks_next_given(tasks, &given_by));
	records_comm(&r, 200000, "x", 2);
	assert_int_equal(add_all(tasks, &r), -ENOSPC);
	/* Root has what it needs, and a process counts for whom its program is. */
	tasks_set_user(tasks, 0);
	for (unsigned i = 0; i < 100; i++) {
		records_comm(&r, 300000 + i, "x", 3);
		assert_int_equal(add_all(tasks, &r), 0);
	}
	add_exec(&r, 100000, 4);
	assert_int_equal(add_all(tasks, &r), 0);
	tasks_set_user(tasks, 1001);
	records_comm(&r, 200000, "x", 5);
	assert_int_equal(add_all(tasks, &r), 0);
	records_comm(&r, 200001, "x", 5);
	assert_int_equal(add_all(tasks, &r), -ENOSPC);
	(void)tasks_free(tasks);
	records_deinit(&r);
}

static void many_processes(void **state)
{
	struct records r = {};
	struct tasks *tasks;

	(void)state;
	assert_int_equal(tasks_new(NULL, &tasks), 0);
	for (uint32_t pid = 1; pid <= PROCESSES_MAX; pid++) {
		records_comm(&r, pid, "x", 1);
		assert_int_equal(add_all(tasks, &r), 0);
	}
	records_comm(&r, PROCESSES_MAX + 1, "x", 1);
	assert_int_equal(add_all(tasks, &r), -ENOSPC);
	records_comm(&r, 5, "y", 1);
	assert_int_equal(add_all(tasks, &r), 0);
	assert_int_equal(end(tasks, &r, 5), 0);
	records_comm(&r, PROCESSES_MAX + 1, "x", 1);
	assert_int_equal(add_all(tasks, &r), 0);
	records_comm(&r, 5, "x", 1);
	assert_int_equal(add_all(tasks, &r), -ENOSPC);
	(void)tasks_free(tasks);
	records_deinit(&r);
}

/* Of threads, of which each process has one here, and 4 others. */
static void many_threads(void **state)
{
	struct records r = {};
	struct tasks *tasks;
	uint32_t pid = 1;

	(void)state;
	assert_int_equal(tasks_new(NULL, &tasks), 0);
	for (; pid <= THREADS_MAX / 8; pid++) {
		records_comm(&r, pid, "x", 1);
		for (uint32_t i = 1; i < 8; i++)
			add_thread(&r, pid, 1000000 + pid * 8 + i, 2);
		assert_int_equal(add_all(tasks, &r), 0);
	}
	add_thread(&r, 1, 999, 3);
	assert_int_equal(add_all(tasks, &r), -ENOSPC);
	add_exit(&r, 1, 1000000 + 8 + 1, 4); /* one of them */
	assert_int_equal(add_all(tasks, &r), 0);
	add_thread(&r, 1, 999, 5);
	assert_int_equal(add_all(tasks, &r), 0);
	add_thread(&r, 1, 998, 5);
	assert_int_equal(add_all(tasks, &r), -ENOSPC);
	add_exec(&r, 2, 6); /* ends seven */
	for (uint32_t i = 0; i < 7; i++)
		add_thread(&r, 3, 900 + i, 7);
	assert_int_equal(add_all(tasks, &r), 0);
	add_thread(&r, 1, 998, 7);
	assert_int_equal(add_all(tasks, &r), -ENOSPC);
	(void)tasks_free(tasks);
	records_deinit(&r);
}

static bool is_odd(uint32_t pid)
{
	return pid % 2 == 1;
}

static int count(void *userdata, const void *bytes, size_t size)
{
	unsigned *n = userdata;

	(void)bytes;
	assert_true(size > 0);
	return ++*n % 3 == 0 ? -ENOSPC : 0;
}

/* Who was killed said nothing. */
static void the_dead(void **state)
{
	struct mmap m = first;
	struct records r = {};
	struct tasks_range *ranges;
	struct tasks *tasks;
	unsigned n_put = 0;
	size_t n;

	(void)state;
	assert_int_equal(tasks_new(is_odd, &tasks), 0);
	m.name = "//anon";
	for (uint32_t pid = 1; pid <= 6; pid++) {
		records_comm(&r, pid, "x", 1);
		m.pid = m.tid = pid;
		m.addr = 0x1000 * pid;
		m.len = 0x1000;
		add_mmap(&r, &m, 2);
	}
	assert_int_equal(add_all(tasks, &r), 0);
	assert_int_equal(tasks_ranges(tasks, &ranges, &n), 0);
	assert_int_equal(n, 6);
	free(ranges);
	tasks_forget_dead(tasks);
	assert_int_equal(tasks_ranges(tasks, &ranges, &n), 0);
	assert_int_equal(n, 3);
	for (size_t i = 0; i < n; i++) {
		assert_true(is_odd(ranges[i].pid));
		assert_int_equal(ranges[i].start, 0x1000 * ranges[i].pid);
		assert_int_equal(ranges[i].size, 0x1000);
		assert_false(ranges[i].vdso);
	}
	free(ranges);
	/* A COMM and an MMAP2 each, of which each third is refused. */
	assert_int_equal(tasks_write(tasks, 9, count, &n_put), 2);
	assert_int_equal(n_put, 6);
	assert_int_equal(end(tasks, &r, 3), 0);
	assert_int_equal(tasks_ranges(tasks, &ranges, &n), 0);
	assert_int_equal(n, 2);
	free(ranges);
	(void)tasks_free(tasks);
	records_deinit(&r);
}

struct adding {
	struct records records;
	struct tasks *tasks;
	struct records written;
};

static int add_each(void *userdata)
{
	struct adding *a = userdata;
	struct cursor c = cursor_from(a->records.bytes, a->records.size);
	struct record record;
	int r;

	r = tasks_new(NULL, &a->tasks);
	while (r == 0 && record_next(&c, &record) == 0)
		r = tasks_add(a->tasks, &record);
	if (r < 0)
		a->tasks = tasks_free(a->tasks);
	return r;
}

static void is_all_there(void *userdata)
{
	struct adding *a = userdata;
	struct records written = {};

	assert_int_equal(tasks_write(a->tasks, 9, keep, &written), 0);
	if (!a->written.size)
		a->written = written;
	assert_int_equal(written.size, a->written.size);
	assert_memory_equal(written.bytes, a->written.bytes, written.size);
	if (written.bytes != a->written.bytes)
		records_deinit(&written);
	a->tasks = tasks_free(a->tasks);
}

static void calls_that_fail(void **state)
{
	struct mmap m = first;
	struct adding a = {};

	(void)state;
	records_comm(&a.records, 7, "x", 1);
	add_mmap(&a.records, &m, 2);
	m.addr += 0x1000; /* cuts it in two */
	m.len = 0x1000;
	m.name = "//anon";
	add_mmap(&a.records, &m, 3);
	add_thread(&a.records, 7, 70, 4);
	records_fork(&a.records, 8, 7, 5);
	m.pid = m.tid = 8;
	m.name = "/tmp/jit-8.dump";
	add_mmap(&a.records, &m, 6);
	records_fork(&a.records, 9, 8, 7);
	add_exec(&a.records, 9, 8);
	assert_int_equal(add_each(&a), 0);
	is_all_there(&a);
	assert_true(a.written.size > 0);
	failing_each(add_each, is_all_there, &a);
	records_deinit(&a.records);
	records_deinit(&a.written);
}

static void live_and_compare(struct world *w, struct source *source, uint64_t bytes_max,
			     struct compared *c, uint64_t *n_epochs, uint64_t *n_repeats)
{
	_cleanup_(decoded_deinit) struct decoded all = {}, left = {};
	struct sideband_view view;

	assert_int_equal(sideband_new(bytes_max, NULL, source, &w->sideband), 0);
	assert_int_equal(tasks_new(NULL, &w->truth), 0);
	if (w->looks)
		sideband_end_look(w->sideband);
	live(w);

	assert_int_equal(sideband_view_init(w->sideband, &view), 0);
	assert_int_equal(sideband_stats(w->sideband).lost, 0);
	read_span(&all, cursor_from(w->all.bytes, w->all.size));
	decode(&all);
	for (size_t i = 0; i < view.n_spans; i++)
		read_span(&left, view.spans[i]);
	decode(&left);
	compare(w, &all, &left, view.since_ns, c);
	*n_repeats += sideband_stats(w->sideband).n_repeats;
	*n_epochs += sideband_epochs(w->sideband);

	sideband_view_deinit(&view);
	(void)sideband_free(w->sideband);
	(void)tasks_free(w->truth);
	records_deinit(&w->all);
	vec_deinit(&w->living);
	vec_deinit(&w->times);
}

static void nothing_is_decoded_otherwise(void **state)
{
	uint64_t n_repeats = 0, n_epochs = 0;
	struct compared c = {};

	(void)state;
	for (uint64_t seed = 1; seed <= 12; seed++) {
		struct world w = { .seed = seed, .time = 1000, .looks = seed % 2 };

		live_and_compare(&w, w.looks ? &source_that_looks : &source_that_knows, MEBI, &c,
				 &n_epochs, &n_repeats);
	}
	print_message("  %" PRIu64 " records left out, %" PRIu64 " epochs, %zu times compared\n",
		      n_repeats, n_epochs, c.n_times);
	assert_true(n_repeats > 1000 && n_epochs > 40 && c.n_times > 1000);
}

/* Processes of several users fork and execute one another's programs while each of the users has
 * more records made than is their share: what is forgotten is a gap, and never other code. */
static void shares_decode_nothing_otherwise(void **state)
{
	uint64_t n_repeats = 0, n_epochs = 0;
	struct compared c = {};

	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct world w = { .seed = seed, .time = 1000, .looks = seed % 2, .shared = true };
		struct source source = { .ops = w.looks ? &world_looks : &world_knows };

		shared_world = &w;
		live_and_compare(&w, &source, 2 * MEBI, &c, &n_epochs, &n_repeats);
	}
	print_message("  %zu times compared, %zu of %zu pages unknown\n", c.n_times, c.n_unknown,
		      c.n_pages);
	assert_true(c.n_times > 5000 && c.n_unknown > c.n_pages / 20 &&
		    c.n_unknown < c.n_pages / 2);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_says_nothing_new),
		cmocka_unit_test(anonymous_memory),
		cmocka_unit_test(a_storm),
		cmocka_unit_test(many_maps),
		cmocka_unit_test(mappings_anywhere),
		cmocka_unit_test(no_room_for_what_replaces_it),
		cmocka_unit_test(processes_of_users),
		cmocka_unit_test(many_processes),
		cmocka_unit_test(many_threads),
		cmocka_unit_test(the_dead),
		cmocka_unit_test(calls_that_fail),
		cmocka_unit_test(nothing_is_decoded_otherwise),
		cmocka_unit_test(shares_decode_nothing_otherwise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
