/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which records of a user's pool are taken: a good one, and the same spoiled one field at a
 * time. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "daemon/emu/coderecord.h"
#include "daemon/emu/poolrecord.h"
#include "daemon/soft/poolrecords.h"
#include "daemon/source/source.h"
#include "record/record.h"

#define USER 1000u

/* Numbers that nobody has: two are the user's, the other is another pool's. */
#define OURS   UINT32_C(0x7ffffff0)
#define OURS_2 UINT32_C(0x7ffffff1)
#define THEIRS UINT32_C(0x7fffff00)

#define SINCE UINT64_C(100000000000)
#define NOW   UINT64_C(200000000000)
#define CPU   8u

static struct poolclaims *claims;

static struct poolrecords begin(void)
{
	struct poolclaims_walk other = poolclaims_begin(claims, 1, USER + 1, 10);

	assert_true(poolclaims_believe(&other, THEIRS));
	return (struct poolrecords){ .walk = poolclaims_begin(claims, 0, USER, 10),
				     .first_cpu = CPU,
				     .n_cpus = 4,
				     .since_ns = SINCE,
				     .now_ns = NOW };
}

static int set_up(void **state)
{
	(void)state;
	return poolclaims_new(&claims);
}

static int tear_down(void **state)
{
	(void)state;
	claims = poolclaims_free(claims);
	return 0;
}

/* A record of any kind, before it is spoiled. */
struct fields {
	uint32_t type;
	uint16_t misc;
	uint32_t pid, tid, ppid, ptid; /* of switch records: the other one's are ppid and ptid */
	uint64_t own_time;             /* of FORK and EXIT */
	struct trailer trailer;
};

static const struct fields good = {
	.type = PERF_RECORD_COMM,
	.misc = PERF_RECORD_MISC_USER,
	.pid = OURS,
	.tid = OURS_2,
	.ppid = OURS,
	.ptid = OURS,
	.own_time = NOW - 5,
	.trailer = { .pid = OURS, .tid = OURS_2, .time = NOW - 3, .cpu = CPU + 3, .id = 2 },
};

static size_t write_one(const struct fields *f, uint8_t *to, size_t room)
{
	const struct record_task task = { f->pid, f->ppid, f->tid, f->ptid, f->own_time, 0 };
	const struct record_switch sw = { .other = { f->ppid, f->ptid } };

	switch (f->type) {
	case PERF_RECORD_COMM:
		return record_write_comm(
		    &(struct record_comm){ .pid = f->pid, .tid = f->tid, .comm = "c" }, &f->trailer,
		    to, room);
	case PERF_RECORD_FORK:
		return record_write_fork(&task, &f->trailer, to, room);
	case PERF_RECORD_EXIT:
		return record_write_exit(&task, &f->trailer, to, room);
	case PERF_RECORD_MMAP2:
		return record_write_mmap2(&(struct record_mmap2){ .misc = f->misc,
								  .pid = f->pid,
								  .tid = f->tid,
								  .addr = 0x1000,
								  .len = 0x1000,
								  .prot = 5,
								  .name = "/bin/true" },
					  &f->trailer, to, room);
	case PERF_RECORD_KSYMBOL:
		return record_write_ksymbol(
		    &(struct record_ksymbol){ .addr = 0x1000, .len = 1, .name = "k" }, &f->trailer,
		    to, room);
	case PERF_RECORD_ITRACE_START:
		return record_write_itrace_start(&(struct record_ids){ f->pid, f->tid },
						 &f->trailer, to, room);
	default:
		return record_write_switch_cpu_wide(&sw, &f->trailer, to, room);
	}
}

/* One field with another value. */
#define SPOIL(field, value)                                          \
	{                                                            \
#field " = " #value, offsetof(struct fields, field), \
		    sizeof(((struct fields *)0)->field), (value)     \
	}

struct spoil {
	const char *name;
	size_t offset, size;
	uint64_t value;
};

static struct fields spoiled(uint32_t type, const struct spoil *spoil)
{
	struct fields f = good;

	f.type = type;
	if (spoil)
		memcpy((uint8_t *)&f + spoil->offset, &spoil->value, spoil->size);
	return f;
}

/* Give the record to the filter between two good ones. Return: whether it was taken; @ret_bytes has
 * what was. */
static bool take(uint32_t type, const struct spoil *spoil,
		 size_t (*filter)(struct poolrecords *, uint8_t *, size_t), uint8_t *ret_bytes)
{
	const struct fields around = spoiled(type == PERF_RECORD_ITRACE_START ||
						     type == PERF_RECORD_SWITCH_CPU_WIDE
						 ? PERF_RECORD_SWITCH_CPU_WIDE
						 : PERF_RECORD_COMM,
					     NULL),
			    f = spoiled(type, spoil);
	struct poolrecords r = begin();
	uint8_t bytes[4096];
	const size_t n_around = write_one(&around, bytes, sizeof(bytes));
	const size_t n = write_one(&f, bytes + n_around, sizeof(bytes) - n_around);
	size_t left;

	assert_true(n > 0);
	memcpy(bytes + n_around + n, bytes, n_around);
	left = filter(&r, bytes, 2 * n_around + n);
	if (left != 2 * n_around)
		assert_int_equal(left, 2 * n_around + n);
	assert_int_equal(r.n_refused, left == 2 * n_around);
	assert_int_equal(r.n_lost, 0);
	assert_memory_equal(bytes + left - n_around, bytes, n_around);
	memcpy(ret_bytes, bytes + n_around, n);
	return left != 2 * n_around;
}

static void tasks(void **state)
{
	static const uint32_t types[] = { PERF_RECORD_COMM, PERF_RECORD_FORK, PERF_RECORD_EXIT,
					  PERF_RECORD_MMAP2 };
	static const struct spoil bad[] = {
		SPOIL(pid, THEIRS),
		SPOIL(tid, THEIRS),
		SPOIL(pid, 0),
		SPOIL(tid, 1),
		SPOIL(trailer.pid, THEIRS),
		SPOIL(trailer.tid, THEIRS),
		SPOIL(trailer.pid, 0),
		SPOIL(trailer.time, NOW + 1),
		SPOIL(trailer.time, UINT64_MAX),
		SPOIL(trailer.time, SINCE - POOLRECORDS_LATE_NS - 1),
		SPOIL(trailer.cpu, CPU - 1),
		SPOIL(trailer.cpu, CPU + 4),
	};
	static const struct spoil fine[] = {
		SPOIL(trailer.cpu, POOLRECORD_NO_CPU),
		SPOIL(trailer.cpu, CPU),
		SPOIL(trailer.time, NOW),
		SPOIL(trailer.time, SINCE - POOLRECORDS_LATE_NS),
		SPOIL(tid, OURS),
	};
	uint8_t bytes[4096];

	(void)state;
	for (size_t t = 0; t < ARRAY_LEN(types); t++) {
		assert_true(take(types[t], NULL, poolrecords_tasks, bytes));
		for (size_t i = 0; i < ARRAY_LEN(fine); i++)
			assert_true(take(types[t], &fine[i], poolrecords_tasks, bytes));
		for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
			print_message("  %u: %s\n", types[t], bad[i].name);
			assert_false(take(types[t], &bad[i], poolrecords_tasks, bytes));
		}
	}
}

static void kinds_of_tasks(void **state)
{
	static const struct spoil kernel = SPOIL(misc, PERF_RECORD_MISC_KERNEL),
				  hypervisor = SPOIL(misc, PERF_RECORD_MISC_HYPERVISOR),
				  future = SPOIL(own_time, NOW + 1);
	static const uint32_t other[] = { PERF_RECORD_KSYMBOL, PERF_RECORD_ITRACE_START,
					  PERF_RECORD_SWITCH_CPU_WIDE };
	struct poolrecords r = begin();
	uint8_t bytes[4096];

	(void)state;
	assert_false(take(PERF_RECORD_MMAP2, &kernel, poolrecords_tasks, bytes));
	assert_false(take(PERF_RECORD_MMAP2, &hypervisor, poolrecords_tasks, bytes));
	assert_false(take(PERF_RECORD_FORK, &future, poolrecords_tasks, bytes));
	for (size_t i = 0; i < ARRAY_LEN(other); i++) {
		const struct fields f = spoiled(other[i], NULL);
		const size_t n = write_one(&f, bytes, sizeof(bytes));

		assert_int_equal(poolrecords_tasks(&r, bytes, n), 0);
		assert_int_equal(r.n_refused, i + 1);
	}
}

/* Nothing is said about a parent that is another user's. */
static void parents(void **state)
{
	static const struct spoil rows[] = {
		SPOIL(ppid, OURS_2), SPOIL(ppid, THEIRS), SPOIL(ptid, THEIRS),
		SPOIL(ppid, 1),      SPOIL(ptid, 1),
	};
	struct record_task task;
	struct record record;
	uint8_t bytes[4096];
	struct cursor c;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_true(take(PERF_RECORD_FORK, &rows[i], poolrecords_tasks, bytes));
		c = cursor_from(bytes, sizeof(bytes));
		assert_int_equal(record_next(&c, &record), 0);
		assert_int_equal(record_get_task(&record, &task), 0);
		assert_int_equal(task.pid, OURS);
		assert_int_equal(task.ppid, i == 0 ? OURS_2 : i == 1 || i == 3 ? 0 : OURS);
		assert_int_equal(task.ptid, OURS);
	}
}

/* LOST records are counted, and so is what makes no sense. Of a time that is to come it is now. */
static void lost(void **state)
{
	static const struct {
		uint64_t n, time, lost_ns;
	} rows[] = {
		{ 5, NOW - 7, NOW - 7 },
		{ UINT64_MAX, NOW, NOW },
		{ 1, UINT64_MAX, NOW },
		{ 0, NOW, 0 },
	};
	struct trailer trailer = good.trailer;
	struct poolrecords r;
	uint8_t bytes[4096];
	size_t n;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		trailer.time = rows[i].time;
		r = begin();
		n = record_write_lost(&(struct record_lost){ 2, rows[i].n }, &trailer, bytes,
				      sizeof(bytes));
		n += write_one(&good, bytes + n, sizeof(bytes) - n);
		assert_true(poolrecords_tasks(&r, bytes, n) > 0);
		assert_int_equal(r.n_lost, rows[i].n);
		assert_int_equal(r.lost_ns, rows[i].lost_ns);
	}
	r = begin();
	n = write_one(&good, bytes, sizeof(bytes));
	memset(bytes + n, 0xff, 64);
	assert_int_equal(poolrecords_tasks(&r, bytes, n + 64), n);
	assert_int_equal(r.n_lost, 1);
	assert_int_equal(r.lost_ns, NOW);
}

/* Whatever the record says of that itself. */
static void writers(void **state)
{
	static const uint64_t ids[] = { 2, UINT64_C(1) << 32 | 2, UINT64_MAX << 32 | 2 };
	struct record record;
	uint8_t bytes[4096];
	struct cursor c;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		const struct spoil id = SPOIL(trailer.id, ids[i]);

		assert_true(take(PERF_RECORD_COMM, &id, poolrecords_tasks, bytes));
		c = cursor_from(bytes, sizeof(bytes));
		assert_int_equal(record_next(&c, &record), 0);
		assert_int_equal(record.writer, RECORD_OF_USER(USER));
		assert_int_equal(record.trailer.id, 2);
		assert_int_equal(
		    take(PERF_RECORD_SWITCH_CPU_WIDE, &id, poolrecords_switches, bytes), i == 0);
	}
}

static void switches(void **state)
{
	static const uint32_t types[] = { PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_ITRACE_START };
	static const struct spoil bad[] = {
		SPOIL(trailer.pid, THEIRS),
		SPOIL(trailer.tid, THEIRS),
		SPOIL(trailer.pid, 0),
		SPOIL(trailer.tid, 0),
	};
	static const struct spoil other[] = { SPOIL(ppid, THEIRS), SPOIL(ptid, THEIRS),
					      SPOIL(ppid, 0) };
	static const struct spoil own[] = { SPOIL(pid, THEIRS), SPOIL(tid, THEIRS) };
	struct poolrecords r = begin();
	struct fields idle = spoiled(PERF_RECORD_SWITCH_CPU_WIDE, NULL);
	uint8_t bytes[4096];
	size_t n;

	(void)state;
	for (size_t t = 0; t < ARRAY_LEN(types); t++) {
		assert_true(take(types[t], NULL, poolrecords_switches, bytes));
		for (size_t i = 0; i < ARRAY_LEN(bad); i++)
			assert_false(take(types[t], &bad[i], poolrecords_switches, bytes));
	}
	for (size_t i = 0; i < ARRAY_LEN(other); i++)
		assert_false(take(types[0], &other[i], poolrecords_switches, bytes));
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		assert_false(take(types[1], &own[i], poolrecords_switches, bytes));
	/* No other kind, such as LOST, which would concern everybody. */
	n = write_one(&good, bytes, sizeof(bytes));
	n += record_write_lost(&(struct record_lost){ 2, 1 }, &good.trailer, bytes + n,
			       sizeof(bytes) - n);
	assert_int_equal(poolrecords_switches(&r, bytes, n), 0);
	/* The CPU is idle before or after. */
	idle.ppid = idle.ptid = 0;
	n = write_one(&idle, bytes, sizeof(bytes));
	assert_int_equal(poolrecords_switches(&r, bytes, n), n);
	idle = spoiled(PERF_RECORD_SWITCH_CPU_WIDE, NULL);
	idle.trailer.pid = idle.trailer.tid = 0;
	n = write_one(&idle, bytes, sizeof(bytes));
	assert_int_equal(poolrecords_switches(&r, bytes, n), n);
}

static void events(void **state)
{
	struct source_event e[] = { { .pid = OURS, .tid = OURS_2, .number = 1 },
				    { .pid = THEIRS, .tid = OURS_2, .number = 2 },
				    { .pid = OURS, .tid = THEIRS, .number = 3 },
				    { .pid = 0, .tid = 0, .number = 4 },
				    { .pid = OURS_2, .tid = OURS_2, .number = 5 } };
	struct poolrecords r = begin();

	(void)state;
	assert_int_equal(poolrecords_events(&r, e, ARRAY_LEN(e)), 2);
	assert_int_equal(e[0].number, 1);
	assert_int_equal(e[1].number, 5);
	assert_int_equal(r.n_refused, 3);
}

/* --- code ------------------------------------------------------------------------------------- */

static const struct coderecord code = {
	.size = sizeof(struct coderecord) + 8,
	.kind = CODERECORD_NEW,
	.pid = OURS,
	.start = NOW - 9,
	.time = NOW - 5,
	.address = 0x1000,
	.n_bytes = 8,
};

static size_t take_code(struct poolrecords *r, struct coderecord record,
			struct coderecord *ret_record, bool *ret_torn)
{
	uint8_t bytes[4096] = {};
	const size_t n = sizeof(code) + 8;
	size_t left;

	memcpy(bytes, &code, sizeof(code));
	memcpy(bytes + n, &record, sizeof(record));
	left = poolrecords_code(r, bytes, 2 * n, ret_torn);
	assert_in_range(left, n, 2 * n);
	memcpy(ret_record, bytes, sizeof(*ret_record));
	assert_int_equal(ret_record->uid, USER);
	memcpy(ret_record, bytes + n, sizeof(*ret_record));
	return left - n;
}

#define WITH(field, value)                   \
	({                                   \
		struct coderecord r_ = code; \
		r_.field = (value);          \
		r_;                          \
	})

static void whose_code(void **state)
{
	const struct coderecord refused[] = { WITH(pid, THEIRS), WITH(pid, 0), WITH(pid, 1),
					      WITH(time, NOW + 1), WITH(start, NOW + 1) };
	const struct coderecord torn[] = {
		WITH(kind, 0),     WITH(kind, CODERECORD_LOST), WITH(kind, UINT32_MAX),
		WITH(size, 0),     WITH(size, 64 << 10),        WITH(n_bytes, UINT32_MAX),
		WITH(n_bytes, 16), WITH(address, UINT64_MAX),
	};
	struct coderecord taken, fork = code;
	bool is_torn;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		struct poolrecords r = begin();

		assert_int_equal(take_code(&r, refused[i], &taken, &is_torn), 0);
		assert_int_equal(r.n_refused, 1);
		assert_false(is_torn);
	}
	for (size_t i = 0; i < ARRAY_LEN(torn); i++) {
		struct poolrecords r = begin();

		assert_int_equal(take_code(&r, torn[i], &taken, &is_torn), 0);
		assert_int_equal(r.n_refused, 0);
		assert_true(is_torn);
	}
	/* A program has no code of another user's program. */
	fork.kind = CODERECORD_START;
	for (unsigned i = 0; i < 3; i++) {
		static const uint32_t parents_of[] = { OURS_2, THEIRS, 0 };
		struct poolrecords r = begin();

		fork.parent_pid = parents_of[i];
		fork.uid = 77;
		assert_int_equal(take_code(&r, fork, &taken, &is_torn), fork.size);
		assert_int_equal(taken.parent_pid, i == 0 ? OURS_2 : 0);
		assert_int_equal(taken.uid, USER);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(tasks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(kinds_of_tasks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(parents, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lost, set_up, tear_down),
		cmocka_unit_test_setup_teardown(writers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(switches, set_up, tear_down),
		cmocka_unit_test_setup_teardown(events, set_up, tear_down),
		cmocka_unit_test_setup_teardown(whose_code, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
