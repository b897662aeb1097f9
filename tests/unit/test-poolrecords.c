/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which records of the pool are taken: a good one, and the same spoiled one field at a
 * time. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "daemon/plugin/coderecord.h"
#include "daemon/plugin/poolrecord.h"
#include "daemon/soft/poolrecords.h"
#include "tests/lib/kernelrecord.h"
#include "util/perf/record.h"

#define USER 1000u

#define OURS   UINT32_C(0x7ffffff0)
#define OURS_2 UINT32_C(0x7ffffff1)
#define BAD    UINT32_C(0x80000000) /* no process or thread has such a number */

#define NOW    UINT64_C(200000000000)
#define N_CPUS 4u

static void note(void *userdata, const struct record *record)
{
	(void)userdata;
	assert_int_equal(record->trailer.pid, OURS);
}

static uid_t user_of(void *userdata, uint32_t pid, uint32_t parent)
{
	(void)userdata;
	(void)parent;
	return pid == OURS ? USER : USER + 1;
}

static struct poolrecords begin(void)
{
	return (struct poolrecords){
		.n_cpus = N_CPUS, .now_ns = NOW, .note_record = note, .user_of = user_of
	};
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
	.trailer = { .pid = OURS, .tid = OURS_2, .time = NOW - 3, .cpu = N_CPUS - 1, .id = 2 },
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
		SPOIL(pid, BAD),
		SPOIL(tid, BAD),
		SPOIL(pid, 0),
		SPOIL(tid, 0),
		SPOIL(trailer.pid, BAD),
		SPOIL(trailer.tid, BAD),
		SPOIL(trailer.pid, 0),
		SPOIL(trailer.time, NOW + 1),
		SPOIL(trailer.time, UINT64_MAX),
		SPOIL(trailer.cpu, N_CPUS),
	};
	static const struct spoil fine[] = {
		SPOIL(trailer.cpu, POOLRECORD_NO_CPU),
		SPOIL(trailer.cpu, 0),
		SPOIL(trailer.time, NOW),
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

static void switches(void **state)
{
	static const uint32_t types[] = { PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_ITRACE_START };
	static const struct spoil bad[] = {
		SPOIL(trailer.pid, BAD),
		SPOIL(trailer.tid, BAD),
		SPOIL(trailer.pid, 0),
		SPOIL(trailer.tid, 0),
	};
	static const struct spoil other[] = { SPOIL(ppid, BAD), SPOIL(ptid, BAD), SPOIL(ppid, 0) };
	static const struct spoil own[] = { SPOIL(pid, BAD), SPOIL(tid, BAD) };
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
	const struct coderecord refused[] = { WITH(pid, BAD), WITH(pid, 0), WITH(time, NOW + 1),
					      WITH(start, NOW + 1) };
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
	fork.kind = CODERECORD_START;
	for (unsigned i = 0; i < 3; i++) {
		static const uint32_t parents_of[] = { OURS_2, BAD, 0 };
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
		cmocka_unit_test(tasks),      cmocka_unit_test(kinds_of_tasks),
		cmocka_unit_test(lost),       cmocka_unit_test(switches),
		cmocka_unit_test(whose_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
