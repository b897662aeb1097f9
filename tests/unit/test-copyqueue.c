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

/* Askers of whom only the folder, or the file system, is known. */
#define SERVER (UINT64_C(1) << 63 | 0x27)
#define FOLDER (UINT64_C(3) << 62 | 0x28)
#define DISK   (UINT64_C(1) << 63 | 0x29)

/* An object for which this one asks; of FOLDER, what a record says, and nothing was found. */
static struct object object_of(uint64_t asker)
{
	return (struct object){
		.asker = asker,
		.original = { .found = asker != FOLDER, .dev = asker == SERVER ? 0x27 : 0x29 },
	};
}

static void overdue(void **state)
{
	static const struct {
		const char *name;
		uint64_t asker, waited_for; /* @waited_for: for whose files the snapshot waited */
		uint64_t ms;
		bool is_overdue;
	} rows[] = {
		{ "not long", 1000, 1000, 299, false },
		{ "long", 1000, 1000, 300, true },
		{ "long, for another user", 1000, 1001, 5000, false },
		{ "long, for root", ASKER_ROOT, ASKER_ROOT, 5000, false },
		{ "not long, for nobody known", FOLDER, FOLDER, 99, false },
		{ "long, for nobody known", FOLDER, FOLDER, 100, true },
		{ "long, for nobody known on another server", FOLDER, SERVER, 100, true },
		{ "long, for a user, and then nobody known", FOLDER, 1000, 5000, false },
		{ "long, for nobody known, and then a user", 1000, SERVER, 5000, false },
		{ "long, for nobody known, on a disk", DISK, DISK, 5000, false },
		{ "long, for a server, and then a disk", DISK, SERVER, 5000, false },
		{ "long, for a disk, and then a server", SERVER, DISK, 5000, false },
	};

	(void)state;
	assert_true(asker_is_unknown(FOLDER) && asker_is_unknown(SERVER));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		static struct copyqueue queue = { .disks = { 0x29 } };
		const struct object object = object_of(rows[i].asker);
		const struct object other = object_of(rows[i].waited_for);

		print_message("  %s\n", rows[i].name);
		copyqueue_measure(&queue);
		copyqueue_note_wait(&queue, &other, rows[i].ms / 2 * MS);
		copyqueue_note_wait(&queue, &other, (rows[i].ms + 1) / 2 * MS);
		assert_int_equal(copyqueue_is_overdue(&queue, &object), rows[i].is_overdue);
		/* The next snapshot waits anew. */
		copyqueue_measure(&queue);
		assert_false(copyqueue_is_overdue(&queue, &object));
	}
}

/* A file of each of many servers. */
static void add_servers(struct copyqueue *queue, struct object servers[static COPYQUEUE_LANES])
{
	for (unsigned i = 0; i < COPYQUEUE_LANES; i++) {
		servers[i] = object_of(SERVER);
		servers[i].asker += i << 8;
		copyqueue_add(queue, &servers[i]);
	}
}

/* However many servers there are, a lane is left for what is on a disk. */
static void lanes_of_servers(void **state)
{
	static struct copyqueue queue = { .disks = { 0x29 } };
	struct object servers[COPYQUEUE_LANES], disk = object_of(DISK);

	(void)state;
	add_servers(&queue, servers);
	copyqueue_add(&queue, &disk);
	assert_ptr_equal(copyqueue_take(&queue, 0), &servers[0]);
	assert_ptr_equal(copyqueue_take(&queue, 1), &disk);
	assert_null(copyqueue_take(&queue, 2));
	assert_true(copyqueue_leave(&queue, 0));
	assert_ptr_equal(copyqueue_take(&queue, 0), &servers[1]);
}

/* A file that was not found may be on a server, and waits, but not what was found behind it. */
static void behind_what_was_not_found(void **state)
{
	static struct copyqueue queue = { .disks = { 0x29 } };
	struct object servers[COPYQUEUE_LANES], missing = object_of(DISK), disk = object_of(DISK);
	unsigned n = 0;

	(void)state;
	add_servers(&queue, servers);
	while (copyqueue_take(&queue, n))
		n++;
	assert_int_not_equal(n, 0);
	missing.original.found = false;
	copyqueue_add(&queue, &missing);
	copyqueue_add(&queue, &disk);
	assert_ptr_equal(copyqueue_take(&queue, n), &disk);
	assert_null(copyqueue_take(&queue, n + 1));
}

/* A lane of an asker that is not known may have two successors: another lane must look, too. */
static void two_successors(void **state)
{
	static struct copyqueue queue = { .disks = { 0x29 } };
	struct object servers[COPYQUEUE_LANES], missing = object_of(DISK), disk = object_of(DISK);
	struct object *next[2];
	unsigned n = 1;

	(void)state;
	missing.original.found = false;
	copyqueue_add(&queue, &missing);
	assert_ptr_equal(copyqueue_take(&queue, 0), &missing);
	add_servers(&queue, servers);
	while (copyqueue_take(&queue, n))
		n++;
	copyqueue_add(&queue, &disk);
	assert_null(copyqueue_take(&queue, n));
	assert_true(copyqueue_leave(&queue, 0));
	for (unsigned i = 0; i < ARRAY_LEN(next); i++) {
		next[i] = copyqueue_take(&queue, i == 0 ? 0 : n);
		assert_non_null(next[i]);
	}
	assert_true(next[0] == &disk || next[1] == &disk);
	assert_null(copyqueue_take(&queue, n + 1));
}

/* Users take turns, each with one lane; a lane that cannot have the object need not be woken. */
static void users_take_turns(void **state)
{
	static struct copyqueue queue;
	struct object many[3], one = object_of(1001);

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(many); i++) {
		many[i] = object_of(1000);
		assert_true(copyqueue_may_take(&queue, &many[i]));
		copyqueue_add(&queue, &many[i]);
	}
	assert_ptr_equal(copyqueue_take(&queue, 0), &many[0]);
	assert_false(copyqueue_may_take(&queue, &many[1]));
	assert_null(copyqueue_take(&queue, 1));
	assert_true(copyqueue_may_take(&queue, &one));
	copyqueue_add(&queue, &one);
	assert_false(copyqueue_leave(&queue, 0));
	assert_ptr_equal(copyqueue_take(&queue, 0), &one);
	assert_ptr_equal(copyqueue_take(&queue, 1), &many[1]);
	/* The last one is asked for by another now. */
	copyqueue_pass_to(&queue, &many[2], 1002);
	assert_ptr_equal(copyqueue_take(&queue, 2), &many[2]);
	assert_null(copyqueue_remove_any(&queue));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(overdue),
		cmocka_unit_test(lanes_of_servers),
		cmocka_unit_test(behind_what_was_not_found),
		cmocka_unit_test(two_successors),
		cmocka_unit_test(users_take_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
