/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The kernel's space from its records, and from a copy that is older or younger than they are. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <elf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "decoder/image/layout.h"
#include "decoder/kernel/kernel.h"
#include "tests/lib/kernelrecord.h"
#include "tests/lib/symbolat.h"
#include "tests/unit/tracerecord.h"

#define KERNEL UINT64_C(0xffffffff81000000)
#define BPF    UINT64_C(0xffffffffc0000000)
#define HELD   64 /* bytes of each that the copy has */

struct fixture {
	char dir[64];
	struct objects *objects;
	VEC(struct trace_record) records;
	struct trace trace;
	struct kernel kernel;
};

static void put(const struct fixture *f, const char *name, const void *bytes, size_t size)
{
	char path[128];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/kcore_dir/%s", f->dir, name);
	file = fopen(path, "we");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

static int set_up(void **state)
{
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr segments[2];
		uint8_t kernel[HELD], bpf[HELD];
	} kcore = {
		.header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					 ELFDATA2LSB, EV_CURRENT },
			    .e_type = ET_CORE,
			    .e_machine = EM_X86_64,
			    .e_version = EV_CURRENT,
			    .e_phoff = sizeof(kcore.header),
			    .e_ehsize = sizeof(kcore.header),
			    .e_phentsize = sizeof(Elf64_Phdr),
			    .e_phnum = 2 },
		.segments = { { .p_type = PT_LOAD,
				.p_flags = PF_X,
				.p_vaddr = KERNEL,
				.p_offset = offsetof(__typeof__(kcore), kernel),
				.p_filesz = HELD },
			      { .p_type = PT_LOAD,
				.p_flags = PF_X,
				.p_vaddr = BPF,
				.p_offset = offsetof(__typeof__(kcore), bpf),
				.p_filesz = HELD } },
	};
	struct fixture *f = calloc(1, sizeof(*f));
	char path[96];

	for (uint8_t i = 0; i < HELD; i++) {
		kcore.kernel[i] = i;
		kcore.bpf[i] = 0x80 + i;
	}
	strcpy(f->dir, "/tmp/test-kernel.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	(void)snprintf(path, sizeof(path), "%s/kcore_dir", f->dir);
	assert_int_equal(mkdir(path, 0750), 0);
	put(f, "kcore", &kcore, sizeof(kcore));
	put(f, "kallsyms", "", 0);
	assert_int_equal(objects_new(f->dir, &f->objects), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	char command[96];

	kernel_deinit(&f->kernel);
	(void)objects_free(f->objects);
	for (size_t i = 0; i < f->records.n; i++)
		free((void *)(uintptr_t)f->records.items[i].payload);
	vec_deinit(&f->records);
	vec_deinit(&f->trace.programs);
	(void)snprintf(command, sizeof(command), "rm -rf %s", f->dir);
	assert_int_equal(system(command), 0);
	free(f);
	return 0;
}

static void add(struct fixture *f, uint64_t time, uint32_t type, const void *payload, size_t size)
{
	uint8_t *copy = malloc(size);

	memcpy(copy, payload, size);
	assert_int_equal(vec_push(&f->records, { .time = time,
						 .type = type,
						 .misc = PERF_RECORD_MISC_KERNEL,
						 .payload = copy,
						 .payload_size = size }),
			 0);
}

/* A record of @size bytes, at @bytes, was written. */
static void added(struct fixture *f, const uint8_t *bytes, size_t size)
{
	const struct trace_record record = tracerecord_from(bytes, size);

	add(f, record.time, record.type, record.payload, record.payload_size);
	f->records.items[f->records.n - 1].misc = record.misc;
}

static void poke(struct fixture *f, uint64_t time, uint64_t address, size_t n_old, size_t n_new,
		 const char *code)
{
	const struct record_text_poke poke = { .addr = address,
					       .old_len = (uint16_t)n_old,
					       .new_len = (uint16_t)n_new,
					       .old_bytes = (const uint8_t *)code,
					       .new_bytes = (const uint8_t *)code + n_old };
	const struct trailer trailer = { .time = time };
	uint8_t bytes[128];

	added(f, bytes, record_write_text_poke(&poke, &trailer, bytes, sizeof(bytes)));
}

static void symbol(struct fixture *f, uint64_t time, uint64_t address, uint32_t size, bool ends,
		   const char *name)
{
	const struct record_ksymbol symbol = { .addr = address,
					       .len = size,
					       .ksym_type = PERF_RECORD_KSYMBOL_TYPE_BPF,
					       .flags = ends,
					       .name = name };
	const struct trailer trailer = { .time = time };
	uint8_t bytes[128];

	added(f, bytes, record_write_ksymbol(&symbol, &trailer, bytes, sizeof(bytes)));
}

static void module_map(struct fixture *f, uint64_t time, uint16_t cpumode, uint64_t address,
		       uint64_t size, const char *name)
{
	const struct record_mmap2 map = {
		.misc = cpumode, .pid = UINT32_MAX, .addr = address, .len = size, .name = name
	};
	const struct trailer trailer = { .time = time };
	uint8_t bytes[128];

	added(f, bytes, record_write_mmap(&map, &trailer, bytes, sizeof(bytes)));
}

static void begin(struct fixture *f, bool kcore_is_last)
{
	f->trace.records = f->records.items;
	f->trace.n_records = f->records.n;
	f->trace.facts.kcore_is_last = kcore_is_last;
	assert_int_equal(kernel_init(&f->kernel, &f->trace, f->objects), 0);
	assert_non_null(f->kernel.space);
}

/* At @time the @n bytes at @address are @expected, and belong to @function; "-": to none. */
static void has(const struct fixture *f, uint64_t time, uint64_t address, size_t n,
		const char *expected, const char *function)
{
	const size_t generation = space_generation(f->kernel.space, time);
	struct layout layout;
	char text[64] = "";

	layout_init(&layout, f->kernel.space);
	while (layout.generation < generation)
		assert_int_equal(layout_advance(&layout), 0);
	for (size_t i = 0; i < n; i++) {
		const struct extent *e = layout_find(&layout, address + i);

		if (!e || e->object->state != OBJECT_OK) {
			strcat(text, "..");
			continue;
		}
		(void)sprintf(text + strlen(text), "%02x",
			      *object_bytes(e->object, e->offset + (address + i - e->start), 1));
		assert_int_equal(object_address(e->object, e->offset + (address + i - e->start)),
				 address + i);
		symbolat_expect(e->object->symbols, address + i,
				strcmp(function, "-") == 0 ? "" : function);
	}
	layout_deinit(&layout);
	assert_string_equal(text, expected);
}

static void is_of(const struct fixture *f, uint64_t time, uint64_t address, const char *name)
{
	const size_t generation = space_generation(f->kernel.space, time);
	struct layout layout;
	const struct extent *e;

	layout_init(&layout, f->kernel.space);
	while (layout.generation < generation)
		assert_int_equal(layout_advance(&layout), 0);
	e = layout_find(&layout, address);
	assert_non_null(e);
	assert_string_equal(e->object->id.name, name);
	layout_deinit(&layout);
}

static void without_records(void **state)
{
	struct fixture *f = *state;

	begin(f, true);
	has(f, 0, KERNEL + 60, 6, "3c3d3e3f....", "-");
	has(f, 0, BPF, 2, "8081", "-");
}

/* A snapshot of ptd's: the copy shows what the last change left. */
static void young_copy(void **state)
{
	struct fixture *f = *state;

	poke(f, 10, KERNEL + 4, 2, 2, "\xaa\xbb\xcc\xdd");
	poke(f, 20, KERNEL + 4, 2, 2, "\xcc\xdd\x04\x05");
	poke(f, 30, KERNEL + 8, 2, 2, "\xee\xee\xff\xff"); /* the copy has other bytes */
	begin(f, true);
	has(f, 0, KERNEL + 3, 4, "03aabb06", "-");
	has(f, 10, KERNEL + 3, 4, "03ccdd06", "-");
	has(f, 19, KERNEL + 3, 4, "03ccdd06", "-");
	has(f, 20, KERNEL + 3, 4, "03040506", "-");
	has(f, 29, KERNEL + 7, 4, "07eeee0a", "-");
	has(f, 30, KERNEL + 7, 4, "07....0a", "-");
}

/* perf's: it shows what the first change found. */
static void old_copy(void **state)
{
	struct fixture *f = *state;

	poke(f, 10, KERNEL + 4, 2, 2, "\x04\x05\xcc\xdd");
	poke(f, 30, KERNEL + 8, 2, 2, "\xee\xee\xff\xff");
	begin(f, false);
	has(f, 0, KERNEL + 3, 4, "03040506", "-");
	has(f, 10, KERNEL + 3, 4, "03ccdd06", "-");
	has(f, 29, KERNEL + 7, 4, "07....0a", "-");
	has(f, 30, KERNEL + 7, 4, "07ffff0a", "-");
}

static void programs_in_a_young_copy(void **state)
{
	struct fixture *f = *state;

	symbol(f, 5, BPF, 8, false, "first");
	symbol(f, 10, BPF, 8, true, "first");
	symbol(f, 20, BPF + 4, 8, false, "second");
	symbol(f, 20, BPF + 32, 4, false, "third");
	symbol(f, 30, BPF + 32, 4, true, "third");
	begin(f, true);
	has(f, 4, BPF, 4, "........", "-");
	has(f, 5, BPF, 4, "........", "-");
	has(f, 20, BPF + 2, 4, "....8485", "second");
	has(f, UINT64_MAX, BPF + 10, 2, "8a8b", "second");
	has(f, 30, BPF + 12, 2, "8c8d", "-");
	has(f, 25, BPF + 32, 2, "....", "-");
	has(f, 30, BPF + 31, 3, "9f....", "-");
}

static void programs_in_an_old_copy(void **state)
{
	struct fixture *f = *state;

	symbol(f, 0, BPF, 8, false, "first");
	symbol(f, 10, BPF, 8, true, "first");
	symbol(f, 20, BPF, 8, false, "second");
	symbol(f, 30, BPF + 16, 8, true, "third");
	begin(f, false);
	has(f, 0, BPF, 2, "8081", "first");
	has(f, 9, BPF + 6, 2, "8687", "first");
	has(f, 9, BPF + 8, 2, "8889", "-");
	has(f, 10, BPF, 2, "....", "-");
	has(f, 20, BPF, 2, "....", "-");
	has(f, 29, BPF + 16, 2, "9091", "third");
	has(f, 30, BPF + 16, 2, "....", "-");
}

/* A user's addresses, what does not fit into a record, and a guest's modules are passed over. */
static void nonsense(void **state)
{
	struct fixture *f = *state;

	poke(f, 10, 0x401000, 1, 1, "ab");
	poke(f, 10, KERNEL, 0, 0, "");
	poke(f, 10, UINT64_MAX, 2, 2, "abcd");
	symbol(f, 10, KERNEL, 0, false, "none");
	symbol(f, 10, KERNEL, UINT32_MAX, false, "all");
	symbol(f, 10, 0x401000, 16, false, "user");
	add(f, 10, PERF_RECORD_TEXT_POKE, "\0\0\0\x81\xff\xff\xff\xff\x09\0\x09\0", 12);
	add(f, 10, PERF_RECORD_KSYMBOL, "\0\0\0\x81\xff\xff\xff\xff\x09\0\0\0\x01\0\0\0none", 20);
	begin(f, false);
	assert_int_equal(f->kernel.changes.n_skipped, 8);
	has(f, UINT64_MAX, KERNEL, 4, "00010203", "-");
	has(f, UINT64_MAX, 0x401000, 2, "....", "-");
}

/* A module begins where the record says, and not where one of a guest's kernel does. */
static void modules(void **state)
{
	static const uint16_t kinds[] = { PERF_RECORD_MISC_KERNEL, PERF_RECORD_MISC_GUEST_KERNEL };
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		module_map(f, 0, kinds[i], KERNEL + 16 + 8 * i, 8, i ? "[guests]" : "[module]");
	poke(f, 10, KERNEL + 18, 1, 1, "\x12\xcc");
	begin(f, false);
	is_of(f, 10, KERNEL + 16, "[module]");
	is_of(f, 10, KERNEL + 18, "[module]");
	is_of(f, 10, KERNEL + 24, "[kernel.kallsyms]");
}

/* A page of changes one by one, each of them there and back: the bytes are kept once. */
static void many(void **state)
{
	struct fixture *f = *state;

	for (uint64_t i = 0; i < 10000; i++)
		poke(f, 10 + i, KERNEL + 4, 2, 2,
		     i % 2 == 0 ? "\x04\x05\xcc\xdd" : "\xcc\xdd\x04\x05");
	begin(f, false);
	assert_true(f->kernel.synthetics.parts.n == 2);
	has(f, 9, KERNEL + 3, 4, "03040506", "-");
	has(f, 10, KERNEL + 3, 4, "03ccdd06", "-");
	has(f, 10009, KERNEL + 3, 4, "03040506", "-");
}

struct program {
	uint32_t id;
	uint64_t tag, addresses[2];
	uint32_t sizes[2];
	const char *code;
};

/* @program, with which the trace lives, is one of those that the recorder kept. */
static void keep(struct fixture *f, const struct program *program)
{
	const size_t n = program->sizes[1] > 0 ? 2 : 1;

	assert_int_equal(
	    vec_push(&f->trace.programs,
		     { .id = program->id,
		       .tag = program->tag,
		       .addresses = cursor_from(program->addresses, n * 8),
		       .sizes = cursor_from(program->sizes, n * 4),
		       .code = cursor_from(program->code, program->sizes[0] + program->sizes[1]) }),
	    0);
}

static void loads(struct fixture *f, uint64_t time, uint16_t type, uint32_t id, uint64_t tag)
{
	const struct record_bpf_event bpf = { .type = type, .id = id, .tag = tag };
	const struct trailer trailer = { .time = time };
	uint8_t bytes[64];

	added(f, bytes, record_write_bpf_event(&bpf, &trailer, bytes, sizeof(bytes)));
}

/* Programs at one address, whose code the recorder kept: each has its own, as long as it is
 * there. */
static void kept_programs(void **state)
{
	static const struct program first = { 5, 1, { BPF + 4, BPF + 0x2000 }, { 2, 3 }, "abcde" },
				    second = { 6, 2, { BPF + 4 }, { 3 }, "xyz" };
	struct fixture *f = *state;

	keep(f, &first);
	keep(f, &second);
	symbol(f, 10, BPF + 4, 2, false, "first");
	symbol(f, 10, BPF + 0x2000, 3, false, "sub");
	loads(f, 11, PERF_BPF_EVENT_PROG_LOAD, 5, 1);
	symbol(f, 20, BPF + 4, 2, true, "first");
	symbol(f, 20, BPF + 0x2000, 3, true, "sub");
	loads(f, 21, PERF_BPF_EVENT_PROG_UNLOAD, 5, 1);
	symbol(f, 30, BPF + 4, 3, false, "second");
	loads(f, 31, PERF_BPF_EVENT_PROG_LOAD, 6, 2);
	begin(f, false);
	has(f, 10, BPF + 4, 2, "....", "first");
	has(f, 11, BPF + 4, 2, "6162", "first");
	has(f, 19, BPF + 0x2000, 3, "636465", "sub");
	has(f, 20, BPF + 4, 2, "....", "-");
	has(f, 21, BPF + 4, 2, "....", "-");
	has(f, 25, BPF + 0x2000, 3, "......", "-");
	has(f, 31, BPF + 4, 3, "78797a", "second");
	has(f, 31, BPF + 7, 1, "87", "-");
}

/* One that was there before, of which the old copy knows the same; and is changed, which the
 * recorder saw later. */
static void kept_program_is_poked(void **state)
{
	static const struct program program = { 5, 1, { BPF + 4 }, { 4 }, "\x84\x85zz" };
	struct fixture *f = *state;

	keep(f, &program);
	symbol(f, 0, BPF + 4, 4, false, "first");
	loads(f, 0, PERF_BPF_EVENT_PROG_LOAD, 5, 1);
	poke(f, 20, BPF + 6, 2, 2, "\x86\x87zz");
	poke(f, 30, BPF + 6, 2, 2, "zz\x86\x87");
	begin(f, false);
	has(f, 0, BPF + 4, 4, "8485....", "first");
	has(f, 20, BPF + 4, 4, "84857a7a", "first");
	has(f, 30, BPF + 4, 4, "84858687", "first");
}

/* What is kept is of no use where records do not say that it is that program which came. */
static void kept_of_others(void **state)
{
	static const struct program program = { 5, 1, { BPF + 0x2000 }, { 2 }, "ab" };
	static const struct {
		uint16_t type;
		uint32_t id;
		uint64_t tag;
	} rows[] = {
		{ PERF_BPF_EVENT_PROG_LOAD, 6, 1 },
		{ PERF_BPF_EVENT_PROG_LOAD, 5, 2 },
		{ PERF_BPF_EVENT_PROG_UNLOAD, 5, 1 },
		{ PERF_BPF_EVENT_UNKNOWN, 5, 1 },
	};
	struct fixture *f = *state;

	keep(f, &program);
	symbol(f, 10, BPF + 0x2000, 2, false, "first");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		loads(f, 11 + i, rows[i].type, rows[i].id, rows[i].tag);
	add(f, 30, PERF_RECORD_BPF_EVENT, "short", 5);
	begin(f, false);
	has(f, 40, BPF + 0x2000, 2, "....", "first");
	assert_int_equal(f->kernel.changes.n_skipped, 1);
}

/* Functions where the kernel has no code, or too much of it. */
static void kept_nonsense(void **state)
{
	static const struct program user = { 5, 1, { 0x1000, BPF + 0x2000 }, { 2, 1 }, "abc" },
				    wraps = { 6, 1, { UINT64_MAX, BPF + 0x2001 }, { 2, 1 }, "abd" },
				    empty = { 7, 1, { BPF, BPF + 0x2002 }, { 0, 1 }, "e" };
	struct fixture *f = *state;

	keep(f, &user);
	keep(f, &wraps);
	keep(f, &empty);
	symbol(f, 10, BPF + 0x2000, 3, false, "first");
	for (uint32_t id = 5; id <= 7; id++)
		loads(f, 11, PERF_BPF_EVENT_PROG_LOAD, id, 1);
	begin(f, false);
	has(f, 11, BPF + 0x2000, 3, "636465", "first");
	assert_int_equal(f->kernel.changes.n_skipped, 3);
}

/* Where the limits end nothing is known, and nothing breaks. */
static void too_many(void **state)
{
	struct fixture *f = *state;
	uint64_t last = 0;

	for (uint64_t i = 0; i < 40000; i++) {
		char bytes[8] = { (char)i, (char)(i >> 8), (char)(i + 1), (char)((i + 1) >> 8) };

		last = 10 + i;
		poke(f, last, KERNEL + 4, 2, 2, bytes);
	}
	begin(f, true);
	has(f, 10, KERNEL + 3, 4, "03010006", "-");
	has(f, last - 1, KERNEL + 3, 4, "03....06", "-");
}

/* There are more changes of a function than are replayed. None of its code is known at any time
 * then, not even from the copy, which shows one of its versions; all other code is. */
static void too_large(void **state)
{
	struct fixture *f = *state;
	const uint32_t size = HISTORY_SIZE_MAX;

	for (uint64_t i = 0; i <= HISTORY_CHANGED_MAX / size; i++)
		symbol(f, 10 + i, BPF, size, i % 2 != 0, "large");
	begin(f, true);
	has(f, 0, BPF, 2, "....", "-");
	has(f, 11, BPF, 2, "....", "-");
	has(f, UINT64_MAX, BPF, 2, "....", "-");
	has(f, 11, KERNEL, 2, "0001", "-");
	is_of(f, 11, BPF, "[kernel.kallsyms]");
}

/* Each module would be in as many pieces as there are functions in it: that is more than are
 * mapped. */
static void too_many_modules(void **state)
{
	struct fixture *f = *state;
	const uint64_t n_functions = HELD / 2, n_mappings = 1 << 20;

	for (uint64_t i = 0; i < n_functions; i++) {
		symbol(f, 10, BPF + 2 * i, 1, false, "one");
		symbol(f, 20, BPF + 2 * i, 1, true, "one");
	}
	for (size_t i = 0; i < n_mappings / n_functions * 2; i++)
		module_map(f, 30, PERF_RECORD_MISC_KERNEL, BPF, HELD, "[module]");
	begin(f, false);
	assert_in_range(space_generation(f->kernel.space, UINT64_MAX), n_mappings,
			n_mappings + n_functions);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(without_records, set_up, tear_down),
		cmocka_unit_test_setup_teardown(young_copy, set_up, tear_down),
		cmocka_unit_test_setup_teardown(old_copy, set_up, tear_down),
		cmocka_unit_test_setup_teardown(programs_in_a_young_copy, set_up, tear_down),
		cmocka_unit_test_setup_teardown(programs_in_an_old_copy, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nonsense, set_up, tear_down),
		cmocka_unit_test_setup_teardown(modules, set_up, tear_down),
		cmocka_unit_test_setup_teardown(many, set_up, tear_down),
		cmocka_unit_test_setup_teardown(kept_programs, set_up, tear_down),
		cmocka_unit_test_setup_teardown(kept_program_is_poked, set_up, tear_down),
		cmocka_unit_test_setup_teardown(kept_of_others, set_up, tear_down),
		cmocka_unit_test_setup_teardown(kept_nonsense, set_up, tear_down),
		cmocka_unit_test_setup_teardown(too_many, set_up, tear_down),
		cmocka_unit_test_setup_teardown(too_large, set_up, tear_down),
		cmocka_unit_test_setup_teardown(too_many_modules, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
