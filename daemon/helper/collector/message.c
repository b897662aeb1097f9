/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/helper/collector/message.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define ERRNO_MAX 4095 /* the kernel's */

/* What comes before the text. */
#define REQUEST_SIZE offsetof(struct collector_request, path)

static_assert(REQUEST_SIZE + CHANNEL_TEXT_MAX <= CHANNEL_BODY_MAX, "a request fits");
static_assert(sizeof(struct collector_answer) <= CHANNEL_BODY_MAX, "an answer fits");

int collector_send_request(int socket, const struct collector_request *request, const int *fds)
{
	return channel_send(socket, COLLECTOR_VERSION, request, REQUEST_SIZE,
			    request->path ? request->path : "", fds);
}

/* Return: whether the clock is one, or none. */
static bool check_clock(const struct tsc_conv *clock)
{
	uint8_t valid;

	memcpy(&valid, &clock->valid, sizeof(valid));
	return valid <= 1 && clock->shift <= TSC_SHIFT_MAX && (valid == 0 || clock->mult > 0);
}

int collector_read_request(const struct channel_message *message,
			   struct collector_request *ret_request)
{
	struct collector_request request;

	if (channel_read(message, &request, REQUEST_SIZE, &request.path) < 0 || request.verb == 0 ||
	    request.verb >= _COLLECTOR_VERBS || request.flags >= _COLLECTOR_FLAGS ||
	    request.timeout_ms == 0 || request.timeout_ms > COLLECTOR_TIMEOUT_MAX ||
	    request.pid > INT32_MAX || request.build_id.size > BUILDID_MAX ||
	    !check_clock(&request.clock))
		return -EBADMSG;
	*ret_request = request;
	return 0;
}

int collector_send_answer(int socket, const struct collector_answer *answer, int fd)
{
	const int fds[CHANNEL_FDS_MAX] = { fd, -1 };

	return channel_send(socket, COLLECTOR_VERSION, answer, sizeof(*answer), NULL, fds);
}

/* The hash becomes the name of a file. */
static bool is_hash(const char text[static SHA256_HEX_SIZE])
{
	return text[0] == '\0' || (memchr(text, 0, SHA256_HEX_SIZE) == text + SHA256_HEX_SIZE - 1 &&
				   strspn(text, "0123456789abcdef") == SHA256_HEX_SIZE - 1);
}

int collector_read_answer(const struct channel_message *message,
			  struct collector_answer *ret_answer)
{
	struct collector_answer answer;

	if (channel_read(message, &answer, sizeof(answer), NULL) < 0 || answer.error > 0 ||
	    answer.error < -ERRNO_MAX || !is_hash(answer.sha256) || answer.lack >= _KERNELLACKS ||
	    answer.build_id.size > BUILDID_MAX)
		return -EBADMSG;
	if (answer.error < 0)
		answer = (struct collector_answer){ .id = answer.id,
						    .waited_us = answer.waited_us,
						    .error = answer.error };
	*ret_answer = answer;
	return 0;
}
