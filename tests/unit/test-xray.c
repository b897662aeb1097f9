/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The sink "xray": each stream of calls, and the exact records of its file, which are read field by
 * field as the document of version 1 has them, and as llvm-xray does where version 5 differs.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "decoder/sink/export/xray_file.h"
#include "decoder/sink/sinks.h"
#include "decoder/util/fdr.h"
#include "tests/lib/kinds.h"
#include "tests/lib/loggedmade.h"
#include "tests/lib/tempdir.h"

#define T0 LOGGEDMADE_T0

static char dir[TEMPDIR_SIZE];

struct fixture {
	struct loggedmade made;
	uint8_t *bytes; /* of the file */
	size_t size;
	char text[4096];
	size_t n;
};

static void init(struct fixture *f, const char *version)
{
	*f = (struct fixture){};
	tempdir_make("xray", dir);
	loggedmade_init(&f->made, &sink_xray, dir, version);
}

static void read_file(struct fixture *f, const char *name)
{
	char path[TEMPDIR_SIZE + 256];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "re");
	assert_non_null(file);
	f->bytes = malloc(1 << 20);
	assert_non_null(f->bytes);
	f->size = fread(f->bytes, 1, 1 << 20, file);
	assert_int_equal(fclose(file), 0);
}

/* --- the document ----------------------------------------------------------------------------- */

__attribute__((__format__(__printf__, 2, 3))) static void say(struct fixture *f, const char *format,
							      ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(f->text + f->n, sizeof(f->text) - f->n, format, ap);
	va_end(ap);
	assert_true(n > 0 && f->n + (size_t)n < sizeof(f->text));
	f->n += (size_t)n;
}

static uint64_t number(const uint8_t *p, size_t size)
{
	uint64_t v = 0;

	for (size_t i = size; i-- > 0;)
		v = v << 8 | p[i];
	return v;
}

static void is_reserved(const uint8_t *p, size_t size)
{
	for (size_t i = 0; i < size; i++)
		assert_int_equal(p[i], 0);
}

/* Return: the size of what follows the record at @p. */
static size_t say_event(struct fixture *f, const uint8_t *p, uint16_t version)
{
	const uint32_t size = (uint32_t)number(p + 1, 4);

	if (version == 1) {
		say(f, "event %" PRIu64 " ", number(p + 5, 8) - T0);
		is_reserved(p + 13, 3);
	} else {
		say(f, "event +%" PRIu64 " ", number(p + 5, 4));
		is_reserved(p + 9, 7);
	}
	say(f, "%.*s; ", (int)size, (const char *)p + FDR_METADATA_SIZE);
	return size;
}

/* Return: the size of what follows the record. */
static size_t say_metadata(struct fixture *f, const uint8_t *p, uint16_t version)
{
	switch (p[0] >> 1) {
	case 0:
		say(f, "buffer %" PRIu64 "; ", number(p + 1, version == 1 ? 2 : 4));
		is_reserved(p + (version == 1 ? 3 : 5), version == 1 ? 13 : 11);
		return 0;
	case 1:
		say(f, "end; ");
		is_reserved(p + 1, 15);
		return 0;
	case 2:
		say(f, "cpu %" PRIu64 " %" PRId64 "; ", number(p + 1, 2),
		    (int64_t)(number(p + 3, 8) - T0));
		is_reserved(p + 11, 5);
		return 0;
	case 3:
		say(f, "wrap %" PRIu64 "; ", number(p + 1, 8) - T0);
		is_reserved(p + 9, 7);
		return 0;
	case 4:
		say(f, "wall %" PRIu64 ".%06" PRIu64 "; ", number(p + 1, 8), number(p + 9, 4));
		is_reserved(p + 13, 3);
		return 0;
	case 5:
		return say_event(f, p, version);
	case 7:
		say(f, "extents %+d; ", (int)(number(p + 1, 8) - f->size));
		is_reserved(p + 9, 7);
		return 0;
	case 9:
		say(f, "pid %" PRIu64 "; ", number(p + 1, 4));
		is_reserved(p + 5, 11);
		return 0;
	default:
		fail_msg("metadata record of kind %d", p[0] >> 1);
		return 0;
	}
}

static void say_function(struct fixture *f, const uint8_t *p)
{
	static const char *const actions[] = { "", "/", "~", "args " };
	const uint32_t word = (uint32_t)number(p, 4);

	assert_true((word >> 1 & 7) < ARRAY_LEN(actions));
	say(f, "%s%u +%" PRIu64 "; ", actions[word >> 1 & 7], word >> 4, number(p + 4, 4));
}

/* Write what is in the file. */
static void say_file(struct fixture *f, const char *name)
{
	const uint8_t *p, *end;
	uint16_t version;

	read_file(f, name);
	p = f->bytes;
	end = p + f->size;
	assert_true(f->size >= 32);
	version = (uint16_t)number(p, 2);
	assert_int_equal(number(p + 2, 2), 1);
	assert_int_equal(number(p + 4, 4), 3);
	assert_int_equal(number(p + 16, 8), f->size - 32);
	is_reserved(p + 24, 8);
	say(f, "v%u %" PRIu64 " Hz; ", version, number(p + 8, 8));
	for (p += 32; p < end;) {
		if (p[0] & 1) {
			p += FDR_METADATA_SIZE + say_metadata(f, p, version);
		} else {
			say_function(f, p);
			p += FDR_FUNCTION_SIZE;
		}
	}
	assert_ptr_equal(p, end);
	free(f->bytes);
}

static void deinit(struct fixture *f)
{
	loggedmade_deinit(&f->made);
	tempdir_remove(dir);
}

static void check(struct fixture *f, const char *expected)
{
	const struct ptd_stats stats = {};

	loggedmade_flush(&f->made);
	assert_int_equal(sink_finish(f->made.sink, &stats), 0);
	say_file(f, "xray-log.my_demo_x.70000.0");
	assert_string_equal(f->text, expected);
}

/* --- the streams ------------------------------------------------------------------------------ */

#define HEAD5 \
	"v5 1000000000 Hz; extents -48; buffer 70000; wall 1000000005.123456; pid 5; cpu 2 0; "
#define HEAD1 "v1 1000000000 Hz; buffer 4464; wall 1000000005.123456; cpu 2 0; "

/* Entries, exits, tail exits, and their ids in the order in which they come. */
static void put_nested(struct fixture *f)
{
	loggedmade_put(&f->made, PTD_LOGGED_ENTER, 3, T0);
	loggedmade_put(&f->made, PTD_LOGGED_ENTER, 1, T0 + 10);
	loggedmade_put(&f->made, PTD_LOGGED_TAIL, 1, T0 + 20);
	loggedmade_put(&f->made, PTD_LOGGED_ENTER, 2, T0 + 20);
	loggedmade_put(&f->made, PTD_LOGGED_TAIL, 2, T0 + 23);
	loggedmade_put(&f->made, PTD_LOGGED_ENTER, 1, T0 + 24);
	loggedmade_put(&f->made, PTD_LOGGED_LEAVE, 1, T0 + 30);
	loggedmade_put(&f->made, PTD_LOGGED_LEAVE, 3, T0 + 40);
}

static void newest(void **state)
{
	struct fixture f;

	(void)state;
	init(&f, NULL);
	put_nested(&f);
	check(&f, HEAD5 "1 +0; 2 +10; ~2 +10; 3 +0; ~3 +3; 2 +1; /2 +6; /1 +10; ");
	assert_null(sink_omission(f.made.sink));
	deinit(&f);
}

/* A tail exit has the function that was called, and the id of the thread is cut. */
static void oldest(void **state)
{
	struct fixture f;

	(void)state;
	init(&f, "format-version=1");
	put_nested(&f);
	check(&f, HEAD1 "1 +0; 2 +10; ~2 +10; 3 +0; ~2 +3; 2 +1; /2 +6; /1 +10; end; ");
	assert_non_null(sink_omission(f.made.sink));
	deinit(&f);
}

/* Time that needs more than 32 bits, goes back, or is on another CPU. */
static void put_times(struct fixture *f)
{
	loggedmade_put(&f->made, PTD_LOGGED_ENTER, 1, T0);
	loggedmade_put(&f->made, PTD_LOGGED_ENTER, 1, T0 + UINT32_MAX);
	loggedmade_put(&f->made, PTD_LOGGED_LEAVE, 1, T0 + 2 * (uint64_t)UINT32_MAX + 1);
	loggedmade_put(&f->made, PTD_LOGGED_ENTER, 1, T0 + 2);
	loggedmade_flush(&f->made);
	f->made.slice.cpu = 3;
	loggedmade_put(&f->made, PTD_LOGGED_LEAVE, 1, T0 + 8600000000);
	loggedmade_put_mark(&f->made, PTD_MARK_PTWRITE, T0 + 8600000007);
	loggedmade_put(&f->made, PTD_LOGGED_LEAVE, 1, T0 + 8600000010);
}

static void times(void **state)
{
	struct fixture f;

	(void)state;
	init(&f, "format-version=5");
	put_times(&f);
	check(&f, HEAD5 "1 +0; 1 +4294967295; wrap 8589934591; /1 +0; 1 +0; cpu 3 8600000000; "
			"/1 +0; event +7 ptwrite: 0x2a; /1 +3; ");
	deinit(&f);
	init(&f, "format-version=1");
	put_times(&f);
	check(&f, HEAD1 "1 +0; 1 +4294967295; wrap 8589934591; /1 +0; 1 +0; cpu 3 8600000000; "
			"/1 +0; event 8600000007 ptwrite: 0x2a; /1 +10; end; ");
	deinit(&f);
}

/* Ticks of a bare stream: neither how many there are in a second is known, nor the time of day. */
static void ticks(void **state)
{
	const char *const options[] = { "format-version=1", NULL };
	struct fixture f;

	(void)state;
	init(&f, NULL);
	loggedmade_deinit(&f.made);
	f.made.info.clock = PTD_CLOCK_TSC;
	assert_int_equal(sink_open(&sink_xray, dir, &f.made.info, options, &f.made.sink), 0);
	f.made.slice.cpu = PTD_ID_UNKNOWN;
	loggedmade_put(&f.made, PTD_LOGGED_ENTER, 1, T0);
	loggedmade_put(&f.made, PTD_LOGGED_LEAVE, 1, T0 + 3);
	check(&f, "v1 0 Hz; buffer 4464; wall 0.000000; cpu 65535 0; 1 +0; /1 +3; end; ");
	deinit(&f);
}

/* An id of a function has 28 bits. */
static void large_ids(void **state)
{
	struct xray_files files = { .out = { .fd = -1 }, .version = 1 };
	struct xray_file file = { .files = &files, .out.files = &files.out };

	(void)state;
	assert_int_equal(xray_file_function(&file, 0, 0, FDR_ENTRY, (1u << 28) - 1), 0);
	assert_int_equal(xray_file_function(&file, 0, 0, FDR_ENTRY, 1u << 28), -EOVERFLOW);
	assert_int_equal(file.out.buffer.n, FDR_FUNCTION_SIZE);
	assert_memory_equal(file.out.buffer.items, "\xf0\xff\xff\xff\0\0\0", FDR_FUNCTION_SIZE);
	file.has_section = true;
	assert_int_equal(xray_file_below(&file, 1u << 28), -EOVERFLOW);
	xray_file_deinit(&file);
}

/* What was open before the beginning, and before a gap, is entered there; and all is left. */
static void below(void **state)
{
	struct fixture f;

	(void)state;
	init(&f, NULL);
	loggedmade_put(&f.made, PTD_LOGGED_ENTER, 1, T0);
	loggedmade_put(&f.made, PTD_LOGGED_LEAVE, 1, T0 + 10);
	loggedmade_put(&f.made, PTD_LOGGED_LEAVE, 2, T0 + 20);
	loggedmade_put(&f.made, PTD_LOGGED_LEAVE, 3, T0 + 30);
	loggedmade_put(&f.made, PTD_LOGGED_ENTER, 2, T0 + 40);
	loggedmade_put_mark(&f.made, PTD_MARK_GAP, T0 + 50);
	loggedmade_put(&f.made, PTD_LOGGED_ENTER, 1, T0 + 60);
	loggedmade_flush(&f.made);
	loggedmade_put(&f.made, PTD_LOGGED_LEAVE, 1, T0 + 70);
	loggedmade_put(&f.made, PTD_LOGGED_LEAVE, 2, T0 + 80);
	loggedmade_put(&f.made, PTD_LOGGED_ENTER, 3, T0 + 90);
	check(&f, HEAD5 "3 +0; 2 +0; 1 +0; /1 +10; /2 +10; /3 +10; 2 +10; /2 +10; "
			"event +0 gap: overflow, 9 bytes lost; cpu 2 60; 2 +0; 1 +0; /1 +10; "
			"/2 +10; 3 +10; event +0 end; /3 +0; ");
	deinit(&f);
}

/* The same where the section is larger than what is kept in memory. */
static void below_much(void **state)
{
	const size_t n = 100000;
	const struct ptd_stats stats = {};
	const uint8_t *p;
	struct fixture f;

	(void)state;
	init(&f, NULL);
	for (size_t i = 0; i < n; i++) {
		loggedmade_put(&f.made, i % 2 ? PTD_LOGGED_LEAVE : PTD_LOGGED_ENTER, 1, T0 + i);
		if (i % LOGGEDMADE_MAX == LOGGEDMADE_MAX - 1)
			loggedmade_flush(&f.made);
	}
	loggedmade_put(&f.made, PTD_LOGGED_LEAVE, 2, T0 + n);
	loggedmade_put(&f.made, PTD_LOGGED_LEAVE, 3, T0 + n);
	loggedmade_flush(&f.made);
	assert_int_equal(sink_finish(f.made.sink, &stats), 0);
	read_file(&f, "xray-log.my_demo_x.70000.0");
	assert_int_equal(f.size,
			 FDR_HEADER_SIZE + 5 * FDR_METADATA_SIZE + (n + 4) * FDR_FUNCTION_SIZE);
	p = f.bytes + FDR_HEADER_SIZE + 5 * FDR_METADATA_SIZE;
	assert_int_equal(number(p, 8), 3 << 4);
	assert_int_equal(number(p + 8, 8), 2 << 4);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(number(p + 16 + 8 * i, 8),
				 1 << 4 | (i % 2) << 1 | (uint64_t)(i > 0) << 32);
	free(f.bytes);
	deinit(&f);
}

/* The table and the symbols say which function an id is, and names cannot break what they get into.
 */
static void map(void **state)
{
	static const char *const names[] = { "h(int)", "f", "say 'hi/,'?" };
	const Elf64_Ehdr *header;
	const Elf64_Shdr *sections;
	const Elf64_Sym *symbols_there;
	const struct ptd_stats stats = {};
	struct fixture f;

	(void)state;
	init(&f, NULL);
	put_nested(&f);
	loggedmade_flush(&f.made);
	assert_int_equal(sink_finish(f.made.sink, &stats), 0);
	read_file(&f, "map.elf");
	header = (const void *)f.bytes;
	assert_memory_equal(header->e_ident, ELFMAG, SELFMAG);
	sections = (const void *)(f.bytes + header->e_shoff);
	assert_int_equal(f.size, header->e_shoff + header->e_shnum * sizeof(*sections));
	assert_string_equal((const char *)f.bytes + sections[header->e_shstrndx].sh_offset +
				sections[2].sh_name,
			    "xray_instr_map");
	assert_int_equal(sections[2].sh_size, 32 * ARRAY_LEN(names));
	symbols_there = (const void *)(f.bytes + sections[3].sh_offset);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const uint8_t *entry = f.bytes + sections[2].sh_offset + 32 * i;
		const Elf64_Sym *symbol = &symbols_there[i + 1];

		assert_int_equal(number(entry + 8, 8), symbol->st_value);
		is_reserved(entry + 16, 16);
		assert_string_equal((const char *)f.bytes + sections[4].sh_offset + symbol->st_name,
				    names[i]);
	}
	free(f.bytes);
	deinit(&f);
}

/* Nothing is left that has not its name. */
static void failures(void **state)
{
	static const char *const wrong[] = { "format-version=2", "format-version=x",
					     "format-version=", "format-version=0" };
	const struct ptd_info info = { .clock = PTD_CLOCK_NS };
	const struct ptd_stats stats = {};
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		const char *const options[] = { wrong[i], NULL };
		struct sink *sink;

		tempdir_make("xray", dir);
		assert_int_equal(sink_open(&sink_xray, dir, &info, options, &sink), -EINVAL);
		tempdir_remove(dir);
	}

	/* The directory is gone. */
	init(&f, NULL);
	put_nested(&f);
	loggedmade_flush(&f.made);
	tempdir_remove(dir);
	assert_int_equal(sink_finish(f.made.sink, &stats), -ENOENT);
	deinit(&f);
}

/* A kind that shows instructions is not opened for an input that has none. */
static void others(void **state)
{
	const struct ptd_info info = { .clock = PTD_CLOCK_NS, .logs_calls = true };
	const struct sink_config config = { .info = &info, .fd = -1 };
	struct sink *sink = NULL;
	char *message;

	(void)state;
	assert_int_equal(sink_new(&sink_text, &config, &sink, &message), -EINVAL);
	assert_string_equal(message, "text shows instructions, and the input has none: it has "
				     "calls, which calls and functions show");
	free(message);
	assert_null(sink);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(newest),    cmocka_unit_test(oldest),     cmocka_unit_test(times),
		cmocka_unit_test(below),     cmocka_unit_test(below_much), cmocka_unit_test(map),
		cmocka_unit_test(failures),  cmocka_unit_test(others),     cmocka_unit_test(ticks),
		cmocka_unit_test(large_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
