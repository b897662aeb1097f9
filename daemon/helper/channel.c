/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/helper/channel.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

void channel_message_deinit(struct channel_message *message)
{
	for (size_t i = 0; i < CHANNEL_FDS_MAX; i++)
		message->fds[i] = fd_close(message->fds[i]);
}

int channel_send(int socket, uint32_t version, const void *body, size_t size, const char *text,
		 const int *fds)
{
	const struct iovec parts[] = {
		{ .iov_base = &version, .iov_len = sizeof(version) },
		{ .iov_base = (void *)(uintptr_t)body, .iov_len = size },
		{ .iov_base = (void *)(uintptr_t)text, .iov_len = text ? strlen(text) + 1 : 0 },
	};

	return fdpass_send_parts(socket, parts, ARRAY_LEN(parts), fds, fds ? CHANNEL_FDS_MAX : 0);
}

int channel_receive(int socket, uint32_t version, struct channel_message *ret_message)
{
	const size_t head = offsetof(struct channel_message, body);
	size_t size;
	int r;

	r = fdpass_receive_parts(socket, ret_message, head + CHANNEL_BODY_MAX, &size,
				 ret_message->fds, CHANNEL_FDS_MAX);
	if (r < 0)
		return r;
	if (size < head || ret_message->version != version) {
		channel_message_deinit(ret_message);
		return -EBADMSG;
	}
	ret_message->size = size - head;
	return 0;
}

int channel_read(const struct channel_message *message, void *ret_body, size_t size,
		 const char **ret_text)
{
	const size_t text_size = message->size - size;
	const uint8_t *text = message->body + size;

	if (message->size < size || text_size > CHANNEL_TEXT_MAX ||
	    (ret_text ? text_size == 0 || memchr(text, 0, text_size) != text + text_size - 1
		      : text_size > 0))
		return -EBADMSG;
	memcpy(ret_body, message->body, size);
	if (ret_text)
		*ret_text = (const char *)text;
	return 0;
}
