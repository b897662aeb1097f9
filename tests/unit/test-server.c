/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which clients stay when there are too many, or when they do nothing; time stands still. */

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
#include <time.h>

#include "daemon/control/peer.h"
#include "daemon/control/recorder.h"
#include "daemon/control/server.h"
#include "tests/lib/dbusraw.h"
#include "tests/lib/failing.h"
#include "tests/lib/logged.h"
#include "tests/lib/tempdir.h"

/* As in daemon/control/control.c. */
#define USER_MAX   96
#define DENIED_MAX 8 /* of one user */

#define NOBODY 65534

/* Nothing is asked of it. */
static const struct recorder recorder;

static uint64_t clock_us;

/* The linker prefers this one. */
int sd_event_now(sd_event *event, clockid_t clock, uint64_t *ret)
{
	(void)event;
	(void)clock;
	*ret = clock_us;
	return 0;
}

struct fixture {
	char dir[TEMPDIR_SIZE];
	struct sockaddr_un address;
	int listen_fd;
	sd_event *event;
	struct server *server;
	int clients[2 * USER_MAX];
	size_t n;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	clock_us = UINT64_C(1) << 50; /* so that the control's timers are not due */
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

/* Of equally worthy ones the first that came goes. */
static void equals(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < USER_MAX; i++)
		assert_string_equal(add(f), "");
	assert_cut_off(f, NONE);
	assert_non_null(strstr(add(f), "because there are too many clients; 1 since"));
	assert_cut_off(f, 0);
}

/* Who was heard of the longest ago; but not who has begun. */
static void worthless(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < USER_MAX; i++) {
		clock_us = (UINT64_C(1) << 50) + (i == 20 ? 0 : i == 10 ? 1 : i + 2);
		add(f);
	}
	assert_int_equal(send(f->clients[20], DBUSRAW_AUTH DBUSRAW_BEGIN,
			      sizeof(DBUSRAW_AUTH DBUSRAW_BEGIN) - 1, 0),
			 sizeof(DBUSRAW_AUTH DBUSRAW_BEGIN) - 1);
	run(f);
	assert_cut_off(f, NONE);
	add(f);
	assert_cut_off(f, 10);
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

/* Return: 0 if of so many connections only the first is cut off. */
static int connect_often(const struct fixture *f)
{
	int fds[DENIED_MAX + 1];
	struct pollfd p;

	for (size_t i = 0; i <= DENIED_MAX; i++) {
		fds[i] = connect_to(f);
		if (fds[i] < 0)
			return 1;
	}
	p = (struct pollfd){ .fd = fds[0] };
	if (poll(&p, 1, 10000) != 1 || !(p.revents & POLLHUP))
		return 2;
	for (size_t i = 1; i <= DENIED_MAX; i++)
		if (is_cut_off(fds[i]))
			return 3;
	return 0;
}

/* Those who see only what is their own have a share of connections. */
static void denied(void **state)
{
	struct fixture *f = *state;

	if (geteuid() != 0) {
		print_message("  only root can be somebody else: not judged\n");
		return;
	}
	add(f);
	assert_int_equal(as_user(f, NOBODY, connect_often), 0);
	assert_cut_off(f, NONE);
}

/* Two clients, of which the second says nothing for @us. Return: what was logged. */
static const char *be_silent(struct fixture *f, uint64_t us)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	clock_us = (uint64_t)now.tv_sec * 1000000;
	add(f);
	assert_int_equal(send(f->clients[0], DBUSRAW_AUTH DBUSRAW_BEGIN,
			      sizeof(DBUSRAW_AUTH DBUSRAW_BEGIN) - 1, 0),
			 sizeof(DBUSRAW_AUTH DBUSRAW_BEGIN) - 1);
	add(f);
	(void)run(f);
	clock_us += us;
	logged_begin();
	(void)sd_event_run(f->event, 5000000); /* once a second it looks after them */
	return logged_end();
}

static void patient(void **state)
{
	assert_string_equal(be_silent(*state, PEER_PATIENCE_US - 1), "");
	assert_cut_off(*state, NONE);
}

/* Who does nothing is cut off after a while, but not who has begun. */
static void overdue(void **state)
{
	assert_non_null(strstr(be_silent(*state, PEER_PATIENCE_US),
			       "because it does not authenticate itself; 1 since"));
	assert_cut_off(*state, 1);
}

/* It goes on looking after them. */
static void overdue_later(void **state)
{
	struct fixture *f = *state;
	struct timespec now;
	const char *said;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	clock_us = (uint64_t)now.tv_sec * 1000000;
	add(f);
	logged_begin();
	(void)sd_event_run(f->event, 5000000);
	assert_string_equal(logged_end(), "");
	assert_cut_off(f, NONE);
	clock_us += PEER_PATIENCE_US;
	logged_begin();
	(void)sd_event_run(f->event, 5000000);
	said = logged_end();
	assert_non_null(strstr(said, "because it does not authenticate itself; 1 since"));
	assert_cut_off(f, 0);
}

/* Clients can make it say something, but not often. */
static void said_seldom(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < USER_MAX; i++)
		add(f);
	assert_non_null(strstr(add(f), "; 1 since"));
	for (size_t i = 0; i < 3; i++)
		assert_string_equal(add(f), "");
	clock_us += 60000000 - 1;
	assert_string_equal(add(f), "");
	clock_us += 1;
	assert_non_null(strstr(add(f), "; 5 since"));
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
		cmocka_unit_test_setup_teardown(equals, set_up_control, tear_down),
		cmocka_unit_test_setup_teardown(worthless, set_up_control, tear_down),
		cmocka_unit_test_setup_teardown(denied, set_up_control, tear_down),
		cmocka_unit_test_setup_teardown(patient, set_up_control, tear_down),
		cmocka_unit_test_setup_teardown(overdue, set_up_control, tear_down),
		cmocka_unit_test_setup_teardown(overdue_later, set_up_control, tear_down),
		cmocka_unit_test_setup_teardown(said_seldom, set_up_control, tear_down),
		cmocka_unit_test_setup_teardown(calls_that_fail, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
