/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Fetch: each row is what the other end of the socket does, and what comes of asking it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "decoder/cmd/fetcher.h"

static void put_answer(int socket, const struct fetch_answer *answer, size_t size, int fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {};
	struct iovec part = { .iov_base = (void *)(uintptr_t)answer, .iov_len = size };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

	if (fd >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	}
	assert_int_equal(sendmsg(socket, &message, 0), size);
}

static void answers(void **state)
{
	static const struct {
		const char *name;
		int32_t r;
		bool has_file, is_gone, is_short;
		int expected;
	} rows[] = {
		{ "a file", 0, true, false, false, 0 },
		{ "nobody has it", -ENOENT, false, false, false, -ENOENT },
		{ "both", -ENOENT, true, false, false, -ENOENT },
		{ "neither", 0, false, false, false, -ENOENT },
		{ "half an answer", 0, true, false, true, -EPIPE },
		{ "nobody is there", 0, false, true, false, -EPIPE },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct fetch_answer answer = { .r = rows[i].r };
		_cleanup_(fd_closep) int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
		const struct buildid id = { .bytes = { 0xab, 0xcd }, .size = 2 };
		_cleanup_(freep) char *path = NULL;
		struct fetch_question question = {};
		int sockets[2], fd;

		print_message("  %s\n", rows[i].name);
		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
		/* As far as the text goes, it need not end. */
		memset(answer.text, 'p', sizeof(answer.text));
		if (rows[i].is_gone)
			sockets[1] = fd_close(sockets[1]);
		else
			put_answer(sockets[1], &answer, sizeof(answer) - rows[i].is_short,
				   rows[i].has_file ? file : -1);

		fd = fetcher_get(&(struct helper){ .socket = sockets[0] }, PTD_FETCH_DEBUG,
				 id.bytes, id.size, &path);
		if (rows[i].expected == 0) {
			assert_true(fd >= 0);
			assert_int_equal(strlen(path), sizeof(answer.text) - 1);
		} else {
			assert_int_equal(fd, rows[i].expected);
			assert_null(path);
		}
		if (!rows[i].is_gone) {
			assert_int_equal(read(sockets[1], &question, sizeof(question)),
					 sizeof(question));
			assert_int_equal(question.what, PTD_FETCH_DEBUG);
			assert_true(buildid_equal(&question.id, &id));
		}
		(void)fd_close(fd);
		(void)fd_close(sockets[0]);
		(void)fd_close(sockets[1]);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
