/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the thread of a job and the event loop say to each other. */

#include "base/clock.h"
#include "daemon/share/share.h"
#include "daemon/snapshot/jobs.h"
#include "tests/lib/failing.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-event.h>

#include <cmocka.h>

static const struct caller caller = { .comm = "test" };

struct fixture {
	sd_event *event;
	struct jobs *jobs;
	pthread_t loop;
	int answer;       /* of gather() */
	unsigned n_asked; /* how often run() asks */
	int heard;        /* what it was answered last */
	int unprepared;   /* what prepare() returns */
	unsigned n_prepared, n_gathered, n_put_back, n_finished;
	char order[128]; /* the ids of the jobs that ran, or failed */
	int last_error;  /* of the job that finished last */
	char last_message[512];
};

static int prepare(struct job *job, void *userdata)
{
	struct fixture *f = userdata;

	f->n_prepared++;
	job->userdata = f;
	return f->unprepared;
}

static int gather(struct job *job, void *userdata)
{
	struct fixture *f = userdata;

	assert_ptr_equal(job->userdata, f);
	assert_true(pthread_equal(pthread_self(), f->loop));
	f->n_gathered++;
	return f->answer;
}

static int run(struct job *job)
{
	struct fixture *f = job->userdata;

	for (unsigned i = 0; i < f->n_asked; i++)
		f->heard = jobs_gather(job);
	return f->heard;
}

static void put_back(struct job *job, void *userdata)
{
	struct fixture *f = userdata;

	assert_ptr_equal(job->userdata, f);
	job->userdata = NULL;
	f->n_put_back++;
}

static void finish(struct job *job, void *userdata)
{
	struct fixture *f = userdata;

	f->n_finished++;
	(void)snprintf(f->order + strlen(f->order), sizeof(f->order) - strlen(f->order), "%s%s ",
		       job->id, job->error == -EBUSY ? "!" : "");
	f->last_error = job->error;
	(void)snprintf(f->last_message, sizeof(f->last_message), "%s", job->message);
}

static const struct jobs_ops ops = {
	.prepare = prepare,
	.gather = gather,
	.run = run,
	.put_back = put_back,
	.finish = finish,
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	assert_int_equal(sd_event_new(&f->event), 0);
	assert_int_equal(jobs_new(f->event, &ops, f, &f->jobs), 0);
	f->loop = pthread_self();
	f->heard = 1;
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	(void)jobs_free(f->jobs);
	(void)sd_event_unref(f->event);
	free(f);
	return 0;
}

static void run_until_done(struct fixture *f)
{
	while (jobs_pending(f->jobs) > 0)
		assert_true(sd_event_run(f->event, UINT64_MAX) >= 0);
}

static void answers(void **state)
{
	static const struct {
		unsigned n_asked;
		int answer, expected;
	} rows[] = { { 1, 0, 0 }, { 3, 0, 0 }, { 2, -ENOMEM, -ENOMEM } };
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char id[8];

		(void)snprintf(id, sizeof(id), "%zu", i);
		f->n_asked = rows[i].n_asked;
		f->answer = rows[i].answer;
		f->n_gathered = 0;
		assert_int_equal(jobs_add(f->jobs, id, NULL, &caller), 0);
		run_until_done(f);
		assert_int_equal(f->n_gathered, rows[i].n_asked);
		assert_int_equal(f->heard, rows[i].expected);
		assert_int_equal(jobs_find(f->jobs, id)->error, rows[i].expected);
	}
	assert_int_equal(f->n_prepared, ARRAY_LEN(rows));
	assert_int_equal(f->n_finished, ARRAY_LEN(rows));
}

/* The event loop goes on while the thread waits for its answer. */
static void an_answer_that_comes_later(void **state)
{
	struct fixture *f = *state;

	f->n_asked = 2;
	f->answer = JOBS_LATER;
	jobs_answer(f->jobs, -EIO);
	assert_int_equal(jobs_add(f->jobs, "a", NULL, &caller), 0);
	for (unsigned i = 1; i <= f->n_asked; i++) {
		while (f->n_gathered < i)
			assert_true(sd_event_run(f->event, UINT64_MAX) >= 0);
		assert_int_equal(sd_event_run(f->event, 1000), 0);
		assert_int_equal(f->n_gathered, i);
		jobs_answer(f->jobs, -(int)i);
	}
	run_until_done(f);
	jobs_answer(f->jobs, -EIO);
	assert_int_equal(f->heard, -2);
}

/* A user's own one that waits for its answer is cancelled at once, and asks no more. */
static void an_answer_that_is_not_waited_for(void **state)
{
	const struct scope own = { .is_own = true };
	struct fixture *f = *state;

	f->n_asked = 2;
	f->answer = JOBS_LATER;
	assert_int_equal(jobs_add(f->jobs, "o", &own, &caller), 0);
	while (f->n_gathered < 1)
		assert_true(sd_event_run(f->event, UINT64_MAX) >= 0);
	assert_int_equal(jobs_add(f->jobs, "a", NULL, &caller), 0);
	f->answer = 0;
	run_until_done(f);
	assert_string_equal(f->order, "a o ");
	assert_int_equal(f->n_put_back, 1);
	assert_int_equal(f->n_gathered, 5);
}

/* One that asks while the queue is given up is not waited for, nor are those behind it. */
static void given_up(void **state)
{
	struct fixture *f = *state;

	f->n_asked = 2;
	assert_int_equal(jobs_add(f->jobs, "a", NULL, &caller), 0);
	assert_int_equal(jobs_add(f->jobs, "b", NULL, &caller), 0);
	while (f->n_prepared == 0)
		assert_true(sd_event_run(f->event, UINT64_MAX) >= 0);
	f->jobs = jobs_free(f->jobs);
	assert_int_equal(f->heard, -ECANCELED);
	assert_int_equal(f->n_prepared, 1);
	assert_int_equal(f->n_finished, 2);
}

static void too_many(void **state)
{
	struct fixture *f = *state;
	char id[8];

	for (unsigned i = 0; i <= JOBS_WAITING_MAX; i++) {
		(void)snprintf(id, sizeof(id), "%u", i);
		assert_int_equal(jobs_add(f->jobs, id, NULL, &caller), 0);
	}
	assert_int_equal(jobs_add(f->jobs, "one more", NULL, &caller), -EBUSY);
	run_until_done(f);
	assert_int_equal(f->n_finished, JOBS_WAITING_MAX + 1);
}

/* A user who has taken all places but the one that is left for others gives some to them, and all
 * take turns. */
static void two_users(void **state)
{
	const struct caller a = { .uid = 1000, .comm = "a" }, b = { .uid = 1001, .comm = "b" };
	struct fixture *f = *state;
	struct share share;

	f->heard = 0;
	for (unsigned i = 0; i < JOBS_WAITING_MAX; i++)
		assert_int_equal(jobs_add(f->jobs, (char[]){ 'a', (char)('0' + i), 0 }, NULL, &a),
				 0);
	assert_int_equal(jobs_add(f->jobs, "a8", NULL, &a), -EBUSY);
	assert_int_equal(jobs_add(f->jobs, "b0", NULL, &b), 0);
	assert_string_equal(f->order, "");
	assert_int_equal(jobs_add(f->jobs, "b1", NULL, &b), 0);
	assert_string_equal(f->order, "a7! ");
	assert_string_equal(
	    f->last_message,
	    "snapshot a7 was not begun: user 1000 has more requests than his share, "
	    "and others need the places");
	assert_int_equal(jobs_find(f->jobs, "a7")->error, -EBUSY);
	/* Now each has as much as he is sure of, or more. */
	assert_int_equal(jobs_add(f->jobs, "b2", NULL, &b), -EBUSY);
	jobs_get_share(f->jobs, &share);
	assert_int_equal(share.n_users, 2);
	assert_int_equal(share_n_refused(&share.users[0]), 2);
	assert_int_equal(share_n_refused(&share.users[1]), 2);
	run_until_done(f);
	assert_string_equal(f->order, "a7! a0 b0 a1 b1 a2 a3 a4 a5 a6 ");
	assert_int_equal(f->last_error, 0);
}

/* So many results can be asked for; each older one gives its place to the latest. */
/* Users' own ones come after all others, take no places, and are not remembered. */
static void own_ones(void **state)
{
	const struct caller a = { .uid = 1000, .comm = "a" }, b = { .uid = 1001, .comm = "b" };
	const struct scope own = { .is_own = true };
	struct fixture *f = *state;

	f->heard = 0;
	for (unsigned i = 0; i < JOBS_WAITING_MAX + 2; i++)
		assert_int_equal(jobs_add(f->jobs, (char[]){ 'o', (char)('0' + i), 0 }, &own, &a),
				 0);
	assert_int_equal(jobs_add(f->jobs, "p0", &own, &b), 0);
	for (unsigned i = 0; i < JOBS_WAITING_MAX - 1; i++)
		assert_int_equal(jobs_add(f->jobs, (char[]){ 'a', (char)('0' + i), 0 }, NULL, &a),
				 0);
	assert_int_equal(jobs_add(f->jobs, "b0", NULL, &b), 0);
	run_until_done(f);
	assert_string_equal(f->order, "a0 b0 a1 a2 a3 a4 a5 a6 p0 o0 o1 o2 o3 o4 o5 o6 o7 o8 o9 ");
	assert_null(jobs_find(f->jobs, "o0"));
	assert_non_null(jobs_find(f->jobs, "a0"));
}

/* Between two of the same user's own ones is a pause, in which others are taken. */
static void own_ones_pause(void **state)
{
	enum { PAUSE_MS = 200 };
	const struct caller a = { .uid = 1000, .comm = "a" }, b = { .uid = 1001, .comm = "b" };
	const struct scope own = { .is_own = true };
	struct fixture *f = *state;
	uint64_t begun, took_ms;

	f->heard = 0;
	jobs_set_own_pause(f->jobs, PAUSE_MS * 1000);
	begun = clock_ns(CLOCK_MONOTONIC);
	assert_int_equal(jobs_add(f->jobs, "o0", &own, &a), 0);
	assert_int_equal(jobs_add(f->jobs, "o1", &own, &a), 0);
	assert_int_equal(jobs_add(f->jobs, "p0", &own, &b), 0);
	while (f->n_finished < 2)
		assert_true(sd_event_run(f->event, UINT64_MAX) >= 0);
	assert_true(sd_event_run(f->event, 0) >= 0);
	assert_true(jobs_are_idle(f->jobs));
	assert_int_equal(jobs_add(f->jobs, "b0", NULL, &b), 0);
	assert_false(jobs_are_idle(f->jobs));
	run_until_done(f);
	took_ms = (clock_ns(CLOCK_MONOTONIC) - begun) / 1000000;
	assert_string_equal(f->order, "o0 p0 b0 o1 ");
	assert_in_range(took_ms, PAUSE_MS, 5 * PAUSE_MS);
	/* One that waits for the end of its pause fails when the queue is given up. */
	assert_int_equal(jobs_add(f->jobs, "o2", &own, &a), 0);
	assert_true(sd_event_run(f->event, 0) >= 0);
	f->jobs = jobs_free(f->jobs);
	assert_string_equal(f->order, "o0 p0 b0 o1 o2 ");
	assert_int_equal(f->last_error, -ECANCELED);
}

/* A user's own one that is not cancelled ends when the test says so. */
static atomic_bool may_end;

static int wait_for_cancel(struct job *job)
{
	while (!atomic_load(&job->cancel) && job->scope.is_own && !atomic_load(&may_end))
		(void)sched_yield();
	return atomic_load(&job->cancel) ? -ECANCELED : 0;
}

static const struct jobs_ops waiting_ops = { .prepare = prepare,
					     .gather = gather,
					     .run = wait_for_cancel,
					     .put_back = put_back,
					     .finish = finish };

/* One that runs makes way for others that are not, and begins again. */
static void own_one_that_runs(void **state)
{
	const struct scope own = { .is_own = true };
	struct fixture *f = *state;

	(void)jobs_free(f->jobs);
	assert_int_equal(jobs_new(f->event, &waiting_ops, f, &f->jobs), 0);
	/* Its pause does not count: it was not taken. */
	jobs_set_own_pause(f->jobs, 3600000000);
	atomic_store(&may_end, false);
	assert_int_equal(jobs_add(f->jobs, "o", &own, &caller), 0);
	for (unsigned i = 1; i < 4; i++) {
		while (f->n_prepared < 2 * i - 1)
			assert_true(sd_event_run(f->event, UINT64_MAX) >= 0);
		assert_int_equal(jobs_add(f->jobs, "a", NULL, &caller), 0);
		while (f->n_finished < i)
			assert_true(sd_event_run(f->event, UINT64_MAX) >= 0);
		assert_int_equal(f->n_put_back, i);
	}
	atomic_store(&may_end, true);
	run_until_done(f);
	assert_string_equal(f->order, "a a a o ");
	assert_int_equal(f->last_error, 0);
}

static void results_that_are_forgotten(void **state)
{
	struct fixture *f = *state;
	char id[8];

	f->heard = 0;
	for (unsigned i = 0; i < JOBS_FINISHED_MAX + 3; i++) {
		(void)snprintf(id, sizeof(id), "%u", i);
		assert_int_equal(jobs_add(f->jobs, id, NULL, &caller), 0);
		run_until_done(f);
		for (unsigned k = 0; k <= i; k++) {
			const struct job *job;

			(void)snprintf(id, sizeof(id), "%u", k);
			job = jobs_find(f->jobs, id);
			if (k + JOBS_FINISHED_MAX <= i) {
				assert_null(job);
				continue;
			}
			assert_non_null(job);
			assert_true(job->done);
			assert_string_equal(job->id, id);
		}
	}
	assert_int_equal(jobs_pending(f->jobs), 0);
}

/* What waits behind one that cannot begin is done. */
static void one_that_cannot_begin(void **state)
{
	struct fixture *f = *state;
	static const struct scope scope = { .pid = 77 };

	f->unprepared = -ENOMEM;
	f->heard = 0;
	assert_int_equal(jobs_add(f->jobs, "a", &scope, &caller), 0);
	run_until_done(f);
	assert_int_equal(jobs_find(f->jobs, "a")->error, -ENOMEM);
	assert_string_equal(jobs_find(f->jobs, "a")->message,
			    "cannot begin the snapshot: Cannot allocate memory");
	assert_int_equal(jobs_find(f->jobs, "a")->scope.pid, 77);
	assert_string_equal(jobs_find(f->jobs, "a")->caller.comm, "test");
	assert_null(jobs_find(f->jobs, "b"));
	f->unprepared = 0;
	assert_int_equal(jobs_add(f->jobs, "b", NULL, &caller), 0);
	assert_false(jobs_find(f->jobs, "b")->done);
	run_until_done(f);
	assert_true(jobs_find(f->jobs, "b")->done);
	assert_int_equal(jobs_find(f->jobs, "b")->error, 0);
	assert_int_equal(f->n_finished, 2);
}

/* What was never begun says why there is nothing. */
static void given_up_before_it_began(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(jobs_add(f->jobs, "a", NULL, &caller), 0);
	f->jobs = jobs_free(f->jobs);
	assert_int_equal(f->n_prepared, 0);
	assert_int_equal(f->n_finished, 1);
	assert_string_equal(f->last_message, "ptd is stopping");
	assert_int_equal(f->last_error, -ECANCELED);
}

static int make(void *userdata)
{
	struct fixture *f = userdata;
	struct jobs *jobs = (struct jobs *)0x1;
	int r;

	r = jobs_new(f->event, &ops, f, &jobs);
	if (r < 0) {
		assert_ptr_equal(jobs, 0x1);
		return r;
	}
	f->jobs = jobs;
	r = jobs_add(jobs, "a", NULL, &caller);
	if (r < 0) {
		assert_int_equal(jobs_pending(jobs), 0);
		f->jobs = jobs_free(jobs);
	}
	return r;
}

static void is_made(void *userdata)
{
	struct fixture *f = userdata;

	run_until_done(f);
	assert_non_null(jobs_find(f->jobs, "a"));
	assert_int_equal(jobs_find(f->jobs, "a")->error, 0);
	f->jobs = jobs_free(f->jobs);
}

static void calls_that_fail(void **state)
{
	struct fixture *f = *state;

	f->jobs = jobs_free(f->jobs);
	f->heard = 0; /* what run() returns */
	failing_each(make, is_made, f);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(answers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_answer_that_comes_later, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_answer_that_is_not_waited_for, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(given_up, set_up, tear_down),
		cmocka_unit_test_setup_teardown(too_many, set_up, tear_down),
		cmocka_unit_test_setup_teardown(two_users, set_up, tear_down),
		cmocka_unit_test_setup_teardown(own_ones, set_up, tear_down),
		cmocka_unit_test_setup_teardown(own_ones_pause, set_up, tear_down),
		cmocka_unit_test_setup_teardown(own_one_that_runs, set_up, tear_down),
		cmocka_unit_test_setup_teardown(results_that_are_forgotten, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_that_cannot_begin, set_up, tear_down),
		cmocka_unit_test_setup_teardown(given_up_before_it_began, set_up, tear_down),
		cmocka_unit_test_setup_teardown(calls_that_fail, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
