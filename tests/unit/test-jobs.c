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
	unsigned n_prepared, n_gathered, n_finished;
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

/* They are taken in the order in which they came, whoever asks. */
static void order(void **state)
{
	const struct caller a = { .uid = 1000, .comm = "a" }, b = { .uid = 1001, .comm = "b" };
	struct fixture *f = *state;

	f->heard = 0;
	assert_int_equal(jobs_add(f->jobs, "a0", NULL, &a), 0);
	assert_int_equal(jobs_add(f->jobs, "a1", NULL, &a), 0);
	assert_int_equal(jobs_add(f->jobs, "b0", NULL, &b), 0);
	assert_int_equal(jobs_add(f->jobs, "a2", NULL, &a), 0);
	assert_false(jobs_are_idle(f->jobs));
	run_until_done(f);
	assert_string_equal(f->order, "a0 a1 b0 a2 ");
	assert_true(jobs_are_idle(f->jobs));
}

/* So many results can be asked for; each older one gives its place to the latest. */
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
		cmocka_unit_test_setup_teardown(given_up, set_up, tear_down),
		cmocka_unit_test_setup_teardown(too_many, set_up, tear_down),
		cmocka_unit_test_setup_teardown(order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(results_that_are_forgotten, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_that_cannot_begin, set_up, tear_down),
		cmocka_unit_test_setup_teardown(given_up_before_it_began, set_up, tear_down),
		cmocka_unit_test_setup_teardown(calls_that_fail, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
