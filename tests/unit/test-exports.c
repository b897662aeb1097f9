/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The exports of calls: one stream, and every byte that each of them makes of it. Real readers
 * judge what these bytes mean, in tests/integration/test-exports.sh.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "base/base.h"
#include "decoder/sink/sink.h"
#include "ptd/calls.h"
#include "ptd/decode.h"
#include "tests/lib/kinds.h"

#define EXPORT_MAX ((size_t)1 << 16)

static const struct ptd_symbol symbols[] = {
	{ .name = "" },
	{ .name = "f", .address = 0x1000 },
	{ .name = "say \"hi\\;\"\n", .address = 0x2000 },
};

static const struct ptd_symbol *const by_id[] = { &symbols[0], &symbols[1], &symbols[2] };
static const struct ptd_object object = { .name = "/bin/demo" };

static const struct ptd_slice slices[] = {
	{ .id = 0, .cpu = 2, .pid = 5, .tid = 7, .t0 = 1000, .comm = "demo" },
	/* Its name is not known, and nothing runs but what is not in the trace. */
	{ .id = 1, .cpu = 0, .pid = 0, .tid = 0, .t0 = 1100, .comm = "" },
};

/* f was open before; behind the gap it still is. */
static const struct ptd_logged_call calls[] = {
	{ .t = 1010, .symbol = 2, .kind = PTD_LOGGED_ENTER },
	{ .t = 1020, .symbol = 2, .kind = PTD_LOGGED_LEAVE },
	{ .t = 1030, .symbol = 1, .kind = PTD_LOGGED_LEAVE },
	{ .t = 1040, .symbol = 1, .kind = PTD_LOGGED_ENTER },
	{ .t = 2070, .symbol = 2, .kind = PTD_LOGGED_ENTER },
	{ .t = 2080, .symbol = 2, .kind = PTD_LOGGED_LEAVE },
	{ .t = 2090, .symbol = 1, .kind = PTD_LOGGED_LEAVE },
};

static const struct ptd_mark marks[] = {
	{ .kind = PTD_MARK_PTWRITE, .run = 1, .t = 1015, .value = 42, .ip = 0x2004 },
	/* What the thread noted itself: f, in which another region begins and stays open. */
	{ .kind = PTD_MARK_BEGIN, .run = 2, .t = 1022, .value = 1 },
	{ .kind = PTD_MARK_POINT, .run = 2, .t = 1023, .value = 2 },
	{ .kind = PTD_MARK_BEGIN, .run = 2, .t = 1024, .value = 2 },
	{ .kind = PTD_MARK_END, .run = 2, .t = 1025, .value = 1 },
	{ .kind = PTD_MARK_GAP, .run = 4, .reason = PTD_GAP_OVERFLOW, .t = 1060, .n_bytes = 9 },
};

struct fixture {
	struct ptd_info info;
	struct sink *sink;
	int fd;
	char *bytes; /* what the sink wrote */
	size_t size;
};

/* @form: the kind, and perhaps an option behind a colon. */
static void begin(struct fixture *f, const char *form)
{
	const char *const options[] = { strchr(form, ':') ? strchr(form, ':') + 1 : NULL, NULL };
	struct sink_config config = { .info = &f->info };
	char kind[32];

	*f = (struct fixture){
		.info = { .clock = PTD_CLOCK_NS, .logs_calls = true, .snapshot_taken = 3000 },
		.fd = memfd_create("export", MFD_CLOEXEC),
	};
	assert_true(f->fd >= 0);
	config.fd = fcntl(f->fd, F_DUPFD_CLOEXEC, 0);
	if (options[0])
		config.options = options;
	(void)snprintf(kind, sizeof(kind), "%.*s", (int)strcspn(form, ":"), form);
	assert_int_equal(sink_new(sink_find(kind), &config, &f->sink, NULL), 0);
	if (sink_wants_sideband(f->sink))
		assert_int_equal(
		    sink_take_sideband(f->sink, &(struct ptd_sideband){ .kind = PTD_SIDEBAND_SIGNAL,
									.t = 1050,
									.pid = 5,
									.tid = 7,
									.signal = 11,
									.code = -6,
									.address = 0x1234 }),
		    0);
}

static void put_stream(struct fixture *f)
{
	struct ptd_logged_call of_object[ARRAY_LEN(calls)];
	struct ptd_logged logged = { .batch = { .slice = &slices[0],
						.symbols = by_id,
						.n_symbols = ARRAY_LEN(by_id),
						.marks = marks,
						.n_marks = ARRAY_LEN(marks) },
				     .calls = of_object,
				     .n_calls = ARRAY_LEN(of_object) };

	memcpy(of_object, calls, sizeof(calls));
	for (size_t i = 0; i < ARRAY_LEN(of_object); i++)
		of_object[i].object = &object;
	assert_int_equal(sink_logged(f->sink, &logged), 0);
	logged.batch.slice = &slices[1];
	logged.batch.marks = NULL;
	logged.batch.n_marks = 0;
	logged.calls = &of_object[3];
	logged.n_calls = 1;
	assert_int_equal(sink_logged(f->sink, &logged), 0);
}

static void end(struct fixture *f)
{
	ssize_t n;

	assert_int_equal(sink_finish(f->sink, &(struct ptd_stats){}), 0);
	f->sink = sink_free(f->sink);
	f->bytes = calloc(EXPORT_MAX, 1);
	assert_non_null(f->bytes);
	n = pread(f->fd, f->bytes, EXPORT_MAX - 1, 0);
	assert_true(n > 0);
	f->size = (size_t)n;
}

static void deinit(struct fixture *f)
{
	free(f->bytes);
	(void)fd_close(f->fd);
}

/* The version stands as "V". */
static void hide_version(struct fixture *f)
{
	char *p = strstr(f->bytes, "ptdecode ");
	const char *rest = p ? p + strlen("ptdecode ") + strlen(ptd_version()) : NULL;

	if (!p)
		return;
	p += strlen("ptdecode ");
	*p++ = 'V';
	memmove(p, rest, strlen(rest) + 1);
}

static void assert_export(const char *kind, const char *expected)
{
	struct fixture f;

	begin(&f, kind);
	put_stream(&f);
	end(&f);
	hide_version(&f);
	assert_string_equal(f.bytes, expected);
	deinit(&f);
}

static void collapsed(void **state)
{
	(void)state;
	assert_export("collapsed", "demo;f 20\n"
				   "demo;f;say \"hi\\:\"? 20\n");
	assert_export("collapsed:unit=ns", "demo;f 20\n"
					   "demo;f;say \"hi\\:\"? 20\n");
}

static void callgrind(void **state)
{
	(void)state;
	assert_export("callgrind", "# callgrind format\n"
				   "version: 1\n"
				   "creator: ptdecode V\n"
				   "positions: line\n"
				   "events: ns\n"
				   "summary: 40\n"
				   "\n"
				   "ob=(1) /bin/demo\n"
				   "fl=(1) ???\n"
				   "fn=(1) say \"hi\\;\"?\n"
				   "0 20\n"
				   "\n"
				   "ob=(1)\n"
				   "fl=(1)\n"
				   "fn=(2) f\n"
				   "0 20\n"
				   "cob=(1)\n"
				   "cfi=(1)\n"
				   "cfn=(1)\n"
				   "calls=2 0\n"
				   "0 20\n"
				   "\n"
				   "ob=(0) ???\n"
				   "fl=(1)\n"
				   "fn=(3) [thread demo]\n"
				   "0 0\n"
				   "cob=(1)\n"
				   "cfi=(1)\n"
				   "cfn=(2)\n"
				   "calls=3 0\n"
				   "0 40\n"
				   "\n"
				   "ob=(0)\n"
				   "fl=(1)\n"
				   "fn=(4) [thread ?]\n"
				   "0 0\n"
				   "cob=(1)\n"
				   "cfi=(1)\n"
				   "cfn=(2)\n"
				   "calls=1 0\n"
				   "0 0\n");
}

static void chrome(void **state)
{
	(void)state;
	assert_export(
	    "chrome",
	    "{\n"
	    " \"displayTimeUnit\": \"ns\",\n"
	    " \"traceEvents\": [\n"
	    "  {\"ph\": \"M\", \"pid\": 5, \"tid\": 7, \"name\": \"process_name\","
	    " \"args\": {\"name\": \"demo\"}},\n"
	    "  {\"ph\": \"M\", \"pid\": 5, \"tid\": 7, \"name\": \"thread_name\","
	    " \"args\": {\"name\": \"demo\"}},\n"
	    "  {\"ph\": \"M\", \"pid\": 8388607, \"tid\": 2, \"name\":"
	    " \"process_name\", \"args\": {\"name\": \"CPUs\"}},\n"
	    "  {\"ph\": \"M\", \"pid\": 8388607, \"tid\": 2, \"name\":"
	    " \"thread_name\", \"args\": {\"name\": \"CPU 2\"}},\n"
	    "  {\"ph\": \"B\", \"ts\": 1.000, \"pid\": 8388607, \"tid\": 2,"
	    " \"name\": \"demo\", \"cat\": \"cpu\", \"args\": {\"pid\": 5,"
	    " \"tid\": 7}},\n"
	    "  {\"ph\": \"B\", \"ts\": 1.010, \"pid\": 5, \"tid\": 7, \"name\":"
	    " \"say \\\"hi\\\\;\\\"\\u000a\", \"cat\": \"user\", \"args\":"
	    " {\"address\": \"0x2000\", \"object\": \"/bin/demo\"}},\n"
	    "  {\"ph\": \"i\", \"ts\": 1.015, \"pid\": 5, \"tid\": 7, \"name\":"
	    " \"ptwrite\", \"cat\": \"mark\", \"s\": \"t\", \"args\": {\"value\":"
	    " \"0x2a\", \"extra\": \"0x0\", \"address\": \"0x2004\"}},\n"
	    "  {\"ph\": \"E\", \"ts\": 1.020, \"pid\": 5, \"tid\": 7, \"name\": \"say "
	    "\\\"hi\\\\;\\\"\\u000a\"},\n"
	    "  {\"ph\": \"M\", \"pid\": 5, \"tid\": 8388609, \"name\": \"thread_name\", \"args\": "
	    "{\"name\": \"demo 7, events\"}},\n"
	    "  {\"ph\": \"B\", \"ts\": 1.022, \"pid\": 5, \"tid\": 8388609, \"name\": \"f\", "
	    "\"cat\": \"event\", \"args\": {}},\n"
	    "  {\"ph\": \"i\", \"ts\": 1.023, \"pid\": 5, \"tid\": 8388609, \"name\": \"say "
	    "\\\"hi\\\\;\\\"\\u000a\", \"cat\": \"event\", \"s\": \"t\", \"args\": {}},\n"
	    "  {\"ph\": \"B\", \"ts\": 1.024, \"pid\": 5, \"tid\": 8388609, \"name\": \"say "
	    "\\\"hi\\\\;\\\"\\u000a\", \"cat\": \"event\", \"args\": {}},\n"
	    "  {\"ph\": \"E\", \"ts\": 1.025, \"pid\": 5, \"tid\": 8388609, \"name\": \"say "
	    "\\\"hi\\\\;\\\"\\u000a\"},\n"
	    "  {\"ph\": \"E\", \"ts\": 1.025, \"pid\": 5, \"tid\": 8388609, \"name\": \"f\"},\n"
	    "  {\"ph\": \"B\", \"ts\": 1.025, \"pid\": 5, \"tid\": 8388609, \"name\": \"say "
	    "\\\"hi\\\\;\\\"\\u000a\", \"cat\": \"event\", \"args\": {}},\n"
	    "  {\"ph\": \"B\", \"ts\": 1.009, \"pid\": 5, \"tid\": 7, \"name\":"
	    " \"f\", \"cat\": \"user\", \"args\": {\"address\": \"0x1000\","
	    " \"object\": \"/bin/demo\", \"entered_by\": \"inference\"}},\n"
	    "  {\"ph\": \"E\", \"ts\": 1.030, \"pid\": 5, \"tid\": 7, \"name\": \"f\"},\n"
	    "  {\"ph\": \"B\", \"ts\": 1.040, \"pid\": 5, \"tid\": 7, \"name\":"
	    " \"f\", \"cat\": \"user\", \"args\": {\"address\": \"0x1000\","
	    " \"object\": \"/bin/demo\"}},\n"
	    "  {\"ph\": \"E\", \"ts\": 1.060, \"pid\": 5, \"tid\": 7, \"name\": \"f\", \"args\":"
	    " {\"left_by\": \"gap\"}},\n"
	    "  {\"ph\": \"B\", \"ts\": 1.060, \"pid\": 5, \"tid\": 7, \"name\":"
	    " \"gap: overflow\", \"cat\": \"gap\", \"args\": {\"bytes_lost\":"
	    " 9}},\n"
	    "  {\"ph\": \"E\", \"ts\": 1.749, \"pid\": 5, \"tid\": 7, \"name\": \"gap: "
	    "overflow\"},\n"
	    "  {\"ph\": \"B\", \"ts\": 2.070, \"pid\": 5, \"tid\": 7, \"name\":"
	    " \"say \\\"hi\\\\;\\\"\\u000a\", \"cat\": \"user\", \"args\":"
	    " {\"address\": \"0x2000\", \"object\": \"/bin/demo\"}},\n"
	    "  {\"ph\": \"E\", \"ts\": 2.080, \"pid\": 5, \"tid\": 7, \"name\": \"say "
	    "\\\"hi\\\\;\\\"\\u000a\"},\n"
	    "  {\"ph\": \"B\", \"ts\": 2.069, \"pid\": 5, \"tid\": 7, \"name\":"
	    " \"f\", \"cat\": \"user\", \"args\": {\"address\": \"0x1000\","
	    " \"object\": \"/bin/demo\", \"entered_by\": \"resumption\"}},\n"
	    "  {\"ph\": \"E\", \"ts\": 2.090, \"pid\": 5, \"tid\": 7, \"name\": \"f\"},\n"
	    "  {\"ph\": \"E\", \"ts\": 2.090, \"pid\": 8388607, \"tid\": 2, \"name\": \"demo\"},\n"
	    "  {\"ph\": \"M\", \"pid\": 0, \"tid\": 0, \"name\": \"process_name\","
	    " \"args\": {\"name\": \"?\"}},\n"
	    "  {\"ph\": \"M\", \"pid\": 0, \"tid\": 0, \"name\": \"thread_name\","
	    " \"args\": {\"name\": \"?\"}},\n"
	    "  {\"ph\": \"M\", \"pid\": 8388607, \"tid\": 0, \"name\":"
	    " \"process_name\", \"args\": {\"name\": \"CPUs\"}},\n"
	    "  {\"ph\": \"M\", \"pid\": 8388607, \"tid\": 0, \"name\":"
	    " \"thread_name\", \"args\": {\"name\": \"CPU 0\"}},\n"
	    "  {\"ph\": \"B\", \"ts\": 1.100, \"pid\": 8388607, \"tid\": 0,"
	    " \"name\": \"?\", \"cat\": \"cpu\", \"args\": {\"pid\": 0, \"tid\":"
	    " 0}},\n"
	    "  {\"ph\": \"B\", \"ts\": 1.040, \"pid\": 0, \"tid\": 0, \"name\":"
	    " \"f\", \"cat\": \"user\", \"args\": {\"address\": \"0x1000\","
	    " \"object\": \"/bin/demo\"}},\n"
	    "  {\"ph\": \"E\", \"ts\": 1.040, \"pid\": 0, \"tid\": 0, \"name\": \"f\", \"args\":"
	    " {\"left_by\": \"end\"}},\n"
	    "  {\"ph\": \"E\", \"ts\": 1.100, \"pid\": 8388607, \"tid\": 0, \"name\": \"?\"},\n"
	    "  {\"ph\": \"E\", \"ts\": 2.090, \"pid\": 5, \"tid\": 8388609, \"name\": \"say "
	    "\\\"hi\\\\;\\\"\\u000a\"},\n"
	    "  {\"ph\": \"i\", \"ts\": 1.050, \"pid\": 5, \"tid\": 7, \"name\":"
	    " \"signal 11\", \"cat\": \"signal\", \"s\": \"t\", \"args\":"
	    " {\"code\": -6, \"handler\": \"0x1234\"}},\n"
	    "  {\"ph\": \"M\", \"pid\": 8388606, \"tid\": 8388606, \"name\":"
	    " \"process_name\", \"args\": {\"name\": \"snapshot\"}},\n"
	    "  {\"ph\": \"M\", \"pid\": 8388606, \"tid\": 8388606, \"name\":"
	    " \"thread_name\", \"args\": {\"name\": \"snapshot\"}},\n"
	    "  {\"ph\": \"i\", \"ts\": 3.000, \"pid\": 8388606, \"tid\": 8388606,"
	    " \"name\": \"snapshot\", \"cat\": \"mark\", \"s\": \"t\", \"args\":"
	    " {}}\n"
	    " ]\n"
	    "}\n");
}

/* The words of each record behind the strings that every file has, which end with the reasons of
 * gaps. */
static void fxt(void **state)
{
	static const char expected[] =
	    "0000008004010037 0000000000000005 000000006f6d6564\n"
	    "0000018004020057 0000000000000007 000000006f6d6564 00000000000e0028 0000000000000005\n"
	    "1000002000210058 00000000000003e8 0000000000000000 0000000000000007 8000000000110011\n"
	    "0000000b00550032 5c69682220796173 00000000003f223b\n"
	    "0000000900560032 6d65642f6e69622f 000000000000006f\n"
	    "0000000000020033 0000000000000005 0000000000000007\n"
	    "0055001202220054 00000000000003f2 0000000000010027 0000000000002000 0000005600020016\n"
	    "002d001602300084 00000000000003f7 00000000000a0024 000000000000002a 00000000000b0024 "
	    "0000000000000000 0000000000010027 0000000000002004\n"
	    "0000000002030024 00000000000003fc\n"
	    "000001800e020067 0000000000800001 202c37206f6d6564 000073746e657665 00000000000e0028 "
	    "0000000000000005\n"
	    "0000000000030033 0000000000000005 0000000000800001\n"
	    "8001001803020034 00000000000003fe 0000000000000066\n"
	    "800b001803000044 00000000000003ff 5c69682220796173 00000000003f223b\n"
	    "800b001803020044 0000000000000400 5c69682220796173 00000000003f223b\n"
	    "0000000003030024 0000000000000401\n"
	    "0000000003030024 0000000000000401\n"
	    "800b001803020044 0000000000000401 5c69682220796173 00000000003f223b\n"
	    "0000000100570022 0000000000000066\n"
	    "0057001202320064 00000000000003f1 0000000000010027 0000000000001000 0000005600020016 "
	    "0000001e00050016\n"
	    "0000000002030024 0000000000000406\n"
	    "0057001202220054 0000000000000410 0000000000010027 0000000000001000 0000005600020016\n"
	    "0000000002130034 0000000000000424 0000002300060016\n"
	    "003e001502120044 0000000000000424 0000000000090024 0000000000000009\n"
	    "0000000002030024 00000000000006d5\n"
	    "0055001202220054 0000000000000816 0000000000010027 0000000000002000 0000005600020016\n"
	    "0000000002030024 0000000000000820\n"
	    "0057001202320064 0000000000000815 0000000000010027 0000000000001000 0000005600020016 "
	    "0000001f00050016\n"
	    "0000000002030024 000000000000082a\n"
	    "1000002000210058 000000000000082a 0000000000000007 0000000000000000 8000000000100011\n"
	    "0000008001010037 0000000000000000 000000000000003f\n"
	    "0000018001020057 0000000000000000 000000000000003f 00000000000e0028 0000000000000000\n"
	    "1000002000010058 000000000000044c 0000000000000000 0000000000000000 8000000000110011\n"
	    "0000000000040033 0000000000000000 0000000000000000\n"
	    "0057001204220054 0000000000000410 0000000000010027 0000000000001000 0000005600020016\n"
	    "0000000004130034 0000000000000410 0000002400060016\n"
	    "1000002000010058 000000000000044c 0000000000000000 0000000000000000 8000000000100011\n"
	    "0000000003030024 000000000000082a\n"
	    "8009001702200074 000000000000041a 31206c616e676973 0000000000000031 fffffffa000c0011 "
	    "00000000000d0027 0000000000001234\n"
	    "0000008008010037 00000000007ffffe 746f687370616e73\n"
	    "0000018008020057 00000000007ffffe 746f687370616e73 00000000000e0028 00000000007ffffe\n"
	    "0000000000050033 00000000007ffffe 00000000007ffffe\n"
	    "000f001605000024 0000000000000bb8\n";
	char text[4096];
	const uint64_t *words;
	size_t i = 1, n = 0, n_words;
	struct fixture f;

	(void)state;
	begin(&f, "fxt");
	put_stream(&f);
	end(&f);
	words = (const uint64_t *)(const void *)f.bytes;
	n_words = f.size / sizeof(*words);
	assert_int_equal(words[0], 0x0016547846040010);
	while (i < n_words) {
		const size_t size = words[i] >> 4 & 0xfff;
		const bool is_shown = n > 0 || (i > 10 && (words[i] & 15) != 2);

		assert_true(size > 0 && size <= n_words - i);
		for (size_t k = 0; k < size && is_shown; k++)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%016" PRIx64 "%c",
					      words[i + k], k + 1 < size ? ' ' : '\n');
		assert_true(n < sizeof(text));
		i += size;
	}
	assert_string_equal(text, expected);
	deinit(&f);
}

static void pprof(void **state)
{
	static const char expected[] =
	    "0a04080110020a04080310047003120d0a0102120203141a0408061007120e0a020102120202141a"
	    "0408061007120d0a0102120201001a04080610081a0c0801280938014001480150012a060801100a"
	    "2009220b08011001188040220208012a060802100b2009220b0802100118802022020802"
	    "3200320563616c6c733205636f756e74320474696d65320b6e616e6f7365636f6e6473320c696e73"
	    "7472756374696f6e733206746872656164320464656d6f32013f32092f62696e2f64656d6f320b73"
	    "6179202268695c3b223f320166";
	uint8_t bytes[4096];
	z_stream stream = { .next_out = bytes, .avail_out = sizeof(bytes) };
	char text[2 * sizeof(bytes) + 1] = "";
	struct fixture f;

	(void)state;
	begin(&f, "pprof");
	put_stream(&f);
	end(&f);
	stream.next_in = (uint8_t *)f.bytes;
	stream.avail_in = (uint32_t)f.size;
	assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
	assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
	assert_int_equal(stream.avail_in, 0);
	for (size_t i = 0; i < stream.total_out; i++)
		(void)snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	assert_string_equal(text, expected);
	assert_int_equal(inflateEnd(&stream), Z_OK);
	deinit(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(collapsed), cmocka_unit_test(callgrind), cmocka_unit_test(chrome),
		cmocka_unit_test(fxt),       cmocka_unit_test(pprof),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
