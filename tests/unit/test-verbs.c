/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The verbs of ptctl, which ask a ptd of our own: what they send, what they print of the answer,
 * what they say of errors, and their exit status.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "ctl/client.h"
#include "ctl/show.h"
#include "ctl/verb.h"
#include "ptd/control.h"
#include "tests/lib/logged.h"
#include "tests/lib/tempdir.h"

/* --- a ptd of our own ------------------------------------------------------------------------ */

struct fixture;

/* What is answered to a method: an error, a hung up connection, or what @fill appends. */
struct answer {
	const char *method;
	int (*fill)(sd_bus_message *reply, const struct fixture *f);
	const char *error, *message;
	bool hangs_up;
};

struct fixture {
	char dir[TEMPDIR_SIZE], socket[96];
	struct context context;
	int listen_fd;
	pthread_t thread;
	const struct answer *answers; /* of all methods that are called */
	size_t n_answers;
	char *calls; /* a line each: the method, and its arguments as JSON */
	size_t calls_size;
	FILE *calls_stream;
	char *printed;
	int status;
	const char *said;
};

static int on_call(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct fixture *f = userdata;
	const char *method = sd_bus_message_get_member(m);
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	int r;

	(void)error;
	if (!sd_bus_message_is_method_call(m, PTD_CONTROL_INTERFACE, NULL))
		return 0;
	if (strcmp(sd_bus_message_get_path(m), PTD_CONTROL_OBJECT) != 0)
		return -ENOENT;
	fprintf(f->calls_stream, "%s ", method);
	(void)!show_json(f->calls_stream, m);
	(void)fflush(f->calls_stream);
	for (size_t i = 0; i < f->n_answers; i++) {
		const struct answer *a = &f->answers[i];

		if (strcmp(a->method, method) != 0)
			continue;
		if (a->hangs_up) {
			sd_bus_close(sd_bus_message_get_bus(m));
			return 1;
		}
		if (a->error)
			return sd_bus_reply_method_errorf(m, a->error, "%s", a->message);
		r = sd_bus_message_new_method_return(m, &reply);
		if (r >= 0 && a->fill)
			r = a->fill(reply, f);
		return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
	}
	return -EOPNOTSUPP;
}

static void serve_client(struct fixture *f, int fd)
{
	sd_bus *bus = NULL;
	sd_id128_t id = {};
	int r;

	r = sd_bus_new(&bus);
	if (r >= 0)
		r = sd_bus_set_fd(bus, fd, fd);
	if (r >= 0)
		r = sd_bus_set_server(bus, true, id);
	if (r >= 0)
		r = sd_bus_negotiate_fds(bus, true);
	if (r >= 0)
		r = sd_bus_add_filter(bus, NULL, on_call, f);
	if (r >= 0)
		r = sd_bus_start(bus);
	while (r >= 0) {
		r = sd_bus_process(bus, NULL);
		if (r == 0)
			r = sd_bus_wait(bus, UINT64_MAX);
	}
	(void)sd_bus_flush_close_unref(bus);
}

static void *serve(void *userdata)
{
	struct fixture *f = userdata;
	int fd;

	while ((fd = accept4(f->listen_fd, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		serve_client(f, fd);
	return NULL;
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	sigset_t all, before;

	assert_non_null(f);
	tempdir_make("verbs", f->dir);
	(void)snprintf(f->socket, sizeof(f->socket), "%s/control", f->dir);
	f->context.socket = f->socket;
	memcpy(address.sun_path, f->socket, strlen(f->socket) + 1);
	f->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(f->listen_fd >= 0);
	assert_int_equal(bind(f->listen_fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(f->listen_fd, 8), 0);
	f->calls_stream = open_memstream(&f->calls, &f->calls_size);
	assert_non_null(f->calls_stream);
	/* The verbs wait for signals of their own. */
	sigfillset(&all);
	assert_int_equal(pthread_sigmask(SIG_SETMASK, &all, &before), 0);
	assert_int_equal(pthread_create(&f->thread, NULL, serve, f), 0);
	assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	(void)shutdown(f->listen_fd, SHUT_RDWR);
	assert_int_equal(pthread_join(f->thread, NULL), 0);
	(void)close(f->listen_fd);
	(void)fclose(f->calls_stream);
	free(f->calls);
	free(f->printed);
	tempdir_remove(f->dir);
	free(f);
	return 0;
}

typedef int (*verb_fn)(const struct context *context, int argc, char **argv);

/* Run it as `ptctl ARGUMENTS`, with what was called, printed and said before forgotten. */
static int run(struct fixture *f, verb_fn verb, const char *arguments)
{
	char text[512], *argv[16] = {}, *at = text;
	int argc = 0, before, file;
	off_t size;

	(void)snprintf(text, sizeof(text), "%s", arguments);
	for (char *word; (word = strsep(&at, " "));)
		argv[argc++] = word;
	(void)fflush(stdout);
	(void)fclose(f->calls_stream);
	free(f->calls);
	f->calls_stream = open_memstream(&f->calls, &f->calls_size);
	assert_non_null(f->calls_stream);
	(void)fflush(f->calls_stream);
	before = dup(STDOUT_FILENO);
	file = memfd_create("printed", MFD_CLOEXEC);
	assert_true(before >= 0 && file >= 0 && dup2(file, STDOUT_FILENO) >= 0);
	logged_begin();
	f->status = verb(&f->context, argc, argv);
	f->said = logged_end();
	(void)fflush(stdout);
	assert_true(dup2(before, STDOUT_FILENO) >= 0);
	(void)close(before);
	size = lseek(file, 0, SEEK_END);
	free(f->printed);
	f->printed = calloc(1, (size_t)size + 1);
	assert_non_null(f->printed);
	assert_int_equal(pread(file, f->printed, (size_t)size, 0), size);
	(void)close(file);
	return f->status;
}

#define answer_with(f, rows) ((f)->answers = (rows), (f)->n_answers = ARRAY_LEN(rows))

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in: %s", part, text);
}

/* --- status ---------------------------------------------------------------------------------- */

/* A field of a later ptd is left out of what is printed for people, but JSON has all fields. */
static int run_json(struct fixture *f, verb_fn verb, const char *arguments)
{
	int r;

	f->context.json = true;
	r = run(f, verb, arguments);
	f->context.json = false;
	return r;
}

static int fill_status(sd_bus_message *reply, const struct fixture *f)
{
	(void)f;
	return sd_bus_message_append(
	    reply, "a{sv}", 19, "version", "s", "v1", "source", "s", "pt", "recording", "b", 1,
	    "cpus", "u", 16, "cpus_recording", "u", 10, "cpus_offline", "u", 4, "cpus_busy", "u", 1,
	    "cpus_failed", "u", 2, "paused", "b", 0, "aux_size", "t", UINT64_C(4) << 20,
	    "switch_size", "t", UINT64_C(2048), "sideband_bytes", "t", UINT64_C(1024),
	    "sideband_max", "t", UINT64_C(1) << 30, "sideband_lost", "t", UINT64_C(1), "objects",
	    "t", UINT64_C(5), "snapshots", "t", UINT64_C(6), "pending", "u", 7, "snapshots_path",
	    "s", "/some/where", "refused", "aa{sv}", 4, 5, "what", "s", "objects", "uid", "u", 1000,
	    "times", "t", UINT64_C(3), "news", "(ss)", "a", "b", "reason", "s", "time", 3, "what",
	    "s", "a\"b", "uid", "u", 1001, "times", "t", UINT64_C(1), 4, "what", "s", "objects",
	    "uid", "u", 1001, "times", "t", UINT64_C(2), "reason", "s", "share", 4, "what", "s",
	    "objects", "uid", "u", 1002, "times", "t", UINT64_C(2), "reason", "s", "n\"w");
}

static int fill_plain(sd_bus_message *reply, const struct fixture *f)
{
	(void)f;
	return sd_bus_message_append(reply, "a{sv}", 7, "version", "s", "v1", "source", "s", "pt",
				     "recording", "b", 1, "cpus", "u", 16, "paused", "b", 0,
				     "aux_size", "t", UINT64_C(4) << 20, "refused", "aa{sv}", 1, 1,
				     "uid", "u", 1000);
}

static int fill_paused(sd_bus_message *reply, const struct fixture *f)
{
	(void)f;
	return sd_bus_message_append(reply, "a{sv}", 4, "recording", "b", 1, "paused", "b", 1,
				     "sideband_lost", "t", UINT64_C(2), "news", "(ss)", "a", "b");
}

static int fill_nothing(sd_bus_message *reply, const struct fixture *f)
{
	(void)f;
	return sd_bus_message_append(reply, "a{sv}", 0);
}

static int fill_other_type(sd_bus_message *reply, const struct fixture *f)
{
	(void)f;
	return sd_bus_message_append(reply, "a{sv}", 1, "cpus", "s", "many");
}

static void status(void **state)
{
	static const struct answer all[] = { { .method = "GetStatus", .fill = fill_status } },
				   plain[] = { { .method = "GetStatus", .fill = fill_plain } },
				   paused[] = { { .method = "GetStatus", .fill = fill_paused } },
				   nothing[] = { { .method = "GetStatus", .fill = fill_nothing } },
				   other[] = { { .method = "GetStatus", .fill = fill_other_type } };
	struct fixture *f = *state;

	answer_with(f, all);
	assert_int_equal(run(f, verb_status, "status"), EXIT_OK);
	assert_string_equal(f->calls, "GetStatus \n");
	assert_string_equal(f->said, "");
	assert_string_equal(
	    f->printed, "   Version: v1\n"
			"    Source: pt, recording\n"
			"      CPUs: 13 with 4.0 MiB of PT and 2.0 KiB of switches each\n"
			"            1 whose PT another program uses\n"
			"            4 offline, whose last moments are kept\n"
			"            2 that cannot be recorded, see the log\n"
			"  Sideband: 1.0 KiB of 1.0 GiB, 1 record lost: see SidebandMax= in "
			"ptd.conf(5)\n"
			"   Objects: 5\n"
			" Snapshots: 6 in /some/where, 7 being written\n"
			"   Refused: objects of user 1000, 3 times: reading it took too long\n"
			"            a\"b of user 1001, 1 time\n"
			"            objects of user 1001, 2 times: it was more than their share\n"
			"            objects of user 1002, 2 times: the recorder has a reason that "
			"ptctl does not know\n");
	answer_with(f, plain);
	f->context.json = true;
	assert_int_equal(run(f, verb_status, "status"), EXIT_OK);
	assert_has(f->printed,
		   "{\"version\":\"v1\",\"source\":\"pt\",\"recording\":true,\"cpus\":16,");
	assert_has(f->printed,
		   "\"paused\":false,\"aux_size\":4194304,\"refused\":[{\"uid\":1000}]}");
	f->context.json = false;

	answer_with(f, paused);
	assert_int_equal(run_json(f, verb_status, "status"), EXIT_FAILED);
	assert_has(f->said, "GetStatus: cannot make sense of ptd's answer: ");
	assert_int_equal(run(f, verb_status, "status"), EXIT_OK);
	assert_has(f->printed, "Source: ?, paused: see ptctl resume\n");
	assert_has(f->printed, "of 0 B, 2 records lost");
	answer_with(f, nothing);
	assert_int_equal(run(f, verb_status, "status"), EXIT_OK);
	assert_string_equal(f->printed, "   Version: ?\n"
					"    Source: ?, idle\n"
					"      CPUs: 0 with 0 B of PT and 0 B of switches each\n"
					"  Sideband: 0 B of 0 B\n"
					"   Objects: 0\n"
					" Snapshots: 0 in ?\n");

	answer_with(f, other);
	assert_int_equal(run(f, verb_status, "status"), EXIT_FAILED);
	assert_string_equal(f->printed, "");
	assert_has(f->said, "GetStatus: cannot make sense of ptd's answer: ");
	assert_int_equal(run(f, verb_status, "status x"), EXIT_USAGE);
	assert_has(f->said, "unexpected argument \"x\"");
	assert_string_equal(f->calls, "");
}

/* --- metrics --------------------------------------------------------------------------------- */

static int fill_odd_names(sd_bus_message *reply, const struct fixture *f)
{
	(void)f;
	return sd_bus_message_append(reply, "a{sv}", 3, "version", "s", "a\"b\\c\nd", "recording",
				     "b", 0, "snapshots_taken", "t", UINT64_C(3));
}

static void metrics(void **state)
{
	static const struct answer all[] = { { .method = "GetStatus", .fill = fill_status } },
				   odd[] = { { .method = "GetStatus", .fill = fill_odd_names } },
				   other[] = { { .method = "GetStatus", .fill = fill_other_type } };
	struct fixture *f = *state;

	answer_with(f, all);
	assert_int_equal(run(f, verb_metrics, "metrics"), EXIT_OK);
	assert_string_equal(f->calls, "GetStatus \n");
	assert_has(f->printed,
		   "ptd_build_info{version=\"v1\",source=\"pt\"} 1\n"
		   "# TYPE ptd_recording gauge\n"
		   "# HELP ptd_recording Whether something is being written to the rings.\n"
		   "ptd_recording 1\n");
	assert_has(f->printed, "ptd_cpu_states{state=\"recording\"} 10\n"
			       "ptd_cpu_states{state=\"offline\"} 4\n"
			       "ptd_cpu_states{state=\"busy\"} 1\n"
			       "ptd_cpu_states{state=\"failed\"} 2\n");
	assert_has(f->printed, "# TYPE ptd_sideband_lost_records counter\n"
			       "# UNIT ptd_sideband_lost_records records\n");
	assert_has(f->printed, "\nptd_sideband_lost_records_total 1\n");
	assert_has(f->printed,
		   "# TYPE ptd_refused counter\n"
		   "# HELP ptd_refused How often something was refused to a user, and why.\n"
		   "ptd_refused_total{what=\"objects\",uid=\"1000\",reason=\"time\"} 3\n"
		   "ptd_refused_total{what=\"a\\\"b\",uid=\"1001\"} 1\n"
		   "ptd_refused_total{what=\"objects\",uid=\"1001\",reason=\"share\"} 2\n"
		   "ptd_refused_total{what=\"objects\",uid=\"1002\",reason=\"n\\\"w\"} 2\n"
		   "# EOF\n");

	/* What an older recorder does not state is left out. */
	answer_with(f, odd);
	assert_int_equal(run(f, verb_metrics, "metrics"), EXIT_OK);
	assert_string_equal(
	    f->printed,
	    "# TYPE ptd_build_info gauge\n"
	    "# HELP ptd_build_info The version of ptd, and the source that it records.\n"
	    "ptd_build_info{version=\"a\\\"b\\\\c d\",source=\"\"} 1\n"
	    "# TYPE ptd_recording gauge\n"
	    "# HELP ptd_recording Whether something is being written to the rings.\n"
	    "ptd_recording 0\n"
	    "# TYPE ptd_snapshots_taken counter\n"
	    "# HELP ptd_snapshots_taken Snapshots that were written since ptd was started.\n"
	    "ptd_snapshots_taken_total 3\n"
	    "# EOF\n");

	answer_with(f, other);
	assert_int_equal(run(f, verb_metrics, "metrics"), EXIT_FAILED);
	assert_string_equal(f->printed, "");
	assert_int_equal(run(f, verb_metrics, "metrics x"), EXIT_USAGE);
	assert_has(f->said, "unexpected argument \"x\"");
	assert_int_equal(run(f, verb_metrics, "metrics --http x"), EXIT_USAGE);
}

/* --- errors ---------------------------------------------------------------------------------- */

static void errors(void **state)
{
	static const struct {
		struct answer answer;
		int status;
		const char *said;
	} rows[] = {
		{ { .method = "Reload", .error = PTD_ERROR_BUSY, .message = "not now" },
		  EXIT_BUSY,
		  "not now" },
		{ { .method = "Reload", .error = PTD_ERROR_NO_SNAPSHOT, .message = "none" },
		  EXIT_NO_SNAPSHOT,
		  "none" },
		{ { .method = "Reload", .error = PTD_ERROR_FAILED, .message = "no luck" },
		  EXIT_FAILED,
		  "no luck" },
		{ { .method = "Reload", .error = SD_BUS_ERROR_NO_REPLY, .message = "" },
		  EXIT_UNREACHABLE,
		  "Reload: ptd went away, it stopped or was killed" },
		{ { .method = "Reload", .hangs_up = true },
		  EXIT_UNREACHABLE,
		  "Reload: ptd went away, it stopped or was killed" },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		f->answers = &rows[i].answer;
		f->n_answers = 1;
		assert_int_equal(run(f, verb_reload, "reload"), rows[i].status);
		assert_has(f->said, rows[i].said);
		assert_string_equal(f->calls, "Reload \n");
	}
}

static void sockets_that_are_none(void **state)
{
	struct fixture *f = *state;
	char path[128], text[300];

	(void)snprintf(path, sizeof(path), "%s/none", f->dir);
	f->context.socket = path;
	assert_int_equal(run(f, verb_list, "list"), EXIT_UNREACHABLE);
	(void)snprintf(text, sizeof(text), "cannot reach ptd at %s: No such file or directory",
		       path);
	assert_has(f->said, text);
	assert_has(f->said, "is it running?");

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	f->context.socket = text;
	assert_int_equal(run(f, verb_list, "list"), EXIT_UNREACHABLE);
	assert_has(f->said, "File name too long");
	assert_null(strstr(f->said, "is it running?"));
	/* The longest that there is: with its NUL it just fits. */
	text[sizeof(((struct sockaddr_un *)NULL)->sun_path)] = 0;
	assert_int_equal(run(f, verb_list, "list"), EXIT_UNREACHABLE);
	assert_has(f->said, "File name too long");
	text[sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1] = 0;
	assert_int_equal(run(f, verb_list, "list"), EXIT_UNREACHABLE);
	assert_has(f->said, "No such file or directory");
	f->context.socket = f->socket;
}

static void calls_without_an_answer(void **state)
{
	static const struct answer rows[] = { { .method = "Pause" },
					      { .method = "Resume" },
					      { .method = "RemoveSnapshot" },
					      { .method = "KeepSnapshot" } };
	struct fixture *f = *state;

	answer_with(f, rows);
	assert_int_equal(run(f, verb_pause, "pause"), EXIT_OK);
	assert_string_equal(f->calls, "Pause \n");
	assert_int_equal(run(f, verb_resume, "resume"), EXIT_OK);
	assert_string_equal(f->calls, "Resume \n");
	assert_int_equal(run(f, verb_pause, "pause x"), EXIT_USAGE);
	assert_has(f->said, "pause: unexpected argument \"x\"");
	assert_int_equal(run(f, verb_rm, "rm A B"), EXIT_OK);
	assert_string_equal(f->calls, "RemoveSnapshot \"A\"\nRemoveSnapshot \"B\"\n");
	assert_int_equal(run(f, verb_keep, "keep A B"), EXIT_OK);
	assert_string_equal(f->calls, "KeepSnapshot \"A\",true\nKeepSnapshot \"B\",true\n");
	assert_int_equal(run(f, verb_keep, "keep --release A"), EXIT_OK);
	assert_string_equal(f->calls, "KeepSnapshot \"A\",false\n");
	assert_int_equal(run(f, verb_rm, "rm"), EXIT_USAGE);
	assert_int_equal(run(f, verb_keep, "keep"), EXIT_USAGE);
	assert_int_equal(run(f, verb_keep, "keep --release"), EXIT_USAGE);
	assert_string_equal(f->calls, "");
	assert_string_equal(f->printed, "");
}

/* The first error ends it: what comes behind it is not done. */
static void several_of_which_one_fails(void **state)
{
	static const struct answer rows[] = {
		{ .method = "RemoveSnapshot",
		  .error = PTD_ERROR_NO_SNAPSHOT,
		  .message = "there is none" },
		{ .method = "KeepSnapshot",
		  .error = PTD_ERROR_NO_SNAPSHOT,
		  .message = "there is none" },
	};
	struct fixture *f = *state;

	answer_with(f, rows);
	assert_int_equal(run(f, verb_rm, "rm A B"), EXIT_NO_SNAPSHOT);
	assert_string_equal(f->calls, "RemoveSnapshot \"A\"\n");
	assert_int_equal(run(f, verb_keep, "keep A B"), EXIT_NO_SNAPSHOT);
	assert_string_equal(f->calls, "KeepSnapshot \"A\",true\n");
}

/* --- list ------------------------------------------------------------------------------------ */

static int fill_list(sd_bus_message *reply, const struct fixture *f)
{
	(void)f;
	return sd_bus_message_append(
	    reply, "aa{sv}", 5,
	    /* whole */
	    8, "id", "s", "ID-1", "created", "s", "then", "bytes", "t", UINT64_C(1536), "cpus", "u",
	    3, "kept", "b", 1, "pid", "u", 42, "command", "s", "make all", "command_complete", "b",
	    1,
	    /* everything is lost, one of each */
	    5, "id", "s", "ID-2", "command_complete", "b", 0, "objects_missing", "u", 1,
	    "records_lost", "t", UINT64_C(1), "pt_dropped", "t", UINT64_C(1),
	    /* several */
	    3, "id", "s", "ID-3", "objects_missing", "u", 2, "records_lost", "t", UINT64_C(2),
	    /* PT alone */
	    2, "id", "s", "ID-4", "pt_dropped", "t", UINT64_C(2048),
	    /* nothing is known */
	    0);
}

static int fill_list_of_later(sd_bus_message *reply, const struct fixture *f)
{
	(void)f;
	return sd_bus_message_append(reply, "aa{sv}", 1, 2, "id", "s", "ID-1", "news", "(ss)", "a",
				     "b");
}

static int fill_bad_list(sd_bus_message *reply, const struct fixture *f)
{
	(void)f;
	return sd_bus_message_append(reply, "aa{sv}", 1, 1, "id", "u", 5);
}

/* So late that ptctl waits. */
static int fill_late(sd_bus_message *reply, const struct fixture *f)
{
	(void)usleep(5000);
	return fill_plain(reply, f);
}

static void on_alarm(int signal)
{
	(void)signal;
}

/* A preloaded library may have a timer, whose handler does not have system calls go on. */
static void signals(void **state)
{
	static const struct answer all[] = { { .method = "GetStatus", .fill = fill_late } };
	const struct sigaction action = { .sa_handler = on_alarm };
	const struct itimerval often = { { .tv_usec = 300 }, { .tv_usec = 300 } };
	struct fixture *f = *state;

	answer_with(f, all);
	assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(run(f, verb_status, "status"), EXIT_OK);
	assert_int_equal(setitimer(ITIMER_REAL, &(struct itimerval){}, NULL), 0);
}

static void list(void **state)
{
	static const struct answer good[] = { { .method = "ListSnapshots", .fill = fill_list } },
				   bad[] = { { .method = "ListSnapshots", .fill = fill_bad_list } },
				   other[] = { { .method = "ListSnapshots",
						 .fill = fill_nothing } },
				   later[] = { { .method = "ListSnapshots",
						 .fill = fill_list_of_later } };
	struct fixture *f = *state;

	answer_with(f, good);
	assert_int_equal(run(f, verb_list, "list"), EXIT_OK);
	assert_string_equal(
	    f->printed,
	    "ID                           TIME                              SIZE CPUS KEPT     "
	    "PID LOST                 COMMAND\n"
	    "ID-1                         then                           1.5 KiB    3 kept      "
	    "42 -                    make all\n"
	    "ID-2                         ?                                  0 B    0 -          "
	    "- beginning, 1 B of PT, 1 record, 1 object -\n"
	    "ID-3                         ?                                  0 B    0 -          "
	    "- 2 records, 2 objects -\n"
	    "ID-4                         ?                                  0 B    0 -          "
	    "- 2.0 KiB of PT        -\n"
	    "?                            ?                                  0 B    0 -          "
	    "- -                    -\n");
	f->context.json = true;
	assert_int_equal(run(f, verb_list, "list"), EXIT_OK);
	assert_has(f->printed, "[{\"id\":\"ID-1\",\"created\":\"then\",\"bytes\":1536,");
	assert_has(f->printed, "},{\"id\":\"ID-4\",\"pt_dropped\":2048},{}]\n");
	f->context.json = false;
	assert_int_equal(run(f, verb_list, "list x"), EXIT_USAGE);
	answer_with(f, bad);
	assert_int_equal(run(f, verb_list, "list"), EXIT_FAILED);
	assert_has(f->said, "ListSnapshots: cannot make sense of ptd's answer");
	answer_with(f, other);
	assert_int_equal(run(f, verb_list, "list"), EXIT_FAILED);
	assert_has(f->said, "ListSnapshots: cannot make sense of ptd's answer");
	answer_with(f, later);
	assert_int_equal(run(f, verb_list, "list"), EXIT_OK);
	assert_int_equal(run_json(f, verb_list, "list"), EXIT_FAILED);
	assert_has(f->said, "ListSnapshots: cannot make sense of ptd's answer");
}

/* --- snapshot -------------------------------------------------------------------------------- */

static int fill_id(sd_bus_message *reply, const struct fixture *f)
{
	(void)f;
	return sd_bus_message_append(reply, "s", "ID-7");
}

static int fill_result(sd_bus_message *reply, const struct fixture *f)
{
	(void)f;
	return sd_bus_message_append(reply, "a{sv}", 4, "path", "s", "/some/ID-7", "bytes", "t",
				     UINT64_C(4096), "pt_bytes", "t", UINT64_C(2048),
				     "objects_missing", "u", 1);
}

static int fill_result_of_later(sd_bus_message *reply, const struct fixture *f)
{
	(void)f;
	return sd_bus_message_append(reply, "a{sv}", 2, "path", "s", "/some/ID-7", "news", "(ss)",
				     "a", "b");
}

static int fill_number(sd_bus_message *reply, const struct fixture *f)
{
	(void)f;
	return sd_bus_message_append(reply, "u", 7);
}

static int fill_dir(sd_bus_message *reply, const struct fixture *f)
{
	char path[128];
	int fd, r;

	(void)snprintf(path, sizeof(path), "%s/snap", f->dir);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = fd < 0 ? -errno : sd_bus_message_append(reply, "h", fd);
	(void)close(fd);
	return r;
}

static void put_snapshot(const struct fixture *f)
{
	tempdir_put_text(f->dir, "snap/data", "the data");
	tempdir_put_text(f->dir, "snap/SHA256SUMS", "the sums");
}

static void snapshot(void **state)
{
	static const struct answer
	    good[] = { { .method = "TakeSnapshot", .fill = fill_id },
		       { .method = "WaitSnapshot", .fill = fill_result } },
	    no_id[] = { { .method = "TakeSnapshot", .fill = fill_number } },
	    no_result[] = { { .method = "TakeSnapshot", .fill = fill_id },
			    { .method = "WaitSnapshot", .fill = fill_number } },
	    later[] = { { .method = "TakeSnapshot", .fill = fill_id },
			{ .method = "WaitSnapshot", .fill = fill_result_of_later } },
	    busy[] = { { .method = "TakeSnapshot", .error = PTD_ERROR_BUSY, .message = "busy" } },
	    fails[] = { { .method = "TakeSnapshot", .fill = fill_id },
			{ .method = "WaitSnapshot",
			  .error = PTD_ERROR_FAILED,
			  .message = "the disk is full" } };
	struct fixture *f = *state;
	char arguments[64], expected[400], comm[32] = "";
	FILE *file;

	answer_with(f, good);
	assert_int_equal(run(f, verb_snapshot, "snapshot"), EXIT_OK);
	assert_string_equal(f->printed, "ID-7\n");
	assert_has(f->said, "snapshot ID-7: 2.0 KiB of PT in /some/ID-7\n");
	assert_has(f->said, "1 object missing in it");
	assert_string_equal(f->calls,
			    "TakeSnapshot {\"since\":0,\"pid\":0,\"cgroup\":\"\","
			    "\"cpus\":\"\",\"command\":\"\",\"command_pid\":0,\"started\":0,"
			    "\"trigger\":\"\",\"trigger_tid\":0,\"trigger_time\":0}\n"
			    "WaitSnapshot \"ID-7\"\n");

	/* What a process is called, its snapshot is called. */
	file = fopen("/proc/self/comm", "re");
	assert_non_null(file);
	assert_non_null(fgets(comm, sizeof(comm), file));
	comm[strcspn(comm, "\n")] = 0;
	(void)fclose(file);
	(void)snprintf(arguments, sizeof(arguments), "snapshot --pid 0%d --cpu 1,3-4", getpid());
	assert_int_equal(run(f, verb_snapshot, arguments), EXIT_OK);
	(void)snprintf(expected, sizeof(expected),
		       "TakeSnapshot {\"since\":0,\"pid\":%d,\"cgroup\":\"\",\"cpus\":\"1,3-4\","
		       "\"command\":\"%s\","
		       "\"command_pid\":%d,\"started\":0,"
		       "\"trigger\":\"\",\"trigger_tid\":0,\"trigger_time\":0}\n",
		       getpid(), comm, getpid());
	assert_has(f->calls, expected);
	/* One that is no more has no name. */
	assert_int_equal(run(f, verb_snapshot, "snapshot -p 2147483647"), EXIT_OK);
	assert_has(f->calls, "\"pid\":2147483647,\"cgroup\":\"\",\"cpus\":\"\",\"command\":\"\",");
	/* Of control groups, whose names ptd knows. */
	assert_int_equal(run(f, verb_snapshot, "snapshot --unit web"), EXIT_OK);
	assert_has(f->calls, "\"cgroup\":\"web.service\",");
	assert_int_equal(run(f, verb_snapshot, "snapshot --unit web.slice"), EXIT_OK);
	assert_has(f->calls, "\"cgroup\":\"web.slice\",");
	assert_int_equal(run(f, verb_snapshot, "snapshot --cgroup /a/b"), EXIT_OK);
	assert_has(f->calls, "\"cgroup\":\"/a/b\",");

	f->context.json = true;
	assert_int_equal(run(f, verb_snapshot, "snapshot"), EXIT_OK);
	assert_string_equal(f->printed, "{\"path\":\"/some/ID-7\",\"bytes\":4096,\"pt_bytes\":2048,"
					"\"objects_missing\":1}\n");
	assert_string_equal(f->said, "");
	f->context.json = false;

	assert_int_equal(run(f, verb_snapshot, "snapshot x"), EXIT_USAGE);
	assert_has(f->said, "unexpected argument \"x\"");
	assert_int_equal(run(f, verb_snapshot, "snapshot -p 2147483648"), EXIT_USAGE);
	assert_has(f->said, "\"2147483648\" is no process ID");
	assert_int_equal(run(f, verb_snapshot, "snapshot --unit a/b"), EXIT_USAGE);
	assert_has(f->said, "\"a/b\" is no name of a unit");
	assert_int_equal(run(f, verb_snapshot, "snapshot --unit a --cgroup b"), EXIT_USAGE);
	assert_has(f->said, "--unit and --cgroup exclude each other");
	assert_string_equal(f->calls, "");
	answer_with(f, no_id);
	assert_int_equal(run(f, verb_snapshot, "snapshot"), EXIT_FAILED);
	assert_has(f->said, "TakeSnapshot: cannot make sense");
	answer_with(f, no_result);
	assert_int_equal(run(f, verb_snapshot, "snapshot"), EXIT_FAILED);
	assert_has(f->said, "WaitSnapshot: cannot make sense");
	answer_with(f, later);
	assert_int_equal(run(f, verb_snapshot, "snapshot"), EXIT_OK);
	assert_int_equal(run_json(f, verb_snapshot, "snapshot"), EXIT_FAILED);
	assert_has(f->said, "WaitSnapshot: cannot make sense");
	answer_with(f, busy);
	assert_int_equal(run(f, verb_snapshot, "snapshot"), EXIT_BUSY);
	answer_with(f, fails);
	assert_int_equal(run(f, verb_snapshot, "snapshot"), EXIT_FAILED);
	assert_has(f->said, "the disk is full");
	assert_string_equal(f->printed, "");
}

static bool is_there(const struct fixture *f, const char *name, const char *text)
{
	char path[160], read_text[64] = "";
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	file = fopen(path, "re");
	if (!file)
		return false;
	assert_true(!text || fgets(read_text, sizeof(read_text), file));
	(void)fclose(file);
	return !text || strcmp(read_text, text) == 0;
}

/* -o writes a copy: all of it, or nothing. */
static void copies(void **state)
{
	static const struct answer good[] = { { .method = "TakeSnapshot", .fill = fill_id },
					      { .method = "WaitSnapshot", .fill = fill_result },
					      { .method = "OpenSnapshot", .fill = fill_dir } },
				   no_dir[] = { { .method = "TakeSnapshot", .fill = fill_id },
						{ .method = "WaitSnapshot", .fill = fill_result },
						{ .method = "OpenSnapshot", .fill = fill_number } };
	struct fixture *f = *state;
	char arguments[160];
	struct stat st;

	put_snapshot(f);
	answer_with(f, good);
	(void)snprintf(arguments, sizeof(arguments), "snapshot -o %s/copy//", f->dir);
	assert_int_equal(run(f, verb_snapshot, arguments), EXIT_OK);
	assert_has(f->calls, "\nOpenSnapshot \"ID-7\"\n");
	assert_true(is_there(f, "copy/data", "the data"));
	assert_true(is_there(f, "copy/SHA256SUMS", "the sums"));
	assert_false(is_there(f, "copy.part", NULL));
	(void)snprintf(arguments, sizeof(arguments), "%s/copy", f->dir);
	assert_int_equal(stat(arguments, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);

	/* Not over what is there, nor where one cannot write: before any snapshot is taken. */
	(void)snprintf(arguments, sizeof(arguments), "snapshot -o %s/copy", f->dir);
	assert_int_equal(run(f, verb_snapshot, arguments), EXIT_FAILED);
	assert_has(f->said, "/copy: this directory is not empty");
	assert_string_equal(f->calls, "");
	(void)snprintf(arguments, sizeof(arguments), "snapshot -o %s/none/copy", f->dir);
	assert_int_equal(run(f, verb_snapshot, arguments), EXIT_FAILED);
	assert_has(f->said, "/none/copy: cannot write a snapshot there: ");
	assert_has(f->said, "/none: No such file or directory");
	(void)snprintf(arguments, sizeof(arguments), "snapshot -o %s/snap/data", f->dir);
	assert_int_equal(run(f, verb_snapshot, arguments), EXIT_FAILED);
	assert_has(f->said, "cannot write a snapshot there: Not a directory");
	(void)snprintf(arguments, sizeof(arguments), "%s/link", f->dir);
	assert_int_equal(symlink("nowhere", arguments), 0);
	(void)snprintf(arguments, sizeof(arguments), "snapshot -o %s/link", f->dir);
	assert_int_equal(run(f, verb_snapshot, arguments), EXIT_FAILED);
	assert_has(f->said, "/link: cannot write a snapshot there: No such file or directory");
	(void)snprintf(arguments, sizeof(arguments), "%s/half.part", f->dir);
	assert_int_equal(mkdir(arguments, 0700), 0);
	(void)snprintf(arguments, sizeof(arguments), "snapshot -o %s/half/", f->dir);
	assert_int_equal(run(f, verb_snapshot, arguments), EXIT_FAILED);
	assert_has(f->said, "/half.part: in the way");
	assert_string_equal(f->calls, "");

	/* An empty directory is taken as it is. */
	(void)snprintf(arguments, sizeof(arguments), "snapshot -o %s/half.part", f->dir);
	assert_int_equal(run(f, verb_snapshot, arguments), EXIT_OK);
	assert_true(is_there(f, "half.part/SHA256SUMS", "the sums"));
	assert_has(f->said, "2.0 KiB of PT in ");
	assert_has(f->said, "/half.part");

	answer_with(f, no_dir);
	(void)snprintf(arguments, sizeof(arguments), "snapshot -o %s/more", f->dir);
	assert_int_equal(run(f, verb_snapshot, arguments), EXIT_FAILED);
	assert_has(f->said, "OpenSnapshot: cannot make sense");
	assert_false(is_there(f, "more", NULL));
	assert_false(is_there(f, "more.part", NULL));
}

/* --- info ------------------------------------------------------------------------------------ */

static void info(void **state)
{
	static const struct answer good[] = { { .method = "OpenSnapshot", .fill = fill_dir } },
				   no_dir[] = { { .method = "OpenSnapshot", .fill = fill_number } };
	struct fixture *f = *state;

	put_snapshot(f);
	answer_with(f, good);
	assert_int_equal(run(f, verb_info, "info ID-7"), EXIT_FAILED);
	assert_string_equal(f->calls, "OpenSnapshot \"ID-7\"\n");
	assert_has(f->said, "snapshot ID-7: cannot read its manifest: No such file or directory");

	tempdir_put_text(f->dir, "snap/manifest",
			 "format=ptd-snapshot-1\nod\033d=a=b\nnasty=\033[2J\302\233x\nempty=\n");
	assert_int_equal(run(f, verb_info, "info ID-7"), EXIT_OK);
	assert_string_equal(f->printed, "                    format: ptd-snapshot-1\n"
					"                      od?d: a=b\n"
					"                     nasty: ?[2J??x\n"
					"                     empty: \n");
	f->context.json = true;
	assert_int_equal(run(f, verb_info, "info ID-7"), EXIT_OK);
	assert_string_equal(f->printed, "{\"format\":\"ptd-snapshot-1\",\"od\\u001bd\":\"a=b\","
					"\"nasty\":\"\\u001b[2J\\u009bx\",\"empty\":\"\"}\n");
	tempdir_put_text(f->dir, "snap/manifest", "");
	assert_int_equal(run(f, verb_info, "info ID-7"), EXIT_OK);
	assert_string_equal(f->printed, "{}\n");
	f->context.json = false;

	tempdir_put_text(f->dir, "snap/manifest", "a=b\nnonsense\n");
	assert_int_equal(run(f, verb_info, "info ID-7"), EXIT_FAILED);
	assert_has(f->said, "snapshot ID-7: cannot make sense of its manifest: Bad message");
	tempdir_put_text(f->dir, "snap/manifest", "a=cut off");
	assert_int_equal(run(f, verb_info, "info ID-7"), EXIT_FAILED);
	answer_with(f, no_dir);
	assert_int_equal(run(f, verb_info, "info ID-7"), EXIT_FAILED);
	assert_has(f->said, "OpenSnapshot: cannot make sense");
	assert_int_equal(run(f, verb_info, "info"), EXIT_USAGE);
	assert_int_equal(run(f, verb_info, "info A B"), EXIT_USAGE);
	assert_string_equal(f->calls, "");
}

/* --- record ---------------------------------------------------------------------------------- */

static int fill_pt(sd_bus_message *reply, const struct fixture *f)
{
	(void)f;
	return sd_bus_message_append(reply, "a{sv}", 1, "source", "s", "pt");
}

static int fill_emu(sd_bus_message *reply, const struct fixture *f)
{
	(void)f;
	return sd_bus_message_append(reply, "a{sv}", 1, "source", "s", "emu");
}

static int fill_bad_source(sd_bus_message *reply, const struct fixture *f)
{
	(void)f;
	return sd_bus_message_append(reply, "a{sv}", 1, "source", "u", 1);
}

/* With hardware, a program is run as it is, and the snapshot is of it and what it started. */
static void record(void **state)
{
	static const struct answer good[] = { { .method = "GetStatus", .fill = fill_pt },
					      { .method = "TakeSnapshot", .fill = fill_id },
					      { .method = "WaitSnapshot", .fill = fill_result },
					      { .method = "OpenSnapshot", .fill = fill_dir } },
				   fails[] = { { .method = "GetStatus", .fill = fill_pt },
					       { .method = "TakeSnapshot",
						 .error = PTD_ERROR_BUSY,
						 .message = "busy" } },
				   other[] = { { .method = "GetStatus", .fill = fill_bad_source } },
				   no_source[] = { { .method = "GetStatus", .fill = fill_emu },
						   { .method = "OpenSource",
						     .error = PTD_ERROR_FAILED,
						     .message = "no room" } };
	struct fixture *f = *state;
	char arguments[160];
	unsigned pid = 0, again = 1;
	uint64_t started = 0;

	put_snapshot(f);
	answer_with(f, good);
	(void)snprintf(arguments, sizeof(arguments), "%s/exit3", f->dir);
	tempdir_put_text(f->dir, "exit3", "#!/bin/sh\nkill -$1 $$\nexit 3\n");
	assert_int_equal(chmod(arguments, 0700), 0);

	(void)snprintf(arguments, sizeof(arguments), "record -o %s/copy -- %s/exit3 0 \033", f->dir,
		       f->dir);
	assert_int_equal(run(f, verb_record, arguments), 3);
	assert_true(is_there(f, "copy/data", "the data"));
	assert_has(f->said, "snapshot ID-7: 2.0 KiB of PT in ");
	assert_has(f->calls, "GetStatus \nTakeSnapshot {\"since\":0,\"pid\":");
	assert_int_equal(sscanf(strstr(f->calls, "\"pid\""), "\"pid\":%u", &pid), 1);
	assert_int_equal(sscanf(strstr(f->calls, "\"command_pid\""),
				"\"command_pid\":%u,\"started\":%" SCNu64, &again, &started),
			 2);
	assert_int_equal(pid, again);
	assert_int_not_equal(pid, 0);
	assert_int_not_equal(started, 0);
	assert_has(f->calls, "/exit3 0 ?\",");

	/* One that a signal ended, as a shell says it. */
	(void)snprintf(arguments, sizeof(arguments), "record %s/exit3 KILL", f->dir);
	assert_int_equal(run(f, verb_record, arguments), EXIT_SIGNAL + SIGKILL);
	assert_has(f->said, "/exit3 was killed by signal 9 (Killed)");

	f->context.json = true;
	(void)snprintf(arguments, sizeof(arguments), "record %s/exit3 0", f->dir);
	assert_int_equal(run(f, verb_record, arguments), 3);
	assert_string_equal(f->printed, ""); /* which is the program's */
	assert_has(f->said, "{\"path\":\"/some/ID-7\",");
	f->context.json = false;

	assert_int_equal(run(f, verb_record, "record no-such-program-at-all"), EXIT_NOT_FOUND);
	assert_has(f->said, "no-such-program-at-all: cannot execute it: No such file or directory");
	assert_string_equal(f->calls, "GetStatus \n");
	assert_int_equal(run(f, verb_record, "record /dev/null"), EXIT_CANNOT_EXECUTE);
	assert_has(f->said, "/dev/null: cannot execute it: ");
	assert_int_equal(run(f, verb_record, "record"), EXIT_NOT_RECORDED);
	assert_int_equal(run(f, verb_record, "record --"), EXIT_NOT_RECORDED);
	assert_has(f->said, "record: which program?");

	/* That it ran is said, if there is no snapshot of it. */
	answer_with(f, fails);
	(void)snprintf(arguments, sizeof(arguments), "record %s/exit3 0", f->dir);
	assert_int_equal(run(f, verb_record, arguments), EXIT_NOT_RECORDED);
	assert_has(f->said, "busy");
	assert_has(f->said, "/exit3 ran, and ended with status 3");
	answer_with(f, other);
	assert_int_equal(run(f, verb_record, arguments), EXIT_NOT_RECORDED);
	assert_has(f->said, "GetStatus: cannot make sense");
	assert_null(strstr(f->said, " ran, "));
	answer_with(f, no_source);
	(void)snprintf(arguments, sizeof(arguments), "%s/plugin.so", f->dir);
	tempdir_put_text(f->dir, "plugin.so", "");
	tempdir_put_text(f->dir, "qemu-x86_64", "#!/bin/sh\necho -plugin\n");
	assert_int_equal(setenv("PTD_EMU_SO", arguments, 1), 0);
	(void)snprintf(arguments, sizeof(arguments), "%s/qemu-x86_64", f->dir);
	assert_int_equal(chmod(arguments, 0700), 0);
	assert_int_equal(setenv("PATH", f->dir, 1), 0);
	assert_int_equal(run(f, verb_record, "record /bin/true"), EXIT_NOT_RECORDED);
	assert_has(f->said, "no room");
	assert_string_equal(f->calls, "GetStatus \nOpenSource {\"timing\":false}\n");
	assert_int_equal(run(f, verb_record, "record --timing /bin/true"), EXIT_NOT_RECORDED);
	assert_string_equal(f->calls, "GetStatus \nOpenSource {\"timing\":true}\n");

	/* What hardware writes is a setting. */
	answer_with(f, good);
	assert_int_equal(run(f, verb_record, "record --timing /bin/true"), EXIT_NOT_RECORDED);
	assert_has(f->said, "--timing is for the software source; for hardware, set PT=mtc,cyc");
	assert_string_equal(f->calls, "GetStatus \n");
	assert_int_equal(run(f, verb_record, "record --timed /bin/true"), EXIT_NOT_RECORDED);
	assert_has(f->said, "record: see ptctl record --help");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(status, set_up, tear_down),
		cmocka_unit_test_setup_teardown(metrics, set_up, tear_down),
		cmocka_unit_test_setup_teardown(errors, set_up, tear_down),
		cmocka_unit_test_setup_teardown(sockets_that_are_none, set_up, tear_down),
		cmocka_unit_test_setup_teardown(calls_without_an_answer, set_up, tear_down),
		cmocka_unit_test_setup_teardown(several_of_which_one_fails, set_up, tear_down),
		cmocka_unit_test_setup_teardown(signals, set_up, tear_down),
		cmocka_unit_test_setup_teardown(list, set_up, tear_down),
		cmocka_unit_test_setup_teardown(snapshot, set_up, tear_down),
		cmocka_unit_test_setup_teardown(copies, set_up, tear_down),
		cmocka_unit_test_setup_teardown(info, set_up, tear_down),
		cmocka_unit_test_setup_teardown(record, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
