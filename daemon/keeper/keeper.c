/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/keeper/keeper.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "daemon/keeper/message.h"
#include "util/fdpass.h"
#include "util/vec.h"

#define MS UINT64_C(1000000) /* in ns */

struct thing {
	struct keeper_message message; /* its name and form */
	int fd;
};

struct keeper {
	int listen_fd;
	int client_fd; /* -1: nobody is connected */
	uid_t user;
	unsigned seconds;
	uint64_t until; /* CLOCK_MONOTONIC, in ns: when it stops waiting for a connection */
	VEC(struct thing) things;
};

static uint64_t end_of_wait(const struct keeper *k)
{
	return clock_ns(CLOCK_MONOTONIC) + k->seconds * 1000 * MS;
}

int keeper_new(int listen_fd, uid_t user, unsigned seconds, struct keeper **ret_keeper)
{
	struct keeper *k = malloc(sizeof(*k));

	if (!k)
		return -ENOMEM;
	*k = (struct keeper){
		.listen_fd = listen_fd, .client_fd = -1, .user = user, .seconds = seconds
	};
	k->until = end_of_wait(k);
	*ret_keeper = k;
	return 0;
}

struct keeper *keeper_free(struct keeper *keeper)
{
	if (!keeper)
		return NULL;
	for (size_t i = 0; i < keeper->things.n; i++)
		(void)fd_close(keeper->things.items[i].fd);
	vec_deinit(&keeper->things);
	(void)fd_close(keeper->client_fd);
	(void)fd_close(keeper->listen_fd);
	free(keeper);
	return NULL;
}

static struct thing *find_thing(const struct keeper *k, const char *name)
{
	for (size_t i = 0; i < k->things.n; i++)
		if (strcmp(k->things.items[i].message.name, name) == 0)
			return &k->things.items[i];
	return NULL;
}

static int drop_thing(struct keeper *k, const char *name)
{
	struct thing *thing = find_thing(k, name);

	if (!thing)
		return -ENOENT;
	(void)fd_close(thing->fd);
	*thing = k->things.items[--k->things.n];
	return 0;
}

/* Takes the descriptor. */
static int keep_thing(struct keeper *k, const struct keeper_message *message, int fd)
{
	struct thing *known = find_thing(k, message->name);
	int r = fd < 0 ? -EBADF : 0;

	if (r == 0 && !known && k->things.n == KEEPER_THINGS_MAX)
		r = -ENOSPC;
	if (r == 0 && !known)
		r = vec_reserve(&k->things, 1);
	if (r < 0) {
		(void)fd_close(fd);
		return r;
	}
	if (known)
		(void)fd_close(known->fd);
	else
		known = &k->things.items[k->things.n++];
	*known = (struct thing){ .message = *message, .fd = fd };
	known->message.verb = KEEPER_KEPT;
	return 0;
}

static int give_things(struct keeper *k)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < k->things.n; i++)
		r = fdpass_send(k->client_fd, &k->things.items[i].message,
				sizeof(k->things.items[i].message), k->things.items[i].fd);
	return r;
}

/* Takes the descriptor. Return: 0 and what to answer; or negative errno: the client is to go. */
static int answer_request(struct keeper *k, const struct keeper_message *message, int fd,
			  int *ret_status)
{
	int status = 0, r = 0;

	switch (message->verb) {
	case KEEPER_KEEP:
		status = keep_thing(k, message, fd);
		break;
	case KEEPER_DROP:
		(void)fd_close(fd);
		status = drop_thing(k, message->name);
		break;
	case KEEPER_GIVE:
		(void)fd_close(fd);
		r = give_things(k);
		break;
	case KEEPER_WAIT:
		(void)fd_close(fd);
		k->seconds = message->seconds;
		break;
	default: /* an answer */
		(void)fd_close(fd);
		r = -EBADMSG;
	}
	*ret_status = status;
	return r;
}

static void serve_client(struct keeper *k)
{
	struct keeper_message message;
	int fd, r, status;

	r = fdpass_receive(k->client_fd, &message, sizeof(message), &fd);
	if (r == 0) {
		r = keeper_message_check(&message);
		if (r < 0)
			(void)fd_close(fd);
		else
			r = answer_request(k, &message, fd, &status);
	}
	if (r == 0) {
		message = (struct keeper_message){ .version = KEEPER_VERSION,
						   .verb = KEEPER_DONE,
						   .status = status };
		r = fdpass_send(k->client_fd, &message, sizeof(message), -1);
	}
	if (r < 0) {
		k->client_fd = fd_close(k->client_fd);
		k->until = end_of_wait(k);
	}
}

static void accept_client(struct keeper *k)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	k->client_fd = accept4(k->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	if (k->client_fd >= 0 &&
	    (getsockopt(k->client_fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 ||
	     peer.uid != k->user))
		k->client_fd = fd_close(k->client_fd);
}

/* Return: how long poll() may wait, in ms; -1: as long as it takes. */
static int time_left(const struct keeper *k)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (k->client_fd >= 0)
		return -1;
	if (now >= k->until)
		return 0;
	return (k->until - now) / MS < INT_MAX ? (int)((k->until - now) / MS) + 1 : INT_MAX;
}

int keeper_run(struct keeper *keeper)
{
	struct keeper *k = keeper;

	for (;;) {
		const bool busy = k->client_fd >= 0;
		struct pollfd wanted = { .fd = busy ? k->client_fd : k->listen_fd,
					 .events = POLLIN };
		const int n = poll(&wanted, 1, time_left(k));

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0 && busy)
			serve_client(k);
		else if (n > 0)
			accept_client(k);
		else if (n == 0 && clock_ns(CLOCK_MONOTONIC) >= k->until)
			return 0;
	}
}
