/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Passing descriptors
 *
 * Messages of one size, each with or without a descriptor, over a SOCK_SEQPACKET socket between a
 * confined process and the process that opens files for it.
 *
 * Source: unix(7), SCM_RIGHTS.
 */

#include <stddef.h>

#include "base/base.h"

/*
 * Send the message of @size bytes by write(2), which a confined process may use.
 *
 * Return: 0; -EPIPE, without the signal, if the other end is gone; or negative errno.
 */
_must_check_ int fdpass_ask(int socket, const void *message, size_t size);

/* Send the message, together with @fd unless that is -1. Return: 0, or negative errno. */
_must_check_ int fdpass_send(int socket, const void *message, size_t size, int fd);

/*
 * Wait for a message of @size bytes. On failure @ret_message is undefined.
 *
 * Return: 0 and @ret_fd, which the caller closes, or -1 if no descriptor came; -EPIPE if the other
 *         end is gone or sent something else; or another negative errno.
 */
_must_check_ int fdpass_receive(int socket, void *ret_message, size_t size, int *ret_fd);
