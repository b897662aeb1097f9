/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/decoder/message.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "base/printable.h"

static bool is_text(const char *text, size_t size)
{
	const char *end = memchr(text, 0, size);

	for (; end && text < end; text++)
		if (*text < ' ' || *text > '~')
			return false;
	return end;
}

bool decoder_wish_is_good(const struct decoder_wish *wish)
{
	return is_text(wish->format, sizeof(wish->format)) && wish->format[0] &&
	       is_text(wish->time, sizeof(wish->time));
}

bool decoder_request_is_good(const struct decoder_request *request)
{
	return request->version == DECODER_VERSION && request->timeout_s > 0 &&
	       request->timeout_s <= DECODER_TIMEOUT_MAX && decoder_wish_is_good(&request->wish);
}

bool decoder_answer_is_good(struct decoder_answer *answer)
{
	char *at = answer->message, *newline;

	if (answer->version != DECODER_VERSION || answer->error > 0 || answer->zero != 0 ||
	    answer->status > UINT8_MAX || !memchr(answer->message, 0, sizeof(answer->message)))
		return false;
	for (; (newline = strchr(at, '\n')); at = newline + 1)
		printable_clean(at, (size_t)(newline - at));
	printable_clean(at, strlen(at));
	return true;
}

union control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(DECODER_FDS * sizeof(int))];
};

int decoder_send_request(int socket, const struct decoder_request *request,
			 const int fds[static DECODER_FDS])
{
	struct iovec part = { .iov_base = (void *)(uintptr_t)request, .iov_len = sizeof(*request) };
	union control control = { .header = { .cmsg_level = SOL_SOCKET,
					      .cmsg_type = SCM_RIGHTS,
					      .cmsg_len = CMSG_LEN(DECODER_FDS * sizeof(int)) } };
	const struct msghdr m = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};

	memcpy(CMSG_DATA(&control.header), fds, DECODER_FDS * sizeof(int));
	return sendmsg(socket, &m, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

int decoder_receive_request(int socket, struct decoder_request *ret_request,
			    int ret_fds[static DECODER_FDS])
{
	struct decoder_request request;
	union control control = {};
	struct iovec part = { .iov_base = &request, .iov_len = sizeof(request) };
	struct msghdr m = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	const ssize_t n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
	const struct cmsghdr *header = n < 0 ? NULL : CMSG_FIRSTHDR(&m);
	int fds[DECODER_FDS];
	size_t n_fds = 0;

	if (n < 0)
		return -errno;
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
		n_fds = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		n_fds = n_fds < DECODER_FDS ? n_fds : DECODER_FDS;
		memcpy(fds, CMSG_DATA(header), n_fds * sizeof(int));
	}
	if (n == (ssize_t)sizeof(request) && n_fds == DECODER_FDS &&
	    !(m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) && decoder_request_is_good(&request)) {
		*ret_request = request;
		memcpy(ret_fds, fds, sizeof(fds));
		return 0;
	}
	while (n_fds > 0)
		(void)fd_close(fds[--n_fds]);
	return -EBADMSG;
}
