/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Peer
 *
 * The connection of one client. sd-bus alone would let a client send 128 MiB at once, pass any
 * number of descriptors, take 90 seconds to authenticate itself, and leave 192 Ki replies unread.
 * So the peer reads what the client sends, without descriptors, and passes it to sd-bus through a
 * pair of sockets, one whole message at a time, and the next one only when all replies to it have
 * been sent. Replies of sd-bus go to the client directly.
 *
 * A client is cut off if it
 *   - sends a descriptor, something that is not D-Bus, or a message of more than FRAME_SIZE_MAX;
 *   - takes longer than PEER_PATIENCE_US to authenticate itself, to complete a message or to read
 *     its replies.
 *
 * A client that may see only what is its own may not stay connected: its connection is closed
 * PEER_PATIENCE_US after its last call, or as soon as that is answered, if that takes longer.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"
#include "daemon/control/access.h"
#include "daemon/proc/caller.h"

#define PEER_PATIENCE_US UINT64_C(5000000)

/* Priority in the event loop of a new connection. Connections that sent much come after it. */
#define PEER_PRIORITY 5

struct interface;
struct peer;
typedef struct sd_event sd_event;

/* Called when the connection has ended and is to be freed. @why is the reason why the client was
 * cut off; NULL if the client has broken no rule, but ended the connection, for instance. */
typedef void (*peer_ended_fn)(struct peer *peer, const char *why, void *userdata);

struct peer_options {
	struct interface *interface; /* borrowed */
	struct caller caller;        /* the process that connected */
	enum access access;          /* what it may see */
	peer_ended_fn ended;
	void *userdata; /* of @ended; borrowed */
};

/* Serve the client at the other end of @fd, which is taken over. Return: 0, or negative errno; the
 * descriptor is closed then, too. */
_must_check_ int peer_new(sd_event *event, int fd, const struct peer_options *options,
			  struct peer **ret_peer);

/* Close the connection. Not to be called while a call of the peer is being answered. Return:
 * NULL. */
struct peer *peer_free(struct peer *peer);

DEFINE_CLEANUP(struct peer *, peer_free);

uid_t peer_uid(const struct peer *peer);
pid_t peer_pid(const struct peer *peer);
enum access peer_access(const struct peer *peer);

/* Return: whether the connection is to be closed at the time @now_us (CLOCK_MONOTONIC). @ret_why is
 *         why the client is cut off then; NULL if it has broken no rule: all its calls are
 *         answered, and it may not stay connected. */
_must_check_ bool peer_overdue(const struct peer *peer, uint64_t now_us, const char **ret_why);

/* Return: how much is lost if the client is cut off to make room for another one. The client with
 *         the lowest value is cut off. @n_connections is the number of connections of its
 *         process. */
uint64_t peer_worth(const struct peer *peer, unsigned n_connections);

/* Give the connection the priority of a new one again. To be called from time to time for all
 * connections; otherwise old ones, even those that have ended, would wait as long as new ones
 * come. */
void peer_refresh(struct peer *peer);
