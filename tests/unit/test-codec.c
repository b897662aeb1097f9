/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Each record as the comments of <linux/perf_event.h> (enum perf_event_type), and for the types
 * from 64 on perf's own header, lay it out: written down here number by number, compared with what
 * its writer makes, and read again. Then the same bytes cut short, of which no reader may make
 * anything.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/kernelrecord.h"
#include "util/perf/codec.h"
#include "util/perf/tsc.h"

/* --- bytes by hand ---------------------------------------------------------------------------- */

struct hand {
	size_t n;
	uint8_t bytes[512];
};

static void put(struct hand *h, const void *bytes, size_t n)
{
	assert_true(n <= sizeof(h->bytes) - h->n);
	memcpy(h->bytes + h->n, bytes, n);
	h->n += n;
}

/* The lowest @n bytes of a number, lowest first. */
static void number(struct hand *h, unsigned n, uint64_t value)
{
	for (unsigned i = 0; i < n; i++) {
		const uint8_t byte = (uint8_t)(value >> 8 * i);

		put(h, &byte, 1);
	}
}

#define U16(value) number(&h, 2, (value))
#define U32(value) number(&h, 4, (value))
#define U64(value) number(&h, 8, (value))

/* Its NUL is in the literal; what is to stand behind it, too. */
#define TEXT(literal) put(&h, (literal), sizeof(literal) - 1)

/* struct perf_event_header */
#define HEADER(type, misc, size)         \
	struct hand h = {};              \
	U32(type), U16(misc), U16(size); \
	(void)state

static const struct trailer trailer = {
	.pid = 0x101, .tid = 0x102, .time = 0x103104105, .cpu = 6, .id = 2
};

/* struct sample_id { { u32 pid, tid; } { u64 time; } { u32 cpu, res; } { u64 id; } } */
#define SAMPLE_ID() U32(0x101), U32(0x102), U64(0x103104105), U32(6), U32(0), U64(2)

static uint8_t record[RECORD_OWN_MAX];

/* What was written is this, and no less room would have done. Return: the body. */
static struct cursor same(const struct hand *h, size_t size, bool has_trailer)
{
	struct cursor body = cursor_from(record, size), header;
	struct trailer t;

	assert_int_equal(size, h->n);
	assert_memory_equal(record, h->bytes, h->n);
	assert_int_equal(cursor_get_sub(&body, 8, &header), 0);
	if (has_trailer) {
		assert_int_equal(trailer_take(&body, PERFABI_SAMPLE_TYPE, &t), 0);
		assert_int_equal(t.pid, trailer.pid);
		assert_int_equal(t.tid, trailer.tid);
		assert_int_equal(t.time, trailer.time);
		assert_int_equal(t.cpu, trailer.cpu);
		assert_int_equal(t.id, trailer.id);
	}
	return body;
}

/* Written into all rooms that are too small, at the end of memory that is just as large. */
#define CHECK(writer, fields, has_trailer)                                                        \
	({                                                                                        \
		for (size_t room_ = 0; room_ < h.n; room_++) {                                    \
			uint8_t *small_ = malloc(room_ + 1);                                      \
			assert_int_equal(WRITER_##has_trailer(writer, fields, small_, room_), 0); \
			free(small_);                                                             \
		}                                                                                 \
		memset(record, 0xee, sizeof(record));                                             \
		same(&h, WRITER_##has_trailer(writer, fields, record, h.n), has_trailer);         \
	})
#define WRITER_1(writer, fields, to, room) writer(fields, &trailer, to, room)
#define WRITER_0(writer, fields, to, room) writer(fields, to, room)

/* No reader makes anything of a body of which @least bytes are not all there. */
#define SHORT(least, read)                                  \
	do {                                                \
		const struct cursor whole_ = body;          \
		for (size_t n_ = 0; n_ < (least); n_++) {   \
			uint8_t *copy_ = malloc(n_ + 1);    \
			memcpy(copy_, whole_.pos, n_);      \
			body = cursor_from(copy_, n_);      \
			assert_int_equal((read), -EBADMSG); \
			free(copy_);                        \
		}                                           \
		body = whole_;                              \
	} while (0)

/* --- mappings --------------------------------------------------------------------------------- */

static void same_mmap(const struct record_mmap2 *a, const struct record_mmap2 *b)
{
	assert_int_equal(a->misc, b->misc);
	assert_int_equal(a->pid, b->pid);
	assert_int_equal(a->tid, b->tid);
	assert_int_equal(a->addr, b->addr);
	assert_int_equal(a->len, b->len);
	assert_int_equal(a->pgoff, b->pgoff);
	assert_true(buildid_equal(&a->build_id, &b->build_id));
	assert_int_equal(a->maj, b->maj);
	assert_int_equal(a->min, b->min);
	assert_int_equal(a->ino, b->ino);
	assert_int_equal(a->ino_generation, b->ino_generation);
	assert_int_equal(a->prot, b->prot);
	assert_int_equal(a->flags, b->flags);
	assert_string_equal(a->name, b->name);
}

static void mmap_record(void **state)
{
	const struct record_mmap2 m = { .misc = 1,
					.pid = UINT32_MAX,
					.addr = UINT64_MAX - 0xfff,
					.len = 0x1000,
					.pgoff = 3,
					.name = "[kernel]" };
	struct record_mmap2 got = {};
	struct cursor body;

	/* u32 pid, tid; u64 addr, len, pgoff; char filename[] */
	HEADER(1, 1, 8 + 32 + 16 + 32);
	U32(UINT32_MAX), U32(0), U64(UINT64_MAX - 0xfff), U64(0x1000), U64(3);
	TEXT("[kernel]\0\0\0\0\0\0\0\0");
	SAMPLE_ID();
	body = CHECK(record_write_mmap, &m, 1);
	assert_int_equal(record_read_mmap2(PERF_RECORD_MMAP, 1, body, &got), 0);
	same_mmap(&got, &m);
	SHORT(32 + 9, record_read_mmap2(PERF_RECORD_MMAP, 1, body, &got));
	assert_int_equal(record_read_mmap2(PERF_RECORD_COMM, 1, body, &got), -EBADMSG);
}

static const struct record_mmap2 of_file = {
	.misc = PERF_RECORD_MISC_USER,
	.pid = 0x11,
	.tid = 0x12,
	.addr = 0x400000,
	.len = 0x3000,
	.pgoff = 0x2000,
	.maj = 8,
	.min = 17,
	.ino = 0x1234567890,
	.ino_generation = 5,
	.prot = 5,
	.flags = 2,
	.name = "/bin/ls",
};

static void mmap2_record(void **state)
{
	struct record_mmap2 got = {};
	struct cursor body;

	/* u32 pid, tid; u64 addr, len, pgoff; { u32 maj, min; u64 ino, ino_generation; }
	 * u32 prot, flags; char filename[] */
	HEADER(10, 2, 8 + 72 + 32);
	U32(0x11), U32(0x12), U64(0x400000), U64(0x3000), U64(0x2000);
	U32(8), U32(17), U64(0x1234567890), U64(5);
	U32(5), U32(2);
	TEXT("/bin/ls\0");
	SAMPLE_ID();
	body = CHECK(record_write_mmap2, &of_file, 1);
	assert_int_equal(record_read_mmap2(PERF_RECORD_MMAP2, 2, body, &got), 0);
	same_mmap(&got, &of_file);
	SHORT(72, record_read_mmap2(PERF_RECORD_MMAP2, 2, body, &got));
}

static void mmap2_with_build_id(void **state)
{
	struct record_mmap2 m = of_file, got = {};
	const uint16_t misc = PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID;
	struct cursor body;

	/* { u8 build_id_size, __reserved_1; u16 __reserved_2; u8 build_id[20]; } */
	HEADER(10, 2 | 1 << 14, 8 + 72 + 32);
	U32(0x11), U32(0x12), U64(0x400000), U64(0x3000), U64(0x2000);
	number(&h, 1, 16), number(&h, 1, 0), U16(0), TEXT("0123456789abcdef\0\0\0\0");
	U32(5), U32(2);
	TEXT("/bin/ls\0");
	SAMPLE_ID();
	m.build_id.size = 16;
	memcpy(m.build_id.bytes, "0123456789abcdef", 16);
	body = CHECK(record_write_mmap2, &m, 1);
	assert_int_equal(record_read_mmap2(PERF_RECORD_MMAP2, misc, body, &got), 0);
	/* The file's numbers made place for it. */
	m.misc = misc;
	m.maj = m.min = 0;
	m.ino = m.ino_generation = 0;
	same_mmap(&got, &m);

	record[8 + 32] = 21;
	got.pid = 0xdead;
	assert_int_equal(record_read_mmap2(PERF_RECORD_MMAP2, misc, body, &got), -EBADMSG);
	assert_int_equal(got.pid, 0xdead);
}

/* The kernel's longest path fits, and what is longer is called what the kernel calls it. */
static void long_names(void **state)
{
	char name[4097 + 1];
	struct record_mmap2 m = of_file, got;
	struct cursor body;
	size_t size;

	(void)state;
	for (size_t n = 4080; n <= 4097; n++) {
		memset(name, 'x', n);
		name[n] = '\0';
		m.name = name;
		size = record_write_mmap2(&m, &trailer, record, sizeof(record));
		assert_true(size > 0 && size % 8 == 0);
		body = cursor_from(record + 8, size - 8 - TRAILER_SIZE);
		assert_int_equal(record_read_mmap2(PERF_RECORD_MMAP2, 2, body, &got), 0);
		assert_string_equal(got.name, n < 4096 ? name : "//toolong");
	}
}

static void whose_code(void **state)
{
	static const struct {
		const char *name;
		uint32_t type;
		uint16_t misc;
		uint32_t pid, prot;
		bool is_code;
	} rows[] = {
		{ "a program's", PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, 7, 5, true },
		{ "data", PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, 7, 3, false },
		{ "the kernel's", PERF_RECORD_MMAP2, PERF_RECORD_MISC_KERNEL, 7, 5, false },
		{ "a guest's", PERF_RECORD_MMAP2, PERF_RECORD_MISC_GUEST_USER, 7, 5, false },
		{ "of no process", PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, UINT32_MAX, 5, false },
		{ "an old record", PERF_RECORD_MMAP, PERF_RECORD_MISC_USER, 7, 0, true },
		{ "an old record of data", PERF_RECORD_MMAP,
		  PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_DATA, 7, 0, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct record_mmap2 m = { .misc = rows[i].misc,
						.pid = rows[i].pid,
						.prot = rows[i].prot };

		print_message("  %s\n", rows[i].name);
		assert_int_equal(record_maps_code(rows[i].type, &m), rows[i].is_code);
	}
}

/* --- tasks ------------------------------------------------------------------------------------ */

static void whose_record(void **state)
{
	static const uint32_t types[] = { PERF_RECORD_COMM, PERF_RECORD_FORK, PERF_RECORD_EXIT,
					  PERF_RECORD_MMAP, PERF_RECORD_MMAP2 };
	static const uint32_t body[] = { 7, 8 };
	uint32_t pid;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		pid = 0;
		assert_int_equal(record_read_pid(types[i], cursor_from(body, 8), &pid), 0);
		assert_int_equal(pid, 7);
		assert_int_equal(record_read_pid(types[i], cursor_from(body, 3), &pid), -EBADMSG);
	}
	assert_int_equal(record_read_pid(PERF_RECORD_LOST, cursor_from(body, 8), &pid), -EBADMSG);
}

static void comm_record(void **state)
{
	const struct record_comm c = { .exec = true, .pid = 7, .tid = 8, .comm = "eight888" };
	struct record_comm got = {};
	struct cursor body;

	/* u32 pid, tid; char comm[] */
	HEADER(3, 1 << 13, 8 + 24 + 32);
	U32(7), U32(8), TEXT("eight888\0\0\0\0\0\0\0\0");
	SAMPLE_ID();
	body = CHECK(record_write_comm, &c, 1);
	assert_int_equal(record_read_comm(PERF_RECORD_MISC_COMM_EXEC, body, &got), 0);
	assert_true(got.exec);
	assert_int_equal(got.pid, 7);
	assert_int_equal(got.tid, 8);
	assert_string_equal(got.comm, "eight888");
	SHORT(8, record_read_comm(0, body, &got));
	assert_int_equal(record_read_comm(0, body, &got), 0);
	assert_false(got.exec);
	/* Without its end there is no name. */
	body = cursor_from(body.pos, 16);
	assert_int_equal(record_read_comm(0, body, &got), 0);
	assert_int_equal(got.tid, 8);
	assert_null(got.comm);
}

static void same_task(struct cursor body, const struct record_task *task)
{
	struct record_task got = {};

	assert_int_equal(record_read_task(body, &got), 0);
	assert_int_equal(got.pid, task->pid);
	assert_int_equal(got.ppid, task->ppid);
	assert_int_equal(got.tid, task->tid);
	assert_int_equal(got.ptid, task->ptid);
	assert_int_equal(got.time, task->time);
	assert_int_equal(got.signal, task->signal);
	SHORT(24, record_read_task(body, &got));
}

static void fork_record(void **state)
{
	const struct record_task task = { .pid = 1, .ppid = 2, .tid = 3, .ptid = 4, .time = 5 };

	/* u32 pid, ppid; u32 tid, ptid; u64 time */
	HEADER(7, 0, 8 + 24 + 32);
	U32(1), U32(2), U32(3), U32(4), U64(5);
	SAMPLE_ID();
	same_task(CHECK(record_write_fork, &task, 1), &task);
}

static void exit_record(void **state)
{
	const struct record_task task = { .pid = 1, .ppid = 2, .tid = 3, .ptid = 4, .time = 5 };

	/* u32 pid, ppid; u32 tid, ptid; u64 time */
	HEADER(4, 0, 8 + 24 + 32);
	U32(1), U32(2), U32(3), U32(4), U64(5);
	SAMPLE_ID();
	same_task(CHECK(record_write_exit, &task, 1), &task);
}

/* Behind the fields of the kernel, where a kernel of the future may have other ones. */
static void exit_by_signal(void **state)
{
	const struct record_task task = {
		.pid = 1, .ppid = 2, .tid = 3, .ptid = 4, .time = 5, .signal = 11
	};
	uint8_t foreign[32] = {}, cut[28];
	struct record_task got = {};
	struct cursor body;

	HEADER(4, 0, 8 + 32 + 32);
	U32(1), U32(2), U32(3), U32(4), U64(5), U32(0x67695364), U32(11);
	SAMPLE_ID();
	body = CHECK(record_write_exit, &task, 1);
	same_task(body, &task);

	memcpy(cut, body.pos, sizeof(cut));
	assert_int_equal(record_read_task(cursor_from(cut, sizeof(cut)), &got), 0);
	assert_int_equal(got.signal, 0);
	memset(foreign, 11, sizeof(foreign));
	assert_int_equal(record_read_task(cursor_from(foreign, sizeof(foreign)), &got), 0);
	assert_int_equal(got.signal, 0);
}

/* --- who runs --------------------------------------------------------------------------------- */

static void itrace_start_record(void **state)
{
	const struct record_ids who = { 0x21, 0x22 };
	struct record_ids got = {};
	struct cursor body;

	/* u32 pid, tid */
	HEADER(12, 0, RECORD_SWITCH_SIZE);
	U32(0x21), U32(0x22);
	SAMPLE_ID();
	body = CHECK(record_write_itrace_start, &who, 1);
	assert_int_equal(record_read_itrace_start(body, &got), 0);
	assert_memory_equal(&got, &who, sizeof(got));
	SHORT(8, record_read_itrace_start(body, &got));
}

static void switch_record(void **state)
{
	const struct record_switch sw = { .out = true };
	struct record_switch got = { .other.pid = 1 };
	struct cursor body;

	HEADER(14, 1 << 13, 8 + 32);
	SAMPLE_ID();
	body = CHECK(record_write_switch, &sw, 1);
	assert_int_equal(record_read_switch(14, PERF_RECORD_MISC_SWITCH_OUT, body, &got), 0);
	assert_true(got.out && !got.preempt);
	assert_int_equal(got.other.pid, 0);
}

static void switch_cpu_wide_record(void **state)
{
	const struct record_switch sw = { .out = true, .preempt = true, .other = { 0x31, 0x32 } };
	struct record_switch got = {};
	struct cursor body;

	/* u32 next_prev_pid, next_prev_tid */
	HEADER(15, 1 << 13 | 1 << 14, RECORD_SWITCH_SIZE);
	U32(0x31), U32(0x32);
	SAMPLE_ID();
	body = CHECK(record_write_switch_cpu_wide, &sw, 1);
	assert_int_equal(record_read_switch(15, 3 << 13, body, &got), 0);
	assert_true(got.out && got.preempt);
	assert_int_equal(got.other.pid, 0x31);
	assert_int_equal(got.other.tid, 0x32);
	SHORT(8, record_read_switch(15, 0, body, &got));
	/* Who comes was not preempted, whatever the bit says. */
	assert_int_equal(record_read_switch(15, 1 << 14, body, &got), 0);
	assert_true(!got.out && !got.preempt);
}

/* --- samples of tracepoints ------------------------------------------------------------------- */

/* What a sample begins with: identifier, tid, time and cpu; and the size of the raw data. */
#define SAMPLE(id, raw_size) \
	U64(id), U64(0), U32(0x101), U32(0x102), U64(0x103104105), U32(6), U32(0), U32(raw_size)

static void sys_enter_sample(void **state)
{
	HEADER(9, PERF_RECORD_MISC_USER, 72);
	SAMPLE(3, 20);
	U16(1), U16(0), U32(0x102); /* the common fields */
	U64(0x141), U32(0);
	(void)same(&h, record_write_sys_enter(0x141, &trailer, record, sizeof(record)), false);
	assert_int_equal(record_write_sys_enter(0x141, &trailer, record, 71), 0);
}

static void signal_deliver_sample(void **state)
{
	HEADER(9, PERF_RECORD_MISC_USER, 80);
	SAMPLE(4, 28);
	U16(2), U16(0), U32(0x102);
	U32(11), U32(0), U64(0x401000), U32(0);
	(void)same(&h, record_write_signal_deliver(11, 0x401000, &trailer, record, sizeof(record)),
		   false);
	assert_int_equal(record_write_signal_deliver(11, 0x401000, &trailer, record, 79), 0);
}

/* --- the AUX ring, and what is lost ----------------------------------------------------------- */

static void aux_record(void **state)
{
	const struct record_aux aux = { .offset = 0x41, .size = 0x42, .flags = 0x43 };
	struct record_aux got = {};
	struct cursor body;

	/* u64 aux_offset, aux_size, flags */
	HEADER(11, 0, 8 + 24 + 32);
	U64(0x41), U64(0x42), U64(0x43);
	SAMPLE_ID();
	body = CHECK(record_write_aux, &aux, 1);
	assert_int_equal(record_read_aux(body, &got), 0);
	assert_memory_equal(&got, &aux, sizeof(got));
	SHORT(24, record_read_aux(body, &got));
}

static void lost_record(void **state)
{
	const struct record_lost lost = { .id = 2, .lost = 0x51 };
	struct record_lost got = {};
	struct cursor body;

	/* u64 id, lost */
	HEADER(2, 0, 8 + 16 + 32);
	U64(2), U64(0x51);
	SAMPLE_ID();
	body = CHECK(record_write_lost, &lost, 1);
	assert_int_equal(record_read_lost(body, &got), 0);
	assert_memory_equal(&got, &lost, sizeof(got));
	SHORT(16, record_read_lost(body, &got));
}

static void lost_samples_record(void **state)
{
	struct cursor body;
	uint64_t got = 0;

	/* u64 lost */
	HEADER(13, 0, 8 + 8 + 32);
	U64(0x52);
	SAMPLE_ID();
	body = CHECK(record_write_lost_samples, 0x52, 1);
	assert_int_equal(record_read_lost_samples(body, &got), 0);
	assert_int_equal(got, 0x52);
	SHORT(8, record_read_lost_samples(body, &got));
}

/* --- the kernel's code ------------------------------------------------------------------------ */

static void ksymbol_record(void **state)
{
	const struct record_ksymbol k = {
		.addr = UINT64_MAX - 9, .len = 6, .ksym_type = 1, .flags = 1, .name = "bpf_prog_x"
	};
	struct record_ksymbol got = {};
	struct cursor body;

	/* u64 addr; u32 len; u16 ksym_type, flags; char name[] */
	HEADER(17, 0, 8 + 32 + 32);
	U64(UINT64_MAX - 9), U32(6), U16(1), U16(1), TEXT("bpf_prog_x\0\0\0\0\0\0");
	SAMPLE_ID();
	body = CHECK(record_write_ksymbol, &k, 1);
	assert_int_equal(record_read_ksymbol(body, &got), 0);
	assert_int_equal(got.addr, k.addr);
	assert_int_equal(got.len, 6);
	assert_int_equal(got.ksym_type, PERF_RECORD_KSYMBOL_TYPE_BPF);
	assert_int_equal(got.flags, PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER);
	assert_string_equal(got.name, "bpf_prog_x");
	SHORT(16 + 11, record_read_ksymbol(body, &got));
}

static void bpf_event_record(void **state)
{
	const struct record_bpf_event bpf = {
		.type = 1, .flags = 2, .id = 3, .tag = 0x8877665544332211
	};
	struct record_bpf_event got = {};
	struct cursor body;

	/* u16 type, flags; u32 id; u8 tag[8] */
	HEADER(18, 0, 8 + 16 + 32);
	U16(1), U16(2), U32(3), TEXT("\x11\x22\x33\x44\x55\x66\x77\x88");
	SAMPLE_ID();
	body = CHECK(record_write_bpf_event, &bpf, 1);
	assert_int_equal(record_read_bpf_event(body, &got), 0);
	assert_memory_equal(&got, &bpf, sizeof(got));
	SHORT(16, record_read_bpf_event(body, &got));
}

static void text_poke_record(void **state)
{
	const struct record_text_poke poke = { .addr = UINT64_MAX - 99,
					       .old_len = 5,
					       .new_len = 2,
					       .old_bytes = (const uint8_t *)"abcde",
					       .new_bytes = (const uint8_t *)"fg" };
	struct record_text_poke got = {};
	struct cursor body;

	/* u64 addr; u16 old_len, new_len; u8 bytes[] */
	HEADER(20, 1, 8 + 24 + 32);
	U64(UINT64_MAX - 99), U16(5), U16(2), TEXT("abcdefg\0\0\0\0\0");
	SAMPLE_ID();
	body = CHECK(record_write_text_poke, &poke, 1);
	assert_int_equal(record_read_text_poke(body, &got), 0);
	assert_int_equal(got.addr, poke.addr);
	assert_int_equal(got.old_len, 5);
	assert_int_equal(got.new_len, 2);
	assert_memory_equal(got.old_bytes, "abcde", 5);
	assert_memory_equal(got.new_bytes, "fg", 2);
	SHORT(12 + 7, record_read_text_poke(body, &got));
}

/* --- the records that perf adds --------------------------------------------------------------- */

static void build_id_record(void **state)
{
	const struct record_build_id entry = { .cpumode = PERF_RECORD_MISC_USER,
					       .pid = -1,
					       .build_id = { "0123456789abcdef", 16 },
					       .path = "/bin/ls" };
	struct record_build_id got = {};
	struct cursor body;

	/* s32 pid; u8 build_id[20]; u8 size, reserved[3]; char filename[], padded to 64 */
	HEADER(67, 2 | 1 << 15, 8 + 28 + 64);
	U32(UINT32_MAX), TEXT("0123456789abcdef\0\0\0\0"), number(&h, 4, 16);
	TEXT("/bin/ls\0"), TEXT((char[56 + 1]){});
	body = CHECK(record_write_build_id, &entry, 0);
	assert_int_equal(record_read_build_id(2 | 1 << 15, body, &got), 0);
	assert_int_equal(got.cpumode, PERF_RECORD_MISC_USER);
	assert_int_equal(got.pid, -1);
	assert_true(buildid_equal(&got.build_id, &entry.build_id));
	assert_string_equal(got.path, "/bin/ls");
	SHORT(28 + 8, record_read_build_id(2 | 1 << 15, body, &got));

	/* Old perfs left the size to be 20. */
	assert_int_equal(record_read_build_id(2, body, &got), 0);
	assert_int_equal(got.build_id.size, 20);
	record[8 + 24] = 21;
	assert_int_equal(record_read_build_id(2 | 1 << 15, body, &got), -EBADMSG);
}

static void auxtrace_record(void **state)
{
	const struct record_auxtrace a = {
		.size = 0x61, .offset = 0x62, .reference = 0x63, .idx = 4, .tid = -1, .cpu = 6
	};
	struct record_auxtrace got = {};
	struct cursor body;

	/* u64 size, offset, reference; u32 idx, tid, cpu, reserved */
	HEADER(71, 0, RECORD_AUXTRACE_SIZE);
	U64(0x61), U64(0x62), U64(0x63), U32(4), U32(UINT32_MAX), U32(6), U32(0);
	body = CHECK(record_write_auxtrace, &a, 0);
	assert_int_equal(record_read_auxtrace(body, &got), 0);
	assert_int_equal(got.size, 0x61);
	assert_int_equal(got.offset, 0x62);
	assert_int_equal(got.reference, 0x63);
	assert_int_equal(got.idx, 4);
	assert_int_equal(got.tid, -1);
	assert_int_equal(got.cpu, 6);
	SHORT(40, record_read_auxtrace(body, &got));
}

static void auxtrace_info_record(void **state)
{
	static const uint64_t more = 0x77;
	struct record_auxtrace_info info = {
		.type = 1, .filter = "filter main", .more = &more, .n_more = 1
	};
	struct record_auxtrace_info got = {};
	struct cursor body;

	/* u32 type, reserved; u64 priv[]: 17 of them, the filter padded behind its NUL, another */
	HEADER(70, 0, 8 + 8 + 17 * 8 + 16 + 8);
	U32(1), U32(0);
	for (unsigned i = 0; i < 16; i++) {
		info.slots[i] = 0x100 + i;
		U64(0x100 + i);
	}
	info.slots[16] = strlen(info.filter);
	U64(11), TEXT("filter main\0\0\0\0\0"), U64(0x77);
	body = CHECK(record_write_auxtrace_info, &info, 0);
	assert_int_equal(record_read_auxtrace_info(body, &got), 0);
	assert_int_equal(got.type, 1);
	assert_memory_equal(got.slots, info.slots, sizeof(got.slots));
	assert_memory_equal(got.filter, "filter main", 11);
	SHORT(8, record_read_auxtrace_info(body, &got));

	/* An old perf says less; and of a filter that is cut off nothing is known. */
	body = cursor_from(record + 8, 8 + 3 * 8 + 7);
	assert_int_equal(record_read_auxtrace_info(body, &got), 0);
	assert_int_equal(got.slots[2], 0x102);
	assert_int_equal(got.slots[3], 0);
	body = cursor_from(record + 8, 8 + 17 * 8 + 10);
	assert_int_equal(record_read_auxtrace_info(body, &got), 0);
	assert_null(got.filter);
}

static void time_conv_record(void **state)
{
	const struct tsc_conv conv = { .valid = true, .shift = 31, .mult = 0x7fff, .zero = 0x8001 };

	/* u64 time_shift, time_mult, time_zero, time_cycles, time_mask;
	 * u8 cap_user_time_zero, cap_user_time_short, reserved[6] */
	HEADER(79, 0, 8 + 48);
	U64(31), U64(0x7fff), U64(0x8001), U64(0), U64(0), U64(1);
	(void)CHECK(record_write_time_conv, &conv, 0);
}

static void id_index_record(void **state)
{
	static const struct record_id_index_entry entries[] = { { 1, 2, 3, -1 }, { 5, 6, -1, 8 } };
	uint8_t small[8 + 8 + 63];

	/* u64 nr; { u64 id, idx, cpu, tid; } [] */
	HEADER(69, 0, 8 + 8 + 64);
	U64(2), U64(1), U64(2), U64(3), U64(UINT64_MAX), U64(5), U64(6), U64(UINT64_MAX), U64(8);
	(void)same(&h, record_write_id_index(entries, 2, record, h.n), false);
	assert_int_equal(record_write_id_index(entries, 2, small, sizeof(small)), 0);
}

/* Behind the entries are as many machines, or none. */
static void id_index_machines(void **state)
{
	static const struct {
		uint64_t n;
		size_t n_words;
		int r;
		size_t entries, machines;
	} rows[] = {
		{ 0, 0, 0, 0, 0 },
		{ 0, 4, 0, 0, 0 },
		{ 1, 4, 0, 32, 0 },
		{ 1, 5, 0, 32, 0 },
		{ 1, 6, 0, 32, 16 },
		{ 2, 12, 0, 64, 32 },
		{ 2, 11, 0, 64, 0 },
		{ 2, 7, -EBADMSG, 0, 0 },
		{ UINT64_MAX / 32 + 2, 12, -EBADMSG, 0, 0 },
	};
	uint64_t words[13] = {};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct cursor entries = {}, machines = {};

		words[0] = rows[i].n;
		assert_int_equal(record_read_id_index(cursor_from(words, 8 + 8 * rows[i].n_words),
						      &entries, &machines),
				 rows[i].r);
		assert_int_equal(cursor_left(&entries), rows[i].entries);
		assert_int_equal(cursor_left(&machines), rows[i].machines);
	}
	words[0] = 0;
	assert_int_equal(
	    record_read_id_index(cursor_from(words, 7), &(struct cursor){}, &(struct cursor){}),
	    -EBADMSG);
}

static void finished_round_record(void **state)
{
	HEADER(68, 0, 8);
	(void)same(&h, record_write_finished_round(record, h.n), false);
	assert_int_equal(record_write_finished_round(record, 7), 0);
}

/* No record is as large as that, however much room there is. */
static void too_large(void **state)
{
	static uint8_t room[1 << 17], bytes[UINT16_MAX];
	const struct record_text_poke poke = {
		.old_len = 40000, .new_len = 40000, .old_bytes = bytes, .new_bytes = bytes
	};

	(void)state;
	assert_int_equal(record_write_text_poke(&poke, &trailer, room, sizeof(room)), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(mmap_record),
		cmocka_unit_test(mmap2_record),
		cmocka_unit_test(mmap2_with_build_id),
		cmocka_unit_test(long_names),
		cmocka_unit_test(whose_code),
		cmocka_unit_test(whose_record),
		cmocka_unit_test(comm_record),
		cmocka_unit_test(fork_record),
		cmocka_unit_test(exit_record),
		cmocka_unit_test(exit_by_signal),
		cmocka_unit_test(itrace_start_record),
		cmocka_unit_test(switch_record),
		cmocka_unit_test(switch_cpu_wide_record),
		cmocka_unit_test(sys_enter_sample),
		cmocka_unit_test(signal_deliver_sample),
		cmocka_unit_test(aux_record),
		cmocka_unit_test(lost_record),
		cmocka_unit_test(lost_samples_record),
		cmocka_unit_test(ksymbol_record),
		cmocka_unit_test(bpf_event_record),
		cmocka_unit_test(text_poke_record),
		cmocka_unit_test(build_id_record),
		cmocka_unit_test(auxtrace_record),
		cmocka_unit_test(auxtrace_info_record),
		cmocka_unit_test(time_conv_record),
		cmocka_unit_test(id_index_record),
		cmocka_unit_test(id_index_machines),
		cmocka_unit_test(finished_round_record),
		cmocka_unit_test(too_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
