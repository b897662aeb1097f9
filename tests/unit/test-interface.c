/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The methods of org.ptd.Recorder1 as a client sees them, over a recorder that returns what a test
 * wants, a spool and a queue of jobs that are real ones.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "ctl/show.h"
#include "daemon/control/interface.h"
#include "daemon/sideband/scope.h"
#include "daemon/snapshot/jobs.h"
#include "daemon/spool/spool.h"
#include "ptd/control.h"
#include "tests/lib/logged.h"
#include "tests/lib/tempdir.h"

#define WAITERS_MAX 256u /* as in daemon/control/interface.c */

struct fixture {
	char dir[TEMPDIR_SIZE];
	struct interface interface;
	struct interface_peer peer;
	sd_event *event;
	sd_bus *server, *client;
	struct jobs *jobs;
	int result;  /* of the recorder's operations, and of jobs */
	bool paused; /* what was asked for last */
	bool timing; /* likewise */
	char removed[SNAPID_SIZE];
	struct scope scope;
	unsigned n_reloads;
	char *reply; /* as JSON, without its line's end, or NAME: TEXT of an error */
	unsigned n_answers;
	const char *said;
};

/* --- a recorder ------------------------------------------------------------------------------ */

static struct recorder_status status(void *userdata)
{
	(void)userdata;
	return (struct recorder_status){
		.source = "fake",
		.n_cpus = 4,
		.cpus = { .n_online = 9,
			  .n_recording = 1,
			  .n_offline = 2,
			  .n_busy = 3,
			  .n_failed = 5,
			  .paused = true,
			  .aux_size = 6,
			  .switch_size = 7 },
		.recording = true,
		.sideband_bytes = 8,
		.sideband_max = 10,
		.sideband_lost = 11,
		.n_objects = 12,
		.rings_ns = 9,
		.n_pending = 13,
		.n_taken = 14,
		.n_failed = 15,
		.n_removed = 16,
	};
}

static void get_share(void *userdata, enum recorder_shared shared, struct share *ret_share)
{
	(void)userdata;
	*ret_share = (struct share){};
	share_take(ret_share, 1000, 1);
	if (shared == RECORDER_OBJECTS)
		share_count_taken_back(ret_share, 1001);
	if (shared == RECORDER_OBJECTS)
		share_count_refused(ret_share, 1001, SHARE_REASON_UNREADABLE, 2);
	if (shared == RECORDER_SIDEBAND)
		share_count_taken_back(ret_share, 1002);
}

static int open_pool(void *userdata, bool timing, int *ret_fd)
{
	struct fixture *f = userdata;

	*ret_fd = STDERR_FILENO;
	f->timing = timing;
	return f->result;
}

static int pause_or_not(void *userdata, bool paused)
{
	struct fixture *f = userdata;

	f->paused = paused;
	return f->result;
}

static int take_snapshot(void *userdata, const struct scope *scope, const struct caller *caller,
			 const char **ret_id)
{
	struct fixture *f = userdata;

	assert_string_equal(caller->comm, "asker");
	f->scope = *scope;
	*ret_id = "TAKEN-1";
	return f->result;
}

static int remove_snapshot(void *userdata, const char *id)
{
	struct fixture *f = userdata;

	(void)snprintf(f->removed, sizeof(f->removed), "%s", id);
	return f->result;
}

static int reload(void *userdata, const struct caller *caller)
{
	struct fixture *f = userdata;

	assert_string_equal(caller->comm, "asker");
	f->n_reloads++;
	return f->result;
}

static const struct recorder_ops ops = {
	.status = status,
	.get_share = get_share,
	.open_pool = open_pool,
	.pause = pause_or_not,
	.take_snapshot = take_snapshot,
	.remove_snapshot = remove_snapshot,
	.reload = reload,
};

/* --- its jobs -------------------------------------------------------------------------------- */

static int prepare(struct job *job, void *userdata)
{
	job->userdata = userdata;
	return 0;
}

static int gather(struct job *job, void *userdata)
{
	(void)job;
	(void)userdata;
	return 0;
}

static int run(struct job *job)
{
	const struct fixture *f = job->userdata;

	if (f->result < 0)
		(void)snprintf(job->message, sizeof(job->message), "the reason");
	job->result = (struct snapshot_result){ .bytes = 1,
						.bytes_pt = 2,
						.bytes_overwritten = 3,
						.complete_since_ns = 4,
						.taken_ns = 5,
						.n_cpus = 6,
						.n_objects = 7,
						.n_missing = 8,
						.n_without_room = 9 };
	return f->result;
}

static void finish(struct job *job, void *userdata)
{
	struct fixture *f = userdata;

	interface_job_done(&f->interface, job);
}

static const struct jobs_ops jobs_ops = {
	.prepare = prepare,
	.gather = gather,
	.run = run,
	.finish = finish,
};

/* --- a client -------------------------------------------------------------------------------- */

static void put_snapshot(const struct fixture *f, const char *id, const char *manifest)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "state/snapshots/%s/manifest", id);
	tempdir_put_text(f->dir, path, manifest);
}

static sd_bus *connect_bus(int fd, bool is_server)
{
	sd_id128_t id = {};
	sd_bus *bus;

	assert_true(sd_bus_new(&bus) >= 0);
	assert_true(sd_bus_set_fd(bus, fd, fd) >= 0);
	if (is_server)
		assert_true(sd_bus_set_server(bus, true, id) >= 0);
	assert_true(sd_bus_negotiate_fds(bus, true) >= 0);
	return bus;
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char path[128];
	int fds[2];

	assert_non_null(f);
	tempdir_make("interface", f->dir);
	(void)snprintf(path, sizeof(path), "%s/state", f->dir);
	assert_int_equal(spool_new(path, &f->interface.recorder.spool), 0);
	assert_int_equal(sd_event_new(&f->event), 0);
	assert_int_equal(jobs_new(f->event, &jobs_ops, f, &f->jobs), 0);
	f->interface.recorder.ops = &ops;
	f->interface.recorder.userdata = f;
	f->interface.recorder.jobs = f->jobs;
	f->peer = (struct interface_peer){ .interface = &f->interface,
					   .caller = { .uid = 5, .pid = 6, .comm = "asker" } };
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds),
			 0);
	f->server = connect_bus(fds[0], true);
	f->client = connect_bus(fds[1], false);
	assert_int_equal(interface_attach(f->server, &f->peer), 0);
	assert_true(sd_bus_start(f->server) >= 0);
	assert_true(sd_bus_start(f->client) >= 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	(void)jobs_free(f->jobs);
	waiters_deinit(&f->interface.waiters);
	(void)sd_bus_close_unref(f->client);
	(void)sd_bus_close_unref(f->server);
	(void)sd_event_unref(f->event);
	(void)spool_free(f->interface.recorder.spool);
	free(f->reply);
	tempdir_remove(f->dir);
	free(f);
	return 0;
}

static int on_answer(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct fixture *f = userdata;
	const sd_bus_error *e = sd_bus_message_get_error(m);
	size_t size;
	FILE *file;

	(void)error;
	free(f->reply);
	f->reply = NULL;
	file = open_memstream(&f->reply, &size);
	assert_non_null(file);
	if (e)
		fprintf(file, "%s: %s", e->name, e->message);
	else
		(void)!show_json(file, m); /* a descriptor it does not print */
	(void)fclose(file);
	f->reply[strcspn(f->reply, "\n")] = 0;
	f->n_answers++;
	return 0;
}

/* Until both have nothing more to do. */
static void talk(struct fixture *f)
{
	unsigned n_idle = 0;

	while (n_idle < 3) {
		const int a = sd_bus_process(f->client, NULL), b = sd_bus_process(f->server, NULL);

		assert_true(a >= 0 && b >= 0);
		n_idle = a > 0 || b > 0 ? 0 : n_idle + 1;
	}
}

static void ask(struct fixture *f, const char *method, const char *types, ...)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL;
	va_list ap;

	assert_true(sd_bus_message_new_method_call(f->client, &call, NULL, PTD_CONTROL_OBJECT,
						   PTD_CONTROL_INTERFACE, method) >= 0);
	va_start(ap, types);
	assert_true(sd_bus_message_appendv(call, types, ap) >= 0);
	va_end(ap);
	assert_true(sd_bus_call_async(f->client, NULL, call, on_answer, f, UINT64_MAX) >= 0);
	logged_begin();
	talk(f);
	f->said = logged_end();
}

/* What is answered at once. */
#define assert_answer(f, expected, ...)                         \
	do {                                                    \
		const unsigned n_before = (f)->n_answers;       \
		ask((f), __VA_ARGS__);                          \
		assert_int_equal((f)->n_answers, n_before + 1); \
		assert_string_equal((f)->reply, expected);      \
	} while (0)

static void run_jobs(struct fixture *f)
{
	while (jobs_pending(f->jobs) > 0)
		assert_true(sd_event_run(f->event, UINT64_MAX) >= 0);
	talk(f);
}

/* --- tests ----------------------------------------------------------------------------------- */

static void get_status(void **state)
{
	struct fixture *f = *state;
	char expected[900];

	put_snapshot(f, "A-1", "");
	put_snapshot(f, "A-2", "");
	ask(f, "GetStatus", "");
	(void)snprintf(expected, sizeof(expected),
		       "\"source\":\"fake\",\"recording\":true,\"rings_since\":9,\"cpus\":4,"
		       "\"cpus_recording\":1,\"cpus_offline\":2,\"cpus_busy\":3,\"cpus_failed\":5,"
		       "\"paused\":true,"
		       "\"aux_size\":6,\"switch_size\":7,\"sideband_bytes\":8,\"sideband_max\":10,"
		       "\"sideband_lost\":11,"
		       "\"objects\":12,\"snapshots\":2,\"pending\":13,"
		       "\"snapshots_taken\":14,\"snapshots_failed\":15,\"snapshots_removed\":16,"
		       "\"snapshots_path\":\"%s/state/snapshots\","
		       "\"refused\":[{\"what\":\"objects\",\"uid\":1001,"
		       "\"reason\":\"taken-back\",\"times\":1},"
		       "{\"what\":\"objects\",\"uid\":1001,"
		       "\"reason\":\"unreadable\",\"times\":2},"
		       "{\"what\":\"sideband\",\"uid\":1002,"
		       "\"reason\":\"taken-back\",\"times\":1}]}",
		       f->dir);
	if (!strstr(f->reply, expected))
		fail_msg("%s", f->reply);
	assert_int_equal(strncmp(f->reply, "{\"version\":\"", 12), 0);
}

static void pause_and_resume(void **state)
{
	static const struct {
		int result;
		const char *answer;
	} rows[] = {
		{ -EOPNOTSUPP, PTD_ERROR_NOT_HARDWARE ": the recorder uses the software source: "
						      "there is no hardware to give to others" },
		{ -EBUSY, PTD_ERROR_BUSY ": a snapshot is copying the rings, try again" },
		{ -EIO, "org.freedesktop.DBus.Error.IOError: Input/output error" },
	};
	struct fixture *f = *state;

	assert_answer(f, "", "Pause", "");
	assert_true(f->paused);
	assert_string_equal(f->said,
			    "test-interface: asker (process 6, user 5) paused recording\n");
	assert_answer(f, "", "Resume", "");
	assert_false(f->paused);
	assert_string_equal(f->said,
			    "test-interface: asker (process 6, user 5) resumed recording\n");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		f->result = rows[i].result;
		assert_answer(f, rows[i].answer, "Pause", "");
		assert_string_equal(f->said, "");
		assert_answer(f, rows[i].answer, "Resume", "");
	}
}

static void open_source(void **state)
{
	struct fixture *f = *state;

	assert_answer(f, "\"emu\",", "OpenSource", "a{sv}", 0);
	assert_false(f->timing);
	assert_non_null(strstr(f->said, "asker (process 6, user 5) "));
	f->result = -EOPNOTSUPP;
	assert_answer(f,
		      PTD_ERROR_NOT_EMULATED ": the recorder records hardware, everything that "
					     "runs: there is no program to start",
		      "OpenSource", "a{sv}", 0);
	assert_string_equal(f->said, "");
	f->result = -EMFILE;
	assert_answer(f, "System.Error.EMFILE: Too many open files", "OpenSource", "a{sv}", 0);
	f->result = 0;
	assert_answer(f, "\"emu\",", "OpenSource", "a{sv}", 1, "timing", "b", 1);
	assert_true(f->timing);
	assert_answer(f, "org.freedesktop.DBus.Error.InvalidArgs: there is no option \"fast\"",
		      "OpenSource", "a{sv}", 1, "fast", "b", 1);
}

static void reload_settings(void **state)
{
	struct fixture *f = *state;

	assert_answer(f, "", "Reload", "");
	assert_int_equal(f->n_reloads, 1);
	f->result = -EACCES;
	assert_answer(f,
		      PTD_ERROR_FAILED
		      ": the settings cannot be read and stay as they are, the log "
		      "of ptd says why",
		      "Reload", "");
}

static void take(void **state)
{
	static const char *const no_groups[] = { "/", "..", "a/b", "/a/../b", "a\nscope_pid=1" };
	struct fixture *f = *state;

	assert_answer(f, "\"TAKEN-1\"", "TakeSnapshot", "a{sv}", 0);
	assert_int_equal(f->scope.pid, 0);
	assert_false(f->scope.some_cpus);
	assert_string_equal(f->scope.command, "");
	assert_non_null(strstr(f->said, "asker (process 6, user 5) asked for snapshot TAKEN-1\n"));

	assert_answer(f, "\"TAKEN-1\"", "TakeSnapshot", "a{sv}", 9, "since", "t", UINT64_C(1),
		      "pid", "u", 2, "cpus", "s", "1,3", "command", "s", "a\nb", "command_pid", "u",
		      3, "started", "t", UINT64_C(4), "trigger", "s", "exit:\x1b", "trigger_tid",
		      "u", 5, "trigger_time", "t", UINT64_C(6));
	assert_int_equal(f->scope.since_ns, 1);
	assert_int_equal(f->scope.pid, 2);
	assert_true(f->scope.some_cpus);
	assert_int_equal(f->scope.cpus.end, 4);
	assert_string_equal(f->scope.command, "a?b");
	assert_int_equal(f->scope.command_pid, 3);
	assert_int_equal(f->scope.started_ns, 4);
	assert_string_equal(f->scope.trigger, "exit:?");
	assert_int_equal(f->scope.trigger_tid, 5);
	assert_int_equal(f->scope.trigger_ns, 6);
	assert_answer(f, "\"TAKEN-1\"", "TakeSnapshot", "a{sv}", 1, "cpus", "s", "");
	assert_false(f->scope.some_cpus);
	assert_string_equal(f->scope.cgroup, "");
	assert_answer(f, "\"TAKEN-1\"", "TakeSnapshot", "a{sv}", 1, "cgroup", "s", "web.service");
	assert_string_equal(f->scope.cgroup, "web.service");
	for (size_t i = 0; i < ARRAY_LEN(no_groups); i++)
		assert_answer(f,
			      "org.freedesktop.DBus.Error.InvalidArgs: that is neither the name "
			      "nor the path of a control group: nginx.service or "
			      "/system.slice/nginx.service is one",
			      "TakeSnapshot", "a{sv}", 1, "cgroup", "s", no_groups[i]);

	assert_answer(f, "org.freedesktop.DBus.Error.InvalidArgs: there is no option \"fast\"",
		      "TakeSnapshot", "a{sv}", 1, "fast", "b", 1);
	assert_answer(f,
		      "org.freedesktop.DBus.Error.InvalidArgs: \"1-\" is no list of CPUs: 0-3,8 "
		      "is one",
		      "TakeSnapshot", "a{sv}", 1, "cpus", "s", "1-");
	assert_answer(f, "org.freedesktop.DBus.Error.InvalidArgs: there is no CPU 4: there are 4",
		      "TakeSnapshot", "a{sv}", 1, "cpus", "s", "0-4");
	ask(f, "TakeSnapshot", "a{sv}", 1, "pid", "s", "me");
	assert_non_null(strstr(f->reply, "Error"));
	f->result = -EBUSY;
	assert_answer(f, PTD_ERROR_BUSY ": 8 snapshots are waiting to be written already",
		      "TakeSnapshot", "a{sv}", 0);
	assert_string_equal(f->said, "");
	f->result = -ENOMEM;
	assert_answer(f, "org.freedesktop.DBus.Error.NoMemory: Cannot allocate memory",
		      "TakeSnapshot", "a{sv}", 0);
}

#define RESULT                                                                              \
	"\"bytes\":1,\"pt_bytes\":2,\"pt_overwritten\":3,\"complete_since\":4,\"taken\":5," \
	"\"cpus\":6,\"objects\":7,\"objects_missing\":8,\"objects_without_room\":9}"

/* Who waits is answered when it is done, and not before. */
static void waiting(void **state)
{
	static const struct caller caller = { .comm = "test" };
	struct fixture *f = *state;
	char expected[400];

	assert_answer(f, PTD_ERROR_NO_SNAPSHOT ": there is no snapshot \"J-1\"", "WaitSnapshot",
		      "s", "J-1");
	assert_int_equal(jobs_add(f->jobs, "J-1", NULL, &caller), 0);
	assert_int_equal(jobs_add(f->jobs, "J-2", NULL, &caller), 0);
	f->n_answers = 0;
	assert_false(waiters_has(&f->interface.waiters, f->server));
	ask(f, "WaitSnapshot", "s", "J-1");
	ask(f, "WaitSnapshot", "s", "J-1");
	ask(f, "WaitSnapshot", "s", "J-2");
	assert_int_equal(f->n_answers, 0);
	assert_true(waiters_has(&f->interface.waiters, f->server));
	assert_false(waiters_has(&f->interface.waiters, f->client));
	interface_job_done(&f->interface, jobs_find(f->jobs, "J-1"));
	talk(f);
	assert_int_equal(f->n_answers, 2);
	assert_true(waiters_has(&f->interface.waiters, f->server));
	run_jobs(f);
	assert_int_equal(f->n_answers, 3);
	assert_false(waiters_has(&f->interface.waiters, f->server));
	(void)snprintf(expected, sizeof(expected),
		       "{\"id\":\"J-2\",\"path\":\"%s/state/snapshots/J-2\"," RESULT, f->dir);
	assert_string_equal(f->reply, expected);
	/* Whoever comes later need not wait. */
	assert_answer(f, expected, "WaitSnapshot", "s", "J-2");

	f->result = -EIO;
	assert_int_equal(jobs_add(f->jobs, "J-3", NULL, &caller), 0);
	ask(f, "WaitSnapshot", "s", "J-3");
	run_jobs(f);
	assert_string_equal(f->reply, PTD_ERROR_FAILED ": the reason");
	assert_answer(f, PTD_ERROR_FAILED ": the reason", "WaitSnapshot", "s", "J-3");
}

static void too_many_wait(void **state)
{
	static const struct caller caller = { .comm = "test" };
	struct fixture *f = *state;

	assert_int_equal(jobs_add(f->jobs, "J-1", NULL, &caller), 0);
	for (unsigned i = 0; i < WAITERS_MAX; i++)
		ask(f, "WaitSnapshot", "s", "J-1");
	assert_int_equal(f->n_answers, 0);
	assert_answer(f, PTD_ERROR_BUSY ": too many calls are waiting", "WaitSnapshot", "s", "J-1");
	run_jobs(f);
	assert_int_equal(f->n_answers, WAITERS_MAX + 1);
	assert_int_equal(f->interface.waiters.calls.n, 0);
}

/* Those of a connection that is closed; not those of others. */
static void forgotten(void **state)
{
	static const struct caller caller = { .comm = "test" };
	struct fixture *f = *state;

	assert_int_equal(jobs_add(f->jobs, "J-1", NULL, &caller), 0);
	ask(f, "WaitSnapshot", "s", "J-1");
	waiters_forget(&f->interface.waiters, f->client);
	assert_true(waiters_has(&f->interface.waiters, f->server));
	waiters_forget(&f->interface.waiters, f->server);
	assert_false(waiters_has(&f->interface.waiters, f->server));
	run_jobs(f);
	assert_int_equal(f->n_answers, 0);
}

static void list(void **state)
{
	struct fixture *f = *state;

	assert_answer(f, "[]", "ListSnapshots", "");
	put_snapshot(f, "A-2",
		     "format=ptd-snapshot-1\nid=A-2\ncreated=then\nbytes=10\ncpus=11\n"
		     "command=make all\ncommand_pid=12\ncommand_complete=no\nobjects_missing=13\n"
		     "sideband_lost=14\npt_dropped=15\npt_overwritten=16\n");
	put_snapshot(f, "A-1", "format=ptd-snapshot-1\nid=A-1\ncreated=before\n");
	assert_answer(f, "", "KeepSnapshot", "sb", "A-1", 1);
	ask(f, "ListSnapshots", "");
	assert_string_equal(
	    f->reply,
	    "[{\"id\":\"A-1\",\"created\":\"before\",\"bytes\":0,\"cpus\":0,\"command\":\"\","
	    "\"pid\":0,\"objects_missing\":0,\"records_lost\":0,\"pt_dropped\":0,"
	    "\"pt_overwritten\":0,\"command_complete\":true,\"kept\":true},"
	    "{\"id\":\"A-2\",\"created\":\"then\",\"bytes\":10,\"cpus\":11,\"command\":\"make "
	    "all\","
	    "\"pid\":12,\"objects_missing\":13,\"records_lost\":14,\"pt_dropped\":15,"
	    "\"pt_overwritten\":16,\"command_complete\":false,\"kept\":false}]");
}

static void open_remove_keep(void **state)
{
	struct fixture *f = *state;

	put_snapshot(f, "A-1", "");
	put_snapshot(f, "A-2", "");
	for (size_t i = 0; i < 3; i++) {
		const char *const methods[] = { "OpenSnapshot", "RemoveSnapshot", "KeepSnapshot" };

		ask(f, methods[i], i == 2 ? "sb" : "s", "nix", 1);
		assert_string_equal(f->reply,
				    PTD_ERROR_NO_SNAPSHOT ": there is no snapshot \"nix\"");
		assert_string_equal(f->said, "");
	}
	assert_string_equal(f->removed, "");
	ask(f, "OpenSnapshot", "s", "A-1");
	assert_non_null(
	    strstr(f->said, "asker (process 6, user 5) opened for reading snapshot A-1"));
	ask(f, "OpenSnapshot", "s", "A-9");
	assert_string_equal(f->reply, PTD_ERROR_NO_SNAPSHOT ": there is no snapshot \"A-9\"");

	assert_answer(f, "", "RemoveSnapshot", "s", "latest");
	assert_string_equal(f->removed, "A-2");
	assert_non_null(strstr(f->said, " removed snapshot A-2\n"));
	f->result = -ENOENT;
	assert_answer(f, PTD_ERROR_NO_SNAPSHOT ": there is no snapshot \"A-1\"", "RemoveSnapshot",
		      "s", "A-1");
	f->result = -EPERM;
	assert_answer(f,
		      PTD_ERROR_KEPT ": snapshot A-1 is kept: `ptctl keep --release` takes that "
				     "back",
		      "RemoveSnapshot", "s", "A-1");
	f->result = -EIO;
	assert_answer(f, "org.freedesktop.DBus.Error.IOError: Input/output error", "RemoveSnapshot",
		      "s", "A-1");
	assert_string_equal(f->said, "");

	f->result = 0;
	assert_answer(f, "", "KeepSnapshot", "sb", "A-1", 1);
	assert_non_null(strstr(f->said, " asked to keep snapshot A-1\n"));
	assert_answer(f, "", "KeepSnapshot", "sb", "A-1", 0);
	assert_non_null(strstr(f->said, " asked to keep no longer snapshot A-1\n"));
	assert_answer(f, PTD_ERROR_NO_SNAPSHOT ": there is no snapshot \"A-9\"", "KeepSnapshot",
		      "sb", "A-9", 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(get_status, set_up, tear_down),
		cmocka_unit_test_setup_teardown(pause_and_resume, set_up, tear_down),
		cmocka_unit_test_setup_teardown(open_source, set_up, tear_down),
		cmocka_unit_test_setup_teardown(reload_settings, set_up, tear_down),
		cmocka_unit_test_setup_teardown(take, set_up, tear_down),
		cmocka_unit_test_setup_teardown(waiting, set_up, tear_down),
		cmocka_unit_test_setup_teardown(too_many_wait, set_up, tear_down),
		cmocka_unit_test_setup_teardown(forgotten, set_up, tear_down),
		cmocka_unit_test_setup_teardown(list, set_up, tear_down),
		cmocka_unit_test_setup_teardown(open_remove_keep, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
