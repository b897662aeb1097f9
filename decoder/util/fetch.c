/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/util/fetch.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

int fetch_receive(int socket, struct fetch_answer *ret_answer, int *ret_fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = { .iov_base = ret_answer, .iov_len = sizeof(*ret_answer) };
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	const struct cmsghdr *header;
	ssize_t n;

	*ret_fd = -1;
	do
		n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
		memcpy(ret_fd, CMSG_DATA(header), sizeof(*ret_fd));
	if (n == sizeof(*ret_answer))
		return 0;
	*ret_fd = fd_close(*ret_fd);
	return -EPIPE;
}

/*
 * With write(2), which confinement leaves. Where nobody reads any more, that is no reason to die.
 */
static int ask(int fetch, const struct fetch_question *question)
{
	const struct timespec now = {};
	sigset_t pipe, before;
	int r = 0;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	if (sigprocmask(SIG_BLOCK, &pipe, &before) < 0)
		return -errno;
	if (write(fetch, question, sizeof(*question)) < 0)
		r = -errno;
	if (r == -EPIPE)
		(void)sigtimedwait(&pipe, NULL, &now);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return r;
}

int fetch_file(int fetch, enum fetch_kind kind, const struct buildid *id, char **ret_path)
{
	const struct fetch_question question = { .kind = (uint8_t)kind, .id = *id };
	struct fetch_answer answer;
	int r, fd;

	r = ask(fetch, &question);
	if (r == 0)
		r = fetch_receive(fetch, &answer, &fd);
	if (r < 0)
		return r;
	if (answer.r < 0 || fd < 0) {
		(void)fd_close(fd);
		return answer.r < 0 ? answer.r : -ENOENT;
	}
	*ret_path = strndup(answer.text, sizeof(answer.text) - 1);
	if (!*ret_path) {
		(void)fd_close(fd);
		return -ENOMEM;
	}
	return fd;
}
