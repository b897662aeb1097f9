/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Peer user
 *
 * Whose process is at the other end of a Unix socket, as the kernel says.
 */

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Return: whether it ran as @user when it connected, or began to listen. */
static inline bool peeruser_is(int socket, uid_t user)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == user;
}
