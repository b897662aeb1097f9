/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/fdpass.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

union control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(FDPASS_MAX * sizeof(int))];
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

int fdpass_send_parts(int socket, const struct iovec *parts, size_t n_parts, const int *fds,
		      size_t n_fds)
{
	struct msghdr m = { .msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = n_parts };
	union control control = {};
	int passed[FDPASS_MAX];
	size_t n = 0;

	assert(n_fds <= FDPASS_MAX);
	for (size_t i = 0; i < n_fds; i++)
		if (fds[i] >= 0)
			passed[n++] = fds[i];
	if (n > 0) {
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(&control.header), passed, n * sizeof(int));
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(n * sizeof(int));
	}
	return sendmsg(socket, &m, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int fdpass_send(int socket, const void *message, size_t size, int fd)
{
	const struct iovec part = { .iov_base = (void *)(uintptr_t)message, .iov_len = size };

	return fdpass_send_parts(socket, &part, 1, &fd, 1);
}

int fdpass_receive_parts(int socket, void *ret_message, size_t size, size_t *ret_size, int *ret_fds,
			 size_t n_fds)
{
	union control control;
	struct iovec part = { .iov_base = ret_message, .iov_len = size };
	/* CMSG_SPACE() of one has room for two (findings/cmsg-space-has-room-for-two.sh). */
	struct msghdr m = { .msg_iov = &part,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = CMSG_LEN(n_fds * sizeof(int)) };
	const struct cmsghdr *header;
	ssize_t n;

	assert(n_fds <= FDPASS_MAX);
	for (size_t i = 0; i < n_fds; i++)
		ret_fds[i] = -1;
	do
		n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	header = CMSG_FIRSTHDR(&m);
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
		memcpy(ret_fds, CMSG_DATA(header), header->cmsg_len - CMSG_LEN(0));
	/* The kernel has closed the descriptors for which there was no room. */
	if (n == 0 || m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		for (size_t i = 0; i < n_fds; i++)
			ret_fds[i] = fd_close(ret_fds[i]);
		return n == 0 ? -EPIPE : -EBADMSG;
	}
	*ret_size = (size_t)n;
	return 0;
}

int fdpass_receive(int socket, void *ret_message, size_t size, int *ret_fd)
{
	size_t got = 0;
	const int r = fdpass_receive_parts(socket, ret_message, size, &got, ret_fd, 1);

	if (r == -EBADMSG || (r == 0 && got != size)) {
		*ret_fd = fd_close(*ret_fd);
		return -EPIPE;
	}
	return r;
}
