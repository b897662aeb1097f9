/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/control/server.h"

#include <errno.h>
#include <grp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>
#include <systemd/sd-id128.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/control/interface.h"
#include "ptd/control.h"
#include "util/dirs.h"
#include "util/vec.h"

/* If there are more connections, the oldest one goes that does not wait for a snapshot. */
#define PEERS_MAX 128u

#define AGAIN_US   UINT64_C(1000000) /* after a connection that could not be accepted */
#define GROUPS_MAX 65536u            /* supplementary groups of a client */

/* One connection. */
struct peer {
	struct server *server;
	struct interface_peer interface;
	sd_bus *bus;
	bool has_called; /* its first message was seen */
};

struct server {
	struct interface interface;
	sd_event *event;
	sd_event_source *listen;
	sd_event_source *again;   /* on while none can be accepted */
	sd_event_source *reap;    /* frees connections that have ended */
	sd_event_source *first;   /* runs after whatever else the event loop did */
	VEC(struct peer *) peers; /* in the order in which they came */
};

/* --- who asks -------------------------------------------------------------------------------- */

/* Return: whether the peer had the group when it connected, as its own or as a supplementary
 * one. */
static bool has_group(int fd, const struct ucred *peer, gid_t gid)
{
	_cleanup_(freep) gid_t *groups = NULL;
	socklen_t size = 0;

	if (peer->gid == gid)
		return true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &size) == 0 || errno != ERANGE ||
	    size > GROUPS_MAX * sizeof(gid_t))
		return false;
	groups = malloc(size);
	if (!groups || getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) < 0)
		return false;
	for (size_t i = 0; i < size / sizeof(gid_t); i++)
		if (groups[i] == gid)
			return true;
	return false;
}

/* The mode of the socket keeps others away; this holds whatever its mode is. */
static bool may_call(int fd, const struct ucred *peer)
{
	const struct group *group;

	if (peer->uid == 0 || peer->uid == geteuid())
		return true;
	group = getgrnam(PTD_CONTROL_GROUP);
	return group && has_group(fd, peer, group->gr_gid);
}

/* --- connections ----------------------------------------------------------------------------- */

static void peer_free(struct peer *peer)
{
	waiters_forget(&peer->server->interface.waiters, peer->bus);
	(void)sd_bus_close_unref(peer->bus);
	free(peer);
}

static void drop_peer(struct server *s, size_t i)
{
	peer_free(s->peers.items[i]);
	s->peers.n--;
	memmove(s->peers.items + i, s->peers.items + i + 1,
		(s->peers.n - i) * sizeof(struct peer *));
}

static int on_reap(sd_event_source *source, void *userdata)
{
	struct server *s = userdata;

	for (size_t i = s->peers.n; i-- > 0;)
		if (sd_bus_is_open(s->peers.items[i]->bus) <= 0)
			drop_peer(s, i);
	return 0;
}

/* sd-bus makes this message itself when the client has gone. The connection is in use until this
 * returns. */
static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct peer *peer = userdata;

	peer->has_called = true;
	if (sd_bus_message_is_signal(m, "org.freedesktop.DBus.Local", "Disconnected") > 0)
		(void)sd_event_source_set_enabled(peer->server->reap, SD_EVENT_ONESHOT);
	return 0;
}

/*
 * A client may send its first message together with the end of its authentication. sd-bus (252)
 * reads both at once, looks at the end of the authentication only, and then waits for more to
 * read. So it is asked to go on.
 */
static int on_first(sd_event_source *source, void *userdata)
{
	const struct server *s = userdata;

	for (size_t i = 0; i < s->peers.n; i++)
		if (!s->peers.items[i]->has_called)
			(void)sd_bus_process(s->peers.items[i]->bus, NULL);
	return 0;
}

static void make_peer_room(struct server *s)
{
	size_t oldest = 0;

	if (s->peers.n < PEERS_MAX)
		return;
	while (oldest + 1 < s->peers.n &&
	       waiters_has(&s->interface.waiters, s->peers.items[oldest]->bus))
		oldest++;
	log_warning("there are too many clients: cut off process %d of user %u",
		    (int)s->peers.items[oldest]->interface.caller.pid,
		    (unsigned)s->peers.items[oldest]->interface.caller.uid);
	drop_peer(s, oldest);
}

/* Speak D-Bus over @fd, which is the connection's from then on. */
static int start_bus(struct peer *peer, sd_event *event, int fd)
{
	sd_id128_t id;
	int r;

	r = sd_bus_new(&peer->bus);
	if (r >= 0)
		r = sd_bus_set_fd(peer->bus, fd, fd);
	if (r < 0) {
		(void)fd_close(fd);
		return r;
	}
	/* The kernel has said who the client is; what the client says of itself does not matter. */
	if ((r = sd_id128_randomize(&id)) < 0 || (r = sd_bus_set_server(peer->bus, true, id)) < 0 ||
	    (r = sd_bus_set_anonymous(peer->bus, true)) < 0 ||
	    (r = sd_bus_negotiate_fds(peer->bus, true)) < 0 ||
	    (r = sd_bus_add_filter(peer->bus, NULL, on_message, peer)) < 0 ||
	    (r = interface_attach(peer->bus, &peer->interface)) < 0 ||
	    (r = sd_bus_start(peer->bus)) < 0)
		return r;
	return sd_bus_attach_event(peer->bus, event, SD_EVENT_PRIORITY_NORMAL);
}

static int peer_new(struct server *s, int fd, const struct ucred *ucred)
{
	struct peer *peer = malloc(sizeof(*peer));
	int r;

	if (!peer) {
		(void)fd_close(fd);
		return -ENOMEM;
	}
	*peer = (struct peer){ .server = s, .interface = { .interface = &s->interface } };
	caller_init(&peer->interface.caller, ucred->uid, ucred->gid, ucred->pid);
	r = start_bus(peer, s->event, fd);
	if (r < 0) {
		peer_free(peer);
		return r;
	}
	make_peer_room(s);
	s->peers.items[s->peers.n++] = peer; /* there is room */
	return 0;
}

/* Admit the new connection @fd, which is taken over. */
static int admit_peer(struct server *s, int fd)
{
	struct ucred ucred;
	socklen_t size = sizeof(ucred);
	int r;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &ucred, &size) < 0) {
		r = -errno;
		(void)fd_close(fd);
		return r;
	}
	if (may_call(fd, &ucred))
		return peer_new(s, fd, &ucred);
	log_warning("refused a client of user %u, who is not in group " PTD_CONTROL_GROUP,
		    (unsigned)ucred.uid);
	(void)fd_close(fd);
	return 0;
}

static int on_again(sd_event_source *source, uint64_t usec, void *userdata)
{
	const struct server *s = userdata;

	return sd_event_source_set_enabled(s->listen, SD_EVENT_ON);
}

static int on_connect(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct server *s = userdata;
	int connection, r;

	connection = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (connection < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED))
		return 0;
	r = connection < 0 ? -errno : admit_peer(s, connection);
	if (r >= 0)
		return 0;
	(void)log_warning_errno(r, "cannot talk with a new client: %m");
	/* If there are no descriptors, accepting would fail again at once. */
	(void)sd_event_source_set_time_relative(s->again, AGAIN_US);
	(void)sd_event_source_set_enabled(s->again, SD_EVENT_ONESHOT);
	return sd_event_source_set_enabled(source, SD_EVENT_OFF);
}

int server_new(sd_event *event, const struct recorder *recorder, int listen_fd,
	       struct server **ret_server)
{
	_cleanup_(server_freep) struct server *s = calloc(1, sizeof(*s));
	int r;

	if (!s) {
		(void)fd_close(listen_fd);
		return -ENOMEM;
	}
	s->interface.recorder = *recorder;
	s->event = sd_event_ref(event);
	r = sd_event_add_io(event, &s->listen, listen_fd, EPOLLIN, on_connect, s);
	if (r < 0) {
		(void)fd_close(listen_fd);
		return r;
	}
	if ((r = sd_event_source_set_io_fd_own(s->listen, true)) < 0 ||
	    (r = sd_event_add_time(event, &s->again, CLOCK_MONOTONIC, 0, 0, on_again, s)) < 0 ||
	    (r = sd_event_source_set_enabled(s->again, SD_EVENT_OFF)) < 0 ||
	    (r = sd_event_add_defer(event, &s->reap, on_reap, s)) < 0 ||
	    (r = sd_event_source_set_enabled(s->reap, SD_EVENT_OFF)) < 0 ||
	    (r = sd_event_add_post(event, &s->first, on_first, s)) < 0 ||
	    (r = vec_reserve(&s->peers, PEERS_MAX)) < 0)
		return r;
	*ret_server = TAKE(s);
	return 0;
}

struct server *server_free(struct server *server)
{
	if (!server)
		return NULL;

	sd_event_source_disable_unref(server->listen);
	sd_event_source_disable_unref(server->again);
	sd_event_source_disable_unref(server->reap);
	sd_event_source_disable_unref(server->first);
	vec_deinit_each(&server->peers, peer, peer_free(*peer));
	waiters_deinit(&server->interface.waiters);
	(void)sd_event_unref(server->event);
	free(server);
	return NULL;
}

void server_job_done(struct server *server, const struct job *job)
{
	interface_job_done(&server->interface, job);
}

/* --- listen ----------------------------------------------------------------------------------- */

#define SOCKET_NAME "control"

static int bind_at(const struct sockaddr_un *address, int *ret_fd)
{
	_cleanup_(fd_closep) int fd =
	    socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const struct group *group;

	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
		return -errno;
	/* For the group, if it is the system's recorder; a user's own is for that user. */
	group = geteuid() == 0 ? getgrnam(PTD_CONTROL_GROUP) : NULL;
	if ((group && chown(address->sun_path, (uid_t)-1, group->gr_gid) < 0) ||
	    chmod(address->sun_path, 0660) < 0 || listen(fd, SOMAXCONN) < 0)
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* Return: whether the process that made the socket has ended. */
static bool is_dead(const struct sockaddr_un *address)
{
	_cleanup_(fd_closep) int fd =
	    socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 &&
	       errno == ECONNREFUSED;
}

int listen_control(const char *runtime_dir, int *ret_fd, char **ret_path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char *path;
	int r;

	r = sd_listen_fds(1);
	if (r > 1 ||
	    (r == 1 && sd_is_socket_unix(SD_LISTEN_FDS_START, SOCK_STREAM, 1, NULL, 0) <= 0))
		return -EINVAL;
	if (r < 0)
		return r;
	if (r == 1) {
		*ret_fd = SD_LISTEN_FDS_START;
		*ret_path = NULL;
		return 0;
	}

	if ((size_t)snprintf(address.sun_path, sizeof(address.sun_path), "%s/" SOCKET_NAME,
			     runtime_dir) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	r = dirs_make_public(runtime_dir);
	if (r < 0)
		return r;
	path = strdup(address.sun_path);
	if (!path)
		return -ENOMEM;
	r = bind_at(&address, ret_fd);
	if (r == -EADDRINUSE && is_dead(&address) && unlink(path) == 0)
		r = bind_at(&address, ret_fd);
	if (r < 0) {
		free(path);
		return r;
	}
	*ret_path = path;
	return 0;
}
