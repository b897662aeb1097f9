/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What the recorded program's memory tells: its start, its signal handlers, its mappings. This test
 * plays the target itself: its own memory is the target's.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/plugin/maps.h"
#include "daemon/plugin/target.h"
#include "tests/lib/emufree.h"
#include "tests/lib/emupool.h"
#include "tests/lib/tempdir.h"

static const uintptr_t zero;
static const struct target plain = { &zero, 64 };

static uint64_t address(const void *p)
{
	return (uintptr_t)p;
}

static void *inaccessible_page(void)
{
	void *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(page, MAP_FAILED);
	return page;
}

static void reading(void **state)
{
	const uint64_t nowhere = address(inaccessible_page());
	const char text[] = "hello";
	const uintptr_t base = address(text) - 16;
	const struct target moved = { &base, 64 };
	char bytes[6] = "", small[3];

	(void)state;
	assert_int_equal(target_read(&plain, address(text), bytes, 6), 0);
	assert_string_equal(bytes, "hello");
	/* The target's address 0 need not be ours. */
	assert_int_equal(target_read(&moved, 16, bytes, 6), 0);
	assert_int_equal(target_read(&plain, nowhere, bytes, 1), -EFAULT);
	assert_int_equal(target_read_string(&plain, address(text), small, sizeof(small)), 0);
	assert_string_equal(small, "he");
	assert_int_equal(target_read_string(&plain, nowhere, small, sizeof(small)), -EFAULT);
	assert_int_equal(munmap((void *)nowhere, 4096), 0);
}

static void start(void **state)
{
	static const struct {
		const char *name;
		uint64_t stack[16];
		int r;
		struct target_start expected;
	} rows[] = {
		{ "whole",
		  { 2, 1, 1, 0, 7, 7, 0, AT_PHDR, 0x40, AT_BASE, 0x7000, AT_EXECFN, 0x99, AT_NULL,
		    0 },
		  0,
		  { 0x40, 0x7000, 0x99 } },
		{ "no arguments, no environment",
		  { 0, 0, 0, AT_PHDR, 0x40, AT_NULL, 0 },
		  0,
		  { 0x40, 0, 0 } },
		{ "no auxiliary vector", { 1, 1, 0, 0, AT_NULL, 0 }, 0, {} },
		{ "argc is nonsense", { UINT64_MAX }, -EFAULT, {} },
		{ "one argument more than there may be",
		  { TARGET_STACK_WORDS_MAX + 1 },
		  -EFAULT,
		  {} },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct target_start got = { .phdr = 0xdead };

		print_message("  %s\n", rows[i].name);
		assert_int_equal(target_read_start(&plain, address(rows[i].stack), &got),
				 rows[i].r);
		if (rows[i].r < 0)
			assert_int_equal(got.phdr, 0xdead);
		else
			assert_memory_equal(&got, &rows[i].expected, sizeof(got));
	}
}

static void start_that_cannot_be_read(void **state)
{
	const uint64_t page = 4096;
	uint8_t *two =
	    mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uint64_t words[] = { 1, 1, 0, 7, 0, AT_PHDR, 5, AT_NULL, 0 };
	struct target_start got = { .phdr = 0xdead };

	(void)state;
	assert_ptr_not_equal(two, MAP_FAILED);
	assert_int_equal(mprotect(two + page, page, PROT_NONE), 0);
	/* However much of it there is: all of it, or an error. AT_NULL's value is not needed. */
	for (size_t n = 0; n <= ARRAY_LEN(words); n++) {
		uint64_t *stack = (uint64_t *)(void *)(two + page) - n;
		const bool is_whole = n == ARRAY_LEN(words);

		memcpy(stack, words, n * sizeof(*words));
		assert_int_equal(target_read_start(&plain, address(stack), &got),
				 is_whole ? 0 : -EFAULT);
		assert_int_equal(got.phdr, is_whole ? 5 : 0xdead);
	}
	assert_int_equal(munmap(two, 2 * page), 0);
}

/* A vector without an end is an error as soon as it is longer than any program's. */
static void vector_without_an_end(void **state)
{
	const uint64_t n_words = 3 + TARGET_STACK_WORDS_MAX, size = n_words * 8;
	uint64_t *stack =
	    mmap(NULL, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct target_start got = { .phdr = 0xdead };

	(void)state;
	assert_ptr_not_equal(stack, MAP_FAILED);
	for (uint64_t i = 3; i < n_words; i += 2)
		stack[i] = AT_PHDR;
	/* Nothing behind the limit is looked at. */
	stack[n_words] = AT_NULL;
	assert_int_equal(target_read_start(&plain, address(stack), &got), -EFAULT);
	assert_int_equal(got.phdr, 0xdead);

	/* The last place where the end may be. */
	stack[n_words - 2] = AT_NULL;
	assert_int_equal(target_read_start(&plain, address(stack), &got), 0);
	assert_int_equal(got.phdr, 0);
	assert_int_equal(munmap(stack, size + 4096), 0);
}

/* The memory of a program of i386 is @bytes, from its address 0 on. */
#define GUEST32(name, bytes)                          \
	const uintptr_t name##_base = address(bytes); \
	const struct target name = { &name##_base, 32 }

static void start32(void **state)
{
	static const uint32_t stack[] = { 9,         2,    1,       1,    0,       7,
					  7,         0,    AT_PHDR, 0x40, AT_BASE, 0xf7000000,
					  AT_EXECFN, 0x99, AT_NULL, 0 };
	GUEST32(target, stack);
	struct target_start got = {};

	(void)state;
	assert_int_equal(target_read_start(&target, 4, &got), 0);
	assert_int_equal(got.phdr, 0x40);
	assert_int_equal(got.base, 0xf7000000);
	assert_int_equal(got.execfn, 0x99);
	/* What QEMU hands over with a sign. */
	assert_int_equal(target_cut(&target, UINT64_C(0xfffffffff7000000)), 0xf7000000);
	assert_int_equal(target_cut(&plain, UINT64_C(0xfffffffff7000000)),
			 UINT64_C(0xfffffffff7000000));
}

/* rt_sigframe up to RIP, in words. */
struct frame {
	uint64_t pretcode;
	uint64_t uc[5];
	uint64_t regs[17]; /* rsp is 15, rip is 16 */
};

static void handlers(void **state)
{
	const uint64_t one[4] = { 0x1000, 0, 0x9000, 0 }, two[4] = { 0x2000, 0, 0x9000, 0 };
	const uint64_t ignore[4] = { 1, 0, 0x9000, 0 };
	struct target_handlers h = {};
	struct frame inner = { .pretcode = 0x9000 }, outer = { .pretcode = 0x9000 };
	uint64_t ip = 0xdead;

	(void)state;
	assert_int_equal(target_handlers_add(&h, &plain, TARGET_RT_ACTION, address(one)), 0x1000);
	assert_int_equal(target_handlers_add(&h, &plain, TARGET_RT_ACTION, address(one)), 0);
	assert_int_equal(target_handlers_add(&h, &plain, TARGET_RT_ACTION, address(ignore)), 0);
	assert_int_equal(target_handlers_add(&h, &plain, TARGET_RT_ACTION, 0), 0);
	assert_int_equal(target_handlers_add(&h, &plain, TARGET_RT_ACTION, address(two)), 0x2000);
	assert_true(target_handlers_have(&h, 0x2000));
	assert_false(target_handlers_have(&h, 1));

	inner.regs[16] = 0x401234;
	assert_true(target_at_handler(&h, &plain, 0x1000, address(&inner), &ip));
	assert_int_equal(ip, 0x401234);

	/* Two signals at once: the second one's frame was built at the first handler's entry. */
	outer.regs[16] = 0x1000;
	outer.regs[15] = address(&inner);
	ip = 0xdead;
	assert_true(target_at_handler(&h, &plain, 0x2000, address(&outer), &ip));
	assert_int_equal(ip, 0x401234);

	/* A handler that was called, or is none. */
	ip = 0xdead;
	inner.pretcode = 0x401000;
	assert_false(target_at_handler(&h, &plain, 0x1000, address(&inner), &ip));
	inner.pretcode = 0x9000;
	assert_false(target_at_handler(&h, &plain, 0x3000, address(&inner), &ip));
	assert_int_equal(ip, 0xdead);
	target_handlers_deinit(&h);
}

/* Frames that lead to each other do not hang. */
static void circular_frames(void **state)
{
	const uint64_t one[4] = { 0x1000, 0, 0x9000, 0 };
	struct frame frame = { .pretcode = 0x9000 };
	struct target_handlers h = {};
	uint64_t ip;

	(void)state;
	frame.regs[16] = 0x1000;
	frame.regs[15] = address(&frame);
	assert_int_equal(target_handlers_add(&h, &plain, TARGET_RT_ACTION, address(one)), 0x1000);
	assert_true(target_at_handler(&h, &plain, 0x1000, address(&frame), &ip));
	target_handlers_deinit(&h);
}

/*
 * On i386 a handler has one of two frames, as it was registered. Who gives no way back gets QEMU's,
 * which is known by its code.
 */
static void handlers32(void **state)
{
	enum {
		RESTORER = 0x9000,
		FLAG_INFO = 4,
		FLAG_RESTORER = 0x04000000,
		ACT = 0, /* words of the target's memory */
		OLD_ACT = 5,
		OWN_ACT = 9,
		FRAME = 16,
		INFO_FRAME = 64,
		UCONTEXT = 80,
		CODE = 120,
		N = 128,
	};
	/* To the word of eip: from a frame's context, and in an ucontext. */
	enum { EIP = 2 + 14, UC_EIP = 5 + 14, ESP = 2 + 7 };
	uint32_t m[N] = {
		[ACT] = 0x1000,
		FLAG_INFO | FLAG_RESTORER,
		RESTORER,
		[OLD_ACT] = 0x2000,
		0,
		FLAG_RESTORER,
		RESTORER + 8,
		[OWN_ACT] = 0x3000,
		0,
		0,
		[FRAME] = RESTORER + 8,
		10,
		[FRAME + EIP] = 0xf0401234,
		[INFO_FRAME] = RESTORER,
		11,
		0,
		4 * UCONTEXT,
		[UCONTEXT + UC_EIP] = 0x402000,
	};
	struct target_handlers h = {};
	GUEST32(target, m);
	uint64_t ip = 0xdead;

	(void)state;
	memcpy(&m[CODE], "\x58\xb8\x77\0\0\0\xcd\x80", 8);
	assert_int_equal(target_handlers_add(&h, &target, TARGET_RT_ACTION, 4 * OWN_ACT), 0x3000);
	assert_int_equal(target_handlers_add(&h, &target, TARGET_OLD_ACTION, 4 * OLD_ACT), 0x2000);
	/* Address 0 is none. */
	assert_int_equal(target_handlers_add(&h, &target, TARGET_RT_ACTION, 4 * ACT), 0);
	memmove(&m[ACT + 1], &m[ACT], 12);
	assert_int_equal(target_handlers_add(&h, &target, TARGET_RT_ACTION, 4 * ACT + 4), 0x1000);

	assert_true(target_at_handler(&h, &target, 0x2000, 4 * FRAME, &ip));
	assert_int_equal(ip, 0xf0401234);
	assert_true(target_at_handler(&h, &target, 0x1000, 4 * INFO_FRAME, &ip));
	assert_int_equal(ip, 0x402000);
	assert_int_equal(target_handler_signal(&target, 4 * FRAME), 10);
	assert_int_equal(target_handler_signal(&target, 4 * INFO_FRAME), 11);

	/* One at the other's entry. */
	m[FRAME + EIP] = 0x1000;
	m[FRAME + ESP] = 4 * INFO_FRAME;
	assert_true(target_at_handler(&h, &target, 0x2000, 4 * FRAME, &ip));
	assert_int_equal(ip, 0x402000);

	ip = 0xdead;
	assert_false(target_at_handler(&h, &target, 0x1000, 4 * FRAME, &ip));
	assert_false(target_at_handler(&h, &target, 0x2000, 4 * INFO_FRAME, &ip));
	m[INFO_FRAME + 3] = 0;
	m[INFO_FRAME] = RESTORER + 1;
	assert_false(target_at_handler(&h, &target, 0x1000, 4 * INFO_FRAME, &ip));

	m[FRAME + EIP] = 0x403000;
	assert_false(target_at_handler(&h, &target, 0x3000, 4 * FRAME, &ip));
	assert_int_equal(ip, 0xdead);
	m[FRAME] = 4 * CODE;
	assert_true(target_at_handler(&h, &target, 0x3000, 4 * FRAME, &ip));
	assert_int_equal(ip, 0x403000);
	target_handlers_deinit(&h);
}

/* --- mappings --------------------------------------------------------------------------------- */

static const struct emu_pool_layout layout = {
	.n_cpus = 1,
	.n_busy_max = 1,
	.aux_size = 4096,
	.switch_size = 4096,
	.event_size = 4096,
	.task_size = 65536,
	.code_size = 65536,
	.psb_period = 4096,
};

struct mmap2 {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint8_t id_size, id_reserved[3], id[20];
	uint32_t prot, flags;
	char name[];
};

/* A frame is moved only if it is not aligned, and is what QEMU 7.2 makes: bytes after it stay. */
static void frames_that_move(void **state)
{
	static const struct row {
		uint8_t mode, at, argument_at;
		uint16_t pointer_at, pointer, size;
		int move;
		bool arguments;
	} rows[] = {
		{ 64, 32, 0, 232, 448, 440, 8, true },
		{ 64, 32, 0, 232, 440, 440, 0, false }, /* another layout */
		{ 64, 40, 0, 232, 448, 440, 0, false }, /* aligned */
		{ 32, 32, 8, 240, 272, 268, -4, true },
		{ 32, 32, 12, 240, 272, 268, 0, false }, /* another argument */
		{ 32, 28, 8, 240, 272, 268, 0, false },
		{ 32, 32, 0, 84, 736, 732, -4, false },
		{ 32, 32, 0, 84, 732, 732, 0, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *row = &rows[i];
		alignas(16) uint8_t memory[1024], expected[1024];
		const uintptr_t base = address(memory);
		const struct target target = { &base, row->mode };
		const uint64_t fpstate = row->at + row->pointer;
		const uint32_t arguments[2] = { row->at + 16u, row->at + 144u };
		const uint32_t moved[2] = { arguments[0] - 4, arguments[1] - 4 };
		struct target_move move;

		for (size_t n = 0; n < sizeof(memory); n++)
			memory[n] = (uint8_t)(n * 7 % 251);
		memcpy(memory + row->at + row->pointer_at, &fpstate, row->mode / 8);
		if (row->argument_at)
			memcpy(memory + row->at + row->argument_at, arguments, sizeof(arguments));
		memcpy(expected, memory, sizeof(memory));
		memcpy(expected + row->at + row->move, memory + row->at, row->move ? row->size : 0);
		if (row->move && row->argument_at)
			memcpy(expected + row->at + row->move + row->argument_at, moved,
			       sizeof(moved));

		move = target_align_frame(&target, row->at);
		assert_int_equal(move.bytes, row->move);
		assert_int_equal(move.arguments, row->arguments);
		assert_memory_equal(memory, expected, sizeof(memory));
	}
	/* Nothing can be read, and nothing moves. */
	assert_int_equal(target_align_frame(&plain, 16).bytes, 0);
}

static void image(void **state)
{
	const struct poolrecord_who who = { 1, 1, 0 };
	const uint64_t here = address(image);
	struct attach attach;
	struct maps maps;
	const struct mmap2 *record;

	(void)state;
	emupool_attach(&layout, &attach);
	maps_init(&maps, &attach, &plain);
	/* From the headers, as for a program that starts. */
	maps_add_image(&maps, who, getauxval(AT_PHDR));
	assert_true(attach.pool->task_head > sizeof(*record));
	record = (const struct mmap2 *)attach_at(&attach, emu_task_offset(&layout));
	assert_int_equal(record->header.type, PERF_RECORD_MMAP2);
	assert_in_range(here, record->addr, record->addr + record->len - 1);
	assert_int_equal(record->addr % 4096, 0);
	assert_int_equal(record->prot, PROT_READ | PROT_EXEC);
	assert_int_equal(record->name[0], 0x2f);
	assert_true(maps_has(&maps, here, 1));
	maps_deinit(&maps);
	attach_deinit(&attach);
}

static void anonymous(void **state)
{
	const struct poolrecord_who who = { 1, 1, 0 };
	uint8_t *p = mmap(NULL, 4 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct mmap2 *record;
	struct attach attach;
	struct maps maps;

	(void)state;
	assert_ptr_not_equal(p, MAP_FAILED);
	emupool_attach(&layout, &attach);
	maps_init(&maps, &attach, &plain);
	assert_int_equal(maps_add(&maps, who, address(p) + 4097, 1, PROT_READ | PROT_EXEC), 1);
	record = (const struct mmap2 *)attach_at(&attach, emu_task_offset(&layout));
	assert_int_equal(record->addr, address(p) + 4096);
	assert_int_equal(record->len, 4096);
	assert_string_equal(record->name, "//anon");
	assert_int_equal(munmap(p, 4 * 4096), 0);
	assert_int_equal(maps_add(&maps, who, address(p), 4096, PROT_EXEC), 0);
	maps_deinit(&maps);
	attach_deinit(&attach);
}

/* Ranges are joined and cut; each row does one more thing and then asks. */
static void ranges(void **state)
{
	static const struct {
		bool add;
		unsigned start, end; /* pages */
		unsigned known;      /* a bit for each page */
		unsigned n;          /* ranges */
	} rows[] = {
		{ true, 2, 4, 0x0c, 1 },  { true, 6, 8, 0xcc, 2 },   { true, 4, 6, 0xfc, 1 },
		{ false, 3, 5, 0xe4, 2 }, { false, 0, 3, 0xe0, 1 },  { false, 5, 6, 0xc0, 1 },
		{ true, 0, 1, 0xc1, 2 },  { false, 7, 20, 0x41, 2 }, { true, 0, 8, 0xff, 1 },
		{ false, 0, 8, 0, 0 },    { false, 0, 8, 0, 0 },
	};
	const struct poolrecord_who who = { 1, 1, 0 };
	uint8_t *p = mmap(NULL, 8 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct attach attach;
	struct maps maps;

	(void)state;
	assert_ptr_not_equal(p, MAP_FAILED);
	emupool_attach(&layout, &attach);
	maps_init(&maps, &attach, &plain);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const uint64_t from = address(p) + 4096 * rows[i].start;
		const uint64_t size = 4096 * (uint64_t)(rows[i].end - rows[i].start);

		if (rows[i].add)
			assert_true(maps_add(&maps, who, from, size, PROT_EXEC) > 0);
		else
			maps_remove(&maps, from, size);
		for (unsigned page = 0; page < 8; page++)
			assert_int_equal(maps_has(&maps, address(p) + 4096 * page + 5, 1),
					 rows[i].known >> page & 1);
		assert_int_equal(maps.known.list.n, rows[i].n);
	}
	assert_int_equal(munmap(p, 8 * 4096), 0);
	maps_deinit(&maps);
	attach_deinit(&attach);
}

static void *map_file(const char *path, int flags, int protection)
{
	const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *p;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 4 * 4096), 0);
	p = mmap(NULL, 4 * 4096, protection, flags, fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	(void)close(fd);
	return p;
}

/* What may be other than its file is, and when it is. */
static void places(void **state)
{
	const struct poolrecord_who who = { 1, 1, 0 };
	char dir[TEMPDIR_SIZE], path[96], gone[96], shm[64];
	struct attach attach;
	struct maps maps;
	const struct {
		const char *path; /* NULL: none */
		int flags;
		bool is_deleted;
		enum handover_place expected;
	} rows[] = {
		{ NULL, MAP_PRIVATE | MAP_ANONYMOUS, false, HANDOVER_MEMORY },
		{ path, MAP_PRIVATE, false, HANDOVER_FILE },
		{ path, MAP_SHARED, false, HANDOVER_WRITTEN },
		{ gone, MAP_PRIVATE, true, HANDOVER_WRITTEN },
		{ shm, MAP_PRIVATE, false, HANDOVER_WRITTEN },
	};

	(void)state;
	tempdir_make("target", dir);
	(void)snprintf(path, sizeof(path), "%s/file", dir);
	(void)snprintf(gone, sizeof(gone), "%s/gone", dir);
	(void)snprintf(shm, sizeof(shm), "/dev/shm/ptd-test-target-%d", getpid());
	emupool_attach(&layout, &attach);
	maps_init(&maps, &attach, &plain);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint8_t *p = rows[i].path ? map_file(rows[i].path, rows[i].flags, PROT_READ)
					  : mmap(NULL, 4 * 4096, PROT_READ, rows[i].flags, -1, 0);
		const uint64_t start = address(p);

		if (rows[i].is_deleted)
			assert_int_equal(unlink(rows[i].path), 0);
		assert_int_equal(maps_place(&maps, start, 1), HANDOVER_WRITTEN); /* not known */
		assert_int_equal(maps_add(&maps, who, start, 2 * 4096, PROT_EXEC), 1);
		assert_int_equal(maps_place(&maps, start, 1), rows[i].expected);
		assert_int_equal(maps_place(&maps, start, 2 * 4096), rows[i].expected);
		/* Half of it is not known. */
		assert_int_equal(maps_place(&maps, start + 4096, 4097), HANDOVER_WRITTEN);
		assert_int_equal(maps_place(&maps, start + 4 * 4096 - 1, 1), HANDOVER_WRITTEN);
		maps_remove(&maps, start, 4096);
		assert_int_equal(maps_place(&maps, start, 1), HANDOVER_WRITTEN);
		assert_int_equal(maps_place(&maps, start + 4096, 1), rows[i].expected);
		maps_remove(&maps, start, 4 * 4096);
		assert_int_equal(munmap(p, 4 * 4096), 0);
	}
	(void)unlink(shm);
	maps_deinit(&maps);
	attach_deinit(&attach);
	tempdir_remove(dir);
}

/* A page is other than the file when it was written to, which is looked at only where it may have
 * been. */
static void written(void **state)
{
	const struct poolrecord_who who = { 1, 1, 0 };
	char dir[TEMPDIR_SIZE], path[96];
	struct attach attach;
	struct maps maps;
	uint64_t start;
	uint8_t *p;

	(void)state;
	tempdir_make("target", dir);
	(void)snprintf(path, sizeof(path), "%s/file", dir);
	emupool_attach(&layout, &attach);
	maps_init(&maps, &attach, &plain);
	p = map_file(path, MAP_PRIVATE, PROT_READ | PROT_WRITE);
	start = address(p);
	assert_int_equal(maps_add(&maps, who, start, 4 * 4096, PROT_READ | PROT_EXEC), 1);
	assert_int_equal(maps_version(&maps), 1);
	p[4096 + 17] = 1;
	assert_int_equal(maps_place(&maps, start + 4096, 8), HANDOVER_FILE);
	maps_note_writable(&maps, start + 4096 + 17, 1);
	assert_int_equal(maps_place(&maps, start, 8), HANDOVER_FILE);
	assert_int_equal(maps_place(&maps, start + 4096, 8), HANDOVER_WRITTEN);
	assert_int_equal(maps_place(&maps, start + 4096 - 1, 2), HANDOVER_WRITTEN);
	assert_int_equal(maps_place(&maps, start + 4096 - 1, 1), HANDOVER_FILE);
	assert_int_equal(maps_place(&maps, start + 2 * 4096, 8), HANDOVER_FILE);
	assert_true(target_is_written(&plain, start + 4096, 1));
	assert_false(target_is_written(&plain, start, 4096));
	assert_true(target_is_written(&plain, start, 4097));
	assert_false(target_is_written(&plain, start + 2 * 4096, 2 * 4096));
	/* Made so together with being executable. */
	assert_int_equal(maps_add(&maps, who, start + 2 * 4096, 4096, PROT_WRITE | PROT_EXEC), 1);
	assert_int_equal(maps_version(&maps), 2);
	assert_int_equal(maps_place(&maps, start + 2 * 4096, 8), HANDOVER_FILE);
	p[2 * 4096] = 1;
	assert_int_equal(maps_place(&maps, start + 2 * 4096, 8), HANDOVER_WRITTEN);
	p[3 * 4096] = 1;
	assert_int_equal(maps_place(&maps, start + 3 * 4096, 8), HANDOVER_FILE);
	assert_int_equal(munmap(p, 4 * 4096), 0);
	maps_deinit(&maps);
	attach_deinit(&attach);
	tempdir_remove(dir);
}

/* What a record says of a file that is mapped in part. */
static void a_file(void **state)
{
	const struct poolrecord_who who = { 7, 8, 9 };
	static const int flags[] = { MAP_PRIVATE, MAP_SHARED };
	char dir[TEMPDIR_SIZE], path[96];

	(void)state;
	tempdir_make("target", dir);
	(void)snprintf(path, sizeof(path), "%s/file", dir);
	for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
		uint8_t *p = map_file(path, flags[i], PROT_READ);
		const struct mmap2 *record;
		struct attach attach;
		struct maps maps;

		emupool_attach(&layout, &attach);
		maps_init(&maps, &attach, &plain);
		assert_int_equal(maps_add(&maps, who, address(p) + 4096, 4097, PROT_EXEC), 1);
		record = (const struct mmap2 *)attach_at(&attach, emu_task_offset(&layout));
		assert_int_equal(record->pid, 7);
		assert_int_equal(record->tid, 8);
		assert_int_equal(record->addr, address(p) + 4096);
		assert_int_equal(record->len, 2 * 4096);
		assert_int_equal(record->pgoff, 4096);
		assert_int_equal(record->prot, PROT_EXEC);
		assert_int_equal(record->flags, flags[i]);
		assert_string_equal(record->name, path);
		assert_int_equal(munmap(p, 4 * 4096), 0);
		maps_deinit(&maps);
		attach_deinit(&attach);
	}
	tempdir_remove(dir);
}

static void around_a_fork(void **state)
{
	const struct poolrecord_who who = { 1, 1, 0 };
	uint8_t *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct attach attach;
	struct maps maps;

	(void)state;
	assert_ptr_not_equal(p, MAP_FAILED);
	emupool_attach(&layout, &attach);
	maps_init(&maps, &attach, &plain);
	maps_fork_prepare(&maps);
	assert_int_equal(pthread_mutex_trylock(&maps.lock), EBUSY);
	maps_fork_parent(&maps);
	assert_int_equal(maps_add(&maps, who, address(p), 1, PROT_EXEC), 1);
	/* The child has what its parent had, and a lock that nobody holds. */
	maps_fork_prepare(&maps);
	maps_fork_child(&maps);
	assert_int_equal(pthread_mutex_trylock(&maps.lock), 0);
	assert_int_equal(pthread_mutex_unlock(&maps.lock), 0);
	assert_true(maps_has(&maps, address(p), 1));
	assert_int_equal(munmap(p, 4096), 0);
	maps_deinit(&maps);
	attach_deinit(&attach);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(reading),
		cmocka_unit_test(start),
		cmocka_unit_test(start_that_cannot_be_read),
		cmocka_unit_test(vector_without_an_end),
		cmocka_unit_test(start32),
		cmocka_unit_test(handlers),
		cmocka_unit_test(handlers32),
		cmocka_unit_test(circular_frames),
		cmocka_unit_test(frames_that_move),
		cmocka_unit_test(image),
		cmocka_unit_test(anonymous),
		cmocka_unit_test(ranges),
		cmocka_unit_test(places),
		cmocka_unit_test(written),
		cmocka_unit_test(a_file),
		cmocka_unit_test(around_a_fork),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
