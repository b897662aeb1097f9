/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "daemon/helper/channel.h"

#define VERSION 7u

struct fixture {
	int ours, theirs; /* the ends of the channel */
};

static int set_up(void **state)
{
	static struct fixture f;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
	f = (struct fixture){ pair[0], pair[1] };
	*state = &f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	(void)fd_close(f->ours);
	(void)fd_close(f->theirs);
	return 0;
}

static unsigned count_open(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Send bytes, with our own end of the channel @n_fds times. */
static void send_bytes(const struct fixture *f, const void *bytes, size_t size, size_t n_fds)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(4 * sizeof(int))];
	} control = { .header = { .cmsg_len = CMSG_LEN(n_fds * sizeof(int)),
				  .cmsg_level = SOL_SOCKET,
				  .cmsg_type = SCM_RIGHTS } };
	struct iovec part = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = size };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };

	for (size_t i = 0; i < n_fds; i++)
		memcpy(CMSG_DATA(&control.header) + i * sizeof(int), &f->ours, sizeof(int));
	if (n_fds > 0) {
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
	}
	assert_int_equal(sendmsg(f->ours, &m, 0), size);
}

static void what_is_sent_is_received(void **state)
{
	static const char *const texts[] = { NULL, "", "a text" };
	struct fixture *f = *state;
	const unsigned n_open = count_open();
	struct channel_message message;

	for (unsigned i = 0; i < 4 * ARRAY_LEN(texts); i++) {
		const char *sent_text = texts[i / 4], *text = "none";
		const int fds[CHANNEL_FDS_MAX] = { i & 1 ? f->ours : -1, i & 2 ? f->ours : -1 };
		const uint64_t sent = i;
		uint64_t read = 99;

		assert_int_equal(
		    channel_send(f->ours, VERSION, &sent, sizeof(sent), sent_text, fds), 0);
		assert_int_equal(channel_receive(f->theirs, VERSION, &message), 0);
		assert_int_equal(message.fds[0] >= 0, (i & 3) != 0);
		assert_int_equal(message.fds[1] >= 0, (i & 3) == 3);
		assert_int_equal(
		    channel_read(&message, &read, sizeof(read), sent_text ? &text : NULL), 0);
		assert_int_equal(read, i);
		if (sent_text)
			assert_string_equal(text, sent_text);
		assert_int_equal(
		    channel_read(&message, &read, sizeof(read), sent_text ? NULL : &text),
		    -EBADMSG);
		assert_int_equal(channel_read(&message, &read, message.size + 1, &text), -EBADMSG);
		channel_message_deinit(&message);
	}
	assert_int_equal(channel_receive(f->theirs, VERSION, &message), -EAGAIN);
	assert_int_equal(count_open(), n_open);
}

/* Whatever the other side sends, no descriptor of it stays open. */
static void what_is_refused(void **state)
{
	static const struct row {
		const char *name;
		uint32_t version;
		size_t size, n_fds;
		int error;
	} rows[] = {
		{ "nothing but the version", VERSION, 4, 2, 0 },
		{ "the longest message", VERSION, 4 + CHANNEL_BODY_MAX, 2, 0 },
		{ "another version", VERSION + 1, 8, 2, -EBADMSG },
		{ "half a version", VERSION, 3, 2, -EBADMSG },
		{ "a longer message", VERSION, 5 + CHANNEL_BODY_MAX, 2, -EBADMSG },
		{ "more descriptors", VERSION, 8, 3, -EBADMSG },
		{ "many descriptors", VERSION, 8, 4, -EBADMSG },
		{ "nothing", VERSION, 0, 2, -EPIPE },
	};
	static uint32_t bytes[CHANNEL_BODY_MAX / 4 + 2];
	const unsigned n_open = count_open();
	struct fixture *f = *state;
	struct channel_message message;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		print_message("  %s\n", rows[i].name);
		bytes[0] = rows[i].version;
		send_bytes(f, bytes, rows[i].size, rows[i].n_fds);
		assert_int_equal(channel_receive(f->theirs, VERSION, &message), rows[i].error);
		channel_message_deinit(&message);
		assert_int_equal(count_open(), n_open);
	}
	f->ours = fd_close(f->ours);
	assert_int_equal(channel_receive(f->theirs, VERSION, &message), -EPIPE);
	assert_int_equal(channel_send(f->theirs, VERSION, "", 1, NULL, NULL), -EPIPE);
}

/* The same of messages that have at most one descriptor. */
static void one_descriptor(void **state)
{
	static const struct row {
		size_t size, n_fds;
		int error;
	} rows[] = {
		{ 8, 0, 0 },      { 8, 1, 0 },      { 8, 2, -EPIPE }, { 8, 3, -EPIPE },
		{ 7, 1, -EPIPE }, { 9, 1, -EPIPE }, { 0, 1, -EPIPE },
	};
	const unsigned n_open = count_open();
	struct fixture *f = *state;
	uint64_t message[2] = { 5 };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int fd = 99;

		print_message("  %zu bytes, %zu descriptors\n", rows[i].size, rows[i].n_fds);
		send_bytes(f, message, rows[i].size, rows[i].n_fds);
		assert_int_equal(fdpass_receive(f->theirs, message, 8, &fd), rows[i].error);
		assert_int_equal(fd >= 0, rows[i].error == 0 && rows[i].n_fds == 1);
		(void)fd_close(fd);
		assert_int_equal(count_open(), n_open);
	}
}

/* A side that does not read does not keep the other one waiting. */
static void a_side_that_does_not_read(void **state)
{
	struct fixture *f = *state;
	int r = 0;

	for (unsigned i = 0; r == 0 && i < 100000; i++)
		r = channel_send(f->ours, VERSION, "text", 4, "text", NULL);
	assert_int_equal(r, -EAGAIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_sent_is_received, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_descriptor, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_side_that_does_not_read, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
