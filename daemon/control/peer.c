/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/control/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>
#include <systemd/sd-id128.h>

#include "daemon/control/frame.h"
#include "daemon/control/interface.h"

/* Bytes of unread replies that the kernel keeps. sd-bus would make it 8 MiB. */
#define SEND_BUFFER_SIZE (128 << 10)

/* Number of lines that a client may send to authenticate itself. Five suffice. */
#define LINES_MAX 16u

/* After so many calls, a client comes after those that have made fewer, until peer_refresh(). */
#define CALLS_FRESH 8u

/* Number of connections of a process beyond which they are worth less than those of others. */
#define DECENT_MAX 4u

/* Priority in the event loop of a connection that is not fresh. */
#define PRIORITY_OLD 10

struct peer {
	struct interface_peer interface;
	struct peer_options options;
	sd_bus *bus;
	sd_event_source *io;   /* of the client's socket, which it owns */
	sd_event_source *turn; /* sd-bus gets one more message */
	int client_fd;         /* borrowed from @io */
	int inlet_fd;          /* sd-bus reads what is written here */

	bool begun;        /* authentication is complete, and messages follow */
	bool called;       /* a message has come */
	bool closed;       /* the client will send nothing more */
	unsigned n_frames; /* lines so far, or messages */
	uint64_t frame_us; /* when the last line or message came */
	size_t n_bytes;    /* that were received and not passed to sd-bus yet */
	uint8_t bytes[FRAME_SIZE_MAX];
};

static uint64_t now_us(const struct peer *p)
{
	uint64_t now = 0;

	(void)sd_event_now(sd_event_source_get_event(p->io), CLOCK_MONOTONIC, &now);
	return now;
}

/* Return: whether there are replies that the client has not read yet, and that the kernel has no
 * room for. */
static bool is_clogged(const struct peer *p)
{
	const int events = p->bus ? sd_bus_get_events(p->bus) : 0;

	return events < 0 || events & EPOLLOUT;
}

/* --- sd-bus ----------------------------------------------------------------------------------- */

/* Pass two sockets to sd-bus: one that the peer writes to, and the client's, to write replies
 * to. */
static int connect_bus(struct peer *p)
{
	_cleanup_(fd_closep) int out = -1;
	int pair[2], r;

	out = fcntl(p->client_fd, F_DUPFD_CLOEXEC, 3);
	if (out < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return -errno;
	p->inlet_fd = pair[0];
	r = sd_bus_set_fd(p->bus, pair[1], out);
	if (r < 0)
		(void)fd_close(pair[1]);
	else
		out = -1;
	return r;
}

static int start_bus(struct peer *p)
{
	const int size = SEND_BUFFER_SIZE;
	sd_id128_t id;
	int r;

	if ((r = sd_bus_new(&p->bus)) < 0 || (r = connect_bus(p)) < 0)
		return r;
	/* The kernel has said who the client is; what the client says of itself does not matter. */
	if ((r = sd_id128_randomize(&id)) < 0 || (r = sd_bus_set_server(p->bus, true, id)) < 0 ||
	    (r = sd_bus_set_anonymous(p->bus, true)) < 0 ||
	    (r = sd_bus_negotiate_fds(p->bus, true)) < 0 ||
	    (r = interface_attach(p->bus, &p->interface)) < 0 || (r = sd_bus_start(p->bus)) < 0)
		return r;
	return setsockopt(p->client_fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) < 0 ? -errno
											: 0;
}

/* --- what the client sends ------------------------------------------------------------------- */

/* Return: NULL, or why the client is to be cut off. */
static const char *receive(struct peer *p)
{
	struct iovec space = { p->bytes + p->n_bytes, sizeof(p->bytes) - p->n_bytes };
	/* Without room for control data, the kernel drops descriptors, and sets MSG_CTRUNC. */
	struct msghdr m = { .msg_iov = &space, .msg_iovlen = 1 };
	ssize_t n;

	n = recvmsg(p->client_fd, &m, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return NULL;
	if (n >= 0 && m.msg_flags & MSG_CTRUNC)
		return "it passes descriptors";
	if (n <= 0)
		p->closed = true;
	else
		p->n_bytes += (size_t)n;
	return NULL;
}

/* Pass the first line or message that was received to sd-bus. Return: 1; 0 if it is not complete;
 * or negative errno. */
static int hand_on(struct peer *p)
{
	const bool begun = p->begun;
	size_t size;
	int r;

	r = frame_next(p->bytes, p->n_bytes, &p->begun, &size);
	if (r <= 0)
		return r;
	/* Only now is sd-bus set up, because most malicious clients do not come this far. */
	if (!p->bus) {
		r = start_bus(p);
		if (r < 0)
			return r;
	}
	/* sd-bus has read everything that was passed to it before, so there is room. */
	if (send(p->inlet_fd, p->bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)size)
		return -ENOBUFS;
	p->n_bytes -= size;
	memmove(p->bytes, p->bytes + size, p->n_bytes);
	p->frame_us = now_us(p);
	p->called = begun;
	if (begun != p->begun)
		p->n_frames = 0;
	else if (++p->n_frames > LINES_MAX && !begun)
		return -EBADMSG;
	return 1;
}

/* --- its turn -------------------------------------------------------------------------------- */

static int end_peer(struct peer *p, const char *why)
{
	p->options.ended(p, why, p->options.userdata);
	return 0;
}

/* Let sd-bus process what it has. Return: whether the connection is still open. */
static bool process(struct peer *p)
{
	int r;

	if (!p->bus)
		return true;
	do
		r = sd_bus_process(p->bus, NULL);
	while (r > 0);
	return r == 0 && sd_bus_is_open(p->bus) > 0;
}

static void set_priority(struct peer *p, int64_t priority)
{
	(void)sd_event_source_set_priority(p->io, priority);
	(void)sd_event_source_set_priority(p->turn, priority);
}

static int take_turn(struct peer *p)
{
	int r = 0;

	if (!process(p))
		return end_peer(p, "it breaks the rules of D-Bus");
	if (!is_clogged(p)) {
		/* All lines of the authentication are processed in one turn. */
		while ((r = hand_on(p)) > 0 && !p->begun)
			;
		if (r == -EMSGSIZE)
			return end_peer(p, "its message is too long");
		if (r == -EBADMSG)
			return end_peer(p, "it does not speak D-Bus");
		if (r < 0)
			return end_peer(p, "there is no memory or descriptor for it");
	}
	if (!process(p))
		return end_peer(p, "it breaks the rules of D-Bus");
	if (r == 0 && p->closed)
		return end_peer(p, NULL);
	if (p->begun && p->n_frames == CALLS_FRESH)
		set_priority(p, PRIORITY_OLD);
	/* More may have been received already, but other clients come first. */
	return sd_event_source_set_enabled(p->turn, r > 0 ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

static int on_turn(sd_event_source *source, void *userdata)
{
	(void)source;
	return take_turn(userdata);
}

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct peer *p = userdata;
	const char *why;

	(void)source;
	(void)fd;
	if (revents & EPOLLIN) {
		why = receive(p);
		if (why)
			return end_peer(p, why);
	} else if (revents & (EPOLLHUP | EPOLLERR)) {
		/* What the client requested before it disconnected is done all the same. */
		if (is_clogged(p))
			return end_peer(p, NULL);
		p->closed = true;
	}
	return take_turn(p);
}

/* Set what the event loop is to wait for. */
static int on_prepare(sd_event_source *source, void *userdata)
{
	struct peer *p = userdata;
	int turn = SD_EVENT_OFF;
	uint32_t events = 0;

	(void)sd_event_source_get_enabled(p->turn, &turn);
	if (is_clogged(p))
		events = EPOLLOUT;
	else if (turn == SD_EVENT_OFF && !p->closed && p->n_bytes < sizeof(p->bytes))
		events = EPOLLIN;
	return sd_event_source_set_io_events(source, events);
}

/* --- life ------------------------------------------------------------------------------------ */

/* Watch the client's socket @fd, which is taken over. */
static int watch_peer(struct peer *p, sd_event *event, int fd)
{
	int r;

	r = sd_event_add_io(event, &p->io, fd, EPOLLIN, on_io, p);
	if (r < 0) {
		(void)fd_close(fd);
		return r;
	}
	p->client_fd = fd;
	if ((r = sd_event_source_set_io_fd_own(p->io, true)) < 0 ||
	    (r = sd_event_source_set_prepare(p->io, on_prepare)) < 0 ||
	    (r = sd_event_source_set_priority(p->io, PEER_PRIORITY)) < 0 ||
	    (r = sd_event_add_defer(event, &p->turn, on_turn, p)) < 0 ||
	    (r = sd_event_source_set_priority(p->turn, PEER_PRIORITY)) < 0)
		return r;
	return sd_event_source_set_enabled(p->turn, SD_EVENT_OFF);
}

int peer_new(sd_event *event, int fd, const struct peer_options *options, struct peer **ret_peer)
{
	_cleanup_(peer_freep) struct peer *p = malloc(sizeof(*p));
	int r;

	if (!p) {
		(void)fd_close(fd);
		return -ENOMEM;
	}
	*p = (struct peer){
		.interface = { .interface = options->interface,
			       .caller = options->caller,
			       .access = options->access },
		.options = *options,
		.client_fd = -1,
		.inlet_fd = -1,
	};
	r = watch_peer(p, event, fd);
	if (r < 0)
		return r;
	p->frame_us = now_us(p);
	*ret_peer = TAKE(p);
	return 0;
}

struct peer *peer_free(struct peer *peer)
{
	if (!peer)
		return NULL;

	waiters_forget(&peer->options.interface->waiters, peer->bus);
	sd_event_source_disable_unref(peer->turn);
	sd_event_source_disable_unref(peer->io);
	(void)sd_bus_close_unref(peer->bus);
	peer->inlet_fd = fd_close(peer->inlet_fd);
	free(peer);
	return NULL;
}

uid_t peer_uid(const struct peer *peer)
{
	return peer->options.caller.uid;
}

pid_t peer_pid(const struct peer *peer)
{
	return peer->options.caller.pid;
}

enum access peer_access(const struct peer *peer)
{
	return peer->options.access;
}

bool peer_overdue(const struct peer *peer, uint64_t now, const char **ret_why)
{
	const char *why = NULL;

	if (now < peer->frame_us + PEER_PATIENCE_US)
		return false;
	if (!peer->begun)
		why = "it does not authenticate itself";
	else if (is_clogged(peer))
		why = "it does not read its replies";
	else if (peer->n_bytes > 0)
		why = "it does not complete its message";
	else if (peer->options.access == ACCESS_ALL ||
		 waiters_has(&peer->options.interface->waiters, peer->bus))
		return false;
	else if (!peer->called)
		why = "it asks for nothing, and may not stay connected";
	*ret_why = why;
	return true;
}

/* A connection of a process that has too many is worth least; otherwise a few processes that
 * connect repeatedly would push out slow clients, for instance one that gets no CPU. Then come
 * connections that have sent nothing yet; those that wait for a snapshot are worth most. Among
 * equals, the one that sent something last is worth most. */
uint64_t peer_worth(const struct peer *peer, unsigned n_connections)
{
	const uint64_t n_beyond = n_connections > DECENT_MAX ? n_connections - DECENT_MAX : 0;
	const uint64_t rank = !peer->begun                                                ? 0
			      : waiters_has(&peer->options.interface->waiters, peer->bus) ? 2
											  : 1;

	return (UINT8_MAX - n_beyond) << 56 | rank << 54 |
	       (peer->frame_us & ((UINT64_C(1) << 54) - 1));
}

void peer_refresh(struct peer *peer)
{
	if (!peer->begun || peer->n_frames < CALLS_FRESH)
		return;
	peer->n_frames = 0;
	set_priority(peer, PEER_PRIORITY);
}
