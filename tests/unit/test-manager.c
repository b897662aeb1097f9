/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The whole recorder in one process, with the software source, to which nobody writes. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "daemon/config/config.h"
#include "daemon/manager.h"
#include "daemon/proc/caller.h"
#include "daemon/sideband/scope.h"
#include "daemon/snapshot/jobs.h"
#include "daemon/spool/spool.h"
#include "tests/lib/failing.h"
#include "tests/lib/logged.h"
#include "tests/lib/tempdir.h"

/* 2023-11-14T22:13:20.123456Z */
static const struct timespec moment = { 1700000000, 123456789 };
static bool clock_stands;

/* The linker prefers this one. */
int clock_gettime(clockid_t id, struct timespec *ret_time)
{
	if (id != CLOCK_REALTIME || !clock_stands)
		return (int)syscall(SYS_clock_gettime, id, ret_time);
	*ret_time = moment;
	return 0;
}

static const struct caller caller = { .comm = "test" };

struct fixture {
	char dir[TEMPDIR_SIZE], runtime_dir[96], state_dir[96];
	struct config config, wanted;
	struct manager_options options;
	struct manager *manager;
	int answer; /* of load_config() */
	_Atomic unsigned n_loads;
	sigset_t signals;
	bool (*is_done)(const struct fixture *); /* then SIGTERM is sent */
};

static int load_config(struct config *ret_config, void *userdata)
{
	struct fixture *f = userdata;

	f->n_loads++;
	*ret_config = f->wanted;
	return f->answer;
}

static struct recorder_status status_of(const struct fixture *f)
{
	const struct recorder recorder = manager_recorder(f->manager);

	return recorder.ops->status(recorder.userdata);
}

static int take_snapshot(const struct fixture *f, const char **ret_id)
{
	static const struct scope all = {};
	const struct recorder recorder = manager_recorder(f->manager);

	return recorder.ops->take_snapshot(recorder.userdata, &all, &caller, ret_id);
}

static int make(void *userdata)
{
	struct fixture *f = userdata;
	struct manager *manager = NULL;
	int r;

	logged_begin();
	r = manager_new(&f->options, &manager);
	(void)logged_end();
	if (r < 0)
		assert_null(manager);
	f->manager = manager;
	return r;
}

static void unmake(void *userdata)
{
	struct fixture *f = userdata;

	logged_begin();
	f->manager = manager_free(f->manager);
	(void)logged_end();
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	tempdir_make("manager", f->dir);
	(void)snprintf(f->runtime_dir, sizeof(f->runtime_dir), "%s/run", f->dir);
	(void)snprintf(f->state_dir, sizeof(f->state_dir), "%s/state", f->dir);
	config_init(&f->config);
	f->config.source = CONFIG_SOURCE_EMU;
	f->config.n_cpus = 2;
	f->config.aux_size = f->config.switch_size = f->config.task_size = 16384;
	f->config.max_use.bytes = UINT64_C(1) << 40;
	f->config.keep_free = (struct config_limit){};
	f->wanted = f->config;
	f->options = (struct manager_options){ .config = &f->config,
					       .runtime_dir = f->runtime_dir,
					       .state_dir = f->state_dir,
					       .load_config = load_config,
					       .userdata = f };
	assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &f->signals), 0);
	assert_int_equal(make(f), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	clock_stands = false;
	unmake(f);
	assert_int_equal(sigprocmask(SIG_SETMASK, &f->signals, NULL), 0);
	tempdir_remove(f->dir);
	free(f);
	return 0;
}

static void *end_it(void *userdata)
{
	const struct timespec pause = { .tv_nsec = 5000000 };
	struct fixture *f = userdata;

	for (unsigned i = 0; i < 4000 && !f->is_done(f); i++)
		(void)nanosleep(&pause, NULL);
	(void)kill(getpid(), SIGTERM);
	return NULL;
}

/* Serve until @is_done, then end. Return: what was logged. */
static const char *run_until(struct fixture *f, bool (*is_done)(const struct fixture *))
{
	pthread_t thread;
	const char *said;

	f->is_done = is_done;
	assert_int_equal(pthread_create(&thread, NULL, end_it, f), 0);
	logged_begin();
	assert_int_equal(manager_run(f->manager), 0);
	said = logged_end();
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(is_done(f));
	return said;
}

static bool has(const struct fixture *f, const char *path)
{
	char full[256];

	(void)snprintf(full, sizeof(full), "%s/%s", f->dir, path);
	return access(full, F_OK) == 0;
}

static bool has_two(const struct fixture *f)
{
	return has(f, "state/snapshots/20231114T221320.123456Z-2");
}

static bool has_loaded(const struct fixture *f)
{
	return f->n_loads > 0;
}

/* An id says when it was asked for, and how many there were before it: also after a restart. */
static void ids(void **state)
{
	struct fixture *f = *state;
	const char *id, *said;

	clock_stands = true;
	assert_int_equal(take_snapshot(f, &id), 0);
	assert_string_equal(id, "20231114T221320.123456Z-1");
	assert_int_equal(take_snapshot(f, &id), 0);
	assert_string_equal(id, "20231114T221320.123456Z-2");
	assert_int_equal(status_of(f).n_pending, 2);
	assert_int_equal(jobs_pending(manager_recorder(f->manager).jobs), 2);
	said = run_until(f, has_two);
	assert_non_null(strstr(said, "snapshot 20231114T221320.123456Z-1: 0 bytes of PT"));
	assert_null(strstr(said, "ignoring"));
	unmake(f);
	assert_int_equal(make(f), 0);
	assert_int_equal(take_snapshot(f, &id), 0);
	assert_string_equal(id, "20231114T221320.123456Z-3");
}

/* A snapshot that could not be written is not said to be there, and the next one is written. */
static void snapshots_that_fail(void **state)
{
	static const struct scope nobody = { .pid = INT32_MAX };
	struct fixture *f = *state;
	const struct recorder recorder = manager_recorder(f->manager);
	const char *id, *said;
	const struct job *job;

	clock_stands = true;
	assert_int_equal(recorder.ops->take_snapshot(recorder.userdata, &nobody, &caller, &id), 0);
	assert_int_equal(take_snapshot(f, &id), 0);
	said = run_until(f, has_two);
	job = jobs_find(recorder.jobs, "20231114T221320.123456Z-1");
	assert_true(job->done);
	assert_int_equal(job->error, -ESRCH);
	assert_string_equal(job->message,
			    "process 2147483647 did not run as far back as the rings go");
	assert_non_null(strstr(said, job->message));
	assert_null(strstr(said, "snapshot 20231114T221320.123456Z-1: 0 bytes of PT"));
	assert_false(has(f, "state/snapshots/20231114T221320.123456Z-1"));
	assert_int_equal(spool_count(recorder.spool), 1);
}

static bool has_none_pending(const struct fixture *f)
{
	return jobs_pending(manager_recorder(f->manager).jobs) == 0;
}

static void nowhere_to_write_to(void **state)
{
	struct fixture *f = *state;
	const struct recorder recorder = manager_recorder(f->manager);
	const struct job *job;
	char path[160], expected[400];
	const char *id, *said;

	clock_stands = true;
	(void)snprintf(path, sizeof(path), "%s/snapshots", f->state_dir);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(take_snapshot(f, &id), 0);
	said = run_until(f, has_none_pending);
	job = jobs_find(recorder.jobs, "20231114T221320.123456Z-1");
	assert_int_equal(job->error, -ENOENT);
	(void)snprintf(expected, sizeof(expected),
		       "cannot write directory of snapshot 20231114T221320.123456Z-1 under %s: No "
		       "such file or directory",
		       path);
	assert_string_equal(job->message, expected);
	assert_non_null(strstr(said, expected));
}

/* What only a removed snapshot had of the store goes with it. */
static void removed(void **state)
{
	struct fixture *f = *state;
	const struct recorder recorder = manager_recorder(f->manager);
	const char *id;

	tempdir_put_text(f->dir, "state/snapshots/A-1/manifest", "");
	tempdir_put_text(f->dir, "state/snapshots/A-2/manifest", "");
	tempdir_put_text(f->dir, "state/store/0123", "bytes");
	assert_int_equal(recorder.ops->remove_snapshot(recorder.userdata, "A-3"), -ENOENT);
	assert_true(has(f, "state/store/0123"));
	/* While a snapshot is written, the store is another thread's. */
	assert_int_equal(take_snapshot(f, &id), 0);
	assert_int_equal(recorder.ops->remove_snapshot(recorder.userdata, "A-1"), 0);
	assert_false(has(f, "state/snapshots/A-1"));
	assert_true(has(f, "state/store/0123"));
	(void)run_until(f, has_none_pending);
	tempdir_put_text(f->dir, "state/store/0123", "bytes");
	assert_int_equal(recorder.ops->remove_snapshot(recorder.userdata, "A-2"), 0);
	assert_false(has(f, "state/snapshots/A-2"));
	assert_false(has(f, "state/store/0123"));
}

/* So many may wait, and no number is lost with those that may not. */
static void too_many(void **state)
{
	struct fixture *f = *state;
	const char *id = NULL, *end = "untouched";
	unsigned n = 0;

	while (take_snapshot(f, &id) == 0) {
		n++;
		assert_int_equal(strtoul(strchr(id, '-') + 1, NULL, 10), n);
		assert_true(n < 1000);
	}
	assert_true(n > 1);
	assert_int_equal(take_snapshot(f, &end), -EBUSY);
	assert_string_equal(end, "untouched");
}

static void what_it_is(void **state)
{
	struct fixture *f = *state;
	const struct recorder recorder = manager_recorder(f->manager);
	const struct recorder_status status = status_of(f);

	assert_string_equal(status.source, "emu");
	assert_int_equal(status.n_cpus, status.cpus.n_online);
	assert_int_equal(status.cpus.aux_size, 16384);
	assert_false(status.recording);
	assert_int_equal(status.n_pending, 0);
	assert_int_equal(status.n_objects, 0);
	assert_int_equal(recorder.ops->pause(recorder.userdata, true), -EOPNOTSUPP);
	assert_int_equal(spool_count(recorder.spool), 0);
	assert_true(has(f, "run/control"));
	unmake(f);
	assert_false(has(f, "run/control"));
}

static void hangup(void **state)
{
	struct fixture *f = *state;
	const char *said;

	f->wanted.sideband_max = f->config.sideband_max * 2;
	f->wanted.aux_size *= 2;
	assert_int_equal(kill(getpid(), SIGHUP), 0);
	said = run_until(f, has_loaded);
	assert_non_null(strstr(said, "settings were read again"));
	assert_null(strstr(said, "ignoring"));
	/* One is taken over at once, the other with the next start. */
	assert_int_equal(status_of(f).sideband_max, f->wanted.sideband_max);
	assert_int_equal(status_of(f).cpus.aux_size, 16384);
}

/* Settings that cannot be read change nothing. */
static void hangup_in_vain(void **state)
{
	struct fixture *f = *state;

	f->answer = -EACCES;
	f->wanted.sideband_max = f->config.sideband_max * 2;
	assert_int_equal(kill(getpid(), SIGHUP), 0);
	assert_non_null(strstr(run_until(f, has_loaded), "the settings stay as they are"));
	assert_int_equal(status_of(f).sideband_max, f->config.sideband_max);
}

static void one_only(void **state)
{
	struct fixture *f = *state;
	struct manager *second = NULL;
	const char *said;
	int r;

	logged_begin();
	r = manager_new(&f->options, &second);
	said = logged_end();
	assert_int_equal(r, -EBUSY);
	assert_null(second);
	assert_non_null(strstr(said, "another ptd is using this state directory"));
	(void)snprintf(f->state_dir, sizeof(f->state_dir), "%s/other", f->dir);
	logged_begin();
	r = manager_new(&f->options, &second);
	said = logged_end();
	assert_int_equal(r, -EADDRINUSE);
	assert_null(second);
	assert_non_null(strstr(said, "run/control: cannot listen there"));
	/* And the first one still has its socket. */
	assert_true(has(f, "run/control"));
}

static void calls_that_fail(void **state)
{
	struct fixture *f = *state;

	unmake(f);
	failing_each(make, unmake, f);
	assert_int_equal(make(f), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(ids, set_up, tear_down),
		cmocka_unit_test_setup_teardown(snapshots_that_fail, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nowhere_to_write_to, set_up, tear_down),
		cmocka_unit_test_setup_teardown(removed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(too_many, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_it_is, set_up, tear_down),
		cmocka_unit_test_setup_teardown(hangup, set_up, tear_down),
		cmocka_unit_test_setup_teardown(hangup_in_vain, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_only, set_up, tear_down),
		cmocka_unit_test_setup_teardown(calls_that_fail, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
