/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Keeper message
 *
 * What ptd and its keeper say to each other over a channel (daemon/helper/channel.h): messages of
 * one size, each with at most one descriptor. ptd asks, and the keeper answers each request with
 * one KEEPER_DONE; before that, KEEPER_GIVE is answered with one KEEPER_KEPT for each thing that is
 * kept.
 */

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/base.h"
#include "daemon/helper/channel.h"

#define KEEPER_VERSION   3u
#define KEEPER_NAME_SIZE 32u  /* with the NUL */
#define KEEPER_FORM_SIZE 256u /* with the NUL */

/* Enough for the events of 1024 CPUs. */
#define KEEPER_THINGS_MAX 4096u

enum keeper_verb {
	KEEPER_KEEP = 1, /* keep the descriptor under @name, in the place of what has that name */
	KEEPER_DROP,     /* close what is kept under @name */
	KEEPER_GIVE,     /* pass everything that is kept */
	KEEPER_WAIT,     /* keep it for @seconds after the connection has ended */
	KEEPER_DONE,     /* the answer; @status is 0 or negative errno */
	KEEPER_KEPT,     /* one thing that is kept, with its descriptor */
	_KEEPER_VERBS,
};

struct keeper_message {
	uint32_t verb; /* enum keeper_verb */
	int32_t status;
	uint32_t seconds;
	uint64_t data_size; /* bytes of the rings of a perf event; 0: it is none */
	uint64_t aux_size;
	char name[KEEPER_NAME_SIZE]; /* which of the things of ptd it is: "pool" */
	char form[KEEPER_FORM_SIZE]; /* how it is laid out, for ptd to compare */
};

/* Read a message. Return: 0; or -EBADMSG if the other side cannot mean that. */
_must_check_ static inline int keeper_read(const struct channel_message *received,
					   struct keeper_message *ret_message)
{
	/* No ring is larger. */
	const uint64_t size_max = UINT64_C(1) << 40;
	struct keeper_message m;

	if (channel_read(received, &m, sizeof(m), NULL) < 0 || m.verb == 0 ||
	    m.verb >= _KEEPER_VERBS || m.status > 0 || !memchr(m.name, 0, sizeof(m.name)) ||
	    !memchr(m.form, 0, sizeof(m.form)) ||
	    (m.name[0] != 0) !=
		(m.verb == KEEPER_KEEP || m.verb == KEEPER_DROP || m.verb == KEEPER_KEPT) ||
	    m.data_size > size_max || m.aux_size > size_max)
		return -EBADMSG;
	*ret_message = m;
	return 0;
}

/* Send the message, with @fd, borrowed, unless it is -1. Return: as channel_send(). */
_must_check_ static inline int keeper_send(int socket, const struct keeper_message *message, int fd)
{
	const int fds[CHANNEL_FDS_MAX] = { fd, -1 };

	return channel_send(socket, KEEPER_VERSION, message, sizeof(*message), NULL, fds);
}

/* Receive a message, and perhaps a descriptor, which is the caller's. Return: as
 * channel_receive(). */
_must_check_ static inline int keeper_receive(int socket, struct keeper_message *ret_message,
					      int *ret_fd)
{
	_cleanup_(channel_message_deinit) struct channel_message received;
	int r;

	r = channel_receive(socket, KEEPER_VERSION, &received);
	if (r == 0)
		r = keeper_read(&received, ret_message);
	if (r < 0 || received.fds[1] >= 0)
		return r < 0 ? r : -EBADMSG;
	*ret_fd = received.fds[0];
	received.fds[0] = -1;
	return 0;
}
