/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* How long a snapshot waits for the files of one user. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "daemon/objects/asker.h"
#include "daemon/objects/copyqueue.h"
#include "daemon/objects/object.h"

#define MS UINT64_C(1000000) /* in ns */

static void overdue(void **state)
{
	static const struct {
		const char *name;
		uint64_t asker, waited_for; /* @waited_for: for whose files the snapshot waited */
		uint64_t ms;
		uid_t uid; /* who asked for the snapshot */
		bool is_overdue;
	} rows[] = {
		{ "not long", 1000, 1000, 399, 0, false },
		{ "long", 1000, 1000, 400, 0, true },
		{ "long, for another user", 1000, 1001, 5000, 0, false },
		{ "long, for who asked", 1000, 1000, 5000, 1000, false },
		{ "long, for another than who asked", 1000, 1000, 400, 1001, true },
		{ "long, for root", ASKER_ROOT, ASKER_ROOT, 5000, 1000, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		static struct copyqueue queue;
		const struct object object = { .asker = rows[i].asker };
		const struct object other = { .asker = rows[i].waited_for };

		print_message("  %s\n", rows[i].name);
		copyqueue_measure(&queue, rows[i].uid);
		copyqueue_note_wait(&queue, &other, rows[i].ms / 2 * MS);
		copyqueue_note_wait(&queue, &other, (rows[i].ms + 1) / 2 * MS);
		assert_int_equal(copyqueue_is_overdue(&queue, &object), rows[i].is_overdue);
		/* The next snapshot waits anew. */
		copyqueue_measure(&queue, rows[i].uid);
		assert_false(copyqueue_is_overdue(&queue, &object));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(overdue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
