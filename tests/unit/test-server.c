/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Who may be a client, and which of them goes when there are too many. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <systemd/sd-event.h>

#include "daemon/control/recorder.h"
#include "daemon/control/server.h"
#include "tests/lib/dbusraw.h"
#include "tests/lib/failing.h"
#include "tests/lib/logged.h"
#include "tests/lib/tempdir.h"

#define PEERS_MAX 128 /* as in daemon/control/server.c */

#define NOBODY 65534

/* Nothing is asked of it. */
static const struct recorder recorder;

struct fixture {
	char dir[TEMPDIR_SIZE];
	struct sockaddr_un address;
	int listen_fd;
	sd_event *event;
	struct server *server;
	int clients[PEERS_MAX + 2];
	size_t n;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	tempdir_make("control", f->dir);
	assert_int_equal(chmod(f->dir, 0755), 0);
	f->address.sun_family = AF_UNIX;
	(void)snprintf(f->address.sun_path, sizeof(f->address.sun_path), "%s/s", f->dir);
	f->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(f->listen_fd, (struct sockaddr *)&f->address, sizeof(f->address)), 0);
	assert_int_equal(chmod(f->address.sun_path, 0666), 0);
	assert_int_equal(listen(f->listen_fd, 128), 0);
	assert_int_equal(sd_event_new(&f->event), 0);
	*state = f;
	return 0;
}

static int set_up_control(void **state)
{
	struct fixture *f;

	(void)set_up(state);
	f = *state;
	assert_int_equal(server_new(f->event, &recorder, f->listen_fd, &f->server), 0);
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	if (f->server)
		(void)server_free(f->server);
	else
		(void)close(f->listen_fd);
	for (size_t i = 0; i < f->n; i++)
		(void)fd_close(f->clients[i]);
	(void)sd_event_unref(f->event);
	tempdir_remove(f->dir);
	free(f);
	return 0;
}

/* Until nothing more happens. Return: what was logged. */
static const char *run(struct fixture *f)
{
	logged_begin();
	while (sd_event_run(f->event, 0) > 0)
		;
	return logged_end();
}

static int connect_to(const struct fixture *f)
{
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)&f->address, sizeof(f->address)) < 0)
		return -1;
	return fd;
}

static const char *add(struct fixture *f)
{
	f->clients[f->n] = connect_to(f);
	assert_true(f->clients[f->n] >= 0);
	f->n++;
	return run(f);
}

static bool is_cut_off(int fd)
{
	struct pollfd p = { .fd = fd };

	return poll(&p, 1, 0) == 1 && p.revents & POLLHUP;
}

static void assert_cut_off(const struct fixture *f, size_t which)
{
	for (size_t i = 0; i < f->n; i++)
		assert_int_equal(is_cut_off(f->clients[i]), i == which);
}

#define NONE SIZE_MAX

/* The first that came goes. */
static void too_many(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < PEERS_MAX; i++)
		assert_string_equal(add(f), "");
	assert_cut_off(f, NONE);
	assert_non_null(strstr(add(f), "there are too many clients: cut off process "));
	assert_cut_off(f, 0);
}

/* One that has left makes room. */
static void left(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < PEERS_MAX; i++)
		add(f);
	f->clients[7] = fd_close(f->clients[7]);
	(void)run(f);
	assert_string_equal(add(f), "");
}

/* Return: the exit status of a child that is @uid. */
static int as_user(struct fixture *f, uid_t uid, int (*child)(const struct fixture *f))
{
	const pid_t pid = fork();
	int status = 0;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(setgid(uid) == 0 && setuid(uid) == 0 ? child(f) : 99);
	while (waitpid(pid, &status, WNOHANG) == 0)
		(void)run(f);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

/* A client may send the end of its authentication and its first call together. */
static void call_at_once(void **state)
{
	static const char auth[] = DBUSRAW_AUTH, begin[] = DBUSRAW_BEGIN;
	uint8_t bytes[sizeof(begin) - 1 + DBUSRAW_PING_SIZE], answer[256];
	struct fixture *f = *state;
	ssize_t n;

	memcpy(bytes, begin, sizeof(begin) - 1);
	dbusraw_ping(1, bytes + sizeof(begin) - 1);
	(void)add(f);
	assert_int_equal(send(f->clients[0], auth, sizeof(auth) - 1, 0), sizeof(auth) - 1);
	(void)run(f);
	assert_true(recv(f->clients[0], answer, sizeof(answer), 0) > 0);
	assert_int_equal(send(f->clients[0], bytes, sizeof(bytes), 0), sizeof(bytes));
	(void)run(f);
	n = recv(f->clients[0], answer, sizeof(answer), 0);
	assert_true(n > 16 && answer[1] == 2); /* a method's return */
}

/* Return: 0 if the server says something, 1 if it hangs up. */
static int talk(const struct fixture *f)
{
	static const char hello[] = DBUSRAW_AUTH;
	const int fd = connect_to(f);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char byte;

	if (fd < 0)
		return 2;
	(void)send(fd, hello, sizeof(hello) - 1, MSG_NOSIGNAL);
	return poll(&p, 1, 60000) == 1 && read(fd, &byte, 1) == 1 ? 0 : 1;
}

/* Whatever the mode of the socket is. */
static void others(void **state)
{
	struct fixture *f = *state;

	if (geteuid() != 0) {
		print_message("  only root can be somebody else: not judged\n");
		return;
	}
	assert_int_equal(as_user(f, 0, talk), 0);
	assert_int_equal(as_user(f, NOBODY, talk), 1);
}

static int make(void *userdata)
{
	struct fixture *f = userdata;
	const int fd = fcntl(f->listen_fd, F_DUPFD_CLOEXEC, 3); /* becomes the server's */
	struct server *server = (struct server *)0x1;
	int r;

	r = server_new(f->event, &recorder, fd, &server);
	if (r < 0)
		assert_ptr_equal(server, 0x1);
	else
		f->server = server;
	return r;
}

static void is_made(void *userdata)
{
	struct fixture *f = userdata;

	f->server = server_free(f->server);
}

static void calls_that_fail(void **state)
{
	/* Once before: the event loop keeps what it opened for its first timer. */
	assert_int_equal(make(*state), 0);
	is_made(*state);
	failing_each(make, is_made, *state);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(too_many, set_up_control, tear_down),
		cmocka_unit_test_setup_teardown(left, set_up_control, tear_down),
		cmocka_unit_test_setup_teardown(call_at_once, set_up_control, tear_down),
		cmocka_unit_test_setup_teardown(others, set_up_control, tear_down),
		cmocka_unit_test_setup_teardown(calls_that_fail, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
