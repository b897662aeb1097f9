/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Code that a recorded program hands over: what is handed over of what was translated, step by
 * step, as records in the pool; what happens when that is full; and forks.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "daemon/plugin/coderecord.h"
#include "daemon/plugin/handover.h"
#include "tests/lib/emufree.h"
#include "tests/lib/emupool.h"

#define M HANDOVER_MEMORY
#define F HANDOVER_FILE
#define W HANDOVER_WRITTEN

static const struct emu_pool_layout layout = {
	.n_cpus = 1,
	.n_busy_max = 1,
	.aux_size = 4096,
	.switch_size = 4096,
	.event_size = 4096,
	.task_size = 4096,
	.code_size = 4096,
	.psb_period = 4096,
};

/* What is in the ring, as ptd drains it: "N@ADDRESS:BYTES" of new code, "C…" of changed one, "S" of
 * a program's beginning. */
static const char *drain(void)
{
	const uint64_t head = emupool.pool->code_head;
	static char text[4096];
	size_t n = 0;

	text[0] = '\0';
	for (uint64_t at = emupool.pool->code_tail; at < head;) {
		uint8_t bytes[4096] = {};
		struct coderecord r;

		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = *attach_at(&emupool, emu_code_offset(&layout) + (at + i) % 4096);
		memcpy(&r, bytes, sizeof(r));
		assert_int_equal(r.size, coderecord_size(r.n_bytes));
		assert_true(r.size <= head - at);
		if (r.kind == CODERECORD_START)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%sS%u<%u", n ? " " : "",
					      r.pid, r.parent_pid);
		else
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%c@%x:%.*s",
					      n ? " " : "", r.kind == CODERECORD_NEW ? 'N' : 'C',
					      (unsigned)r.address, (int)r.n_bytes,
					      (const char *)bytes + sizeof(r));
		at += r.size;
	}
	emupool.pool->code_tail = head;
	return text;
}

static uint64_t code(struct handover *h, enum handover_place place, uint64_t address,
		     const char *bytes)
{
	return handover_code(h, place, address, (const uint8_t *)bytes, strlen(bytes));
}

static void each_version_of_each_byte_once(void **state)
{
	static const struct {
		const char *name;
		enum handover_place place;
		uint64_t address;
		const char *bytes;
		uint64_t version; /* that is returned */
		const char *handed;
	} rows[] = {
		{ "first", M, 0x1000, "abcd", 0, "N@1000:abcd" },
		{ "the same", M, 0x1000, "abcd", 0, "" },
		{ "part of it", M, 0x1001, "bc", 0, "" },
		{ "some of it is new", M, 0x1002, "cdef", 0, "N@1002:cdef" },
		{ "changed", M, 0x1000, "aBcd", 1, "C@1000:aBcd" },
		{ "beside it, as it was: but part of a later version, maybe", M, 0x1004, "ef", 1,
		  "" },
		{ "only in part changed, seen from elsewhere", M, 0x1001, "Bc", 1, "" },
		{ "and back", M, 0x1001, "bc", 2, "C@1001:bc" },
		{ "across pages", M, 0x1ffe, "wxyz", 2, "N@1ffe:wxyz" },
		{ "in the second page", M, 0x2000, "yz", 2, "" },
		{ "changed in the second page", M, 0x1ffe, "wxYz", 3, "C@1ffe:wxYz" },
		{ "of a file", F, 0x5000, "file", 0, "" },
		{ "of a file that was written to", W, 0x5000, "FILE", 4, "C@5000:FILE" },
		{ "as it is now", W, 0x5000, "FILE", 4, "" },
		{ "as the file has it again", F, 0x5000, "file", 5, "C@5000:file" },
		{ "a file where memory was", F, 0x1000, "over", 6, "C@1000:over" },
		{ "a file where memory was, with the same bytes", F, 0x1ffe, "wx", 6, "" },
		{ "but written to: a decoder has the file's", W, 0x2001, "z", 6, "" },
	};
	struct handover h;

	(void)state;
	handover_init(&h, &emupool);
	handover_start(&h, 7);
	assert_string_equal(drain(), "S7<0");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		print_message("  %s\n", rows[i].name);
		assert_int_equal(code(&h, rows[i].place, rows[i].address, rows[i].bytes),
				 rows[i].version);
		assert_string_equal(drain(), rows[i].handed);
		assert_true(rows[i].version <= handover_changes(&h));
	}
	/* First bytes of memory say nothing over a file. */
	assert_int_equal(code(&h, M, 0x3000, "mm"), 6);
	assert_int_equal(code(&h, W, 0x3000, "mm"), 7);
	assert_string_equal(drain(), "N@3000:mm C@3000:mm");
	handover_deinit(&h);
}

/* Code that finds no room is hidden, not waited for, and is not taken for known. */
static void a_full_ring_hides_code(void **state)
{
	struct handover h;
	unsigned n = 0;

	(void)state;
	handover_init(&h, &emupool);
	handover_start(&h, 7);
	while (code(&h, M, 0x1000 + 2 * n, "ab") != HANDOVER_HIDDEN)
		assert_true(++n < 4096 / sizeof(struct coderecord));
	assert_true(n > 10);
	assert_int_equal(emupool.pool->code_lost, 1);
	assert_int_equal(code(&h, M, 0x1000 + 2 * n, "ab"), HANDOVER_HIDDEN);
	assert_int_equal(code(&h, M, 0x1000, "xy"), HANDOVER_HIDDEN);
	assert_int_equal(code(&h, M, 0x1000, "ab"), 0);
	/* For the beginning of a program there is room. */
	handover_fork_prepare(&h);
	handover_fork_child(&h, 8);
	assert_non_null(strstr(drain(), " S8<7"));
	assert_int_equal(code(&h, M, 0x1000 + 2 * n, "ab"), 0);
	assert_int_equal(code(&h, M, 0x1000, "xy"), 1);
	assert_non_null(strstr(drain(), "C@1000:xy"));
	handover_deinit(&h);
}

/* One that did not find room at all is said to begin as soon as there is some, before its code. */
static void a_late_beginning(void **state)
{
	struct handover h;

	(void)state;
	handover_init(&h, &emupool);
	emupool.pool->code_head = 4096;
	handover_start(&h, 7);
	assert_int_equal(code(&h, M, 0x1000, "ab"), HANDOVER_HIDDEN);
	emupool.pool->code_tail = 4096;
	assert_int_equal(code(&h, M, 0x1000, "ab"), 0);
	assert_string_equal(drain(), "S7<0 N@1000:ab");
	/* A tail that makes no sense leaves no room. */
	emupool.pool->code_tail = emupool.pool->code_head + 8;
	assert_int_equal(code(&h, M, 0x1004, "ab"), HANDOVER_HIDDEN);
	handover_deinit(&h);
}

static void a_child_goes_on_from_its_parent(void **state)
{
	struct handover h;

	(void)state;
	handover_init(&h, &emupool);
	handover_start(&h, 7);
	(void)code(&h, M, 0x1000, "ab");
	handover_fork_prepare(&h);
	handover_fork_child(&h, 8);
	assert_int_equal(code(&h, M, 0x1000, "ab"), 0);
	assert_int_equal(code(&h, M, 0x1000, "cd"), 1);
	assert_string_equal(drain(), "S7<0 N@1000:ab S8<7 C@1000:cd");
	handover_deinit(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		emupool_test(each_version_of_each_byte_once, layout),
		emupool_test(a_full_ring_hides_code, layout),
		emupool_test(a_late_beginning, layout),
		emupool_test(a_child_goes_on_from_its_parent, layout),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
