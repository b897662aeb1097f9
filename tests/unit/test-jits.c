/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * JITs, through the timeline: a process maps a jitdump, and its space has at each time the mappings
 * that the dump's stamps, and the memory that was kept, say.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <elf.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decoder/image/layout.h"
#include "decoder/kernel/kcore.h"
#include "decoder/sideband/timeline.h"
#include "decoder/symbol/source.h"
#include "tests/lib/failing.h"
#include "tests/lib/jitbuild.h"
#include "tests/lib/mempages.h"
#include "tests/lib/tempdir.h"
#include "tests/unit/tracerecord.h"

#define DUMP "jit/jit-7.dump"

/* A snapshot's directory with what process 7 has in it. */
struct fixture {
	char dir[TEMPDIR_SIZE], dump[128];
};

static int setup(void **state)
{
	static struct fixture f;

	tempdir_make("jits", f.dir);
	snprintf(f.dump, sizeof(f.dump), "%s/" DUMP, f.dir);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	tempdir_remove(f->dir);
	return 0;
}

/* What is where at @time in the space of process 7. */
static void lay_out(const struct timeline *timeline, uint64_t time, struct layout *ret_layout)
{
	struct stay stay;
	size_t n;

	timeline_at_tid(timeline, 7, time, &stay);
	assert_non_null(stay.space);
	n = space_generation(stay.space, time);
	layout_init(ret_layout, stay.space);
	while (ret_layout->generation < n)
		assert_int_equal(layout_advance(ret_layout), 0);
}

/* What of that, from 0x1000 on, comes from where: "?": early; "!": only a jitdump says so. */
static char *render(const struct timeline *timeline, uint64_t time)
{
	const struct extent *e;
	struct layout layout;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	lay_out(timeline, time, &layout);
	for (struct ranges_place at = {}; (e = ranges_get(&layout.extents, at));
	     at = ranges_next(&layout.extents, at)) {
		fprintf(f, "%" PRIx64 "-%" PRIx64 "%s%s:", e->start, e->last,
			e->kind == MAPPING_EARLY ? "?" : "", e->object->id.is_claimed ? "!" : "");
		for (uint64_t k = 0; k <= e->last - e->start; k++)
			fprintf(f, "%02x", *object_bytes(e->object, e->offset + k, 1));
		fputc(' ', f);
	}
	fclose(f);
	layout_deinit(&layout);
	return text;
}

#define MAP_SIZE_MAX 192

/* A record of process @pid that maps a page of a dump at 9000, or three bytes of something else at
 * 1000. */
static struct trace_record map_dump(uint32_t pid, uint64_t time, const char *path,
				    uint8_t ret_bytes[static MAP_SIZE_MAX])
{
	const struct record_mmap2 map = { .misc = PERF_RECORD_MISC_USER,
					  .pid = pid,
					  .tid = pid,
					  .addr = strstr(path, ".dump") ? 0x9000 : 0x1000,
					  .len = strstr(path, ".dump") ? 4096 : 3,
					  .prot = PROT_EXEC,
					  .name = path };
	const struct trailer trailer = { .pid = pid, .tid = pid, .time = time };

	return tracerecord_from(ret_bytes,
				record_write_mmap2(&map, &trailer, ret_bytes, MAP_SIZE_MAX));
}

/* Process 7 maps the dump at time 10. */
static int make_timeline(struct objects *objects, const struct trace_facts *facts,
			 struct timeline **ret_timeline)
{
	uint8_t bytes[MAP_SIZE_MAX];
	struct trace_record record = map_dump(7, 10, "/x/jit-7.dump", bytes);
	const struct trace trace = { .facts = *facts, .records = &record, .n_records = 1 };

	return timeline_new(&trace, objects, ret_timeline);
}

static struct timeline *make(const struct fixture *f, const struct trace_facts *facts,
			     struct objects **ret_objects)
{
	struct timeline *timeline;

	assert_int_equal(objects_new(f->dir, ret_objects), 0);
	assert_int_equal(make_timeline(*ret_objects, facts, &timeline), 0);
	return timeline;
}

static void check(const struct timeline *timeline, uint64_t time, const char *expected)
{
	_cleanup_(freep) char *text = render(timeline, time);

	print_message("  %" PRIu64 ": %s\n", time, text);
	assert_string_equal(text, expected);
}

/* Flag bit 0: stamps are TSC ticks, and go through the conversion; else CLOCK_MONOTONIC. */
static void clocks(void **state)
{
	static const struct {
		uint64_t flags;
		struct trace_facts facts;
		uint64_t time; /* of a stamp of 40 */
	} rows[] = {
		{ 0, {}, 40 },
		{ 0, { .monotonic_offset_ns = 100 }, 140 },
		{ 1,
		  { .monotonic_offset_ns = 100, .clock = { .valid = true, .mult = 3, .zero = 5 } },
		  125 },
		/* Ticks that nothing converts: since the dump was mapped. */
		{ 1, { .monotonic_offset_ns = 100 }, 10 },
	};
	const struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_(objects_freep) struct objects *objects = NULL;
		_cleanup_(timeline_freep) struct timeline *timeline = NULL;
		struct jitbuild b;

		jitbuild_begin(&b, rows[i].flags);
		(void)jitbuild_load(&b, 40, 0x1000, 1, "f", "\x90\xc3", 2);
		tempdir_put(f->dir, DUMP, b.bytes, b.size);
		timeline = make(f, &rows[i].facts, &objects);
		if (rows[i].time > 10)
			check(timeline, rows[i].time - 1, "1000-1001?!:90c3 ");
		check(timeline, rows[i].time, "1000-1001!:90c3 ");
	}
}

/* The code at @address has a name, or not. */
static void check_named(const struct timeline *timeline, uint64_t time, uint64_t address,
			bool is_named)
{
	const struct symtab_symbol *symbol = NULL;
	const struct extent *e;
	struct layout layout;
	uint64_t end;

	lay_out(timeline, time, &layout);
	e = layout_find(&layout, address);
	assert_non_null(e);
	if (e->object->symbols)
		assert_int_equal(
		    symbol_source_find(e->object->symbols,
				       object_address(e->object, e->offset + (address - e->start)),
				       &symbol, &end),
		    0);
	assert_int_equal(symbol != NULL, is_named);
	layout_deinit(&layout);
}

/* Code is at its new place from its MOVE on, and is not at its old one any more. A CLOSE says
 * nothing: a child that ends writes one into its parent's dump. */
static void moves(void **state)
{
	static const struct trace_facts facts = {};
	_cleanup_(objects_freep) struct objects *objects = NULL;
	_cleanup_(timeline_freep) struct timeline *timeline = NULL;
	const struct fixture *f = *state;
	struct jitbuild b;

	jitbuild_begin(&b, 0);
	(void)jitbuild_load(&b, 20, 0x1000, 1, "f", "\x90\xc3", 2);
	(void)jitbuild_move(&b, 30, 0x1000, 0x2000, 2, 1);
	(void)jitbuild_load(&b, 40, 0x1000, 2, "g", "\xf8\xc3", 2);
	(void)jitbuild_record(&b, JITBUILD_CLOSE, 50, "", 0);
	(void)jitbuild_load(&b, 60, 0x2000, 3, "h", "\xf9\xc3", 2);
	tempdir_put(f->dir, DUMP, b.bytes, b.size);
	timeline = make(f, &facts, &objects);
	check(timeline, 20, "1000-1001!:90c3 2000-2001?!:90c3 ");
	check_named(timeline, 29, 0x1000, true);
	check(timeline, 30, "1000-1001!:90c3 2000-2001!:90c3 ");
	check_named(timeline, 30, 0x1000, false);
	check_named(timeline, 30, 0x2000, true);
	check(timeline, 40, "1000-1001!:f8c3 2000-2001!:90c3 ");
	check_named(timeline, 50, 0x1000, true);
	check_named(timeline, 50, 0x2000, true);
	check(timeline, 60, "1000-1001!:f8c3 2000-2001!:f9c3 ");
	check_named(timeline, 60, 0x2000, true);
}

/* A row of a dump: what was noted at 20 and 30, a letter each, at 1000: 2 bytes each; and what is
 * at 1000 then, at 25 and 35, with what memory. */
static void memory_wins(void **state)
{
	static const struct {
		const char *name;
		const char *first, *second; /* code that is noted at 20, at 30; NULL: none */
		bool is_moved;              /* the second note is a MOVE to 2000 */
		const char *memory;         /* from 1000 on */
		const char *at_25, *at_35;
		bool is_named_at_35;
	} rows[] = {
		{ "the same", "\xb0\x01\xc3", NULL, false, "\xb0\x01\xc3", "1000-1002:b001c3 ",
		  "1000-1002:b001c3 ", true },
		{ "a number that was filled in", "\xb0\x01\xc3", NULL, false, "\xb0\x07\xc3",
		  "1000-1001:b007 1002-1002:c3 ", "1000-1001:b007 1002-1002:c3 ", true },
		{ "no byte in common", "\xb0\x01\xc3", NULL, false, "\x90\xf8\xcb",
		  "1000-1002:90f8cb ", "1000-1002:90f8cb ", true },
		{ "cleared", "\xb0\x01\xc3", NULL, false, "\xcc\xcc\xcc", "1000-1002!:b001c3 ",
		  "1000-1002!:b001c3 ", true },
		{ "replaced", "\xb0\x01\xc3", "\xb0\x02\xc3", false, "\xb0\x03\xc3",
		  "1000-1002!:b001c3 ", "1000-1001:b003 1002-1002:c3 ", true },
		{ "moved away", "\xb0\x01\xc3", NULL, true, "\xb0\x03\xc3",
		  "1000-1002!:b001c3 2000-2002?!:b001c3 ", "1000-1002:b003c3 2000-2002!:b001c3 ",
		  false },
		{ "replaced in part", "\xb0\x01\xc3", "\x90", false, "\x90\x03\xc3",
		  "1000-1002!:b001c3 ", "1000-1000:90 1001-1002:03c3 ", true },
	};
	static const struct trace_facts facts = {};
	const struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_(objects_freep) struct objects *objects = NULL;
		_cleanup_(timeline_freep) struct timeline *timeline = NULL;
		struct jitbuild b;

		print_message("%s\n", rows[i].name);
		mempages_put(f->dir, 7, 0x1000, rows[i].memory, strlen(rows[i].memory));
		jitbuild_begin(&b, 0);
		(void)jitbuild_load(&b, 20, 0x1000, 1, "f", rows[i].first, strlen(rows[i].first));
		if (rows[i].second)
			(void)jitbuild_load(&b, 30, 0x1000, 2, "g", rows[i].second,
					    strlen(rows[i].second));
		if (rows[i].is_moved)
			(void)jitbuild_move(&b, 30, 0x1000, 0x2000, strlen(rows[i].first), 1);
		tempdir_put(f->dir, DUMP, b.bytes, b.size);
		timeline = make(f, &facts, &objects);
		check(timeline, 25, rows[i].at_25);
		check(timeline, 35, rows[i].at_35);
		check_named(timeline, 35, 0x1000, rows[i].is_named_at_35);
	}
}

/* jmp 1009; a number that is filled in; later a version at 1020, and the jmp leads there. */
static void changes(void **state)
{
	static const uint8_t noted[] = { 0xe9, 4, 0, 0, 0, 0xb8, 1, 0, 0, 0, 0xc3 };
	static const uint8_t linked[] = { 0xe9, 0x1b, 0, 0, 0, 0xb8, 9, 0, 0, 0, 0xc3 };
	static const struct trace_facts facts = {};
	_cleanup_(objects_freep) struct objects *objects = NULL;
	_cleanup_(timeline_freep) struct timeline *timeline = NULL;
	const struct fixture *f = *state;
	uint8_t memory[0x22] = {};
	struct jitbuild b;

	memcpy(memory, linked, sizeof(linked));
	memcpy(memory + 0x20, "\x90\xc3", 2);
	mempages_put(f->dir, 7, 0x1000, memory, sizeof(memory));
	jitbuild_begin(&b, 0);
	(void)jitbuild_load(&b, 20, 0x1000, 1, "f", noted, sizeof(noted));
	(void)jitbuild_load(&b, 30, 0x1020, 2, "g", "\x90\xc3", 2);
	tempdir_put(f->dir, DUMP, b.bytes, b.size);
	timeline = make(f, &facts, &objects);

	/* From its own time on, what was filled in; from g's on, the link. */
	check(timeline, 20,
	      "1000-1004:e904000000 1005-1009:b809000000 100a-100a:c3 "
	      "1020-1021?:90c3 ");
	check(timeline, 30,
	      "1000-1004:e91b000000 1005-1009:b809000000 100a-100a:c3 "
	      "1020-1021:90c3 ");
}

/* A program moves code of its file into memory at the same addresses: it is the file's code, unless
 * the memory has other bytes. */
static void moved_to_memory(void **state)
{
	static const struct {
		const char *memory;
		bool is_file;
	} rows[] = { { "\x90\xc3\xf8", true }, { "\x90\xcb\xf8", false } };
	static const char hash[] =
	    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
	const struct fixture *f = *state;
	char path[128], line[128];

	(void)snprintf(path, sizeof(path), "objects/sha256/%s/elf", hash);
	(void)snprintf(line, sizeof(line), "sha256:%s\t/x/image\n", hash);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_(objects_freep) struct objects *objects = NULL;
		_cleanup_(timeline_freep) struct timeline *timeline = NULL;
		struct trace_record records[2];
		const struct trace trace = { .records = records, .n_records = 2 };
		uint8_t bytes[2][MAP_SIZE_MAX];
		const struct extent *e;
		struct layout layout;

		tempdir_put(f->dir, path, "\x90\xc3\xf8", 3);
		tempdir_put_text(f->dir, "objects.map", line);
		mempages_put(f->dir, 7, 0x1000, rows[i].memory, 3);
		records[0] = map_dump(7, 10, "/x/image", bytes[0]);
		records[1] = map_dump(7, 20, "//anon", bytes[1]);
		assert_int_equal(objects_new(f->dir, &objects), 0);
		assert_int_equal(timeline_new(&trace, objects, &timeline), 0);
		lay_out(timeline, 20, &layout);
		e = layout_find(&layout, 0x1001);
		assert_non_null(e);
		assert_string_equal(e->object->id.name, rows[i].is_file ? "/x/image" : "[anon]");
		layout_deinit(&layout);
	}
}

struct making {
	const struct fixture *fixture;
	struct objects *objects;
	struct timeline *timeline;
	char *expected;
};

static int try_to_make(void *userdata)
{
	static const struct trace_facts facts = {};
	struct making *m = userdata;
	int r;

	r = objects_new(m->fixture->dir, &m->objects);
	if (r < 0)
		return r;
	r = make_timeline(m->objects, &facts, &m->timeline);
	if (r < 0)
		m->objects = objects_free(m->objects);
	return r;
}

/* Without the dump nothing is known of the code; with it, all is. */
static void is_made(void *userdata)
{
	struct making *m = userdata;
	_cleanup_(freep) char *text = render(m->timeline, 30);

	if (text[0])
		assert_string_equal(text, m->expected);
	else
		assert_non_null(failing_name());
	m->timeline = timeline_free(m->timeline);
	m->objects = objects_free(m->objects);
}

static void calls_that_fail(void **state)
{
	struct making m = { .fixture = *state };
	struct jitbuild b;

	jitbuild_begin(&b, 0);
	(void)jitbuild_load(&b, 20, 0x1000, 1, "f", "\x90\x90\xc3", 3);
	(void)jitbuild_load(&b, 30, 0x1020, 2, "g", "\x90\xc3", 2);
	tempdir_put(m.fixture->dir, DUMP, b.bytes, b.size);
	assert_int_equal(try_to_make(&m), 0);
	m.expected = render(m.timeline, 30);
	assert_string_equal(m.expected, "1000-1002!:9090c3 1020-1021!:90c3 ");
	is_made(&m);
	failing_each(try_to_make, is_made, &m);
	free(m.expected);
}

/* Memory that cannot be read is as memory that was not kept: the code is as it was noted. But for
 * want of memory of our own nothing comes out otherwise. */
static void is_made_with_changes(void *userdata)
{
	struct making *m = userdata;
	_cleanup_(freep) char *text = render(m->timeline, 30);

	if (strcmp(text, m->expected) != 0) {
		assert_non_null(failing_name());
		assert_false(failing_is_memory());
		assert_true(!text[0] || strcmp(text, "1000-1005!:b800000000c3 ") == 0);
	}
	m->timeline = timeline_free(m->timeline);
	m->objects = objects_free(m->objects);
}

static void calls_that_fail_with_changes(void **state)
{
	struct making m = { .fixture = *state };
	char expected[] = "1000-1004:b809000000 1005-1005:c3 ";
	struct jitbuild b;

	jitbuild_begin(&b, 0);
	(void)jitbuild_load(&b, 20, 0x1000, 1, "f", "\xb8\0\0\0\0\xc3", 6);
	tempdir_put(m.fixture->dir, DUMP, b.bytes, b.size);
	mempages_put(m.fixture->dir, 7, 0x1000, "\xb8\x09\0\0\0\xc3", 6);
	m.expected = expected;
	failing_each(try_to_make, is_made_with_changes, &m);
}

/* Each of @n processes maps a dump, twice. Return: the last thing that is said of them. */
static char *map_dumps(const struct fixture *f, uint32_t n, size_t *ret_n_complaints)
{
	uint8_t(*maps)[MAP_SIZE_MAX] = calloc(2 * n, sizeof(*maps));
	struct trace_record *records = calloc(2 * n, sizeof(*records));
	struct trace trace = { .records = records, .n_records = 2 * n };
	struct timeline *timeline;
	struct objects *objects;
	const char *const *complaints;
	char *last;

	assert_true(maps && records);
	for (uint32_t i = 0; i < 2 * n; i++) {
		const uint32_t pid = 100 + i % n;
		char path[32];

		(void)snprintf(path, sizeof(path), "/a,b/jit-%u.dump", pid);
		records[i] = map_dump(pid, 10 + i, path, maps[i]);
	}
	assert_int_equal(objects_new(f->dir, &objects), 0);
	assert_int_equal(timeline_new(&trace, objects, &timeline), 0);
	complaints = timeline_complaints(timeline, ret_n_complaints);
	last = strdup(complaints[*ret_n_complaints - 1]);
	timeline_free(timeline);
	objects_free(objects);
	free(records);
	free(maps);
	return last;
}

/* Parts of the kernel that there is no room for are counted for the user. */
static void too_much_of_a_kernel(void **state)
{
	enum {
		N_SEGMENTS = KCORE_SEGMENTS_MAX + 3,
		N_MODULES = KCORE_MODULES_MAX + 2,
		PAGE = 4096
	};
	const uint64_t start = UINT64_C(0xffffffff81000000);
	const struct fixture *f = *state;
	const size_t headers = sizeof(Elf64_Ehdr) + N_SEGMENTS * sizeof(Elf64_Phdr);
	const size_t data = (headers + PAGE - 1) / PAGE * PAGE;
	struct {
		uint32_t pid, tid;
		uint64_t addr, len, pgoff;
		char name[16];
	} *maps = calloc(N_MODULES, sizeof(*maps));
	struct trace_record *records = calloc(N_MODULES, sizeof(*records));
	struct trace trace = { .records = records, .n_records = N_MODULES };
	struct timeline *timeline;
	struct objects *objects;
	const char *const *complaints;
	uint8_t *kcore = calloc(1, data + PAGE);
	Elf64_Ehdr *e = (Elf64_Ehdr *)kcore;
	Elf64_Phdr *h = (Elf64_Phdr *)(e + 1);
	size_t n;

	assert_true(kcore && maps && records);
	*e = (Elf64_Ehdr){ .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
					EV_CURRENT },
			   .e_type = ET_CORE,
			   .e_machine = EM_X86_64,
			   .e_version = EV_CURRENT,
			   .e_phoff = sizeof(*e),
			   .e_ehsize = sizeof(*e),
			   .e_phentsize = sizeof(*h),
			   .e_phnum = N_SEGMENTS };
	for (size_t i = 0; i < N_SEGMENTS; i++)
		h[i] = (Elf64_Phdr){ .p_type = PT_LOAD,
				     .p_flags = PF_R | PF_X,
				     .p_offset = data,
				     .p_vaddr = start + 2 * i * PAGE,
				     .p_filesz = PAGE,
				     .p_memsz = PAGE };
	tempdir_put(f->dir, "kcore_dir/kcore", kcore, data + PAGE);
	tempdir_put_text(f->dir, "kcore_dir/kallsyms", "ffffffff81000000 T _text\n");
	free(kcore);
	for (uint32_t i = 0; i < N_MODULES; i++) {
		maps[i].pid = UINT32_MAX;
		maps[i].addr = start;
		maps[i].len = PAGE;
		(void)snprintf(maps[i].name, sizeof(maps->name), "[m%u]", i);
		records[i] = (struct trace_record){ .type = PERF_RECORD_MMAP,
						    .misc = PERF_RECORD_MISC_KERNEL,
						    .payload = (const uint8_t *)&maps[i],
						    .payload_size = sizeof(*maps) };
	}

	assert_int_equal(objects_new(f->dir, &objects), 0);
	assert_int_equal(timeline_new(&trace, objects, &timeline), 0);
	complaints = timeline_complaints(timeline, &n);
	assert_int_equal(n, 2);
	assert_string_equal(complaints[0], "kcore_dir/kcore: 3 segments beyond the first 4096 are "
					   "left out, and code in them is not decoded");
	assert_string_equal(complaints[1], "2 records name more modules than there is room "
					   "for, whose code is shown as the kernel's");
	timeline_free(timeline);
	objects_free(objects);
	free(records);
	free(maps);
}

/* Those that are too many do not vanish in silence. None of these files is there, which is said of
 * each that is looked at. */
static void too_many(void **state)
{
	static const struct {
		uint32_t n;
		size_t n_complaints;
		const char *last;
	} rows[] = {
		{ 1024, 1024, "No such file or directory" },
		{ 1025, 1025,
		  "/a,b/jit-1124.dump: this jitdump is not used: there are more than 1024 of "
		  "them" },
		{ 1030, 1025,
		  "/a,b/jit-1124.dump: this jitdump is not used: there are more than 1024 of "
		  "them, 1030 in all" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		size_t n = 0;
		_cleanup_(freep) char *last = map_dumps(*state, rows[i].n, &n);

		print_message("  %s\n", last);
		assert_int_equal(n, rows[i].n_complaints);
		if (rows[i].n > 1024)
			assert_string_equal(last, rows[i].last);
		else
			assert_non_null(strstr(last, rows[i].last));
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(too_many, setup, teardown),
		cmocka_unit_test_setup_teardown(too_much_of_a_kernel, setup, teardown),
		cmocka_unit_test_setup_teardown(clocks, setup, teardown),
		cmocka_unit_test_setup_teardown(moves, setup, teardown),
		cmocka_unit_test_setup_teardown(changes, setup, teardown),
		cmocka_unit_test_setup_teardown(memory_wins, setup, teardown),
		cmocka_unit_test_setup_teardown(moved_to_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(calls_that_fail, setup, teardown),
		cmocka_unit_test_setup_teardown(calls_that_fail_with_changes, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
