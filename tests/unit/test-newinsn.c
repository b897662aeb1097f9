/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Branches that libipt does not know: where code may have them, and what it is shown instead. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "decoder/pt/ipt_newinsn.h"
#include "decoder/x86/insn.h"

#define SIZE (3 * 65536 + 100)

/* In code of nothing else, one at each place that is special to the search: every hole is found,
 * holes do not overlap, and begin early enough for prefixes. */
static void finds(void **state)
{
	static const uint64_t places[] = {
		0,     3,     14,    15,    16,    17,     40,       65530,
		65533, 65534, 65535, 65536, 65540, 131069, SIZE - 3,
	};
	_cleanup_(freep) uint8_t *code = malloc(SIZE);
	struct ipt_hole hole;

	(void)state;
	assert_non_null(code);
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		const uint64_t at = places[i];

		memset(code, i % 2 ? 0xca : 0x0f, SIZE); /* as near as it gets */
		memcpy(code + at, i % 3 ? "\x0f\x01\xca" : "\xd5\x00\xa1", 3);
		hole = (struct ipt_hole){};
		assert_true(ipt_newinsn_find(code, SIZE, 0, &hole));
		assert_int_equal(hole.start, at < 15 ? 0 : at - 15);
		assert_int_equal(hole.end, at + 1);
		assert_false(ipt_newinsn_find(code, SIZE, hole.end, &hole));
		/* Cut off, it is none. */
		assert_false(ipt_newinsn_find(code, at + 2, 0, &hole));
	}

	memset(code, 0, SIZE);
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		memcpy(code + places[i], "\x0f\x01\xca", 3);
	memcpy(code + 100, "\xd5\x00\xa1", 3);
	hole = (struct ipt_hole){};
	for (uint64_t at = 0, end; at < SIZE - 2; at++) {
		if (memcmp(code + at, "\x0f\x01\xca", 3) != 0 &&
		    memcmp(code + at, "\xd5\x00\xa1", 3) != 0)
			continue;
		end = hole.end;
		assert_true(ipt_newinsn_find(code, SIZE, end, &hole));
		assert_int_equal(hole.start, at - end < 15 ? end : at - 15);
		assert_int_equal(hole.end, at + 1);
	}
	assert_false(ipt_newinsn_find(code, SIZE, hole.end, &hole));
	assert_false(ipt_newinsn_find(code, 0, 0, &hole));
}

/* All of one kind up to the far one of the other: in a time that is not the square of the size. */
static void many(void **state)
{
	const uint64_t size = UINT64_C(1) << 22;
	_cleanup_(freep) uint8_t *code = malloc(size);
	struct ipt_hole hole = {};
	size_t n = 0;

	(void)state;
	assert_non_null(code);
	for (uint64_t i = 0; i < size; i++)
		code[i] = (const uint8_t[]){ 0x0f, 0x01, 0xca, 0x00 }[i % 4];
	memcpy(code + size - 3, "\xd5\x00\xa1", 3);
	while (ipt_newinsn_find(code, size, hole.end, &hole))
		n++;
	assert_int_equal(n, size / 4);
}

static void disguises(void **state)
{
	static const struct {
		const char *code, *shown; /* 15 bytes; NULL: the same */
	} rows[] = {
		{ "\xf3\x0f\x01\xca\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90",
		  "\x2e\x2e\x2e\xcf\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90" },
		{ "\x66\xf3\x48\xf2\x0f\x01\xca\x90\x90\x90\x90\x90\x90\x90\x90",
		  "\x2e\x2e\x2e\x2e\x2e\x2e\xcf\x90\x90\x90\x90\x90\x90\x90\x90" },
		{ "\xd5\x00\xa1\x01\x02\x03\x04\x05\x06\x07\x08\x90\x90\x90\x90",
		  "\x2e\x2e\x2e\x2e\x2e\x2e\x2e\x2e\x2e\xff\xe0\x90\x90\x90\x90" },
		{ "\x0f\x01\xca\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90", NULL },
		{ "\x48\xb8\xf3\x0f\x01\xca\x90\x90\x90\x90\x90\x90\x90\x90\x90", NULL },
		{ "\x90\xf3\x0f\x01\xca\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90", NULL },
		{ "\xe9\xf3\x0f\x01\xca\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90", NULL },
		{ "\xf3\x90\xd5\x00\xa1\x01\x02\x03\x04\x05\x06\x07\x08\x90\x90", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *shown = rows[i].shown ?: rows[i].code;
		struct insn before, after;
		uint8_t code[15];

		memcpy(code, rows[i].code, sizeof(code));
		assert_int_equal(insn_decode(64, code, sizeof(code), &before), 0);
		ipt_newinsn_disguise(code, sizeof(code));
		assert_memory_equal(code, shown, sizeof(code));
		assert_int_equal(insn_decode(64, code, sizeof(code), &after), 0);
		assert_int_equal(after.size, before.size);
		assert_int_equal(after.class, before.class);

		/* If its end is not there it is left alone. */
		for (size_t size = 0; size < before.size; size++) {
			memcpy(code, rows[i].code, sizeof(code));
			ipt_newinsn_disguise(code, size);
			assert_memory_equal(code, rows[i].code, sizeof(code));
		}
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds),
		cmocka_unit_test(many),
		cmocka_unit_test(disguises),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
