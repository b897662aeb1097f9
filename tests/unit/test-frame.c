/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Where a line or a message of a D-Bus client ends. */

#include "daemon/control/frame.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct {
	const char *text;
	int result;
	size_t size;
	bool begun;
} lines[] = {
	{ "", 0, 0, false },
	{ "AUTH", 0, 0, false },
	{ "AUTH EXTERNAL\r\n", 1, 15, false },
	{ "DATA\r\nBEGIN\r\n", 1, 6, false },
	{ "BEGIN\r\n", 1, 7, true },
	{ "BEGIN\r\nl", 1, 7, true },
	{ "BEGIN\n", 1, 6, false },
	{ "BEGIN \r\n", 1, 8, false },
	{ "xBEGIN\r\n", 1, 8, false },
};

static void test_lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		bool begun = false;
		size_t size = 0;

		assert_int_equal(frame_next(lines[i].text, strlen(lines[i].text), &begun, &size),
				 lines[i].result);
		assert_int_equal(size, lines[i].size);
		assert_int_equal(begun, lines[i].begun);
	}
}

static void test_endless_line(void **state)
{
	char text[FRAME_LINE_MAX + 1];
	bool begun = false;
	size_t size = 7;

	(void)state;
	memset(text, 'A', sizeof(text));
	assert_int_equal(frame_next(text, FRAME_LINE_MAX - 1, &begun, &size), 0);
	assert_int_equal(frame_next(text, FRAME_LINE_MAX, &begun, &size), -EMSGSIZE);
	text[FRAME_LINE_MAX] = '\n';
	assert_int_equal(frame_next(text, sizeof(text), &begun, &size), -EMSGSIZE);
	assert_int_equal(size, 7);
	text[FRAME_LINE_MAX - 1] = '\n';
	assert_int_equal(frame_next(text, sizeof(text), &begun, &size), 1);
	assert_int_equal(size, FRAME_LINE_MAX);
}

/* A message of 16 + 13, filled up to 16, + 5 bytes; the rows spoil one byte each. */
static const uint8_t good_little[16] = { 'l', 1, 0, 1, 5, 0, 0, 0, 1, 0, 0, 0, 13, 0, 0, 0 };
static const uint8_t good_big[16] = { 'B', 1, 0, 1, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 13 };

#define GOOD_SIZE 37u

static const struct {
	size_t at;
	uint8_t value;
	int result;
} spoiled[] = {
	{ 0, 'L', -EBADMSG },
	{ 0, 0, -EBADMSG },
	{ 3, 0, -EBADMSG },
	{ 3, 2, -EBADMSG },
	{ 4, 6, 0 },
	{ 5, 0x40, -EMSGSIZE },
	{ 7, 0xff, -EMSGSIZE },
	{ 12, 17, 0 },
	{ 13, 0x40, -EMSGSIZE },
	{ 15, 0xff, -EMSGSIZE },
	{ 14, 0xff, -EMSGSIZE },
};

static void test_messages(void **state)
{
	uint8_t bytes[FRAME_SIZE_MAX] = {};
	bool begun = true;
	size_t size = 0;

	(void)state;
	memcpy(bytes, good_big, sizeof(good_big));
	assert_int_equal(frame_next(bytes, GOOD_SIZE, &begun, &size), 1);
	assert_int_equal(size, GOOD_SIZE);
	memcpy(bytes, good_little, sizeof(good_little));
	for (size_t n = 0; n < GOOD_SIZE; n++) {
		size = 7;
		assert_int_equal(frame_next(bytes, n, &begun, &size), 0);
		assert_int_equal(size, 7);
	}
	assert_int_equal(frame_next(bytes, sizeof(bytes), &begun, &size), 1);
	assert_int_equal(size, GOOD_SIZE);
	for (size_t i = 0; i < ARRAY_LEN(spoiled); i++) {
		memcpy(bytes, good_little, sizeof(good_little));
		bytes[spoiled[i].at] = spoiled[i].value;
		size = 7;
		assert_int_equal(frame_next(bytes, GOOD_SIZE, &begun, &size), spoiled[i].result);
		assert_int_equal(size, 7);
	}
	assert_true(begun);
}

/* The longest there can be, and one byte more. */
static void test_longest(void **state)
{
	static uint8_t bytes[FRAME_SIZE_MAX + 1];
	const uint16_t body = FRAME_SIZE_MAX - 32;
	bool begun = true;
	size_t size = 7;

	(void)state;
	memcpy(bytes, good_little, sizeof(good_little));
	bytes[4] = body & 0xff;
	bytes[5] = body >> 8;
	assert_int_equal(frame_next(bytes, FRAME_SIZE_MAX, &begun, &size), 1);
	assert_int_equal(size, FRAME_SIZE_MAX);
	bytes[4]++;
	assert_int_equal(frame_next(bytes, sizeof(bytes), &begun, &size), -EMSGSIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_endless_line),
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_longest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
