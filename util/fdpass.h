/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Passing descriptors
 *
 * Messages, each with a few descriptors or none, over a SOCK_SEQPACKET socket between a process
 * that may open files and one that may not. The socket keeps the messages apart, and says whether
 * the calls wait.
 *
 * Source: unix(7), SCM_RIGHTS.
 */

#include <stddef.h>

#include "base/base.h"

#define FDPASS_MAX 2u /* descriptors in a message */

struct iovec;

/*
 * Send the message of @size bytes by write(2), which a confined process may use.
 *
 * Return: 0; -EPIPE, without the signal, if the other end is gone; or negative errno.
 */
_must_check_ int fdpass_ask(int socket, const void *message, size_t size);

/* Send the message, together with @fd unless that is -1. Return: 0, or negative errno. */
_must_check_ int fdpass_send(int socket, const void *message, size_t size, int fd);

/*
 * Receive a message of @size bytes. On failure @ret_message is undefined.
 *
 * Return: 0 and @ret_fd, which the caller closes, or -1 if no descriptor came; -EPIPE if the other
 *         end is gone or sent something else; or another negative errno.
 */
_must_check_ int fdpass_receive(int socket, void *ret_message, size_t size, int *ret_fd);

/* Send the parts as one message, together with those of the descriptors that are not -1. Return: 0,
 * or negative errno. */
_must_check_ int fdpass_send_parts(int socket, const struct iovec *parts, size_t n_parts,
				   const int *fds, size_t n_fds);

/*
 * Receive a message of at most @size bytes and @n_fds descriptors, which the caller closes. The
 * rest of @ret_fds is -1.
 *
 * Return: 0 and its size; -EPIPE if the other end is gone; -EBADMSG if the message is longer or has
 *         more descriptors, which are closed; or another negative errno.
 */
_must_check_ int fdpass_receive_parts(int socket, void *ret_message, size_t size, size_t *ret_size,
				      int *ret_fds, size_t n_fds);
