/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Own snapshots and the decoder, which executes a script in the place of ptdecode. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <systemd/sd-event.h>
#include <time.h>
#include <unistd.h>

#include "daemon/decoder/decoder.h"
#include "daemon/decoder/message.h"
#include "daemon/decoder/owns.h"
#include "daemon/helper/serve.h"
#include "daemon/spool/spool.h"
#include "tests/lib/tempdir.h"

static uint64_t ahead_ns; /* by which the clocks go before those of the machine */

int clock_gettime(clockid_t id, struct timespec *ret_time)
{
	const int r = (int)syscall(SYS_clock_gettime, id, ret_time);

	ret_time->tv_sec += (time_t)(ahead_ns / 1000000000);
	return r;
}

/* --- messages --------------------------------------------------------------------------------- */

static const struct decoder_request good = {
	.version = DECODER_VERSION,
	.timeout_s = 10,
	.wish = { .format = "calls:min-duration=10us", .time = "-5s", .pid = 1, .last = 2 },
};

static void requests(void **state)
{
	static const struct {
		const char *name;
		size_t at;
		uint32_t value;
	} rows[] = {
		{ "another version", offsetof(struct decoder_request, version), 9 },
		{ "no time", offsetof(struct decoder_request, timeout_s), 0 },
		{ "too much time", offsetof(struct decoder_request, timeout_s),
		  DECODER_TIMEOUT_MAX + 1 },
		{ "no format", offsetof(struct decoder_request, wish.format), 0 },
		{ "a control character", offsetof(struct decoder_request, wish.format), 0x0a6161 },
		{ "no ASCII", offsetof(struct decoder_request, wish.time), 0xc3 },
	};
	int pair[2], fds[DECODER_FDS] = { 0, 1 }, got[DECODER_FDS] = { -5, -6 };
	struct decoder_request r, read;

	(void)state;
	assert_true(decoder_request_is_good(&good));
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(decoder_send_request(pair[0], &good, fds), 0);
	assert_int_equal(decoder_receive_request(pair[1], &read, got), 0);
	assert_memory_equal(&read, &good, sizeof(good));
	assert_true(got[0] > 1 && got[1] > 1);
	(void)close(got[0]);
	(void)close(got[1]);
	got[0] = -5;
	read.timeout_s = 77;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		print_message("  %s\n", rows[i].name);
		r = good;
		memcpy((uint8_t *)&r + rows[i].at, &rows[i].value, sizeof(rows[i].value));
		assert_false(decoder_request_is_good(&r));
		assert_int_equal(decoder_send_request(pair[0], &r, fds), 0);
		assert_int_equal(decoder_receive_request(pair[1], &read, got), -EBADMSG);
	}
	memset(r.wish.format, 'x', sizeof(r.wish.format));
	assert_false(decoder_wish_is_good(&r.wish));
	/* Without descriptors, and too short. */
	assert_int_equal(send(pair[0], &good, sizeof(good), 0), sizeof(good));
	assert_int_equal(decoder_receive_request(pair[1], &read, got), -EBADMSG);
	assert_int_equal(send(pair[0], &good, sizeof(good) - 1, 0), sizeof(good) - 1);
	assert_int_equal(decoder_receive_request(pair[1], &read, got), -EBADMSG);
	assert_int_equal(read.timeout_s, 77);
	assert_int_equal(got[0], -5);
	(void)close(pair[0]);
	assert_int_equal(decoder_receive_request(pair[1], &read, got), -EBADMSG);
	(void)close(pair[1]);
}

static void answers(void **state)
{
	struct decoder_answer a = { .version = DECODER_VERSION, .status = 3 };

	(void)state;
	(void)snprintf(a.message, sizeof(a.message), "one\ntw\033o\n");
	assert_true(decoder_answer_is_good(&a));
	assert_string_equal(a.message, "one\ntw?o\n");
	a.error = -EPIPE;
	assert_true(decoder_answer_is_good(&a));
	a.error = 1;
	assert_false(decoder_answer_is_good(&a));
	a.error = 0;
	a.status = 256;
	assert_false(decoder_answer_is_good(&a));
	a.status = 0;
	a.version++;
	assert_false(decoder_answer_is_good(&a));
	a.version--;
	memset(a.message, 'x', sizeof(a.message));
	assert_false(decoder_answer_is_good(&a));
}

/* --- own snapshots ---------------------------------------------------------------------------- */

struct fixture {
	char dir[TEMPDIR_SIZE];
	sd_event *event;
	struct spool *spool;
	struct owns *owns;
	pid_t decoder;
	char done[SNAPID_SIZE]; /* the last one */
	struct own_result result;
};

static void on_done(void *userdata, const char *id, const struct own_result *result)
{
	struct fixture *f = userdata;

	(void)snprintf(f->done, sizeof(f->done), "%s", id);
	f->result = *result;
}

static void path_in(const struct fixture *f, const char *name, char ret_path[static 256])
{
	(void)snprintf(ret_path, 256, "%s/%s", f->dir, name);
}

/* Start a decoder whose ptdecode is the script. */
static void start_decoder(struct fixture *f, const char *script)
{
	char path[256], program[256];
	int fd, lock_fd;

	path_in(f, "decoder", path);
	assert_int_equal(mkdir(path, 0700), 0);
	tempdir_put_text(f->dir, "ptdecode", script);
	path_in(f, "ptdecode", program);
	assert_int_equal(chmod(program, 0755), 0);
	path_in(f, "decoder/socket", path);
	assert_int_equal(serve_listen(path, &fd, &lock_fd), 0);
	f->decoder = fork();
	assert_true(f->decoder >= 0);
	if (f->decoder == 0)
		_exit(decoder_drop_rights() < 0 || decoder_serve(fd, geteuid(), 0, program) < 0);
	(void)close(fd);
	(void)close(lock_fd);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char path[256];

	assert_non_null(f);
	/* A service manager would start the decoder. */
	assert_int_equal(setenv("NOTIFY_SOCKET", "/nonexistent", 1), 0);
	tempdir_make("decoder", f->dir);
	path_in(f, "state", path);
	assert_int_equal(spool_new(path, &f->spool), 0);
	assert_int_equal(sd_event_new(&f->event), 0);
	assert_int_equal(owns_new(f->event, f->spool, f->dir, on_done, f, &f->owns), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	(void)owns_free(f->owns);
	(void)sd_event_unref(f->event);
	(void)spool_free(f->spool);
	if (f->decoder > 0) {
		assert_int_equal(kill(f->decoder, SIGKILL), 0);
		assert_int_equal(waitpid(f->decoder, NULL, 0), f->decoder);
	}
	tempdir_remove(f->dir);
	free(f);
	return 0;
}

static int begin_as(struct fixture *f, const char *format, const char *id, uid_t uid,
		    int *ret_output)
{
	struct decoder_wish wish = { .tid = 5, .time = "-1s" };

	(void)snprintf(wish.format, sizeof(wish.format), "%s", format);
	return owns_begin(f->owns, id, uid, &wish, ret_output);
}

static int begin(struct fixture *f, const char *id, uid_t uid, int *ret_output)
{
	return begin_as(f, "text", id, uid, ret_output);
}

/* As if the snapshot had been written. */
static void decode(struct fixture *f, const char *id)
{
	int dir_fd, fd;

	assert_int_equal(spool_begin(f->spool, id, &dir_fd), 0);
	fd = openat(dir_fd, "data", O_WRONLY | O_CREAT | O_CLOEXEC, 0640);
	assert_true(fd >= 0 && write(fd, "PT\n", 3) == 3);
	(void)close(fd);
	owns_decode(f->owns, id, dir_fd, 2, 3);
}

static void run_until_done(struct fixture *f)
{
	while (!f->done[0])
		assert_true(sd_event_run(f->event, UINT64_MAX) >= 0);
}

static void assert_nothing_left(const struct fixture *f)
{
	char command[400];

	(void)snprintf(command, sizeof(command), "[ -z \"$(ls -A %s/state/snapshots)\" ]", f->dir);
	assert_int_equal(system(command), 0);
}

static void decoded(void **state)
{
	struct fixture *f = *state;
	const struct own_result *result;
	char text[512] = "";
	int output;

	start_decoder(f, "#!/bin/sh\necho $*\ncat data\necho problem >&2\n"
			 "[ $(ls /proc/self/fd | wc -l) = 4 ] || echo more descriptors\nexit 3\n");
	assert_int_equal(begin(f, "A-1", 1000, &output), 0);
	result = owns_find(f->owns, "A-1", 1000);
	assert_true(result && !result->done);
	assert_null(owns_find(f->owns, "A-1", 1001));
	assert_null(owns_find(f->owns, "A-2", 1000));
	decode(f, "A-1");
	run_until_done(f);
	assert_string_equal(f->done, "A-1");
	assert_int_equal(f->result.error, 0);
	assert_int_equal(f->result.status, 3);
	assert_int_equal(f->result.n_missing, 2);
	assert_int_equal(f->result.n_left_out, 3);
	assert_string_equal(f->result.text, "problem\n");
	assert_true(read(output, text, sizeof(text) - 1) > 0);
	assert_string_equal(text,
			    "--threads 1 --max-spill 256M -f text --tid 5 --time -1s -- .\nPT\n");
	/* Its end is seen. */
	assert_int_equal(read(output, text, sizeof(text)), 0);
	(void)close(output);
	assert_nothing_left(f);
	result = owns_find(f->owns, "A-1", 1000);
	assert_true(result && result->done && result->status == 3);
}

/* A format that is a directory comes as a tar archive. */
static void decoded_into_a_directory(void **state)
{
	static const struct {
		const char *format, *end;
		uint32_t status;
		const char *listed; /* in the archive */
	} rows[] = {
		{ "drmemtrace", "exit 3", 3, "./ ./args ./trace/ ./trace/a.trace " },
		{ "drmemtrace:compress=none", "exit 0", 0, "./ ./args ./trace/ ./trace/a.trace " },
		{ "drmemtrace", "echo no room >&2; exit 1", 1, "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char script[512], command[512], listed[512] = "";
		struct fixture *f;
		int output;
		FILE *p;

		print_message("  row %zu\n", i);
		(void)tear_down(state);
		(void)set_up(state);
		f = *state;
		assert_int_equal(setenv("TMPDIR", f->dir, 1), 0);
		(void)snprintf(script, sizeof(script),
			       "#!/bin/sh\nfor dir; do case $dir in */made) break;; esac; done\n"
			       "mkdir -p $dir/trace\ncat data >$dir/trace/a.trace\n"
			       "echo $* | sed s,$dir,DIR, >$dir/args\n%s\n",
			       rows[i].end);
		start_decoder(f, script);
		assert_int_equal(begin_as(f, rows[i].format, "A-1", 1000, &output), 0);
		decode(f, "A-1");
		run_until_done(f);
		assert_int_equal(f->result.error, 0);
		assert_int_equal(f->result.status, rows[i].status);
		assert_int_equal(fcntl(output, F_SETFD, 0), 0);
		(void)snprintf(command, sizeof(command),
			       "cd %s && cat <&%d >got && { [ ! -s got ] || tar tf got | "
			       "tr '\n' ' '; } && [ -z \"$(ls -d ptd-own-* 2>/dev/null)\" ]",
			       f->dir, output);
		p = popen(command, "r");
		assert_non_null(p);
		(void)!fread(listed, 1, sizeof(listed) - 1, p);
		assert_int_equal(pclose(p), 0);
		assert_string_equal(listed, rows[i].listed);
		(void)close(output);
		assert_nothing_left(f);
		if (i == 0) {
			(void)snprintf(
			    command, sizeof(command),
			    "cd %s && tar xOf got ./args ./trace/a.trace >text && "
			    "printf '%%s\\n' '--threads 1 --max-spill 256M -f drmemtrace "
			    "--tid 5 --time -1s --max-output 256M -o DIR -- .' PT | "
			    "cmp - text",
			    f->dir);
			assert_int_equal(system(command), 0);
		}
		(void)unsetenv("TMPDIR");
	}
}

static void how_many(void **state)
{
	struct fixture *f = *state;
	int outputs[OWNS_RUN_MAX + 1];

	for (unsigned i = 0; i < OWNS_RUN_MAX; i++)
		assert_int_equal(
		    begin(f, (char[]){ 'A', '-', (char)('0' + i), 0 }, 1000 + i, &outputs[i]), 0);
	assert_int_equal(begin(f, "B-1", 1000, &outputs[OWNS_RUN_MAX]), -EBUSY);
	assert_int_equal(begin(f, "B-1", 2000, &outputs[OWNS_RUN_MAX]), -EBUSY);
	owns_fail(f->owns, "A-1", -EIO, "the reason");
	assert_string_equal(f->done, "A-1");
	assert_int_equal(f->result.error, -EIO);
	assert_string_equal(f->result.text, "the reason");
	assert_int_equal(read(outputs[1], &(char){ 0 }, 1), 0);
	/* There is room, but not for who has one that is not done. */
	assert_int_equal(begin(f, "B-1", 1000, &outputs[OWNS_RUN_MAX]), -EBUSY);
	assert_int_equal(begin(f, "B-1", 1001, &outputs[OWNS_RUN_MAX]), 0);
	assert_null(owns_find(f->owns, "A-1", 1001));
	for (unsigned i = 0; i <= OWNS_RUN_MAX; i++)
		(void)close(outputs[i]);
}

/* Those who read slowly do not keep another user waiting for ever: the first of them makes way. */
static void who_makes_way(void **state)
{
	struct fixture *f = *state;
	int outputs[OWNS_RUN_MAX + 1];
	char id[16];

	start_decoder(f, "#!/bin/sh\nexec cat /dev/zero\n");
	for (unsigned i = 0; i < OWNS_RUN_MAX; i++) {
		(void)snprintf(id, sizeof(id), "A-%u", i + 1);
		assert_int_equal(begin(f, id, 1000 + i, &outputs[i]), 0);
		/* The second one is decoded first, and the first one not at all yet. */
		if (i > 0)
			decode(f, id);
	}
	assert_int_equal(begin(f, "B-1", 2000, &outputs[OWNS_RUN_MAX]), -EBUSY);
	ahead_ns = (OWNS_SURE_S + 1) * UINT64_C(1000000000);
	assert_int_equal(begin(f, "B-1", 1003, &outputs[OWNS_RUN_MAX]), -EBUSY);
	assert_int_equal(begin(f, "B-1", 2000, &outputs[OWNS_RUN_MAX]), 0);
	ahead_ns = 0;
	assert_string_equal(f->done, "A-2");
	assert_int_equal(f->result.error, -ETIMEDOUT);
	assert_non_null(strstr(f->result.text, "others wait"));
	for (unsigned i = 0; i <= OWNS_RUN_MAX; i++)
		(void)close(outputs[i]);
}

/* The results of others go first, and all are done. */
static void many_users(void **state)
{
	struct fixture *f = *state;
	int output;

	for (unsigned i = 0; i < OWNS_MAX + 5; i++) {
		assert_int_equal(begin(f, "A-1", 1000 + i, &output), 0);
		(void)close(output);
		owns_fail(f->owns, "A-1", -EIO, "");
		assert_non_null(owns_find(f->owns, "A-1", 1000 + i));
	}
}

static void what_fails(void **state)
{
	static const struct {
		const char *script, *text;
		int error;
		bool reads;
	} rows[] = {
		{ NULL, "ptd-decoder does not run", -ENOENT, true },
		{ "#!/bin/sh\nkill -KILL $$\n",
		  "ptd-decoder or ptdecode has ended, or did not answer", -ECHILD, true },
		{ "#!/nonexistent\n", "ptdecode cannot be executed", -ENOEXEC, true },
		{ "#!/bin/sh\nexec cat /dev/zero\n", "the output was not read", -EPIPE, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct fixture *f;
		int output;

		print_message("  row %zu\n", i);
		(void)tear_down(state);
		(void)set_up(state);
		f = *state;
		if (rows[i].script)
			start_decoder(f, rows[i].script);
		assert_int_equal(begin(f, "A-1", 1000, &output), 0);
		if (!rows[i].reads)
			(void)close(output);
		decode(f, "A-1");
		run_until_done(f);
		assert_int_equal(f->result.error, rows[i].error);
		assert_string_equal(f->result.text, rows[i].text);
		assert_nothing_left(f);
		if (rows[i].reads)
			(void)close(output);
	}
}

/* What is taken back ends. */
static void taken_back(void **state)
{
	struct fixture *f = *state;
	struct pollfd wanted = { .events = POLLIN };
	char byte;

	start_decoder(f, "#!/bin/sh\necho begun\nexec sleep 1000\n");
	assert_int_equal(begin(f, "A-1", 1000, &wanted.fd), 0);
	decode(f, "A-1");
	while (poll(&wanted, 1, 10) == 0)
		assert_true(sd_event_run(f->event, 10000) >= 0);
	f->owns = owns_free(f->owns);
	assert_nothing_left(f);
	while (read(wanted.fd, &byte, 1) == 1)
		;
	(void)close(wanted.fd);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests),
		cmocka_unit_test(answers),
		cmocka_unit_test_setup_teardown(decoded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(decoded_into_a_directory, set_up, tear_down),
		cmocka_unit_test_setup_teardown(how_many, set_up, tear_down),
		cmocka_unit_test_setup_teardown(who_makes_way, set_up, tear_down),
		cmocka_unit_test_setup_teardown(many_users, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_fails, set_up, tear_down),
		cmocka_unit_test_setup_teardown(taken_back, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
