/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/trace/overlap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "util/window.h"

/* Pieces of PT; each "P" of their text is a PSB, "T" and a digit a TSC, "0" a pad, "." and a digit
 * a TNT that is not like others. */
struct piece {
	uint8_t bytes[512];
	size_t size;
};

static void put(struct piece *p, const void *bytes, size_t n)
{
	assert_true(p->size + n <= sizeof(p->bytes));
	memcpy(p->bytes + p->size, bytes, n);
	p->size += n;
}

static struct piece piece(const char *text)
{
	static const uint8_t psb[16] = { 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
					 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82 };
	struct piece p = {};

	for (; *text; text++) {
		const uint8_t digit = (uint8_t)text[1];

		switch (*text) {
		case 'P':
			put(&p, psb, sizeof(psb));
			break;
		case 'T':
			put(&p, (const uint8_t[]){ 0x19, digit, 0, 0, 0, 0, 0, 0 }, 8);
			text++;
			break;
		case '0':
			put(&p, (const uint8_t[]){ 0 }, 1);
			break;
		case '.':
			put(&p, (const uint8_t[]){ (uint8_t)(0x80 | digit << 1) }, 1);
			text++;
			break;
		}
	}
	return p;
}

struct outcome {
	bool found;
	uint64_t before, repeated, padding;
};

static struct outcome find_in(const struct piece *a, const struct piece *b, bool has_tsc,
			      size_t window)
{
	const struct fileparts parts[] = { fileparts_in_memory(a->bytes, a->size),
					   fileparts_in_memory(b->bytes, b->size) };
	struct window windows[2];
	struct outcome o = {};

	for (size_t i = 0; i < 2; i++)
		window_init(&windows[i], &parts[i], window);
	o.found =
	    overlap_find(&windows[0], &windows[1], has_tsc, &o.before, &o.repeated, &o.padding);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(windows[i].error, 0);
		window_deinit(&windows[i]);
	}
	return o;
}

/* Return: what is found, whatever the windows hold. */
static struct outcome find(const struct piece *a, const struct piece *b, bool has_tsc)
{
	const struct outcome o = find_in(a, b, has_tsc, 0);

	for (size_t window = OVERLAP_WINDOW_MIN; window < 2 * OVERLAP_WINDOW_MIN; window += 5) {
		const struct outcome same = find_in(a, b, has_tsc, window);

		assert_int_equal(same.found, o.found);
		if (o.found)
			assert_true(same.before == o.before && same.repeated == o.repeated &&
				    same.padding == o.padding);
	}
	return o;
}

static void together(void **state)
{
	static const struct {
		const char *title, *earlier, *later;
		struct outcome expected;
	} rows[] = {
		{ "the same", "PT1.1", "PT1.1", { true, 0, 25, 0 } },
		{ "more behind it", "PT1.1", "PT1.1.2.3", { true, 0, 25, 0 } },
		{ "less before it", ".5.6PT1.1", "PT1.1.2", { true, 0, 25, 0 } },
		{ "more before it", "PT1.1", ".5.6PT1.1.2", { true, 2, 25, 0 } },
		{ "the second of two", "PT1.1PT2.2", ".2PT1.1PT2.2.3", { true, 1, 50, 0 } },
		{ "less of what is before the second",
		  "PT1.1PT2.2",
		  "PT2.2.3",
		  { true, 0, 25, 0 } },
		{ "padded", "PT1.1000", "PT1.1.2.3.4", { true, 0, 25, 3 } },
		{ "padded to the most", "PT1.10000000", "PT1.1.2.3.4.5.6.7.8", { true, 0, 25, 7 } },
		{ "padding that is of the stream", "PT1.10", "PT1.10.2", { true, 0, 26, 0 } },
		{ "too much padding", "PT1.100000000", "PT1.1.2.3.4.5.6.7.8.9", {} },
		{ "another time", "PT1.1", "PT2.1", {} },
		{ "another end", "PT1.1", "PT1.2", {} },
		{ "another beginning", ".5PT1.1", ".6PT1.1", {} },
		{ "no PSB", "T1.1", "T1.1", {} },
		{ "no PSB in the later one", "PT1.1", "T1.1", {} },
		{ "the later one ends in the time", "PT1.1", "P", {} },
		{ "the later one ends before the earlier",
		  "PT1.1.2.3",
		  "PT1.1.2",
		  { true, 0, 26, 0 } },
		{ "the last PSB has no time", "PT1.1P.2", "PT1.1P.2.3", { true, 0, 42, 0 } },
		{ "no PSB has a time", "P.1", "P.1", {} },
		{ "nothing at all", "", "PT1", {} },
		{ "nothing later", "PT1", "", {} },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct piece a = piece(rows[i].earlier), b = piece(rows[i].later);
		const struct outcome o = find(&a, &b, true);

		print_message("  %s\n", rows[i].title);
		assert_int_equal(o.found, rows[i].expected.found);
		if (!o.found)
			continue;
		assert_int_equal(o.before, rows[i].expected.before);
		assert_int_equal(o.repeated, rows[i].expected.repeated);
		assert_int_equal(o.padding, rows[i].expected.padding);
	}
}

static void without_time(void **state)
{
	static const struct {
		const char *title, *earlier, *later;
		struct outcome expected;
	} rows[] = {
		{ "any PSB will do", "P.1", "P.1.2", { true, 0, 17, 0 } },
		{ "the last one", "P.1P.2", "P.2.3", { true, 0, 17, 0 } },
		{ "the longest overlap", "P.1P.1", "P.1P.1.2", { true, 0, 34, 0 } },
		{ "another", "P.1", "P.2", {} },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct piece a = piece(rows[i].earlier), b = piece(rows[i].later);
		const struct outcome o = find(&a, &b, false);

		print_message("  %s\n", rows[i].title);
		assert_int_equal(o.found, rows[i].expected.found);
		if (o.found)
			assert_int_equal(o.repeated, rows[i].expected.repeated);
	}
}

#define PACKET(...)                                                               \
	{                                                                         \
		.n = sizeof((uint8_t[]){ __VA_ARGS__ }), .bytes = { __VA_ARGS__ } \
	}

/* What may stand between a PSB and its time, and what may not. Each has a TSC's first byte in it,
 * if it can, so that it matters how long it is. */
static void between(void **state)
{
	static const struct {
		const char *title;
		struct {
			size_t n;
			uint8_t bytes[12];
		} packet;
		bool expected;
	} rows[] = {
		{ "nothing", { 0, {} }, true },
		{ "PAD", PACKET(0), true },
		{ "MODE", PACKET(0x99, 0x19), true },
		{ "MTC", PACKET(0x59, 0x19), true },
		{ "CBR", PACKET(0x02, 0x03, 0x19, 0x19), true },
		{ "TMA", PACKET(0x02, 0x73, 0x19, 0, 0, 0x19, 0), true },
		{ "VMCS", PACKET(0x02, 0xc8, 0x19, 0, 0, 0, 0x19), true },
		{ "PIP", PACKET(0x02, 0x43, 0x19, 0, 0, 0, 0, 0x19), true },
		{ "FUP without IP", PACKET(0x1d), true },
		{ "FUP of 2 bytes", PACKET(0x3d, 0x19, 0x19), true },
		{ "FUP of 4 bytes", PACKET(0x5d, 0x19, 0, 0, 0x19), true },
		{ "FUP of 6 bytes", PACKET(0x7d, 0x19, 0, 0, 0, 0, 0x19), true },
		{ "FUP of 6 bytes, upper ones known", PACKET(0x9d, 0x19, 0, 0, 0, 0, 0x19), true },
		{ "FUP of 8 bytes", PACKET(0xdd, 0x19, 0, 0, 0, 0, 0, 0, 0x19), true },
		{ "FUP of a kind that is none", PACKET(0xbd), false },
		{ "FUP of the other kind that is none", PACKET(0xfd), false },
		{ "CYC", PACKET(0x03), true },
		{ "CYC of 2 bytes", PACKET(0x07, 0x18), true },
		{ "CYC of 4 bytes", PACKET(0x07, 0x19, 0x19, 0x18), true },
		{ "two packets", PACKET(0x02, 0x03, 0x19, 0x19, 0x99, 0x19), true },
		{ "PSBEND", PACKET(0x02, 0x23), false },
		{ "TNT", PACKET(0x06), false },
		{ "TIP", PACKET(0x0d), false },
		{ "OVF", PACKET(0x02, 0xf3), false },
		{ "half of an extended packet", PACKET(0x02), false },
	};
	static const uint8_t tsc[8] = { 0x19, 7, 7, 7, 7, 7, 7, 7 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct piece a = piece("P"), b;

		print_message("  %s\n", rows[i].title);
		put(&a, rows[i].packet.bytes, rows[i].packet.n);
		put(&a, tsc, sizeof(tsc));
		assert_int_equal(find(&a, &a, true).found, rows[i].expected);
		/* Another time, in its last byte. */
		b = a;
		b.bytes[b.size - 1] = 8;
		assert_false(find(&a, &b, true).found);
		/* One that is cut is none. */
		for (a.size--; a.size > 16; a.size--)
			assert_false(find(&a, &a, true).found);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(together),
		cmocka_unit_test(without_time),
		cmocka_unit_test(between),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
