/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Channel
 *
 * How ptd and its helper processes speak, and a helper with its own workers: over a connected
 * SOCK_SEQPACKET socket of util/fdpass.h, which keeps the messages apart.
 *
 * A message is a uint32_t, the version of the protocol; a struct of the protocol, with its fields
 * as the CPU has them, because both sides run on one machine; perhaps a text with its NUL; and
 * perhaps descriptors. daemon/helper/collector/message.h and daemon/helper/keeper/message.h have
 * the structs.
 *
 * Each side distrusts the other. The channel bounds sizes and descriptors and compares the version;
 * the protocol checks what the fields say. A message that it cannot mean is -EBADMSG.
 *
 * The socket says how long the calls wait: not at all if it is non-blocking, or as long as
 * helper_connect() has set it.
 *
 * Errors: -EAGAIN: the other side has not answered yet, or does not read; -EPIPE: it is gone;
 * -EBADMSG: see above. After any but -EAGAIN the connection is of no use any more.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"
#include "util/fdpass.h"

#define CHANNEL_FDS_MAX  FDPASS_MAX
#define CHANNEL_TEXT_MAX 4096u                     /* bytes, with the NUL */
#define CHANNEL_BODY_MAX (512u + CHANNEL_TEXT_MAX) /* bytes of struct and text */

/* A message that was received. */
struct channel_message {
	uint32_t version;
	uint8_t body[CHANNEL_BODY_MAX];
	size_t size;              /* of the body */
	int fds[CHANNEL_FDS_MAX]; /* -1: none */
};

/* Close the descriptors that are left. */
void channel_message_deinit(struct channel_message *message);

/*
 * Send a message.
 *
 * @body: the struct, of @size bytes
 * @text: which follows it, shorter than CHANNEL_TEXT_MAX; NULL: none
 * @fds: CHANNEL_FDS_MAX descriptors, borrowed, or -1; may be NULL
 *
 * Return: 0, or negative errno: see above.
 */
_must_check_ int channel_send(int socket, uint32_t version, const void *body, size_t size,
			      const char *text, const int *fds);

/* Receive a message of that version. Return: 0, and the message is initialized; or negative errno:
 * see above. */
_must_check_ int channel_receive(int socket, uint32_t version, struct channel_message *ret_message);

/*
 * Take a message apart.
 *
 * @ret_body: the struct, of @size bytes
 * @ret_text: the text, which is in the message; NULL: there is to be none
 *
 * Return: 0, or -EBADMSG if the message has another size.
 */
_must_check_ int channel_read(const struct channel_message *message, void *ret_body, size_t size,
			      const char **ret_text);
