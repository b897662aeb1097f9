/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What of the records of all who ran a user gets: as text, a line for each record. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "daemon/snapshot/ownpart.h"
#include "daemon/tasks/owned.h"
#include "tests/unit/records.h"

#define X OWNPART_OTHERS

/* Process 10 is his from 100 to 200, and 11 in three lives, of which the second is not; nothing of
 * 12 is, and it has a life of another, which is not listed, before. */
static const struct owned_life lives[] = {
	{ .pid = 11, .begun = 500, .from = 500, .until = 600 },
	{ .pid = 10, .begun = 50, .from = 100, .until = 200 },
	{ .pid = 11, .begun = 300, .from = 320, .until = 400 },
	{ .pid = 11, .begun = 400 },
	{ .pid = 12, .begun = 150 },
};

static struct ownpart *part;
static char text[4096];

static int set_up(void **state)
{
	(void)state;
	return ownpart_new(lives, ARRAY_LEN(lives), &part);
}

static int tear_down(void **state)
{
	(void)state;
	part = ownpart_free(part);
	return 0;
}

static const char *name_of(uint32_t pid)
{
	static char names[4][16];
	static unsigned i;

	i = (i + 1) % 4;
	(void)snprintf(names[i], sizeof(names[i]), pid == X ? "X" : "%u", pid);
	return names[i];
}

_printf_(1, 2) static void say(const char *format, ...)
{
	const size_t n = strlen(text);
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(text + n, sizeof(text) - n, format, ap);
	va_end(ap);
}

static void put(void *userdata, const void *bytes, size_t size)
{
	struct cursor c = cursor_from(bytes, size);
	struct record_switch sw;
	struct record record;

	(void)userdata;
	assert_int_equal(record_next(&c, &record), 0);
	assert_int_equal(cursor_left(&c), 0);
	assert_int_equal(record.trailer.cpu, 3);
	assert_int_equal(record.trailer.pid, record.trailer.tid);
	if (record.header.type == PERF_RECORD_ITRACE_START) {
		say("%d:%s ", (int)record.trailer.time, name_of(record.trailer.pid));
		return;
	}
	assert_int_equal(
	    record_read_switch(record.header.type, record.header.misc, record.body, &sw), 0);
	assert_false(sw.out);
	say("%d:%s<%s ", (int)record.trailer.time, name_of(record.trailer.pid),
	    name_of(sw.other.pid));
}

/* @tid leaves CPU 3, or comes to it, and @other is there after or before. */
static void add_switch(struct records *r, uint32_t tid, uint32_t other, bool out, uint64_t time)
{
	struct perfbuild *b = records_at(tid, time, 3);

	records_take(r, b, perfbuild_switch_wide(b, out, other, other));
}

static void expect(struct records *r, const char *switches, const char *who_ran,
		   const char *who_not)
{
	const struct cursor c = cursor_from(r->bytes, r->size);
	struct map ran = {}, left_out = {};
	char pids[2][64] = {};

	text[0] = '\0';
	ownpart_write_switches(part, 3, c, put, NULL);
	assert_string_equal(text, switches);
	assert_int_equal(ownpart_find(part, c, &ran, &left_out), 0);
	for (uint32_t pid = 0; pid < 100; pid++) {
		char *at = pids[0];

		if (map_get(&ran, pid))
			(void)snprintf(at + strlen(at), 8, "%u ", pid);
		at = pids[1];
		if (map_get(&left_out, pid))
			(void)snprintf(at + strlen(at), 8, "%u ", pid);
	}
	assert_string_equal(pids[0], who_ran);
	assert_string_equal(pids[1], who_not);
	map_deinit(&ran);
	map_deinit(&left_out);
	records_deinit(r);
}

static void switches(void **state)
{
	struct records r = {};

	(void)state;
	expect(&r, "", "", "");
	/* Others, whoever they are, and when one gives way to another. */
	add_switch(&r, 7, 8, true, 90);
	add_switch(&r, 8, 7, false, 91);
	add_switch(&r, 8, 9, true, 95);
	add_switch(&r, 9, 8, false, 96);
	expect(&r, "90:X ", "", "");
	/* Of what ran before the first record nothing is said, though it names who left. */
	add_switch(&r, 10, 8, true, 120);
	add_switch(&r, 8, 10, false, 121);
	add_switch(&r, 8, 10, true, 130);
	add_switch(&r, 10, 8, false, 131);
	add_switch(&r, 10, 0, true, 140);
	add_switch(&r, 0, 10, false, 140);
	expect(&r, "120:X 130:10<X 140:0<10 ", "10 ", "");
	/* Only the time that is his. */
	add_switch(&r, 10, 8, false, 60);
	add_switch(&r, 10, 8, true, 250);
	expect(&r, "60:X 100:10<X 200:X<10 ", "10 ", "10 ");
	/* Life by life, and the last one goes on. */
	add_switch(&r, 11, 8, false, 250);
	expect(&r, "250:X 320:11<X 400:X<11 500:11<X 600:X<11 ", "11 ", "11 ");
	add_switch(&r, 12, 8, false, 120);
	expect(&r, "120:X ", "", "12 ");
	add_switch(&r, 12, 8, false, 120);
	add_switch(&r, 12, 8, true, 140);
	expect(&r, "120:X ", "", "");
}

/* Say what is shown of a record. */
static void show(struct records *r)
{
	struct cursor c = cursor_from(r->bytes, r->size);
	uint8_t bytes[RECORD_OWN_MAX];
	struct record record, shown;

	text[0] = '\0';
	while (record_next(&c, &record) == 0) {
		const size_t size = ownpart_show(part, &record, bytes);
		struct cursor s = cursor_from(bytes, size);
		struct record_task task;
		struct record_mmap2 mmap;
		struct record_comm comm;

		if (size == 0) {
			say("- ");
			continue;
		}
		assert_int_equal(record_next(&s, &shown), 0);
		assert_int_equal(cursor_left(&s), 0);
		assert_int_equal(shown.header.type, record.header.type);
		assert_int_equal(shown.trailer.time, record.trailer.time);
		say("%d by %s", (int)shown.trailer.time, name_of(shown.trailer.pid));
		if (record_get_task(&shown, &task) == 0)
			say(" %s of %s", name_of(task.pid), name_of(task.ppid));
		else if (record_get_mmap2(&shown, &mmap) == 0)
			say(" %s maps %s", name_of(mmap.pid), mmap.name);
		else if (shown.header.type == PERF_RECORD_COMM &&
			 record_read_comm(shown.header.misc, shown.body, &comm) == 0)
			say(" %s is %s", name_of(comm.pid), comm.comm);
		say(", ");
	}
	records_deinit(r);
}

static void tasks(void **state)
{
	struct records r = {};

	(void)state;
	records_mmap2(&r, 10, "/other", NULL, 49); /* an earlier process with this number */
	records_mmap2(&r, 10, "/a", NULL, 50);
	records_mmap2(&r, 10, "/b", NULL, 200);
	records_mmap2(&r, 10, "/c", NULL, 201);
	show(&r);
	assert_string_equal(text, "- 50 by 10 10 maps /a, 200 by 10 10 maps /b, - ");
	records_comm(&r, 11, "one", 350);
	records_comm(&r, 11, "secret", 450);
	records_comm(&r, 11, "two", 550);
	records_comm(&r, 12, "secret", 160);
	records_comm(&r, 99, "secret", 160);
	show(&r);
	assert_string_equal(text, "350 by 11 11 is one, - 550 by 11 11 is two, - - ");
	/* Whose child it is. */
	records_fork(&r, 11, 10, 300);
	records_fork(&r, 10, 99, 60);
	records_fork(&r, 99, 10, 150);
	show(&r);
	assert_string_equal(text, "300 by 11 11 of X, 60 by 10 10 of X, - ");
}

/* Of records that are about nobody, only that some were lost. */
static void others(void **state)
{
	const struct record_lost lost = { .lost = 5 };
	struct records r = {};
	struct perfbuild *b = records_at(99, 150, 0);
	const struct trailer trailer = record_trailer(99, 99, 150);
	uint8_t bytes[RECORD_OWN_MAX];

	(void)state;
	records_add(&r, bytes, record_write_lost(&lost, &trailer, bytes, sizeof(bytes)));
	records_take(&r, b, perfbuild_switch_wide(b, false, 10, 10));
	records_add(
	    &r, bytes,
	    record_write_ksymbol(&(struct record_ksymbol){ .addr = 1, .len = 2, .name = "secret" },
				 &trailer, bytes, sizeof(bytes)));
	show(&r);
	assert_string_equal(text, "150 by X, - - ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(switches, set_up, tear_down),
		cmocka_unit_test_setup_teardown(tasks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(others, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
