/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* One client's connection, with the client's side written byte by byte and time standing still. */

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
#include <systemd/sd-event.h>

#include "daemon/control/frame.h"
#include "daemon/control/interface.h"
#include "daemon/control/peer.h"
#include "tests/lib/dbusraw.h"

/* As in daemon/control/peer.c. */
#define LINES_MAX   16
#define CALLS_FRESH 8

static uint64_t clock_us;

/* The linker prefers this one. */
int sd_event_now(sd_event *event, clockid_t clock, uint64_t *ret)
{
	(void)event;
	(void)clock;
	*ret = clock_us;
	return 0;
}

struct client {
	struct peer *peer; /* NULL: it was cut off */
	int fd;
	const char *why; /* it was */
	bool ended;
};

struct fixture {
	sd_event *event;
	struct interface interface;
	struct client clients[2];
};

static void on_ended(struct peer *peer, const char *why, void *userdata)
{
	struct client *client = userdata;

	assert_ptr_equal(peer, client->peer);
	client->ended = true;
	client->why = why;
	client->peer = peer_free(peer);
}

static void connect_as(struct fixture *f, struct client *client, bool allowed)
{
	const struct peer_options options = { .interface = &f->interface,
					      .caller = { .uid = 77, .pid = 88 },
					      .access = allowed ? ACCESS_ALL : ACCESS_OWN,
					      .ended = on_ended,
					      .userdata = client };
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair),
			 0);
	*client = (struct client){ .fd = pair[0] };
	assert_int_equal(peer_new(f->event, pair[1], &options, &client->peer), 0);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	clock_us = 1000000;
	assert_int_equal(sd_event_new(&f->event), 0);
	f->clients[1].fd = -1;
	connect_as(f, &f->clients[0], true);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(f->clients); i++) {
		(void)peer_free(f->clients[i].peer);
		(void)fd_close(f->clients[i].fd);
	}
	waiters_deinit(&f->interface.waiters);
	(void)sd_event_unref(f->event);
	free(f);
	return 0;
}

/* Until nothing more happens. */
static void run(struct fixture *f)
{
	while (sd_event_run(f->event, 0) > 0)
		;
}

static void put(const struct client *client, const void *bytes, size_t size)
{
	assert_int_equal(send(client->fd, bytes, size, MSG_NOSIGNAL), size);
}

static void put_text(const struct client *client, const char *text)
{
	put(client, text, strlen(text));
}

static void put_ping(const struct client *client, uint32_t serial)
{
	uint8_t bytes[DBUSRAW_PING_SIZE];

	dbusraw_ping(serial, bytes);
	put(client, bytes, sizeof(bytes));
}

/* Return: bytes that have come. */
static size_t get(const struct client *client)
{
	char bytes[4096];
	size_t size = 0;
	ssize_t n;

	while ((n = read(client->fd, bytes, sizeof(bytes))) > 0)
		size += (size_t)n;
	return size;
}

static void begin(struct fixture *f, struct client *client)
{
	put(client, DBUSRAW_AUTH DBUSRAW_BEGIN, sizeof(DBUSRAW_AUTH DBUSRAW_BEGIN) - 1);
	run(f);
	assert_false(client->ended);
	assert_true(get(client) > 0);
}

static void talk(void **state)
{
	struct fixture *f = *state;
	struct client *client = &f->clients[0];

	assert_int_equal(peer_uid(client->peer), 77);
	assert_int_equal(peer_pid(client->peer), 88);
	assert_int_equal(peer_access(client->peer), ACCESS_ALL);
	begin(f, client);
	for (uint32_t i = 1; i < 30; i++) {
		put_ping(client, i);
		run(f);
		assert_true(get(client) > 0);
	}

	/* In pieces, which come together. */
	for (size_t at = 0; at < DBUSRAW_PING_SIZE; at++) {
		uint8_t bytes[DBUSRAW_PING_SIZE];

		dbusraw_ping(99, bytes);
		run(f);
		assert_int_equal(get(client), 0);
		put(client, bytes + at, 1);
	}
	run(f);
	assert_true(get(client) > 0);

	/* Two at once. */
	put_ping(client, 100);
	put_ping(client, 101);
	run(f);
	assert_true(get(client) > 2 * 16);
	assert_false(client->ended);
}

/* What it asked for before it went is answered. */
static void gone(void **state)
{
	struct fixture *f = *state;
	struct client *client = &f->clients[0];

	begin(f, client);
	put_ping(client, 1);
	assert_int_equal(shutdown(client->fd, SHUT_WR), 0);
	run(f);
	assert_true(get(client) > 0);
	assert_true(client->ended);
	assert_null(client->why);

	connect_as(f, &f->clients[1], true);
	f->clients[1].fd = fd_close(f->clients[1].fd);
	run(f);
	assert_true(f->clients[1].ended);
	assert_null(f->clients[1].why);
}

static void assert_cut_off(struct fixture *f, const char *why)
{
	run(f);
	assert_true(f->clients[0].ended);
	assert_string_equal(f->clients[0].why, why);
}

static void no_dbus(void **state)
{
	struct fixture *f = *state;
	const struct client *client = &f->clients[0];

	begin(f, &f->clients[0]);
	put_text(client, "GET / HTTP/1.1\r\n");
	assert_cut_off(f, "it does not speak D-Bus");
}

static void many_lines(void **state)
{
	struct fixture *f = *state;
	const struct client *client = &f->clients[0];

	put(client, "\0", 1);
	for (unsigned i = 0; i < LINES_MAX; i++)
		put_text(client, "DATA\r\n");
	run(f);
	assert_false(client->ended);
	put_text(client, "DATA\r\n");
	run(f);
	assert_true(client->ended);
}

static void long_line(void **state)
{
	struct fixture *f = *state;
	char line[FRAME_LINE_MAX];

	memset(line, 'x', sizeof(line));
	line[0] = 0;
	put(&f->clients[0], line, sizeof(line));
	assert_cut_off(f, "its message is too long");
}

static void long_message(void **state)
{
	struct fixture *f = *state;
	uint8_t bytes[DBUSRAW_PING_SIZE];

	begin(f, &f->clients[0]);
	dbusraw_ping(1, bytes);
	bytes[6] = 1; /* a body of 64 KiB */
	put(&f->clients[0], bytes, sizeof(bytes));
	assert_cut_off(f, "its message is too long");
}

static void descriptors(void **state)
{
	struct fixture *f = *state;
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {};
	struct iovec byte = { (void *)(uintptr_t) "", 1 };
	struct msghdr m = { .msg_iov = &byte,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };

	control.header = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)),
					   .cmsg_level = SOL_SOCKET,
					   .cmsg_type = SCM_RIGHTS };
	assert_int_equal(sendmsg(f->clients[0].fd, &m, 0), 1);
	assert_cut_off(f, "it passes descriptors");
}

static void assert_not_overdue(const struct peer *peer)
{
	const char *why = "nothing";

	assert_false(peer_overdue(peer, clock_us + PEER_PATIENCE_US, &why));
	assert_string_equal(why, "nothing");
}

/* @expected: why it is cut off; NULL: its connection is closed, and there is nothing to complain
 * of */
static void assert_overdue(const struct peer *peer, const char *expected)
{
	const uint64_t until = clock_us + PEER_PATIENCE_US;
	const char *why = "nothing";

	assert_false(peer_overdue(peer, clock_us, &why));
	assert_false(peer_overdue(peer, until - 1, &why));
	assert_string_equal(why, "nothing");
	assert_true(peer_overdue(peer, until, &why));
	if (expected)
		assert_string_equal(why, expected);
	else
		assert_null(why);
}

static void patience(void **state)
{
	struct fixture *f = *state;
	struct client *client = &f->clients[0], *other = &f->clients[1];
	uint8_t bytes[DBUSRAW_PING_SIZE];
	size_t n = 0;

	connect_as(f, other, false);
	assert_overdue(client->peer, "it does not authenticate itself");
	clock_us += 10;
	put(client, DBUSRAW_AUTH, sizeof(DBUSRAW_AUTH) - 1);
	run(f);
	assert_overdue(client->peer, "it does not authenticate itself");
	put_text(client, DBUSRAW_BEGIN);
	run(f);
	assert_not_overdue(client->peer);

	begin(f, other);
	assert_overdue(other->peer, "it asks for nothing, and may not stay connected");
	assert_int_equal(peer_access(other->peer), ACCESS_OWN);
	/* It was answered, and has broken no rule. */
	put_ping(other, 1);
	run(f);
	assert_true(get(other) > 0);
	assert_overdue(other->peer, NULL);

	clock_us += 10;
	dbusraw_ping(1, bytes);
	put(client, bytes, 20);
	run(f);
	clock_us -= 10; /* part of a message is none */
	assert_overdue(client->peer, "it does not complete its message");
	put(client, bytes + 20, sizeof(bytes) - 20);
	run(f);
	assert_not_overdue(client->peer);

	/* It asks and asks, and does not take the answers. */
	while (send(client->fd, bytes, sizeof(bytes), MSG_NOSIGNAL) == (ssize_t)sizeof(bytes)) {
		run(f);
		assert_true(++n < 1000000);
	}
	assert_overdue(client->peer, "it does not read its replies");
	assert_false(client->ended);
	/* Then it does, and all is as before. */
	while (get(client) > 0)
		run(f);
	assert_false(client->ended);
}

/* A process's fifth connection is worth less than others', whoever has not begun less than who has,
 * and then who was heard of the longest ago. */
static void worth(void **state)
{
	struct fixture *f = *state;
	struct client *client = &f->clients[0], *other = &f->clients[1];

	connect_as(f, other, true);
	assert_true(peer_worth(client->peer, 1) == peer_worth(other->peer, 1));
	assert_true(peer_worth(client->peer, 1) == peer_worth(client->peer, 4));
	assert_true(peer_worth(client->peer, 5) < peer_worth(client->peer, 4));
	assert_true(peer_worth(client->peer, 128) < peer_worth(client->peer, 127));
	begin(f, client);
	assert_true(peer_worth(client->peer, 4) > peer_worth(other->peer, 4));
	assert_true(peer_worth(client->peer, 5) < peer_worth(other->peer, 4));

	clock_us += 1;
	begin(f, other);
	assert_true(peer_worth(client->peer, 1) < peer_worth(other->peer, 1));
	clock_us += 1;
	put_ping(client, 1);
	run(f);
	assert_true(peer_worth(client->peer, 1) > peer_worth(other->peer, 1));
}

/* Which of the two is answered first? */
static size_t first_of(struct fixture *f)
{
	for (unsigned i = 0; i < 1000; i++) {
		(void)sd_event_run(f->event, 0);
		for (size_t k = 0; k < ARRAY_LEN(f->clients); k++)
			if (get(&f->clients[k]) > 0) {
				run(f);
				(void)get(&f->clients[1 - k]);
				return k;
			}
	}
	return SIZE_MAX;
}

/* Who has asked much comes after those who have not, until that is forgotten. */
static void turns(void **state)
{
	struct fixture *f = *state;
	struct client *client = &f->clients[0], *other = &f->clients[1];

	begin(f, client);
	connect_as(f, other, true);
	begin(f, other);
	for (uint32_t i = 1; i < CALLS_FRESH; i++) {
		put_ping(client, i);
		run(f);
		assert_true(get(client) > 0);
	}
	/* Who is as fresh as the other comes in the order of asking. */
	peer_refresh(client->peer);
	put_ping(client, 50);
	run(f);
	(void)get(client);
	for (unsigned i = 0; i < 3; i++) {
		put_ping(client, 60 + i);
		put_ping(other, 60 + i);
		assert_int_equal(first_of(f), 1);
	}
	peer_refresh(client->peer);
	peer_refresh(other->peer);
	for (uint32_t i = 0; i < CALLS_FRESH; i++) {
		put_ping(other, 70 + i);
		run(f);
		(void)get(other);
	}
	put_ping(client, 90);
	put_ping(other, 90);
	assert_int_equal(first_of(f), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(talk, set_up, tear_down),
		cmocka_unit_test_setup_teardown(gone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_dbus, set_up, tear_down),
		cmocka_unit_test_setup_teardown(many_lines, set_up, tear_down),
		cmocka_unit_test_setup_teardown(long_line, set_up, tear_down),
		cmocka_unit_test_setup_teardown(long_message, set_up, tear_down),
		cmocka_unit_test_setup_teardown(descriptors, set_up, tear_down),
		cmocka_unit_test_setup_teardown(patience, set_up, tear_down),
		cmocka_unit_test_setup_teardown(worth, set_up, tear_down),
		cmocka_unit_test_setup_teardown(turns, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
