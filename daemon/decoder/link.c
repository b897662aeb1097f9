/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/decoder/link.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>

#include "daemon/helper/helper.h"

/* For which ptd waits at most, beyond what the request allows the decoder. */
#define PATIENCE_S 10u

#define SECOND_US UINT64_C(1000000)

struct decoding {
	sd_event_source *io;    /* of the connection, which it owns */
	sd_event_source *timer; /* a decoder that does not answer */
	decoding_done_fn done;
	void *userdata; /* of @done, borrowed */
};

static int end_decoding(struct decoding *d, const struct decoder_answer *answer)
{
	(void)sd_event_source_set_enabled(d->io, SD_EVENT_OFF);
	(void)sd_event_source_set_enabled(d->timer, SD_EVENT_OFF);
	d->done(d->userdata, answer);
	return 0;
}

static int end_with(struct decoding *d, int error)
{
	const struct decoder_answer answer = { .version = DECODER_VERSION, .error = error };

	return end_decoding(d, &answer);
}

static int on_answer(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct decoder_answer answer;
	ssize_t n;

	(void)source;
	(void)revents;
	n = recv(fd, &answer, sizeof(answer), MSG_DONTWAIT | MSG_TRUNC);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n != (ssize_t)sizeof(answer) || !decoder_answer_is_good(&answer))
		return end_with(userdata, n <= 0 ? -ECONNRESET : -EBADMSG);
	return end_decoding(userdata, &answer);
}

static int on_overdue(sd_event_source *source, uint64_t usec, void *userdata)
{
	(void)source;
	(void)usec;
	return end_with(userdata, -ETIMEDOUT);
}

static int connect_decoder(struct helper *helper, int *ret_fd)
{
	int r = helper_connect(helper, 0, ret_fd);

	if ((r == -ENOENT || r == -ECONNREFUSED) && helper_is_ours())
		r = helper_start_and_connect(helper, 0, ret_fd);
	return r;
}

static int watch_decoding(struct decoding *d, sd_event *event, int fd, unsigned timeout_s)
{
	int r;

	r = sd_event_add_io(event, &d->io, fd, EPOLLIN, on_answer, d);
	if (r < 0) {
		(void)fd_close(fd);
		return r;
	}
	if ((r = sd_event_source_set_io_fd_own(d->io, true)) < 0 ||
	    (r = sd_event_add_time_relative(event, &d->timer, CLOCK_MONOTONIC,
					    (timeout_s + PATIENCE_S) * SECOND_US, SECOND_US,
					    on_overdue, d)) < 0)
		return r;
	return 0;
}

int decoding_new(sd_event *event, struct helper *helper, struct decoder_request *request,
		 const int fds[static DECODER_FDS], decoding_done_fn done, void *userdata,
		 struct decoding **ret_decoding)
{
	_cleanup_(decoding_freep) struct decoding *d = malloc(sizeof(*d));
	int fd, r;

	if (!d)
		return -ENOMEM;
	*d = (struct decoding){ .done = done, .userdata = userdata };
	request->version = DECODER_VERSION;
	r = connect_decoder(helper, &fd);
	if (r < 0)
		return r;
	r = watch_decoding(d, event, fd, request->timeout_s);
	if (r == 0)
		r = decoder_send_request(fd, request, fds);
	if (r < 0)
		return r;
	*ret_decoding = TAKE(d);
	return 0;
}

struct decoding *decoding_free(struct decoding *decoding)
{
	if (!decoding)
		return NULL;
	sd_event_source_disable_unref(decoding->io);
	sd_event_source_disable_unref(decoding->timer);
	free(decoding);
	return NULL;
}
