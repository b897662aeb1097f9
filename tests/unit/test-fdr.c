/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Flight data recorder files as an input: each section of the document of version 1, what later
 * versions have, and files that are spoiled. The files are written by tests/lib/fdrmade.h.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "ptd/calls.h"
#include "ptd/decode.h"
#include "tests/lib/fdrmade.h"
#include "tests/lib/loggedread.h"
#include "tests/lib/tempdir.h"

struct row {
	const char *file;
	const char *stream;
};

static char dir[TEMPDIR_SIZE];

/* What begins a block of thread 7, with calls from 100 ticks on. */
#define HEAD1 "b7 w3.5 c2@100 "
#define HEAD  "b7 w3.5 p9 c2@100 "

static const struct row rows[] = {
	/* Header Section: version, type, frequency and size; the reserved bits and bytes do not
	 * matter. Data Section: a stream of function and metadata records. */
	{ "h1 " HEAD1 ">1+10 <1+5 .", "2 ?/7: >#1@110 <#1@115 " },
	{ "h1,2000000000 " HEAD1 ">1+10 <1+5 .", "2 ?/7: >#1@55 <#1@57 " },
	{ "h1,3 b7 w0 c0@6 >1+1 <1+2 .", "0 ?/7: >#1@2333333333 <#1@3000000000 " },
	{ "h1,0 " HEAD1 ">1+10 <1+5 .", "ticks; 2 ?/7: >#1@110 <#1@115 " },
	{ "r0100 r0100 rffffffff r00ca9a3b00000000 r0000000000000000 rdeadbeefdeadbeef " HEAD1
	  ">1+10 <1+5 .",
	  "2 ?/7: >#1@110 <#1@115 " },
	{ "B h1 " HEAD1 ">1+10 <1+5 .", "2 ?/7: >#1@110 <#1@115 " },
	/* Another type, and no version. */
	{ "r0100 r0000 r00000000 r00ca9a3b00000000 r0000000000000000 z8 " HEAD1 ">1 .",
	  "!: not a perf.data file: it does not begin with PERFILE2" },
	{ "h0 " HEAD1 ">1 .", "!: not a perf.data file: it does not begin with PERFILE2" },

	/* Function Records: 28 bits of id, 32 bits of ticks since the last; the actions. */
	{ "h1 " HEAD1 ">268435455+4294967295 <268435455+4294967295 .",
	  "2 ?/7: >#15:16777215@4294967395 <#15:16777215@8589934690 " },
	{ "h1 " HEAD1 ">1 >2+1 ~2+1 >3+1 <3+1 <1+1 .",
	  "2 ?/7: >#1@100 >#2@101 ^#2@102 >#3@103 <#3@104 <#1@105 " },
	{ "B h1 " HEAD1 ">268435455+4294967295 ~1 <268435455 .",
	  "2 ?/7: >#15:16777215@4294967395 ^#1@4294967395 <#15:16777215@4294967395 " },
	{ "h1 " HEAD1 ">0 <0 .", "2 ?/7: >#0@100 <#0@100 " },

	/* CallArgument Records: behind an entry with arguments. */
	{ "h1 " HEAD1 "a1+1 v18446744073709551615 v2 >2+1 <2 <1 .",
	  "2 ?/7: >#1@101 *argument 0xffffffffffffffff@101 *argument 0x2@101 >#2@102 <#2@102 "
	  "<#1@102 " },
	{ "h1 " HEAD1 "v3 >1 .", "!: byte 80: an argument that belongs to no function" },
	{ "h1 " HEAD1 ">1 v3 <1 .", "2 ?/7: >#1@100 [bad packet, 40] ; byte 88: an argument that "
				    "belongs to no function" },
	{ "h1 " HEAD1 "a1 c3@101 v3 <1 .", "2 ?/7: >#1@100 ? ?/7: [bad packet, 40] ; byte 104: an "
					   "argument that belongs to no function" },
	/* Of later versions, llvm-xray takes them behind any function. */
	{ "h5 x " HEAD ">1 v3 <1", "2 9/7: >#1@100 *argument 0x3@100 <#1@100 " },

	/* NewBuffer Records: 16 bits of id; WallClockTime Records: no matter from when. */
	{ "h1 b65535 w18446744073709551615.999999 c0@0 >1 .", "0 ?/65535: >#1@0 " },
	{ "B h1 b4369 w0 c0@0 >1 .", "0 ?/4369: >#1@0 " },

	/* NewCpuId Records: where, and an absolute time; also between calls. */
	{ "h1 " HEAD1 ">1 c3@500 <1+1 .", "2 ?/7: >#1@100 3 ?/7: <#1@501 " },
	{ "h1 " HEAD1 ">1 c2@500 <1+1 .", "2 ?/7: >#1@100 <#1@501 " },
	{ "h1 b7 w0 c65535@18446744073709551615 >1+1 <1 .",
	  "65535 ?/7: >#1@9223372036854775807 <#1@9223372036854775807 " },

	/* TSCWrap Records: an absolute time, which may also go back. */
	{ "h1 " HEAD1 ">1 t@8589934592 <1+1 .", "2 ?/7: >#1@100 <#1@8589934593 " },
	{ "h1 " HEAD1 ">1 t@50 <1+1 .", "2 ?/7: >#1@100 <#1@51 " },

	/* CustomEventMarker Records: as many bytes behind them, whatever these are. Their time is
	 * absolute, and calls count from the one before. */
	{ "h1 " HEAD1 ">1 e@700=\x11 <1+1 .", "2 ?/7: >#1@100 *custom event: 11@100 <#1@101 " },
	{ "h1 " HEAD1 ">1 e@700=0123456789abcdefghi <1+1 .",
	  "2 ?/7: >#1@100 *custom event: 0123456789abcdefghi@100 <#1@101 " },

	/* All kinds of the other byte order, whose bits are in the other order, too. */
	{ "B h1 " HEAD1 "a1+1 v18446744073709551615 >2 c3@300 ~2+1 t@500 >3+1 e@700=abc <3+1 <1 .",
	  "2 ?/7: >#1@101 *argument 0xffffffffffffffff@101 >#2@101 3 ?/7: ^#2@301 >#3@501 *custom "
	  "event: abc@501 <#3@502 <#1@502 " },

	/* EndOfBuffer Records: the rest of the buffer is passed over, whatever is in it; then comes
	 * a buffer, a header or the end. */
	{ "h1,1000000000,96 " HEAD1 ">1 . z24 b8 w3 c2@200 >1 . z24",
	  "2 ?/7: >#1@100 2 ?/8: >#1@200 " },
	{ "h1,1000000000,96 " HEAD1 ">1 . rffffffffffffffff rffffffffffffffffffffffffffffffff "
	  "b8 w3 c2@200 >1 . z24",
	  "2 ?/7: >#1@100 2 ?/8: >#1@200 " },
	{ "h1,1000000000,72 " HEAD1 ">1 . h1,1000000000,72 b256 w3 c2@200 >1 .",
	  "2 ?/7: >#1@100 2 ?/256: >#1@200 " },
	{ "h1,1000000000,72 " HEAD1 ">1 . b256 w3 c2@200 >1 .",
	  "2 ?/7: >#1@100 2 ?/256: >#1@200 " },
	/* The size may also be that of all buffers. */
	{ "h1,1000000000,144 " HEAD1 ">1 . b8 w3 c2@200 >1 .", "2 ?/7: >#1@100 2 ?/8: >#1@200 " },
	{ "h1 " HEAD1 ">1 . z16 b8 w3 c2@200 >1 .", "2 ?/7: >#1@100 2 ?/8: >#1@200 " },
	{ "h1 " HEAD1 ">1", "2 ?/7: >#1@100 " },

	/* Format Grammar: buffers of a thread, in the order of their times. */
	{ "h1,1000000000,72 b7 w9 c2@200 <1 . " HEAD1 ">1 .", "2 ?/7: >#1@100 <#1@200 " },
	{ "h1 " HEAD1 ". ", "!: has no calls" },
	{ "h1 w3 b7 c2@100 >1 .", "!: byte 32: expected a NewBuffer record" },
	{ "h1 b7 c2@100 w3 >1 .", "!: byte 48: expected a WallClockTime record" },
	{ "h1 b7 w3 >1 .", "!: byte 64: expected a NewCPUId record" },
	{ "h1 b7 w3 t@100 >1 .", "!: byte 64: expected a NewCPUId record" },
	{ "h1 " HEAD1 ">1 b7 <1 .", "2 ?/7: >#1@100 [bad packet, 40] ; byte 88: a record that does "
				    "not belong among calls" },
	{ "h1 " HEAD1 ">1 w7 <1 .", "2 ?/7: >#1@100 [bad packet, 40] ; byte 88: a record that does "
				    "not belong among calls" },

	/* The versions that came later. */
	{ "h2 x b70000 w3 c2@100 >1+1 ~1+1", "2 ?/70000: >#1@101 ~#1@102 " },
	{ "h2 x b7 w3 p9 c2@100 >1+1", "2 9/7: >#1@101 " },
	{ "h2 b7 w3 c2@100 >1+1 b8 w3 c2@200 >1", "2 ?/7: >#1@101 2 ?/8: >#1@200 " },
	/* Zeros are entries of function 0, as for llvm-xray. */
	{ "h2 x b7 w3 c2@100 >1+1 z16 x b8 w3 c2@200 >1",
	  "2 ?/7: >#1@101 >#0@101 >#0@101 2 ?/8: >#1@200 " },
	{ "h3 x " HEAD ">1+1 e@700=hi <1+1 x b8 w3 p9 c0@101 >2",
	  "2 9/7: >#1@101 *custom event: hi@101 <#1@102 0 9/8: >#2@101 " },
	{ "h4 x " HEAD ">1+1 e@700=hi <1+1", "2 9/7: >#1@101 *custom event: hi@101 <#1@102 " },
	{ "h5 x " HEAD ">1+1 e+10=hi <1+1 y3+5=abc ~1",
	  "2 9/7: >#1@101 *custom event: hi@111 <#1@112 *typed event 3: abc@117 ~#1@117 " },
	{ "B h5 x " HEAD ">1+1 e+10=hi <1+1", "2 9/7: >#1@101 *custom event: hi@111 <#1@112 " },
	{ "h5 x=0 x " HEAD ">1+1", "2 9/7: >#1@101 " },

	/* What is not a log. */
	{ "h6 x " HEAD ">1", "!: not a perf.data file: it does not begin with PERFILE2" },
	{ "h5", "!: has no calls" },
	{ "h5 x " HEAD "-8", "!: byte 96: the file ends inside a record" },

	/* Spoiled: what is before it is shown, and what is behind it if it can be found. */
	{ "h5 x " HEAD ">1+1 <1+1 -3",
	  "2 9/7: >#1@101 [data cut off, 5] ; byte 120: the file ends inside a record" },
	{ "h5 x " HEAD ">1+1 <1+1 -8",
	  "2 9/7: >#1@101 [data cut off, 0] ; byte 120: the file ends inside a block" },
	{ "h5 x " HEAD ">1+1 u5 <1+1 x b8 w3 p9 c2@200 >1",
	  "2 9/7: >#1@101 [bad packet, 16] 2 9/8: >#1@200 ; byte 120: a function record of an "
	  "unknown action" },
	{ "h5 x " HEAD ">1+1 k12",
	  "2 9/7: >#1@101 [bad packet, 16] ; byte 120: a metadata record of "
	  "an unknown kind" },
	{ "h5 x " HEAD ">1+1 .",
	  "2 9/7: >#1@101 [bad packet, 16] ; byte 120: an end of the buffer, "
	  "which only version 1 has" },
	{ "h5 x " HEAD ">1+1 v3 e+1=a v3",
	  "2 9/7: >#1@101 *argument 0x3@101 *custom event: a@102 [bad packet, 16] ; byte 153: an "
	  "argument that belongs to no function" },
	{ "h5 x " HEAD ">1+1 e+1=", "2 9/7: >#1@101 [bad packet, 16] ; byte 120: an event without "
				    "data" },
	{ "h5 x " HEAD ">1+1 r0bffffff7f rffffffffffffffffffffff",
	  "2 9/7: >#1@101 [data cut off, 16] ; byte 120: the file ends inside a record" },
	{ "h5 x " HEAD ">1+1 p9",
	  "2 9/7: >#1@101 [bad packet, 16] ; byte 120: a record that does not "
	  "belong among calls" },
	{ "h5 x " HEAD ">1+1 x w3 p9 c2@100 >1",
	  "? ?/?: [bad packet, 72] 2 9/7: >#1@101 ; byte 136: "
	  "expected a NewBuffer record" },
	{ "h5 x " HEAD ">1+1 x b8 p9 c2@100 >1",
	  "? ?/8: [bad packet, 72] 2 9/7: >#1@101 ; byte 152: "
	  "expected a WallClockTime record" },
	{ "h5 x " HEAD ">1+1 x b8 w3 c2@100 >1",
	  "? ?/8: [bad packet, 72] 2 9/7: >#1@101 ; byte 168: "
	  "expected a Pid record" },
	{ "h5 x " HEAD ">1+1 x b8 w3 p9 >1", "? 9/8: [bad packet, 72] 2 9/7: >#1@101 ; byte 184: "
					     "expected a NewCPUId record" },
	{ "h5 x " HEAD ">1+1 x=1000 b8 w3 p9 c2@200 >1",
	  "2 9/7: >#1@101 2 9/8: >#1@200 [data cut off, 0] ; byte 208: the file ends inside a "
	  "block" },
	{ "h5 x " HEAD ">1+1 x=65 b8 w3 p9 c2@200 >1 x b9 w3 p9 c2@300 >1",
	  "? ?/?: [bad packet, 95] 2 9/7: >#1@101 ? 9/8: [bad packet, 1] ; byte 200: the block "
	  "ends "
	  "inside a record; byte 201: expected a BufferExtents record" },
	{ "h5 " HEAD ">1+1", "!: byte 32: expected a BufferExtents record" },
	{ "h5 x " HEAD ">1+1 r01",
	  "2 9/7: >#1@101 [data cut off, 1] ; byte 120: the file ends inside a record" },
	{ "h1 " HEAD1 ">1+1 k12 >1 .",
	  "2 ?/7: >#1@101 [bad packet, 40] ; byte 88: a metadata record "
	  "of an unknown kind" },
	{ "h1,1000000000,88 " HEAD1 ">1+1 k12 . b8 w3 c2@200 >1 .",
	  "2 ?/7: >#1@101 [bad packet, 32] 2 ?/8: >#1@200 ; byte 88: a metadata record of an "
	  "unknown "
	  "kind" },
};

static void put_file(const char *name, const char *made)
{
	static uint8_t bytes[FDRMADE_MAX];

	tempdir_put(dir, name, bytes, fdrmade_put(made, bytes));
}

static void files(void **state)
{
	char path[TEMPDIR_SIZE + 16];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char *text;

		tempdir_make("fdr", dir);
		(void)snprintf(path, sizeof(path), "%s/log", dir);
		put_file("log", rows[i].file);
		text = loggedread(path, &(struct ptd_part){});
		if (strcmp(text, rows[i].stream) != 0)
			print_error("%s\n", rows[i].file);
		assert_string_equal(text, rows[i].stream);
		free(text);
		tempdir_remove(dir);
	}
}

/* Two threads, each on two CPUs. */
#define THREADS                                                    \
	"h5 x b7 w3 p9 c0@100 >1+1 >2+1 <2+1 <1+1 c1@200 >1 <1+1 " \
	"x b8 w3 p9 c1@150 >3+1 <3+1 c0@250 >3 <3+1"

static void parts(void **state)
{
	static const uint32_t tid[] = { 8 }, cpu[] = { 1 };
	static const char *const symbol[] = { "#1" }, *const object[] = { "[xray]" };
	static const char *const none[] = { "none" };
	static const struct {
		struct ptd_part part;
		const char *stream;
	} asked[] = {
		{ { .time = "0.000000102,0.000000201" },
		  "0 9/7: >#2@102 <#2@103 <#1@104 1 9/8: >#3@151 <#3@152 1 9/7: >#1@200 " },
		{ { .tids = tid, .n_tids = 1 }, "1 9/8: >#3@151 <#3@152 0 9/8: >#3@250 <#3@251 " },
		{ { .cpus = cpu, .n_cpus = 1 }, "1 9/8: >#3@151 <#3@152 1 9/7: >#1@200 <#1@201 " },
		{ { .symbols = symbol, .n_symbols = 1 },
		  "0 9/7: >#1@101 <#1@104 1 9/7: >#1@200 <#1@201 " },
		{ { .objects = object, .n_objects = 1, .tids = tid, .n_tids = 1 },
		  "1 9/8: >#3@151 <#3@152 0 9/8: >#3@250 <#3@251 " },
		{ { .objects = none, .n_objects = 1 }, "" },
		{ { .last = 5 }, "!: has no instructions, and the last ones are asked for" },
		{ { .time = "-1ms" }, "!time \"-1ms\": the input does not state when its PT ends" },
	};
	char path[TEMPDIR_SIZE + 16];

	(void)state;
	tempdir_make("fdr", dir);
	(void)snprintf(path, sizeof(path), "%s/log", dir);
	put_file("log", THREADS);
	for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
		char *text = loggedread(path, &asked[i].part);

		assert_string_equal(text, asked[i].stream);
		free(text);
	}
	tempdir_remove(dir);
}

/* The files of a directory, in the order of their times; others there do not matter. */
static void directory(void **state)
{
	char *text;

	(void)state;
	tempdir_make("fdr", dir);
	put_file("xray-log.b.2", "h5 x b7 w3 p9 c0@200 <1+1");
	put_file("xray-log.b.1", "h1 b8 w3 c1@150 >3+1 <3+1 .");
	put_file("xray-log.a.3", "h5 x b7 w3 p9 c0@100 >1+1");
	tempdir_put_text(dir, "notes", "not a log");
	text = loggedread(dir, &(struct ptd_part){});
	assert_string_equal(text, "0 9/7: >#1@101 <#1@201 1 ?/8: >#3@151 <#3@152 ");
	free(text);
	tempdir_put_text(dir, "xray-log.c", "");
	text = loggedread(dir, &(struct ptd_part){});
	assert_string_equal(text, "!/xray-log.c: byte 0: expected the header of a flight data "
				  "recorder file of version 1 to 5");
	free(text);
	tempdir_remove(dir);
}

/* A file that is cut off or rewritten while it is read is an error. */
static void changed(void **state)
{
	static const char *const others[] = { "h5 x " HEAD ">1+1", "h5 x " HEAD ">1+1 u5",
					      "h5 x " HEAD ">1+1 >9+1" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		const struct ptd_options options = { .size = sizeof(options), .input = dir };
		const struct ptd_logged *logged;
		struct ptd_decoder *d;
		int r;

		tempdir_make("fdr", dir);
		put_file("xray-log.1", "h5 x " HEAD ">1+1 <1+1");
		put_file("xray-log.2", "h5 x b8 w3 p9 c2@100 >1+1 <1+1");
		assert_int_equal(ptd_decoder_new(&options, &d, NULL), 0);
		put_file("xray-log.1", others[i]);
		while ((r = ptd_decoder_next_logged(d, &logged)) == 0)
			;
		assert_int_equal(r, -ESTALE);
		assert_string_equal(loggedread_without_path(ptd_decoder_message(d), dir),
				    "/xray-log.1: was changed while it was read");
		ptd_decoder_free(d);
		tempdir_remove(dir);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files),
		cmocka_unit_test(parts),
		cmocka_unit_test(directory),
		cmocka_unit_test(changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
