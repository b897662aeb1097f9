/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/fdpass.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

union control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int))];
};

int fdpass_ask(int socket, const void *message, size_t size)
{
	const struct timespec now = {};
	sigset_t pipe, before;
	int r = 0;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	if (sigprocmask(SIG_BLOCK, &pipe, &before) < 0)
		return -errno;
	if (write(socket, message, size) < 0)
		r = -errno;
	if (r == -EPIPE)
		(void)sigtimedwait(&pipe, NULL, &now);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return r;
}

int fdpass_send(int socket, const void *message, size_t size, int fd)
{
	struct iovec part = { .iov_base = (void *)(uintptr_t)message, .iov_len = size };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };
	union control control = {};

	if (fd >= 0) {
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	}
	return sendmsg(socket, &m, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int fdpass_receive(int socket, void *ret_message, size_t size, int *ret_fd)
{
	union control control;
	struct iovec part = { .iov_base = ret_message, .iov_len = size };
	struct msghdr m = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	const struct cmsghdr *header;
	ssize_t n;

	*ret_fd = -1;
	do
		n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	header = CMSG_FIRSTHDR(&m);
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
		memcpy(ret_fd, CMSG_DATA(header), sizeof(*ret_fd));
	if ((size_t)n == size)
		return 0;
	*ret_fd = fd_close(*ret_fd);
	return -EPIPE;
}
