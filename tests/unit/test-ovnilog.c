/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Traces of ovni as an input: each section of the document of version 1, what version 3 has, and
 * traces that are spoiled. The streams are written by tests/lib/ovnimade.h.
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
#include "tests/lib/loggedread.h"
#include "tests/lib/ovnimade.h"
#include "tests/lib/tempdir.h"

static char dir[TEMPDIR_SIZE];

#define CPUS "[{\"index\":0,\"phyid\":4},{\"index\":1,\"phyid\":6}]"

/* Version 1: the metadata of process 9. */
#define OLD(more) "{\"version\":1,\"app_id\":1" more "}"
#define OLDEST    OLD(",\"cpus\":" CPUS)

/* Version 3: the metadata of thread 7 of process 9. */
#define NEW(more)                                                                             \
	"{\"version\":3,\"ovni\":{\"part\":\"thread\",\"pid\":9,\"tid\":7,\"loom\":\"node\"," \
	"\"app_id\":1,\"require\":{\"ovni\":\"1.1.0\"},\"finished\":1" more "}}"
#define MARKS                                                                                  \
	",\"loom_cpus\":" CPUS ",\"mark\":{\"0\":{\"title\":\"Phase\",\"chan_type\":"          \
	"\"stack\",\"labels\":{\"1\":\"one\",\"-2\":\"two\"}},\"99\":{\"title\":\"Progress\"," \
	"\"chan_type\":\"single\",\"labels\":{}}}"
#define NEWEST NEW(MARKS)

struct row {
	const char *meta;
	const char *stream;
	const char *text;
};

static const struct row rows[] = {
	/* Trace: the directories, the metadata of a process, the CPUs, the trace of a thread. */
	{ OLDEST, "OHx@10(1,-1,0q) VYc@11{1:work} VTc@12(5,1) VTx@13(5) VTe@20(5) OHe@21",
	  "6 9/7: >work@13 <work@20 " },
	{ OLD(""), "OHx@10(1,-1,0q) OF[@11 OF]@12 OHe@13", "? 9/7: >ovni OF[@11 <ovni OF[@12 " },
	{ OLD(",\"rank\":0,\"nranks\":2,\"other\":[{\"a\":null},true,-1.5e3,\"\\u00e4\"],"
	      "\"cpus\":" CPUS),
	  "OHx@10(0,-1,0q) OF[@11 OF]@12 OHe@13", "4 9/7: >ovni OF[@11 <ovni OF[@12 " },

	/* Thread trace, Normal events: 4 bits of flags, 4 of the size, the MCV, the clock, 0 or 2
	 * to 16 bytes. The events with 16 bytes and without are the document's own, those of nanos6
	 * are of its raw trace. */
	{ OLDEST,
	  "r0f4f487858c1b0b5954311000000 r0000ffffffff0000000000000000 r00365372abcbb0b595431100 "
	  "r00365373 r78c3b9b595431100 r0036534087a4c2b595431100 r003653689c4bcbb595431100 "
	  "r004f486501c5cf1d96d01200",
	  "4 9/7: *nanos6 6Sr@4859384881531819 *nanos6 6Ss@4859384882119544 *nanos6 "
	  "6S@@4859384882701447 *nanos6 6Sh@4859384883268508 " },
	{ OLDEST, "OHx@10(0,-1,0q) 6Sa@11 6SA@12 MUi@13 r014d55460d00000000000000 r0000 OHe@14",
	  "4 9/7: >nanos6 6Sa@11 <nanos6 6Sa@12 >mpi MUi@13 <mpi MUf@13 " },

	/* Jumbo events: the document's own. */
	{ OLDEST,
	  "r13565963ebc14b1a96d01200 r0e000000 r01000000746573747479706531 r00 "
	  "VTc@0x12d0961a4bc1ec(2,1) VTx@0x12d0961a4bc1ed(2) VTe@0x12d0961a4bc1ef(2)",
	  "? 9/7: >testtype1@5295892685636077 <testtype1@5295892685636079 " },
	{ OLDEST, "VYc@1{1:} VTc@2(2,1) VTx@3(2) VTe@4(2) r1356574305000000000000000000 r0000",
	  "? 9/7: >@3 <@4 *nosv VWC@5 " },

	/* Design: the order of the machine's bytes. */
	{ OLDEST, "B OHx@10(1,-1,0q) VYc@11{1:work} VTc@12(5,1) VTx@13(5) VTe@20(5) OHe@21",
	  "6 9/7: >work@13 <work@20 " },
	{ NEWEST, "B h OM[@5(1q,0) OM]@9(1q,0)", "? 9/7: >one@5 <one@9 " },

	/* Tasks: executed at once, later, paused, resumed; types and tasks that are not known. */
	{ OLDEST, "VYc@1{1:a} VYc@1{2:b} VTc@2(5,1) VTc@2(6,2) VTx@3(5) VTx@4(6) VTe@5(6) VTe@6(5)",
	  "? 9/7: >a@3 >b@4 <b@5 <a@6 " },
	{ OLDEST, "VYc@1{1:a} VTc@2(5,1) VTx@3(5) VTp@4(5) VTr@6(5) VTe@7(5)",
	  "? 9/7: >a@3 <a@4 >a@6 <a@7 " },
	{ OLDEST, "VTc@2(5,1) VTx@3(5) VTe@4(5) VTx@5(8) VTe@6(8)",
	  "? 9/7: >nosv task@3 <nosv task@4 >nosv task@5 <nosv task@6 " },
	{ OLDEST, "6Yc@1{1:n} 6Tc@2(5,1) 6Tx@3(5) 6Te@4(5) POc@5{1:p} PPc@6(5,1) PPx@7(5) PPe@8(5)",
	  "? 9/7: >n@3 <n@4 >p@7 <p@8 " },
	{ OLDEST, "VTe@4(5) VYc@5{1:late} VTc@6(5,1)", "? 9/7: <nosv task@4 " },

	/* Regions of the models, and what is no region. */
	{ OLDEST, "VAs@1 VAS@2 VSN@3 VSn@4 DR[@5 DR]@6 TCi@7 TCI@8",
	  "? 9/7: >nosv VAs@1 <nosv VAs@2 >nosv VSN@3 <nosv VSN@4 >nodes DR[@5 <nodes DR[@6 >tampi "
	  "TCi@7 <tampi TCi@8 " },
	{ OLDEST, "KCO@1 KCI@2 VS@@3 OB.@4 Zab@5 ZAb@6(1)",
	  "? 9/7: >kernel KCO@1 <kernel KCO@2 *nosv VS@@3 *ovni OB.@4 *ovni Zab@5 *ovni ZAb@6 " },
	{ OLDEST, "VSh@1 VSf@2 VPp@3 VPr@4 VPa@5",
	  "? 9/7: >nosv VSh@1 <nosv VSh@2 *nosv VPp@3 *nosv VPr@4 *nosv VPa@5 " },
	{ OLDEST, "POc@1{1:task} POc@1{2:loop} PPc@1(3,1) PPx@2(3) PQx@3(2) PQe@5(2) PPe@6(3)",
	  "? 9/7: >task@2 >loop@3 <loop@5 <task@6 " },

	/* CPUs: the thread moves; a CPU that is not listed. */
	{ OLDEST, "OHx@10(0,-1,0q) OF[@11 OHp@12 OHw@13 OAs@14(1) OHr@15 OF]@16 OHe@17",
	  "4 9/7: >ovni OF[@11 6 9/7: <ovni OF[@16 " },
	{ OLDEST, "OHx@10(-1,-1,0q) OF[@11 OAs@12(7) OF]@16 OHe@17",
	  "? 9/7: >ovni OF[@11 <ovni OF[@16 " },
	{ OLDEST, "OF[@11 OF]@16 OHx@17(1,-1,0q) OHe@17", "? 9/7: >ovni OF[@11 <ovni OF[@16 " },

	/* Version 3: header, metadata, marks. */
	{ NEWEST,
	  "h OHx@10(0,-1,0q) OM[@11(1q,0) OM[@12(-2q,0) OM]@13(-2q,0) OM[@14(3q,0) OM]@15(3q,0) "
	  "OM]@16(1q,0) OHe@17",
	  "4 9/7: >one@11 >two@12 <two@13 >Phase 3@14 <Phase 3@15 <one@16 " },
	{ NEWEST,
	  "h OM=@11(5q,99) OM=@12(0q,99) OM[@13(1q,42) OM]@14(1q,42) OM[@15(1q,100) OM]@16(1q,100)",
	  "? 9/7: *Progress 5@11 *Progress 0@12 >mark 42 1@13 <mark 42 1@14 >mark 100 1@15 <mark "
	  "100 1@16 " },
	{ NEW(""), "h OM[@11(1q,0) OM]@12(1q,0)", "? 9/7: >mark 0 1@11 <mark 0 1@12 " },
	{ NEW(",\"mark\":{\"0\":{\"labels\":{\"1\":\"a\\\"\\\\\\n\\ud83d\\ude00\\ud83dx\"}}}"),
	  "h OM[@11(1q,0) OM]@12(1q,0)", "? 9/7: >a\"\\\n😀�x@11 <a\"\\\n😀�x@12 " },
	{ "{\"ptd\":{\"name\":\"demo\"},\"version\":3,\"ovni\":{\"part\":\"thread\",\"finished\":1}"
	  "}",
	  "h OF[@11 OF]@12", "? ?/?: >ovni OF[@11 <ovni OF[@12 " },
	{ NEWEST, "OM[@11(1q,0) OM]@12(1q,0)", "? 9/7: >one@11 <one@12 " },

	/* What is left and was not entered, and the other way round. */
	{ NEWEST, "h OM]@11(1q,0) OM[@12(-2q,0)", "? 9/7: <one@11 >two@12 " },
	{ NEWEST, "h OM[@11(1q,0) OM[@12(-2q,0) OM]@13(1q,0) OM]@14(-2q,0)",
	  "? 9/7: >one@11 >two@12 <one@13 <two@14 " },
	{ OLDEST, "OU[@10 OF[@11 OF]@12 OU]@13 OCn@14(2) OAr@15(1,7)",
	  "? 9/7: >ovni OF[@11 <ovni OF[@12 " },
	{ OLDEST, "OHx@0xffffffffffffffff(0,-1,0q) OF[@0xffffffffffffffff",
	  "4 9/7: >ovni OF[@9223372036854775807 " },

	/* Spoiled: the stream ends inside an event, or inside a jumbo event's data. */
	{ NEWEST, "h OM[@11(1q,0) OM]@12(1q,0) -1",
	  "? 9/7: >one@11 [data cut off, 23] ;ovni/any/place/stream.obs: byte 32: the file ends "
	  "inside an event" },
	{ NEWEST, "h OM[@11(1q,0) OM]@12(1q,0) -13",
	  "? 9/7: >one@11 [data cut off, 11] ;ovni/any/place/stream.obs: byte 32: the file ends "
	  "inside an event" },
	{ NEWEST, "h OM[@11(1q,0) OM]@12(1q,0) -23",
	  "? 9/7: >one@11 [data cut off, 1] ;ovni/any/place/stream.obs: byte 32: the file ends "
	  "inside an event" },
	{ OLDEST, "OF[@5 OF]@6 VYc@7{1:work} -1",
	  "? 9/7: >ovni OF[@5 <ovni OF[@6 [data cut off, 24] ;ovni/loom.node/proc.9/thread.7: byte "
	  "24: the file ends inside an event" },
	{ OLDEST, "OF[@5 OF]@6 r13565963ebc14b1a96d01200 rffffffff r01000000",
	  "? 9/7: >ovni OF[@5 <ovni OF[@6 [data cut off, 20] ;ovni/loom.node/proc.9/thread.7: byte "
	  "24: the file ends inside an event" },
	{ OLDEST, "OF[@5 OF]@6 VYc@7{1:work} -9",
	  "? 9/7: >ovni OF[@5 <ovni OF[@6 [data cut off, 16] ;ovni/loom.node/proc.9/thread.7: byte "
	  "24: the file ends inside an event" },

	/* Bytes that are no event: flags, the size of a jumbo event, letters. */
	{ NEWEST, "h OM[@11(1q,0) r204f4d5d0c00000000000000 OM]@12(1q,0)",
	  "? 9/7: >one@11 [bad packet, 36] ;ovni/any/place/stream.obs: byte 32: an event with "
	  "unknown flags" },
	{ NEWEST, "h OM[@11(1q,0) r174f4d5d0c00000000000000 OM]@12(1q,0)",
	  "? 9/7: >one@11 [bad packet, 36] ;ovni/any/place/stream.obs: byte 32: a jumbo event "
	  "whose size has not 4 bytes" },
	{ NEWEST, "h OM[@11(1q,0) r0000000000000000000000000000000000 OM]@12(1q,0)",
	  "? 9/7: >one@11 [bad packet, 41] ;ovni/any/place/stream.obs: byte 32: an event whose "
	  "model, category or value is no character" },
	{ NEWEST, "h OM[@11(1q,0) r004fff5d0c00000000000000 OM]@12(1q,0)",
	  "? 9/7: >one@11 [bad packet, 36] ;ovni/any/place/stream.obs: byte 32: an event whose "
	  "model, category or value is no character" },
	/* The clock goes back. */
	{ NEWEST, "h OM[@11(1q,0) OM]@10(1q,0) OM[@9(1q,0) OM]@13(1q,0)",
	  "? 9/7: >one@11 <one@11 >one@11 <one@13 ;ovni/any/place/stream.obs: byte 32: the clock "
	  "goes back: time stands still until it is as late again" },
	/* Payloads that are too short, or missing. */
	{ NEWEST, "h OM[@11(1) OM]@12 OHx@13 VTx@14 VTc@15(1) OAs@16",
	  "? 9/7: >Phase 0@11 <Phase 0@12 >nosv task@14 " },
	{ OLDEST, "r1356596305000000000000000200000001 r00 OF[@6 OF]@7",
	  "? 9/7: >ovni OF[@6 <ovni OF[@7 " },

	/* What is no trace, or of another version. */
	{ NEWEST, "h2 OM[@11(1q,0)",
	  "!/ovni/any/place/stream.obs: byte 4: expected version 1 of streams" },
	{ NEWEST, "h OHx@10(0,-1,0q) OHe@11", "!: has no events but of threads' lives" },
	{ NEWEST, "h", "!: has no events but of threads' lives" },
	{ NEWEST, "", "!: has no events but of threads' lives" },
	{ OLDEST, "r204f4d5d0c00000000000000",
	  "!/ovni/loom.node/proc.9/thread.7: byte 0: an event with unknown flags" },
	{ "{\"version\":2,\"ovni\":{}}", "h OF[@1",
	  "!/ovni/any/place/stream.json: expected the metadata of version 3 of a trace of ovni" },
	{ "{\"version\":3,\"ovni\":{\"part\":\"cpu\"}}", "h OF[@1",
	  "!: has no events but of threads' lives" },
	{ "{\"version\":1,\"cpus\":[{\"index\":70000,\"phyid\":0}]}", "OF[@1",
	  "!/ovni/loom.node/proc.9/metadata.json: byte 46: expected the metadata of a trace of "
	  "ovni, in JSON" },
	{ "{\"version\":3,\"ovni\":{\"mark\":{\"100\":{}}}}", "h OF[@1",
	  "!/ovni/any/place/stream.json: byte 35: expected the metadata of a trace of ovni, in "
	  "JSON" },
	{ "{\"version\":3,\"ovni\":{\"mark\":{\"0\":{\"labels\":{\"1x\":\"\"}}}}}", "h OF[@1",
	  "!/ovni/any/place/stream.json: byte 49: expected the metadata of a trace of ovni, in "
	  "JSON" },
	{ "{\"version\":3,\"ovni\":{\"pid\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "h OF[@1",
	  "!/ovni/any/place/stream.json: byte 27: expected the metadata of a trace of ovni, in "
	  "JSON" },
	{ "{\"version\":3,\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "h OF[@1",
	  "!/ovni/any/place/stream.json: byte 48: expected the metadata of a trace of ovni, in "
	  "JSON" },
	{ "{\"version\":3,\"a\":\"\\ud83", "h OF[@1",
	  "!/ovni/any/place/stream.json: byte 20: expected the metadata of a trace of ovni, in "
	  "JSON" },
	{ "", "h OF[@1",
	  "!/ovni/any/place/stream.json: byte 0: expected the metadata of a trace of ovni, in "
	  "JSON" },
	{ "{\"version\":3,\"ovni\":{\"part\":\"thread\",\"pid\":9,\"tid\":7}}", "h OF[@1 OF]@2",
	  "? 9/7: >ovni OF[@1 <ovni OF[@2 ;ovni/any/place/stream.json: byte 0: the program did not "
	  "end its stream: events may be missing" },
};

static void put_stream(const char *name, const char *made)
{
	static uint8_t bytes[OVNIMADE_MAX];

	tempdir_put(dir, name, bytes, ovnimade_put(made, bytes));
}

static void put_trace(const struct row *row)
{
	const bool is_old = strncmp(row->meta, "{\"version\":1", 12) == 0;

	tempdir_make("ovnilog", dir);
	if (is_old) {
		tempdir_put_text(dir, "ovni/loom.node/proc.9/metadata.json", row->meta);
		put_stream("ovni/loom.node/proc.9/thread.7", row->stream);
	} else {
		tempdir_put_text(dir, "ovni/any/place/stream.json", row->meta);
		put_stream("ovni/any/place/stream.obs", row->stream);
	}
}

static void streams(void **state)
{
	bool is_right = true;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char *text;

		put_trace(&rows[i]);
		text = loggedread(dir, &(struct ptd_part){});
		if (strcmp(text, rows[i].text) != 0) {
			is_right = false;
			print_error("%s\n  %s\nnot %s\n", rows[i].stream, text, rows[i].text);
		}
		free(text);
		tempdir_remove(dir);
	}
	assert_true(is_right);
}

/* Two threads of process 9, each on two CPUs, of version 3; and one of process 10. */
static void put_threads(void)
{
	tempdir_make("ovnilog", dir);
	tempdir_put_text(dir, "a/stream.json", NEWEST);
	put_stream("a/stream.obs", "h OHx@100(0,-1,0q) OM[@101(1q,0) OM[@102(-2q,0) OM]@103(-2q,0) "
				   "OM]@104(1q,0) OHp@105 OHw@200 OAs@200(1) OHr@200 "
				   "OM[@200(1q,0) OM]@201(1q,0) OHe@202");
	tempdir_put_text(dir, "b/c/stream.json",
			 "{\"version\":3,\"ovni\":{\"part\":\"thread\",\"pid\":9,\"tid\":8,"
			 "\"loom\":\"node\",\"finished\":1}}");
	put_stream("b/c/stream.obs", "h OHx@150(1,-1,0q) OM[@151(3q,0) OM]@152(3q,0) OAs@250(0) "
				     "OM[@250(3q,0) OM]@251(3q,0)");
	tempdir_put_text(dir, "notes", "not a stream");
}

/* Version 1: one process of a loom has the CPUs of all; a process is one of its loom; and what is
 * called otherwise is no process or thread. */
static void looms(void **state)
{
	static const char work[] = "OHx@%d(1,-1,0q) VYc@%d{1:%s} VTc@%d(5,1) VTx@%d(5) VTe@%d(5)";
	static const struct {
		const char *process, *thread, *name;
		const char *meta; /* NULL: that of the thread before */
	} streams[] = {
		{ "a/ovni/loom.a/proc.9", "thread.7", "one", OLD("") },
		{ "a/ovni/loom.a/proc.10", "thread.8", "two", OLDEST },
		{ "a/ovni/loom.a/proc.10", "thread.8x", "no number", NULL },
		{ "a/ovni/loom.a/proc.10", "notes", "no thread", NULL },
		{ "a/ovni/loom.a/proc.x", "thread.9", "no process", OLDEST },
		{ "a/ovni/loom.b/proc.9", "thread.7.obs", "three",
		  OLD(",\"cpus\":[{\"index\":1,\"phyid\":14}]") },
		{ "a/ovni/loom.c/proc.11", "thread.4294967295", "four", OLD("") },
	};
	char *text;

	(void)state;
	tempdir_make("ovnilog", dir);
	for (int i = 0; i < (int)ARRAY_LEN(streams); i++) {
		const int t = 10 * i;
		char path[128], made[256];

		(void)snprintf(path, sizeof(path), "%s/metadata.json", streams[i].process);
		if (streams[i].meta)
			tempdir_put_text(dir, path, streams[i].meta);
		(void)snprintf(made, sizeof(made), work, t, t, streams[i].name, t, t, t + 1);
		for (char *space = strchr(made, '{'); space && *space != '}'; space++)
			if (*space == ' ')
				*space = '-';
		(void)snprintf(path, sizeof(path), "%s/%s", streams[i].process, streams[i].thread);
		put_stream(path, made);
	}
	/* The types of tasks are the process's. */
	put_stream("a/ovni/loom.a/proc.9/thread.12", "VTc@80(6,1) VTx@80(6) VTe@81(6)");
	tempdir_put_text(dir, "a/ovni/loom.d/proc.9/metadata.json", OLD(""));
	put_stream("a/ovni/loom.d/proc.9/thread.13", "VTc@90(6,1) VTx@90(6) VTe@91(6)");
	text = loggedread(dir, &(struct ptd_part){});
	assert_string_equal(
	    text,
	    "6 9/7: >one@0 <one@1 6 10/8: >two@10 <two@11 14 9/7: >three@50 <three@51 ? 11/?: "
	    ">four@60 <four@61 ? 9/12: >one@80 <one@81 ? 9/13: >nosv task@90 <nosv task@91 ");
	free(text);
	tempdir_remove(dir);
}

static void parts(void **state)
{
	static const uint32_t tid[] = { 8 }, cpu[] = { 6 };
	static const char *const symbol[] = { "one" }, *const object[] = { "[ovni]" };
	static const char *const none[] = { "none" };
	static const struct {
		struct ptd_part part;
		const char *text;
	} asked[] = {
		{ {},
		  "4 9/7: >one@101 >two@102 <two@103 <one@104 6 9/8: >Phase 3@151 <Phase 3@152 6 "
		  "9/7: "
		  ">one@200 <one@201 4 9/8: >Phase 3@250 <Phase 3@251 " },
		{ { .time = "0.000000102,0.000000201" },
		  "4 9/7: >two@102 <two@103 <one@104 6 9/8: >Phase 3@151 <Phase 3@152 6 9/7: "
		  ">one@200 " },
		{ { .tids = tid, .n_tids = 1 },
		  "6 9/8: >Phase 3@151 <Phase 3@152 4 9/8: >Phase 3@250 <Phase 3@251 " },
		{ { .cpus = cpu, .n_cpus = 1 },
		  "6 9/8: >Phase 3@151 <Phase 3@152 6 9/7: >one@200 <one@201 " },
		{ { .symbols = symbol, .n_symbols = 1 },
		  "4 9/7: >one@101 <one@104 6 9/7: >one@200 <one@201 " },
		{ { .objects = object, .n_objects = 1, .tids = tid, .n_tids = 1 },
		  "6 9/8: >Phase 3@151 <Phase 3@152 4 9/8: >Phase 3@250 <Phase 3@251 " },
		{ { .objects = none, .n_objects = 1 }, "" },
		{ { .last = 5 }, "!: has no instructions, and the last ones are asked for" },
	};

	(void)state;
	put_threads();
	for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
		char *text = loggedread(dir, &asked[i].part);

		assert_string_equal(text, asked[i].text);
		free(text);
	}
	tempdir_remove(dir);
}

/* A stream that is cut off or rewritten while it is read is an error. */
static void changed(void **state)
{
	static const char *const others[] = { "h OM[@11(1q,0)", "h OM[@11(1q,0) r20",
					      "h OM[@11(1q,0) OM]@12(5q,0)" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		const struct ptd_options options = { .size = sizeof(options), .input = dir };
		const struct ptd_logged *logged;
		struct ptd_decoder *d;
		int r;

		put_threads();
		put_stream("a/stream.obs", "h OM[@11(1q,0) OM]@12(1q,0)");
		assert_int_equal(ptd_decoder_new(&options, &d, NULL), 0);
		put_stream("a/stream.obs", others[i]);
		while ((r = ptd_decoder_next_logged(d, &logged)) == 0)
			;
		assert_int_equal(r, -ESTALE);
		assert_string_equal(loggedread_without_path(ptd_decoder_message(d), dir),
				    "/a/stream.obs: was changed while it was read");
		ptd_decoder_free(d);
		tempdir_remove(dir);
	}
}

static void clocks(void **state)
{
#define TITLES "rank hostname offset_median offset_mean offset_std\n"
	static const struct {
		const char *text, *calls; /* NULL: the file is refused */
	} files[] = {
		{ TITLES "0 a 0.0 0.0 0.0\n1 b -900.0 -900.5 1.0\n",
		  "? 9/7: >nosv task@1000 <nosv task@1010 ? 9/8: >nosv task@1000 <nosv "
		  "task@1010 " },
		{ TITLES "0 a 1.9 2 0\n\n1 b -9.0e+02 0 0",
		  "? 9/8: >nosv task@1000 <nosv task@1010 ? 9/7: >nosv task@1001 <nosv "
		  "task@1011 " },
		{ TITLES "0 c 100 100 0\n", "? 9/7: >nosv task@1000 <nosv task@1010 ? 9/8: >nosv "
					    "task@1900 <nosv task@1910 " },
		{ "", "? 9/7: >nosv task@1000 <nosv task@1010 ? 9/8: >nosv task@1900 <nosv "
		      "task@1910 " },
		{ TITLES "0 b -5000 0 0\n",
		  "? 9/8: >nosv task@0 <nosv task@0 ? 9/7: >nosv task@1000 <nosv task@1010 " },
		{ TITLES "0 a 0.0 0.0\n", NULL },
		{ TITLES "0 a x 0.0 0.0\n", NULL },
		{ TITLES "0 a nan 0.0 0.0\n", NULL },
		{ TITLES "0 a 1e300 0.0 0.0\n", NULL },
		{ TITLES "0 a 0 0 0 0\n", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		char *text;

		print_message("  %s\n", files[i].text);
		tempdir_make("ovnilog", dir);
		tempdir_put_text(dir, "loom.a.1/proc.9/metadata.json", OLD(""));
		tempdir_put_text(dir, "loom.b.example/proc.9/metadata.json", OLD(""));
		put_stream("loom.a.1/proc.9/thread.7", "VTc@1000(5,1) VTx@1000(5) VTe@1010(5)");
		put_stream("loom.b.example/proc.9/thread.8",
			   "VTc@1900(5,1) VTx@1900(5) VTe@1910(5)");
		tempdir_put_text(dir, "clock-offsets.txt", files[i].text);
		text = loggedread(dir, &(struct ptd_part){});
		if (files[i].calls)
			assert_string_equal(text, files[i].calls);
		else
			assert_non_null(strstr(text, "clock-offsets.txt: line 2: expected"));
		free(text);
		tempdir_remove(dir);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams), cmocka_unit_test(looms),   cmocka_unit_test(clocks),
		cmocka_unit_test(parts),   cmocka_unit_test(changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
