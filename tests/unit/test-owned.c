/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* From when to when which processes are a user's, by records and by what is said of them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/tasks/owned.h"
#include "record/codec.h"
#include "record/record.h"
#include "tests/lib/failing.h"

#define U 1000
#define V 1001
#define G 100

struct fixture {
	struct owned *owned;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	*state = f;
	return owned_new(&f->owned);
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	(void)owned_free(f->owned);
	free(f);
	return 0;
}

static void put_comm(struct fixture *f, uint32_t pid, bool exec, uint64_t time)
{
	const struct record_comm comm = { .exec = exec, .pid = pid, .tid = pid, .comm = "x" };
	const struct trailer trailer = record_trailer(pid, pid, time);
	uint8_t bytes[RECORD_OWN_MAX];

	owned_add(f->owned, bytes, record_write_comm(&comm, &trailer, bytes, sizeof(bytes)));
}

static void put_found(struct fixture *f, uint32_t pid, uint64_t time)
{
	put_comm(f, pid, false, time);
}

static void put_exec(struct fixture *f, uint32_t pid, uint64_t time)
{
	put_comm(f, pid, true, time);
}

static void put_fork(struct fixture *f, uint32_t pid, uint32_t ppid, uint64_t time)
{
	const struct record_task task = { .pid = pid, .ppid = ppid, .tid = pid, .ptid = ppid };
	const struct trailer trailer = record_trailer(pid, pid, time);
	uint8_t bytes[RECORD_OWN_MAX];

	owned_add(f->owned, bytes, record_write_fork(&task, &trailer, bytes, sizeof(bytes)));
}

static void put_exit(struct fixture *f, uint32_t pid, uint32_t tid, uint64_t time)
{
	const struct record_task task = { .pid = pid, .ppid = 1, .tid = tid, .ptid = 1 };
	const struct trailer trailer = record_trailer(pid, tid, time);
	uint8_t bytes[RECORD_OWN_MAX];

	owned_add(f->owned, bytes, record_write_exit(&task, &trailer, bytes, sizeof(bytes)));
}

static void put_lost(struct fixture *f, uint64_t time)
{
	const struct record_lost lost = { .lost = 1 };
	const struct trailer trailer = record_trailer(0, 0, time);
	uint8_t bytes[RECORD_OWN_MAX];

	owned_add(f->owned, bytes, record_write_lost(&lost, &trailer, bytes, sizeof(bytes)));
}

/* It was found out between @time and @time + 1. */
static void answer(struct fixture *f, uint32_t pid, uid_t uid, int error, uint64_t time)
{
	owned_answer(f->owned, &(struct owned_answer){ .pid = pid,
						       .error = error,
						       .uid = uid,
						       .gid = G,
						       .birth = 7,
						       .asked_ns = time,
						       .answered_ns = time + 1 });
}

static void is_his(struct fixture *f, uint32_t pid, uint64_t time)
{
	answer(f, pid, U, 0, time);
	owned_settle(f->owned, time + 2);
}

static void is_not(struct fixture *f, uint32_t pid, uint64_t time)
{
	answer(f, pid, 0, -EPERM, time);
	owned_settle(f->owned, time + 2);
}

/* A process that is his from 21 to 30, as far as it is known. */
static void begin_his(struct fixture *f, uint32_t pid)
{
	put_found(f, pid, 10);
	is_his(f, pid, 20);
	is_his(f, pid, 30);
}

/* The lives are those of @expected, of process @pid, as "begun:from-until ". */
static void expect(const struct fixture *f, uid_t uid, uint32_t pid, const char *expected)
{
	struct owned_life *lives;
	char text[256] = "";
	size_t n;

	assert_int_equal(owned_list(f->owned, uid, G, &lives, &n), 0);
	for (size_t i = 0; i < n; i++)
		if (lives[i].pid == pid)
			(void)snprintf(text + strlen(text), sizeof(text) - strlen(text),
				       "%d:%d-%d ", (int)lives[i].begun, (int)lives[i].from,
				       (int)lives[i].until);
	free(lives);
	assert_string_equal(text, expected);
}

static void found(void **state)
{
	struct fixture *f = *state;

	put_found(f, 5, 10);
	expect(f, U, 5, "");
	/* What ran before it was known to be his is not his. */
	is_his(f, 5, 20);
	is_his(f, 5, 30);
	expect(f, U, 5, "10:21-30 ");
	expect(f, V, 5, "");
	is_his(f, 5, 40);
	expect(f, U, 5, "10:21-40 ");
	/* Nor is what ran after the last time that it was. */
	is_not(f, 5, 50);
	is_his(f, 5, 60);
	expect(f, U, 5, "10:21-40 ");
}

/* A program that has other rights is another's, and what it executes is his only from then on. */
static void programs(void **state)
{
	struct fixture *f = *state;

	put_found(f, 5, 10);
	is_his(f, 5, 20);
	put_exec(f, 5, 30);
	is_his(f, 5, 40);
	is_his(f, 5, 50);
	expect(f, U, 5, "10:0-0 30:30-50 ");
	put_exec(f, 5, 60);
	is_not(f, 5, 70);
	expect(f, U, 5, "10:0-0 30:30-50 60:0-0 ");
	put_exec(f, 5, 80);
	is_his(f, 5, 90);
	is_his(f, 5, 95);
	expect(f, U, 5, "10:0-0 30:30-50 60:0-0 80:91-95 ");
}

static void children(void **state)
{
	struct fixture *f = *state;

	put_found(f, 5, 10);
	put_fork(f, 6, 5, 12); /* of one of which nothing is known */
	is_his(f, 5, 20);
	is_his(f, 6, 20);
	is_his(f, 6, 25);
	expect(f, U, 6, "12:21-25 ");
	put_fork(f, 7, 5, 30);
	put_exec(f, 7, 32); /* before it was asked about */
	put_fork(f, 8, 7, 33);
	is_his(f, 7, 40);
	is_his(f, 8, 40);
	expect(f, U, 7, "30:0-0 32:32-40 ");
	expect(f, U, 8, "33:33-40 ");
	/* Two programs since the last answer: who knows what the first one was. */
	put_fork(f, 9, 5, 50);
	put_exec(f, 9, 52);
	put_exec(f, 9, 54);
	is_his(f, 9, 60);
	is_his(f, 9, 62);
	expect(f, U, 9, "50:0-0 52:0-0 54:61-62 ");
	/* The children of one that is not his. */
	is_not(f, 5, 70);
	put_fork(f, 10, 5, 72);
	is_his(f, 10, 80);
	is_his(f, 10, 85);
	expect(f, U, 10, "72:81-85 ");
}

/* An answer is about the program that ran when it was given, which a record may say later. */
static void late_records(void **state)
{
	struct fixture *f = *state;

	put_found(f, 5, 10);
	is_his(f, 5, 20);
	/* Not yet: */
	answer(f, 5, U, 0, 40);
	owned_settle(f->owned, 41);
	expect(f, U, 5, "10:0-0 ");
	/* It executed something else in the meantime, or while it was looked at. */
	put_exec(f, 5, 30);
	owned_settle(f->owned, 60);
	expect(f, U, 5, "10:0-0 30:0-0 ");
	answer(f, 5, U, 0, 70);
	put_exec(f, 5, 71);
	owned_settle(f->owned, 80);
	expect(f, U, 5, "10:0-0 30:0-0 71:0-0 ");
	/* Or after it. */
	answer(f, 5, U, 0, 90);
	put_exec(f, 5, 92);
	owned_settle(f->owned, 100);
	expect(f, U, 5, "10:0-0 30:0-0 71:0-0 92:0-0 ");
	/* Or it comes after such a record, and it was asked for before. */
	answer(f, 5, 0, -EPERM, 91);
	owned_settle(f->owned, 110);
	is_his(f, 5, 120);
	is_his(f, 5, 130);
	expect(f, U, 5, "10:0-0 30:0-0 71:0-0 92:121-130 ");
}

static void numbers(void **state)
{
	struct fixture *f = *state;

	begin_his(f, 5);
	put_exit(f, 5, 6, 32); /* a thread */
	is_his(f, 5, 34);
	expect(f, U, 5, "10:21-34 ");
	answer(f, 5, U, 0, 36);
	put_exit(f, 5, 5, 40);
	expect(f, U, 5, "10:21-36 ");
	is_his(f, 5, 45);
	expect(f, U, 5, "10:21-36 ");
	/* The same number, another user. */
	put_fork(f, 5, 1, 50);
	answer(f, 5, V, 0, 55);
	owned_settle(f->owned, 60);
	answer(f, 5, V, 0, 65);
	owned_settle(f->owned, 70);
	expect(f, U, 5, "10:21-36 ");
	expect(f, V, 5, "50:56-65 ");
	/* A fork whose end of the process before was not seen. */
	put_fork(f, 5, 1, 62);
	expect(f, V, 5, "50:56-62 ");
}

static void another_group(void **state)
{
	struct owned_life *lives;
	struct fixture *f = *state;
	size_t n;

	begin_his(f, 5);
	assert_int_equal(owned_list(f->owned, U, G + 1, &lives, &n), 0);
	free(lives);
	assert_int_equal(n, 0);
	/* It is another process, or another's now. */
	answer(f, 5, V, 0, 40);
	owned_settle(f->owned, 50);
	expect(f, U, 5, "10:21-30 ");
	expect(f, V, 5, "");
}

static void lost(void **state)
{
	struct fixture *f = *state;

	begin_his(f, 5);
	put_lost(f, 40);
	expect(f, U, 5, "");
	is_his(f, 5, 50);
	expect(f, U, 5, "");
	put_found(f, 5, 60);
	is_his(f, 5, 70);
	is_his(f, 5, 80);
	expect(f, U, 5, "60:71-80 ");
}

/* Those who are to be asked about next, as "pid pid " of a user, or of strangers: "? ". */
static const char *say_question(bool found, const struct owned_question *q)
{
	static char text[1024];
	size_t at;

	assert_int_equal(found, q->n > 0);
	at = (size_t)snprintf(text, sizeof(text), "%s",
			      !found                      ? "-"
			      : q->user == OWNED_STRANGER ? "? "
			      : q->user == U              ? "U "
			      : q->user == V              ? "V "
							  : "root ");
	for (size_t i = 0; i < q->n && at < sizeof(text); i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%u ", q->pids[i]);
	return text;
}

static const char *ask(struct fixture *f, uint64_t now)
{
	struct owned_question q;
	const bool found = owned_ask(f->owned, now, true, &q);

	return say_question(found, &q);
}

static const char *ask_of(struct fixture *f, uid_t uid, uint64_t now, uint64_t since)
{
	struct owned_question q;
	const bool found = owned_ask_of(f->owned, now, uid, since, &q);

	return say_question(found, &q);
}

static void questions(void **state)
{
	const uint64_t later = 120 + OWNED_AGAIN_NS;
	struct fixture *f = *state;

	assert_string_equal(ask(f, 100), "-");
	put_found(f, 5, 10);
	put_found(f, 6, 10);
	assert_string_equal(ask(f, 100), "? 5 6 ");
	assert_string_equal(ask(f, 101), "-");
	owned_note_user(f->owned, 5, U, 102);
	owned_note_user(f->owned, 6, V, 102);
	assert_string_equal(ask(f, 102), "U 5 ");
	assert_string_equal(ask(f, 102), "V 6 ");
	assert_string_equal(ask(f, 102), "-");
	is_his(f, 5, 103);
	is_not(f, 6, 103);
	/* Later again, but not what was refused; and now if a user wants to know, once. */
	assert_string_equal(ask_of(f, V, 110, 110), "-");
	assert_string_equal(ask_of(f, U, 110, 110), "U 5 ");
	assert_string_equal(ask_of(f, U, 111, 110), "-");
	assert_string_equal(ask(f, later - 11), "-");
	assert_string_equal(ask(f, later), "U 5 ");
	/* The child of one that is his is known to be his; that of another is not. */
	put_fork(f, 7, 5, later + 1);
	put_fork(f, 8, 6, later + 1);
	assert_string_equal(ask_of(f, V, later + 2, later), "? 8 ");
	owned_note_user(f->owned, 8, V, later + 2);
	assert_string_equal(ask_of(f, V, later + 3, later), "V 8 ");
	assert_string_equal(ask_of(f, V, later + 3, later), "-");
	assert_string_equal(ask_of(f, U, later + 3, later), "U 7 ");
	put_exit(f, 7, 7, later + 4);
	put_exec(f, 6, later + 5);
	assert_string_equal(ask(f, later + 6), "? 6 ");
	assert_int_equal(owned_count(f->owned).known, 1);
	assert_int_equal(owned_count(f->owned).unknown, 2);
	/* Nobody asks about root's. */
	owned_note_user(f->owned, 6, 0, later + 6);
	owned_settle(f->owned, later + 7);
	assert_string_equal(ask(f, later + OWNED_AGAIN_NS), "U 5 ");
	assert_string_equal(ask(f, later + OWNED_AGAIN_NS + 3), "V 8 ");
	assert_string_equal(ask(f, later + OWNED_AGAIN_NS + 6), "-");
	assert_int_equal(owned_count(f->owned).unknown, 1);
}

/* One that executes a program just now is asked about soon again, and then, if it still does, as
 * others are. */
static void too_early(void **state)
{
	struct fixture *f = *state;

	put_found(f, 5, 10);
	owned_note_user(f->owned, 5, U, 11);
	for (uint64_t time = 20; time < 36; time += 2) {
		assert_string_equal(ask(f, time), "U 5 ");
		assert_string_equal(ask(f, time), "-");
		answer(f, 5, 0, -EAGAIN, time);
	}
	assert_string_equal(ask(f, 36), "U 5 ");
	answer(f, 5, 0, -EAGAIN, 36);
	assert_string_equal(ask(f, 38), "-");
	assert_string_equal(ask(f, 36 + OWNED_AGAIN_NS), "U 5 ");
	assert_int_equal(owned_count(f->owned).unknown, 1);
	is_his(f, 5, 40);
	is_his(f, 5, 50);
	/* Its new program is not known of yet. */
	answer(f, 5, 0, -EAGAIN, 60);
	is_his(f, 5, 70);
	expect(f, U, 5, "10:41-70 ");
}

/* He learns of processes that are not his but he started, and of none that these started. */
static void left_out(void **state)
{
	struct fixture *f = *state;

	begin_his(f, 5);
	/* A program that gives rights. */
	put_fork(f, 6, 5, 40);
	put_exec(f, 6, 41);
	expect(f, U, 6, "40:0-0 41:0-0 ");
	put_fork(f, 7, 6, 42);
	expect(f, U, 7, "42:0-0 ");
	is_not(f, 6, 50);
	is_not(f, 7, 50);
	expect(f, U, 6, "40:0-0 41:0-0 ");
	expect(f, U, 7, "");
	put_fork(f, 8, 6, 60);
	put_exec(f, 8, 61);
	put_exit(f, 8, 8, 62);
	expect(f, U, 8, "");
	put_exec(f, 6, 70);
	expect(f, U, 6, "40:0-0 41:0-0 ");
	/* One that gives its rights up by executing a program is his from then on. */
	is_his(f, 6, 80);
	is_his(f, 6, 90);
	expect(f, U, 6, "40:0-0 41:0-0 70:81-90 ");
	/* One that ended soon. */
	put_fork(f, 9, 5, 100);
	put_exec(f, 9, 101);
	put_exit(f, 9, 9, 102);
	expect(f, U, 9, "100:0-0 101:0-0 ");
}

/* Two answers that come before either counts. */
static void two_answers(void **state)
{
	struct fixture *f = *state;

	for (uint32_t pid = 5; pid < 9; pid++) {
		put_found(f, pid, 10);
		is_his(f, pid, 20);
		answer(f, pid, U, 0, 30);
	}
	answer(f, 5, U, 0, 40);
	answer(f, 6, U, -EPERM, 40);
	answer(f, 7, V, 0, 40);
	answer(f, 8, U, 0, 40);
	put_exec(f, 8, 35);
	owned_settle(f->owned, 50);
	for (uint32_t pid = 5; pid < 9; pid++)
		is_his(f, pid, 60);
	expect(f, U, 5, "10:21-60 ");
	expect(f, U, 6, "10:0-0 ");
	expect(f, U, 7, "10:0-0 ");
	expect(f, U, 8, "10:0-0 35:35-60 ");
	/* One that said no is not taken back. */
	put_found(f, 9, 10);
	answer(f, 9, U, -EPERM, 20);
	answer(f, 9, U, 0, 30);
	owned_settle(f->owned, 50);
	is_his(f, 9, 60);
	expect(f, U, 9, "");
}

/* One user has very many new processes: those of another are asked about in turn. */
static void turns(void **state)
{
	struct fixture *f = *state;
	unsigned n_before = 0;

	put_found(f, 5, 10);
	put_found(f, 6, 10);
	is_his(f, 5, 20);
	answer(f, 6, V, 0, 20);
	owned_settle(f->owned, 30);
	for (uint32_t i = 0; i < 10000; i++)
		put_fork(f, 100 + i, 6, 100 + i);
	put_fork(f, 7, 5, 20000);
	for (uint32_t i = 0; i < 10000; i++)
		put_fork(f, 20000 + i, 6, 20001 + i);
	while (strcmp(ask(f, 40000), "U 7 ") != 0)
		assert_true(n_before++ < 4);
	/* Nor do they keep him waiting by answers that take long. */
	owned_leave(f->owned, V, 50000);
	put_fork(f, 8, 5, 40001);
	assert_string_equal(ask(f, 45000), "U 8 ");
	assert_string_equal(ask(f, 45000), "-");
	assert_memory_equal(ask(f, 50000), "V ", 2);
	/* His own question is answered whatever others have. */
	put_fork(f, 9, 5, 50001);
	assert_string_equal(ask_of(f, U, 50002, 50002), "U 9 ");
}

/* One user has very many processes: those of another stay, and have room. */
static void storm(void **state)
{
	struct fixture *f = *state;

	begin_his(f, 5);
	put_exit(f, 5, 5, 40);
	put_found(f, 6, 50);
	answer(f, 6, V, 0, 60);
	owned_settle(f->owned, 70);
	put_found(f, 5, 80);
	is_his(f, 5, 90);
	is_his(f, 5, 95);
	for (uint32_t i = 0; i < 100000; i++) {
		put_fork(f, 7, 6, 100 + 2 * i);
		put_exit(f, 7, 7, 101 + 2 * i);
	}
	expect(f, U, 5, "10:21-30 80:91-95 ");
	for (uint32_t i = 0; i < 100000; i++)
		put_fork(f, 100 + i, 6, 300000 + i);
	expect(f, U, 5, "10:21-30 80:91-95 ");
	is_his(f, 5, 400100);
	expect(f, U, 5, "10:21-30 80:91-400100 ");
	put_fork(f, 8, 5, 400200);
	is_his(f, 8, 400210);
	is_his(f, 8, 400220);
	expect(f, U, 8, "400200:400200-400220 ");
}

static int add_some(void *userdata)
{
	struct fixture *f = userdata;

	f->owned = owned_free(f->owned);
	if (owned_new(&f->owned) < 0)
		return -ENOMEM;
	begin_his(f, 5);
	for (unsigned i = 0; i < 3; i++) {
		put_fork(f, 6, 5, 40 + 10 * i);
		put_exec(f, 6, 41 + 10 * i);
		is_his(f, 6, 42 + 10 * i);
		put_exit(f, 6, 6, 48 + 10 * i);
		put_found(f, 7, 49 + 10 * i);
	}
	(void)ask(f, 90);
	if (!failing_name())
		return 0;
	f->owned = owned_free(f->owned);
	return -ENOMEM;
}

static void has_some(void *userdata)
{
	struct fixture *f = userdata;

	expect(f, U, 5, "10:21-30 ");
	expect(f, U, 6, "40:0-0 41:41-42 50:0-0 51:51-52 60:0-0 61:61-62 ");
	f->owned = owned_free(f->owned);
}

/* Without memory something is not known, and nothing else. */
static void no_memory(void **state)
{
	struct fixture *f = *state;

	failing_each(add_some, has_some, f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(found, set_up, tear_down),
		cmocka_unit_test_setup_teardown(programs, set_up, tear_down),
		cmocka_unit_test_setup_teardown(children, set_up, tear_down),
		cmocka_unit_test_setup_teardown(late_records, set_up, tear_down),
		cmocka_unit_test_setup_teardown(numbers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(another_group, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lost, set_up, tear_down),
		cmocka_unit_test_setup_teardown(questions, set_up, tear_down),
		cmocka_unit_test_setup_teardown(too_early, set_up, tear_down),
		cmocka_unit_test_setup_teardown(left_out, set_up, tear_down),
		cmocka_unit_test_setup_teardown(two_answers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(turns, set_up, tear_down),
		cmocka_unit_test_setup_teardown(storm, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_memory, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
