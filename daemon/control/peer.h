/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Peer
 *
 * One client's connection. sd-bus answers its calls but would let it send 128 MiB at once, pass
 * any number of descriptors with them, take 90 seconds to authenticate itself, and leave 192 Ki
 * answers unread. So what the client sends is read here, without descriptors, and sd-bus gets it
 * whole message by whole message, through a pair of sockets, none before the answers to the last
 * one have left. What it answers goes to the client directly.
 *
 * A client is cut off if it
 *   - sends a descriptor, something that is not D-Bus, or a message of more than FRAME_SIZE_MAX;
 *   - does not authenticate itself, complete a message or take its answers within PEER_PATIENCE_US.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"
#include "daemon/proc/caller.h"

#define PEER_PATIENCE_US UINT64_C(5000000)

/* In the event loop, of newcomers; those that ask much come after them. */
#define PEER_PRIORITY 5

struct interface;
struct peer;
typedef struct sd_event sd_event;

/* The connection has come to its end and is to be freed. @why: NULL if the client ended it. */
typedef void (*peer_ended_fn)(struct peer *peer, const char *why, void *userdata);

struct peer_options {
	struct interface *interface; /* borrowed */
	struct caller caller;        /* whose process connected */
	bool allowed;                /* is answered with more than AccessDenied */
	peer_ended_fn ended;
	void *userdata; /* of @ended; borrowed */
};

/* Talk with whoever is at the other end of @fd, which is taken over.  Return: 0, or negative errno:
 * the descriptor is closed then too. */
_must_check_ int peer_new(sd_event *event, int fd, const struct peer_options *options,
			  struct peer **ret_peer);

/* Hang up. Not to be called while the peer's own call is being answered. */
struct peer *peer_free(struct peer *peer);

DEFINE_CLEANUP(struct peer *, peer_free);

uid_t peer_uid(const struct peer *peer);
pid_t peer_pid(const struct peer *peer);
bool peer_allowed(const struct peer *peer);

/* Return: why it is to be cut off at the time @now_us (CLOCK_MONOTONIC), or NULL. */
const char *peer_overdue(const struct peer *peer, uint64_t now_us);

/* Return: how much is lost if it is cut off to make room; the least of all is cut off. Its process
 * has @n_connections. */
uint64_t peer_worth(const struct peer *peer, unsigned n_connections);

/* It may ask again before those who have asked more. To be called now and then for all: else old
 * clients would wait, and those of them that are gone stay, for as long as new ones come. */
void peer_refresh(struct peer *peer);
