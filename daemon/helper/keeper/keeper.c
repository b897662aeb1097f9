/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/helper/keeper/keeper.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/helper/keeper/message.h"
#include "util/peeruser.h"
#include "util/vec.h"

#define MS UINT64_C(1000000) /* in ns */

struct thing {
	struct keeper_message message; /* its name, form and sizes */
	int fd;
	void *data; /* of a perf event: its control page and its ring of records; or NULL */
	void *aux;  /* of a perf event: its AUX area; or NULL */
};

struct keeper {
	int listen_fd;
	int client_fd; /* -1: no client is connected */
	bool served;   /* the client has had a request answered */
	uid_t user;
	unsigned seconds;
	uint64_t until; /* CLOCK_MONOTONIC, in ns: when it stops waiting for a connection */
	VEC(struct thing) things;
};

static uint64_t end_of_wait(const struct keeper *k)
{
	return clock_ns(CLOCK_MONOTONIC) + k->seconds * 1000 * MS;
}

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static void thing_deinit(struct thing *thing)
{
	if (thing->aux)
		(void)munmap(thing->aux, thing->message.aux_size);
	if (thing->data)
		(void)munmap(thing->data, page_size() + thing->message.data_size);
	(void)fd_close(thing->fd);
}

static int map_part(int fd, size_t size, size_t offset, void **ret_at)
{
	void *at = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, (off_t)offset);

	if (at == MAP_FAILED)
		return -errno;
	*ret_at = at;
	return 0;
}

/* Map the rings of a perf event as ptd has mapped them: the kernel refuses other sizes. */
static int map_rings(struct thing *thing)
{
	const struct keeper_message *m = &thing->message;
	const size_t data_size = page_size() + m->data_size;
	int r = 0;

	if (m->data_size > 0)
		r = map_part(thing->fd, data_size, 0, &thing->data);
	if (r == 0 && m->aux_size > 0)
		r = map_part(thing->fd, m->aux_size, data_size, &thing->aux);
	return r;
}

static void keeper_deinit(struct keeper *k)
{
	vec_deinit_each(&k->things, thing, thing_deinit(thing));
	(void)fd_close(k->client_fd);
	(void)fd_close(k->listen_fd);
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
	thing_deinit(thing);
	*thing = k->things.items[--k->things.n];
	return 0;
}

/* Takes the descriptor. What was kept under the same name is closed after the new one is mapped:
 * both may be the same event, and its rings are gone with their last mapping. */
static int keep_thing(struct keeper *k, const struct keeper_message *message, int fd)
{
	struct thing *known = find_thing(k, message->name);
	struct thing thing = { .message = *message, .fd = fd };
	int r = fd < 0 ? -EBADF : 0;

	if (r == 0 && !known && k->things.n == KEEPER_THINGS_MAX)
		r = -ENOSPC;
	if (r == 0)
		r = vec_reserve(&k->things, 1);
	if (r == 0)
		r = map_rings(&thing);
	if (r < 0) {
		thing_deinit(&thing);
		return r;
	}
	/* The items may have moved. */
	known = find_thing(k, message->name);
	if (known)
		thing_deinit(known);
	else
		known = &k->things.items[k->things.n++];
	*known = thing;
	known->message.verb = KEEPER_KEPT;
	return 0;
}

static int give_things(struct keeper *k)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < k->things.n; i++)
		r = keeper_send(k->client_fd, &k->things.items[i].message, k->things.items[i].fd);
	return r;
}

/* Takes the descriptor if it is kept. Return: 0 and what to answer; or negative errno: the client
 * is to go. */
static int answer_request(struct keeper *k, const struct keeper_message *message, int *fd,
			  int *ret_status)
{
	*ret_status = 0;
	switch (message->verb) {
	case KEEPER_KEEP:
		*ret_status = keep_thing(k, message, *fd);
		*fd = -1;
		return 0;
	case KEEPER_DROP:
		*ret_status = drop_thing(k, message->name);
		return 0;
	case KEEPER_GIVE:
		return give_things(k);
	case KEEPER_WAIT:
		k->seconds = message->seconds;
		return 0;
	default: /* an answer */
		return -EBADMSG;
	}
}

static void serve_client(struct keeper *k)
{
	_cleanup_(fd_closep) int fd = -1;
	struct keeper_message message;
	int r, status;

	r = keeper_receive(k->client_fd, &message, &fd);
	if (r == 0)
		r = answer_request(k, &message, &fd, &status);
	if (r == 0)
		r = keeper_send(k->client_fd,
				&(struct keeper_message){ .verb = KEEPER_DONE, .status = status },
				-1);
	k->served = k->served || r == 0;
	if (r == 0)
		return;
	/* A client that the keeper does not understand, such as a ptd of another version, comes
	 * again and again. It must not keep the keeper from ending. */
	k->client_fd = fd_close(k->client_fd);
	if (k->served)
		k->until = end_of_wait(k);
}

static void accept_client(struct keeper *k)
{
	k->served = false;
	k->client_fd = accept4(k->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	if (k->client_fd >= 0 && !peeruser_is(k->client_fd, k->user))
		k->client_fd = fd_close(k->client_fd);
}

int keeper_run(int listen_fd, uid_t user, unsigned seconds)
{
	_cleanup_(keeper_deinit) struct keeper k = {
		.listen_fd = listen_fd, .client_fd = -1, .user = user, .seconds = seconds
	};

	k.until = end_of_wait(&k);
	for (;;) {
		const bool busy = k.client_fd >= 0;
		struct pollfd wanted = { .fd = busy ? k.client_fd : k.listen_fd, .events = POLLIN };
		const int n = poll(&wanted, 1, busy ? -1 : clock_ms_until(k.until));

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0 && busy)
			serve_client(&k);
		else if (n > 0)
			accept_client(&k);
		else if (n == 0 && clock_ns(CLOCK_MONOTONIC) >= k.until)
			return 0;
	}
}
