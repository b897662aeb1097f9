/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Bytes over time, from what changes state of them and from a copy. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "decoder/kernel/history.h"

static const struct object one = { .id = { .name = "1" } }, two = { .id = { .name = "2" } };

/* Letters are bytes; '?' any, '-' none. */
struct step {
	uint64_t time;
	uint64_t start;
	const char *before, *after;
	const struct object *owner_before, *owner_after;
	bool sets_owner;
};

struct row {
	const char *name;
	bool copy_is_first;
	const char *copy;
	struct step steps[6];
	const char
	    *expected; /* of each version: its time and bytes, and whose they are if not nobody's */
};

#define POKE(t, at, old, new)                                           \
	{                                                               \
		.time = (t), .start = (at), .before = old, .after = new \
	}
#define BEGINS(t, at, any, none, who)                                                         \
	{                                                                                     \
		.time = (t), .start = (at), .before = none, .after = any, .sets_owner = true, \
		.owner_after = &(who)                                                         \
	}
#define ENDS(t, at, any, none, who)                                                           \
	{                                                                                     \
		.time = (t), .start = (at), .before = any, .after = none, .sets_owner = true, \
		.owner_before = &(who)                                                        \
	}

static const struct row rows[] = {
	{ "nothing happens", true, "abc", {}, "0:abc" },
	{ "an old copy", true, "abcd", { POKE(5, 1, "bc", "xy") }, "0:abcd 5:axyd" },
	{ "a young copy", false, "axyd", { POKE(5, 1, "bc", "xy") }, "0:abcd 5:axyd" },
	{ "no copy", true, "????", { POKE(5, 1, "bc", "xy") }, "0:.bc. 5:.xy." },
	{ "there and back, an old copy",
	  true,
	  "abc",
	  { POKE(5, 0, "ab", "xy"), POKE(7, 0, "xy", "ab") },
	  "0:abc 5:xyc 7:abc" },
	{ "there and back, a young copy",
	  false,
	  "abc",
	  { POKE(5, 0, "ab", "xy"), POKE(7, 0, "xy", "ab") },
	  "0:abc 5:xyc 7:abc" },
	{ "several at one time",
	  false,
	  "zbw",
	  { POKE(5, 0, "a", "y"), POKE(5, 0, "y", "z"), POKE(5, 2, "c", "w") },
	  "0:abc 5:zbw" },
	{ "one was lost between",
	  true,
	  "abc",
	  { POKE(5, 0, "a", "x"), POKE(7, 0, "y", "z") },
	  "0:abc 5:.bc 7:zbc" },
	{ "one was lost before, an old copy",
	  true,
	  "abc",
	  { POKE(5, 0, "z", "x") },
	  "0:.bc 5:xbc" },
	{ "one was lost after, a young copy",
	  false,
	  "abc",
	  { POKE(5, 0, "z", "x") },
	  "0:zbc 5:.bc" },
	{ "changes that overlap",
	  true,
	  "abcd",
	  { POKE(5, 0, "abc", "xyz"), POKE(7, 2, "zd", "ZD") },
	  "0:abcd 5:xyzd 7:xyZD" },
	{ "code that comes and goes",
	  true,
	  "abc",
	  { POKE(5, 0, "---", "xyz"), POKE(7, 0, "xyz", "---") },
	  "0:... 5:xyz 7:..." },
	{ "a function that was there, an old copy",
	  true,
	  "abc",
	  { BEGINS(0, 0, "??", "--", one), ENDS(7, 0, "??", "--", one) },
	  "0:a1b1c 7:..c" },
	{ "a function that was there, and is gone in a young copy",
	  false,
	  "abc",
	  { BEGINS(0, 0, "??", "--", one), ENDS(7, 0, "??", "--", one) },
	  "0:.1.1c 7:..c" },
	{ "one that comes, an old copy",
	  true,
	  "abc",
	  { BEGINS(7, 0, "??", "--", one) },
	  "0:..c 7:.1.1c" },
	{ "one that comes, a young copy",
	  false,
	  "abc",
	  { BEGINS(7, 0, "??", "--", one) },
	  "0:..c 7:a1b1c" },
	{ "nobody said that it began",
	  true,
	  "abc",
	  { ENDS(7, 0, "??", "--", one) },
	  "0:a1b1c 7:..c" },
	{ "one after the other, a young copy",
	  false,
	  "abc",
	  { BEGINS(0, 0, "??", "--", one), ENDS(7, 0, "??", "--", one),
	    BEGINS(9, 1, "??", "--", two) },
	  "0:.1.1. 7:... 9:.b2c2" },
	{ "a function that is changed, a young copy",
	  false,
	  "axc",
	  { BEGINS(5, 0, "???", "---", one), POKE(7, 1, "b", "x") },
	  "0:... 5:a1b1c1 7:a1x1c1" },
	{ "a damaged change before everything", true, "abc", { POKE(0, 0, "a", "x") }, "0:.bc" },
};

static struct history_bytes bytes_of(const char *text)
{
	if (text[0] == '?' || text[0] == '-')
		return (struct history_bytes){ .fill =
						   text[0] == '?' ? HISTORY_ANY : HISTORY_NONE };
	return (struct history_bytes){ .bytes = (const uint8_t *)text, .size = strlen(text) };
}

static void begin(const struct row *row, struct history *h, uint16_t copy[16], uint64_t *work)
{
	const size_t size = strlen(row->copy);

	for (size_t i = 0; i < size; i++)
		copy[i] = row->copy[i] == '?' ? HISTORY_ANY : (uint8_t)row->copy[i];
	for (const struct step *s = row->steps; s < row->steps + ARRAY_LEN(row->steps) && s->before;
	     s++)
		assert_int_equal(vec_push(&h->changes, { .time = s->time,
							 .start = s->start,
							 .size = strlen(s->before),
							 .before = bytes_of(s->before),
							 .after = bytes_of(s->after),
							 .sets_owner = s->sets_owner,
							 .owner_before = s->owner_before,
							 .owner_after = s->owner_after }),
				 0);
	assert_int_equal(history_begin(h, size, copy, row->copy_is_first, work), 0);
}

static void versions(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_(history_deinit) struct history h = {};
		uint64_t work = 1000, time;
		char text[256] = "";
		uint16_t copy[16];

		print_message("%s\n", rows[i].name);
		begin(&rows[i], &h, copy, &work);
		while (history_next(&h, &time)) {
			(void)sprintf(text + strlen(text), "%s%" PRIu64 ":", *text ? " " : "",
				      time);
			for (size_t k = 0; k < strlen(rows[i].copy); k++) {
				const uint16_t byte = history_byte(&h, k);
				const struct object *owner = history_owner(&h, k);

				(void)sprintf(text + strlen(text), "%c%s",
					      byte < HISTORY_ANY ? byte : '.',
					      owner ? owner->id.name : "");
			}
		}
		assert_string_equal(text, rows[i].expected);
	}
}

/* What is too much is refused before anything is done. */
static void limits(void **state)
{
	static const uint16_t copy[4];
	struct history h = {};
	uint64_t work = 10;

	(void)state;
	assert_int_equal(history_begin(&h, 0, copy, true, &work), -E2BIG);
	assert_int_equal(history_begin(&h, HISTORY_SIZE_MAX + 1, copy, true, &work), -E2BIG);
	assert_int_equal(vec_push(&h.changes, { .size = 3 }), 0);
	assert_int_equal(history_begin(&h, 4, copy, true, &work), -E2BIG);
	assert_int_equal(work, 10);
	work = 11;
	assert_int_equal(history_begin(&h, 4, copy, true, &work), 0);
	assert_int_equal(work, 0);
	history_deinit(&h);
}

/* What each event finds is kept: that is bounded, however much may be looked at. */
static void large_events(void **state)
{
	static uint16_t copy[HISTORY_SIZE_MAX];
	struct history h = {};
	uint64_t work = UINT64_MAX;

	(void)state;
	for (uint64_t i = 0; i <= HISTORY_CHANGED_MAX / HISTORY_SIZE_MAX; i++)
		assert_int_equal(vec_push(&h.changes, { .size = HISTORY_SIZE_MAX }), 0);
	assert_int_equal(history_begin(&h, HISTORY_SIZE_MAX, copy, true, &work), -E2BIG);
	assert_true(work == UINT64_MAX);
	history_deinit(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions),
		cmocka_unit_test(limits),
		cmocka_unit_test(large_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
