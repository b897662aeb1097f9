/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The sink "ovni": each stream of calls, and the exact events of its file, which are read field by
 * field as the document of version 1 has them; and the metadata.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "decoder/sink/sinks.h"
#include "tests/lib/kinds.h"
#include "tests/lib/loggedmade.h"
#include "tests/lib/tempdir.h"

#define T0     LOGGEDMADE_T0
#define PROC   "ovni/loom.ptd/proc.5/"
#define OLD    PROC "thread.70000"
#define NEWEST PROC "thread.70000/stream.obs"

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
	tempdir_make("ovni", dir);
	loggedmade_init(&f->made, &sink_ovni, dir, version);
}

static void deinit(struct fixture *f)
{
	free(f->bytes);
	loggedmade_deinit(&f->made);
	tempdir_remove(dir);
}

static void read_file(struct fixture *f, const char *name)
{
	char path[TEMPDIR_SIZE + 256];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "re");
	assert_non_null(file);
	free(f->bytes);
	f->bytes = calloc(1, 1 << 22);
	assert_non_null(f->bytes);
	f->size = fread(f->bytes, 1, (1 << 22) - 1, file);
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

/* Say the event at @p. Return: its size: a header of 12 bytes, 0 or 2 to 16 of payload; and of a
 * jumbo event, whose payload is a size of 4 bytes, the data. */
static size_t say_event(struct fixture *f, const uint8_t *p)
{
	const unsigned int flags = p[0] >> 4, code = p[0] & 15;
	const size_t size = code == 0 ? 0 : code + 1;
	uint32_t n;

	say(f, "%.3s@%" PRId64, (const char *)p + 1, (int64_t)(number(p + 4, 8) - T0));
	if (flags == 1) {
		assert_int_equal(size, 4);
		n = (uint32_t)number(p + 12, 4);
		assert_int_equal(p[16 + n - 1], 0);
		say(f, "{%" PRIu64 " %s} ", number(p + 16, 4), (const char *)p + 20);
		assert_int_equal(n, 4 + strlen((const char *)p + 20) + 1);
		return 16 + n;
	}
	assert_int_equal(flags, 0);
	for (size_t i = 0; i < size; i += size == 12 && i == 0 ? 8 : 4)
		say(f, "%c%d", i == 0 ? '(' : ' ', (int)number(p + 12 + i, 4));
	say(f, "%s ", size > 0 ? ")" : "");
	return 12 + size;
}

static void say_file(struct fixture *f, const char *name, bool has_header)
{
	size_t at = 0;

	read_file(f, name);
	if (has_header) {
		assert_memory_equal(f->bytes, "ovni\1\0\0\0", 8);
		at = 8;
	}
	while (at < f->size)
		at += say_event(f, f->bytes + at);
	assert_int_equal(at, f->size);
}

static void check(struct fixture *f, const char *name, const char *expected)
{
	const struct ptd_stats stats = {};

	loggedmade_flush(&f->made);
	assert_int_equal(sink_finish(f->made.sink, &stats), 0);
	say_file(f, name, strcmp(name, NEWEST) == 0);
	assert_string_equal(f->text, expected);
}

/* --- the streams ------------------------------------------------------------------------------ */

static void put_nested(struct fixture *f)
{
	loggedmade_put(&f->made, PTD_LOGGED_ENTER, 3, T0);
	loggedmade_put(&f->made, PTD_LOGGED_ENTER, 1, T0 + 10);
	loggedmade_put(&f->made, PTD_LOGGED_TAIL, 1, T0 + 20);
	loggedmade_put(&f->made, PTD_LOGGED_ENTER, 2, T0 + 20);
	loggedmade_put(&f->made, PTD_LOGGED_LEAVE, 2, T0 + 30);
	loggedmade_put(&f->made, PTD_LOGGED_LEAVE, 3, T0 + 40);
}

/* Marks: the numbers of the functions, and the type 0; and what stream.json says of them. */
static void newest(void **state)
{
	struct fixture f;

	(void)state;
	init(&f, NULL);
	f.made.slice.t0 = T0 - 7;
	put_nested(&f);
	check(&f, NEWEST,
	      "OHx@-7(0 -1 0 0) OM[@0(1 0) OM[@10(2 0) OM]@20(2 0) OM[@20(3 0) OM]@30(3 0) "
	      "OM]@40(1 0) OHe@40 ");
	assert_null(sink_omission(f.made.sink));
	read_file(&f, PROC "thread.70000/stream.json");
	assert_non_null(strstr((const char *)f.bytes,
			       "\"labels\": {\"1\": \"h(int)\", \"2\": \"f\", "
			       "\"3\": \"say \\\"hi\\\\;\\\"?\"}"));
	assert_non_null(
	    strstr((const char *)f.bytes, "\"loom_cpus\": [{\"index\": 0, \"phyid\": 2}]"));
	assert_non_null(strstr((const char *)f.bytes, "\"name\": \"my demo.x\""));
	deinit(&f);
}

/* Tasks: their types, which are jumbo events as in the document; no header. */
static void oldest(void **state)
{
	struct fixture f;

	(void)state;
	init(&f, "format-version=1");
	f.made.slice.t0 = T0;
	put_nested(&f);
	check(&f, OLD,
	      "OHx@0(0 -1 0 0) VYc@0{1 h(int)} VTc@0(1 1) VTx@0(1) VYc@10{2 f} VTc@10(2 2) "
	      "VTx@10(2) VTe@20(2) VYc@20{3 say \"hi\\;\"?} VTc@20(3 3) VTx@20(3) VTe@30(3) "
	      "VTe@40(1) OHe@40 ");
	read_file(&f, PROC "metadata.json");
	assert_string_equal((const char *)f.bytes,
			    "{\n \"version\": 1,\n \"app_id\": 1,\n"
			    " \"cpus\": [\n  {\"index\": 0, \"phyid\": 2}\n ]\n}\n");
	deinit(&f);
}

/*
 * The threads of a process are in its directory, with its metadata and its number of an
 * application; one process has the CPUs of all; tasks and types have numbers of their own.
 */
static void processes(void **state)
{
	const struct ptd_stats stats = {};
	struct fixture f;

	(void)state;
	init(&f, "format-version=1");
	for (uint32_t i = 0; i < 3; i++) {
		f.made.slice = (struct ptd_slice){
			.id = i, .cpu = 2 + i % 2, .pid = 5 + i % 2, .tid = 70000 + i, .t0 = T0 + i
		};
		loggedmade_put(&f.made, PTD_LOGGED_ENTER, 1, T0 + i);
		loggedmade_flush(&f.made);
	}
	assert_int_equal(sink_finish(f.made.sink, &stats), 0);
	read_file(&f, PROC "metadata.json");
	assert_string_equal((const char *)f.bytes, "{\n \"version\": 1,\n \"app_id\": 1,\n"
						   " \"cpus\": [\n  {\"index\": 0, \"phyid\": 2},\n"
						   "  {\"index\": 1, \"phyid\": 3}\n ]\n}\n");
	read_file(&f, "ovni/loom.ptd/proc.6/metadata.json");
	assert_string_equal((const char *)f.bytes, "{\n \"version\": 1,\n \"app_id\": 2\n}\n");
	say_file(&f, OLD, false);
	say_file(&f, "ovni/loom.ptd/proc.6/thread.70001", false);
	say_file(&f, PROC "thread.70002", false);
	assert_string_equal(f.text,
			    "OHx@0(0 -1 0 0) VYc@0{1 f} VTc@0(1 1) VTx@0(1) VTe@0(1) OHe@0 "
			    "OHx@1(1 -1 0 0) VYc@1{2 f} VTc@1(2 2) VTx@1(2) VTe@1(2) OHe@1 "
			    "OHx@2(0 -1 0 0) VYc@2{3 f} VTc@2(3 3) VTx@2(3) VTe@2(3) OHe@2 ");
	deinit(&f);
}

/* The thread leaves its CPU, comes back to it, and to another one; another one comes there. */
static void put_cpus(struct fixture *f)
{
	struct ptd_slice *slice = &f->made.slice;

	*slice = (struct ptd_slice){ .id = 1, .cpu = 2, .pid = 5, .tid = 70000, .t0 = T0 };
	loggedmade_put(&f->made, PTD_LOGGED_ENTER, 1, T0 + 1);
	loggedmade_flush(&f->made);
	slice->id = 2;
	slice->t0 = T0 + 10;
	loggedmade_put(&f->made, PTD_LOGGED_LEAVE, 1, T0 + 11);
	loggedmade_flush(&f->made);
	*slice = (struct ptd_slice){ .id = 3, .cpu = 2, .pid = 5, .tid = 70001, .t0 = T0 + 11 };
	loggedmade_put(&f->made, PTD_LOGGED_ENTER, 3, T0 + 11);
	loggedmade_flush(&f->made);
	*slice = (struct ptd_slice){ .id = 4, .cpu = 7, .pid = 5, .tid = 70000, .t0 = T0 + 20 };
	loggedmade_put(&f->made, PTD_LOGGED_ENTER, 1, T0 + 5);
	loggedmade_flush(&f->made);
}

static void cpus(void **state)
{
	struct fixture f;

	(void)state;
	init(&f, "format-version=3");
	put_cpus(&f);
	check(&f, NEWEST,
	      "OHx@0(0 -1 0 0) OM[@1(1 0) OHp@1 OHr@10 OM]@11(1 0) OHp@11 OHw@20 OAs@20(1) OHr@20 "
	      "OM[@20(1 0) OM]@20(1 0) OHe@20 ");
	f.n = 0;
	/* It comes to the CPU 1 ns after the other one has left. */
	say_file(&f, PROC "thread.70001/stream.obs", true);
	assert_string_equal(f.text, "OHx@12(0 -1 0 0) OM[@12(2 0) OM]@12(2 0) OHe@12 ");
	deinit(&f);
}

/* What was open before the beginning, and before a gap, is entered there; and all is left. */
static void put_outer(struct fixture *f)
{
	f->made.slice.t0 = T0;
	loggedmade_put(&f->made, PTD_LOGGED_ENTER, 1, T0);
	loggedmade_put(&f->made, PTD_LOGGED_LEAVE, 1, T0 + 10);
	loggedmade_put(&f->made, PTD_LOGGED_LEAVE, 2, T0 + 20);
	loggedmade_put(&f->made, PTD_LOGGED_LEAVE, 3, T0 + 30);
	loggedmade_put(&f->made, PTD_LOGGED_ENTER, 2, T0 + 40);
	loggedmade_put_mark(&f->made, PTD_MARK_GAP, T0 + 50);
	loggedmade_put(&f->made, PTD_LOGGED_ENTER, 1, T0 + 60);
	loggedmade_flush(&f->made);
	loggedmade_put_mark(&f->made, PTD_MARK_PTWRITE, T0 + 65);
	loggedmade_put(&f->made, PTD_LOGGED_LEAVE, 1, T0 + 70);
	loggedmade_put(&f->made, PTD_LOGGED_LEAVE, 2, T0 + 80);
	loggedmade_put_mark(&f->made, PTD_MARK_OUT_OF_SCOPE, T0 + 90);
}

static void outer(void **state)
{
	struct fixture f;

	(void)state;
	init(&f, NULL);
	put_outer(&f);
	check(&f, NEWEST,
	      "OHx@0(0 -1 0 0) OM[@0(3 0) OM[@0(2 0) OM[@0(1 0) OM]@10(1 0) OM]@20(2 0) "
	      "OM]@30(3 0) OM[@40(2 0) OM]@50(2 0) OM[@50(1 1) OM]@60(1 1) OM[@60(2 0) OM[@60(1 0) "
	      "OM=@65(42 2) OM]@70(1 0) OM]@80(2 0) OM[@90(23 1) OM]@90(23 1) OHe@90 ");
	deinit(&f);
	init(&f, "format-version=1");
	put_outer(&f);
	check(&f, OLD,
	      "OHx@0(0 -1 0 0) VYc@0{4 h(int)} VTc@0(3 4) VTx@0(3) VYc@0{5 say \"hi\\;\"?} "
	      "VTc@0(2 5) VTx@0(2) VYc@0{1 f} VTc@0(1 1) VTx@0(1) VTe@10(1) VTe@20(2) VTe@30(3) "
	      "VYc@40{2 say \"hi\\;\"?} VTc@40(4 2) VTx@40(4) VTe@50(4) VYc@50{3 gap: overflow} "
	      "VTc@50(5 3) VTx@50(5) VTe@60(5) VYc@60{7 say \"hi\\;\"?} VTc@60(7 7) VTx@60(7) "
	      "VTc@60(6 1) VTx@60(6) VTe@70(6) VTe@80(7) VYc@90{6 out of scope} VTc@90(8 6) "
	      "VTx@90(8) VTe@90(8) OHe@90 ");
	assert_non_null(strstr(sink_omission(f.made.sink), "version 1 cannot have: 1"));
	deinit(&f);
}

/* The same where the section is larger than what is kept in memory. */
static void outer_much(void **state)
{
	const size_t n = 100000, size = 24;
	const struct ptd_stats stats = {};
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
	read_file(&f, NEWEST);
	assert_int_equal(f.size, 8 + 28 + (n + 4) * size + 12);
	assert_int_equal(number(f.bytes + 8 + 28 + 12, 8), 3);
	assert_int_equal(number(f.bytes + 8 + 28 + size + 12, 8), 2);
	for (size_t i = 0; i < n; i++) {
		const uint8_t *p = f.bytes + 8 + 28 + (2 + i) * size;

		assert_memory_equal(p, i % 2 ? "\x0bOM]" : "\x0bOM[", 4);
		assert_int_equal(number(p + 4, 8), T0 + i);
		assert_int_equal(number(p + 12, 8), 1);
	}
	deinit(&f);
}

/* The emulator takes 512 functions that are open at a time. */
static void deep(void **state)
{
	const struct ptd_stats stats = {};
	size_t depth = 0, deepest = 0;
	struct fixture f;

	(void)state;
	init(&f, NULL);
	for (size_t i = 0; i < 600; i++) {
		loggedmade_put(&f.made, PTD_LOGGED_ENTER, 1, T0 + i);
		if (i % LOGGEDMADE_MAX == LOGGEDMADE_MAX - 1)
			loggedmade_flush(&f.made);
	}
	loggedmade_flush(&f.made);
	for (size_t i = 0; i < 601; i++) {
		loggedmade_put(&f.made, PTD_LOGGED_LEAVE, i < 600 ? 1 : 2, T0 + 600 + i);
		if (i % LOGGEDMADE_MAX == LOGGEDMADE_MAX - 1)
			loggedmade_flush(&f.made);
	}
	loggedmade_flush(&f.made);
	assert_int_equal(sink_finish(f.made.sink, &stats), 0);
	read_file(&f, NEWEST);
	for (const uint8_t *p = f.bytes + 8 + 28; p + 24 < f.bytes + f.size; p += 24) {
		depth += memcmp(p, "\x0bOM[", 4) == 0 ? 1 : (size_t)-1;
		deepest = depth > deepest ? depth : deepest;
	}
	assert_int_equal(depth, 0);
	assert_int_equal(deepest, 512);
	assert_string_equal(
	    sink_omission(f.made.sink),
	    "functions within 512 others: 89; values of ptwrite that are 0, or that "
	    "version 1 cannot have: 0");
	deinit(&f);
}

/* Ids that are not known, and that no thread has, are large numbers. */
static void unknown(void **state)
{
	const struct ptd_stats stats = {};
	struct fixture f;

	(void)state;
	init(&f, NULL);
	f.made.slice = (struct ptd_slice){ .cpu = 1 };
	loggedmade_put(&f.made, PTD_LOGGED_ENTER, 1, T0);
	loggedmade_flush(&f.made);
	f.made.slice = (struct ptd_slice){ .id = 1, .pid = PTD_ID_UNKNOWN, .tid = 7, .cpu = 1 };
	loggedmade_put(&f.made, PTD_LOGGED_ENTER, 1, T0 + 1);
	loggedmade_flush(&f.made);
	assert_int_equal(sink_finish(f.made.sink, &stats), 0);
	say_file(&f, "ovni/loom.ptd/proc.8388608/thread.8388608/stream.obs", true);
	say_file(&f, "ovni/loom.ptd/proc.8388608/thread.7/stream.obs", true);
	assert_string_equal(f.text, "OHx@-5000000000(0 -1 0 0) OM[@0(1 0) OM]@0(1 0) OHe@0 "
				    "OHx@1(0 -1 0 0) OM[@1(1 0) OM]@1(1 0) OHe@1 ");
	deinit(&f);
}

static void failures(void **state)
{
	static const char *const wrong[] = { "format-version=2", "format-version=x",
					     "format-version=", "format-version=0" };
	const struct ptd_info info = { .clock = PTD_CLOCK_NS };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		const char *const options[] = { wrong[i], NULL };
		struct sink *sink;

		tempdir_make("ovni", dir);
		assert_int_equal(sink_open(&sink_ovni, dir, &info, options, &sink), -EINVAL);
		tempdir_remove(dir);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(newest),     cmocka_unit_test(oldest),
		cmocka_unit_test(cpus),       cmocka_unit_test(outer),
		cmocka_unit_test(deep),       cmocka_unit_test(unknown),
		cmocka_unit_test(outer_much), cmocka_unit_test(failures),
		cmocka_unit_test(processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
