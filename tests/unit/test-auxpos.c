/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A writer whose every byte is known, seen through the few bytes that the kernel publishes. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "daemon/pt/auxpos.h"
#include "daemon/source/ring.h"
#include "daemon/source/source.h"

#define SIZE 65536u

struct writer {
	uint8_t ring[SIZE];
	uint64_t n;
};

/* Never 0, and no two places that are a ring apart are the same. */
static uint8_t byte_at(uint64_t n)
{
	return (uint8_t)(1 + (n * 2654435761u >> 13) % 251 + n / SIZE % 4);
}

static void write_bytes(struct writer *w, uint64_t n)
{
	while (n-- > 0) {
		w->ring[w->n % SIZE] = byte_at(w->n);
		w->n++;
	}
}

static void look(struct auxpos *pos, struct writer *w)
{
	struct auxpos_end end;

	auxpos_read_end(w->ring, SIZE, &end);
	auxpos_move(pos, w->n % SIZE, &end);
}

/* Between the looks, so many bytes each; what is known after the last. */
static void moves(void **state)
{
	static const struct {
		const char *what;
		uint64_t steps[4];
		uint64_t written;
		bool wrapped;
	} rows[] = {
		{ "nothing", { 0 }, 0, false },
		{ "never wrapped", { 1000 }, 1000, false },
		{ "nothing new", { 1000, 0 }, 1000, false },
		{ "up to the end but one", { SIZE - 1 }, SIZE - 1, false },
		{ "exactly full", { SIZE }, SIZE, true },
		{ "wrapped, head goes back", { 1000, SIZE - 500 }, SIZE + 500, true },
		{ "wrapped, head goes on", { 1000, SIZE + 500 }, SIZE + 1500, true },
		{ "wrapped exactly to the same head", { 1000, SIZE }, SIZE + 1000, true },
		{ "wrapped before the first look", { SIZE + 7 }, SIZE + 7, true },
		{ "two looks in a row", { SIZE + 7, 0 }, SIZE + 7, true },
		{ "wrapped twice", { 1000, SIZE, SIZE - 1 }, 2 * SIZE + 999, true },
		{ "again full", { SIZE, SIZE - 1, 1 }, 2 * SIZE, true },
		/* Lapped unseen: the count is then too low, and says no more than it knows. */
		{ "lapped between looks", { SIZE + 10, SIZE + 10 }, SIZE + 20, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct auxpos pos = { .size = SIZE };
		struct writer w = {};

		print_message("  %s\n", rows[i].what);
		for (size_t k = 0; k < ARRAY_LEN(rows[i].steps); k++) {
			write_bytes(&w, rows[i].steps[k]);
			look(&pos, &w);
		}
		assert_int_equal(pos.written, rows[i].written);
		assert_int_equal(pos.wrapped, rows[i].wrapped);
		assert_int_equal(pos.head, w.n % SIZE);
		assert_int_equal(pos.written % SIZE, pos.head);
	}
}

/* Its head is published after some bytes; while it is copied more come. */
static void overtaken(void **state)
{
	static const struct {
		const char *what;
		uint64_t before, after, gone;
	} rows[] = {
		{ "not full, and still not", 1000, 2000, 0 },
		{ "full in between", 1000, SIZE - 1000, 0 },
		{ "over the beginning", 1000, SIZE - 990, 10 },
		{ "idle", SIZE + 100, 0, 0 },
		{ "a little", SIZE + 100, 50, 50 },
		{ "up to the newest", SIZE + 100, SIZE - AUXPOS_NEWEST, SIZE - AUXPOS_NEWEST },
		{ "into the newest", SIZE + 100, SIZE - 1, SIZE },
		{ "exactly round", SIZE + 100, SIZE, SIZE },
		{ "round and on", SIZE + 100, SIZE + 50, SIZE },
		{ "round and on, once full", SIZE, SIZE + 50, SIZE },
		{ "everything, not full before", 1000, SIZE, 1000 },
		{ "short, round", 9, SIZE + 3, 9 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct auxpos pos = { .size = SIZE };
		struct auxpos_fingerprint print;
		struct writer w = {};
		uint64_t glimpse;

		print_message("  %s\n", rows[i].what);
		write_bytes(&w, rows[i].before);
		look(&pos, &w);
		auxpos_take_fingerprint(&pos, w.ring, &print);
		write_bytes(&w, rows[i].after);
		assert_int_equal(auxpos_overwritten(&pos, &print, w.ring, w.n % SIZE),
				 rows[i].gone);

		/* Not exact, but never far too little. */
		glimpse = auxpos_estimate_overwritten(&pos, &print, w.ring);
		assert_true(glimpse + 2 * SIZE / AUXPOS_PROBES >= rows[i].gone);
		assert_true(glimpse <= rows[i].gone + 2 * SIZE / AUXPOS_PROBES);
	}
}

static void spans(void **state)
{
	static const uint8_t ring[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
	static const struct {
		uint64_t from, n;
		size_t a, b;
	} rows[] = {
		{ 0, 0, 0, 0 },    { 0, 16, 16, 0 },  { 3, 5, 5, 0 },
		{ 19, 13, 13, 0 }, { 19, 14, 13, 1 }, { UINT64_MAX - 2, 6, 3, 3 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct source_view v = ring_span(ring, 16, rows[i].from, rows[i].n);
		uint8_t bytes[16];

		assert_int_equal(v.a_size, rows[i].a);
		assert_int_equal(v.b_size, rows[i].b);
		for (size_t at = 0; at <= rows[i].n; at++) {
			ring_copy(&v, at, rows[i].n - at, bytes);
			for (size_t k = at; k < rows[i].n; k++)
				assert_int_equal(bytes[k - at], (rows[i].from + k) % 16);
		}
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(moves),
		cmocka_unit_test(overtaken),
		cmocka_unit_test(spans),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
