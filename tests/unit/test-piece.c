/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The judge of snapshots of programs that go on: letters stand for instructions. */

#include "tests/lib/piece.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* "ab cd|ef" are the pieces ab, cd, and ef, which follows cd; each on another CPU. */
static void take(struct pieces *pieces, const char *text)
{
	uint32_t cpu = 0;

	assert_int_equal(pieces_begin(pieces, 7, cpu++, false), 0);
	for (; *text; text++) {
		if (*text == ' ' || *text == '|')
			assert_int_equal(pieces_begin(pieces, 7, cpu++, false), 0);
		if (*text == '|')
			pieces->list.items[pieces->list.n - 1].follows = true;
		if (*text != ' ' && *text != '|')
			assert_int_equal(pieces_add(pieces, (uint64_t)*text), 0);
	}
	assert_int_equal(pieces_join(pieces), 0);
}

/* Show a log, @step instructions at a time, leaving out what need not be shown. */
static void show(struct pieces *pieces, const char *log, size_t step)
{
	const size_t size = strlen(log);
	uint64_t ips[64], ip;

	assert_true(size <= ARRAY_LEN(ips));
	for (size_t i = 0; i < size; i++)
		ips[i] = (uint64_t)log[i];
	for (size_t i = 0; i < size;) {
		const size_t n = step < size - i ? step : size - i;

		if (pieces_seek(pieces, &ip) && ips[i] != ip) {
			i++;
			continue;
		}
		assert_int_equal(pieces_show(pieces, (const uint8_t *)(ips + i), n), 0);
		i += n;
	}
}

static void rows(void **state)
{
	static const struct {
		const char *pieces, *log;
		bool found;
		uint64_t n_jumps;
	} cases[] = {
		{ "abc", "abc", true, 0 },
		{ "abc", "xxabcxx", true, 0 },
		{ "abc", "xxabxcx", false, 0 },
		{ "abc", "ab", false, 0 },
		{ "", "abc", true, 0 },
		/* It begins again within what seemed to be it. */
		{ "aab", "aaaab", true, 0 },
		{ "abab", "abaabab", true, 0 },
		{ "abcabd", "abcabcabd", true, 0 },
		/* In order, with and without something between. */
		{ "ab cd", "abcd", true, 0 },
		{ "ab cd", "abxcd", true, 1 },
		{ "cd ab", "abcd", false, 0 },
		{ "ab ab", "abxxab", true, 1 },
		{ "ab ab", "ab", false, 0 },
		/* What follows must do so at once. */
		{ "ab|cd", "abcd", true, 0 },
		{ "ab|cd", "abxcd", false, 0 },
		{ "ab|cd", "abxabcd", true, 0 },
		{ "ab|cd ef|gh", "abcdxefgh", true, 1 },
		{ "ab|cd ef|gh", "abcdxefxgh", false, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		for (size_t step = 1; step <= 5; step++) {
			struct pieces pieces = {};

			take(&pieces, cases[i].pieces);
			show(&pieces, cases[i].log, step);
			if (pieces_found(&pieces) != cases[i].found)
				fail_msg("%s in %s by %zu", cases[i].pieces, cases[i].log, step);
			if (cases[i].found)
				assert_int_equal(pieces.n_jumps, cases[i].n_jumps);
			pieces_deinit(&pieces);
		}
	}
}

/* What is said of a piece that is not in the log. */
static void nearest(void **state)
{
	static const struct {
		const char *pieces, *log, *text;
	} cases[] = {
		{ "ab|cd", "abxxyyzzuuvv",
		  "  the first 2 instructions are equal; the next is number 0 of a stay on CPU 1 "
		  "that began at 7, after one on CPU 0 that began at 7\n"
		  "  both     0x61\n  both     0x62\n  decoded  0x63\n  decoded  0x64\n"
		  "  logged   0x78\n  logged   0x78\n  logged   0x79\n  logged   0x79\n"
		  "  logged   0x7a\n  logged   0x7a\n  logged   0x75\n  logged   0x75\n" },
		/* The longest beginning counts, not the last. */
		{ "abc", "abxa",
		  "  the first 2 instructions are equal; the next is number 2 of a stay on CPU 0 "
		  "that began at 7\n"
		  "  both     0x61\n  both     0x62\n  decoded  0x63\n"
		  "  logged   0x78\n  logged   0x61\n  logged   nothing more\n" },
		{ "abc", "xab",
		  "  the first 2 instructions are equal; the next is number 2 of a stay on CPU 0 "
		  "that began at 7\n"
		  "  both     0x61\n  both     0x62\n  decoded  0x63\n  logged   nothing more\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		for (size_t step = 1; step <= 5; step++) {
			struct pieces pieces = {};
			char *text = NULL;
			size_t size;
			FILE *f = open_memstream(&text, &size);

			take(&pieces, cases[i].pieces);
			show(&pieces, cases[i].log, step);
			assert_false(pieces_found(&pieces));
			pieces_print_nearest(&pieces, f);
			assert_int_equal(fclose(f), 0);
			assert_string_equal(text, cases[i].text);
			free(text);
			pieces_deinit(&pieces);
		}
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows),
		cmocka_unit_test(nearest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
