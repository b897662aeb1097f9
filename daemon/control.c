/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/control.h"

#include <errno.h>
#include <grp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>
#include <systemd/sd-id128.h>

#include "base/log.h"
#include "daemon/interface.h"
#include "decoder/util/vec.h"

#define PEERS_MAX  64u
#define GROUPS_MAX 65536u

struct peer {
	struct control *control; /* borrowed */
	struct interface_peer interface;
	sd_bus *bus;
	sd_event_source *kick;
};

struct control {
	struct interface interface;
	sd_event *event;
	sd_event_source *listen;
	sd_event_source *reap; /* frees @gone outside of their own callbacks */
	VEC(struct peer *) peers;
	VEC(struct peer *) gone;
};

/* --- who asks -------------------------------------------------------------------------------- */

/* Did the peer have the group when it connected, be it as its own or as a further one? */
static bool peer_has_group(int fd, const struct ucred *peer, gid_t gid)
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

static bool peer_allowed(int fd)
{
	const struct group *group;
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return false;
	if (peer.uid == 0 || peer.uid == geteuid())
		return true;
	group = getgrnam(INTERFACE_GROUP);
	return group && peer_has_group(fd, &peer, group->gr_gid);
}

/* --- connections ----------------------------------------------------------------------------- */

static struct peer *peer_free(struct peer *peer)
{
	if (!peer)
		return NULL;

	sd_event_source_disable_unref(peer->kick);
	(void)sd_bus_detach_event(peer->bus);
	(void)sd_bus_close_unref(peer->bus);
	free(peer);
	return NULL;
}

DEFINE_CLEANUP(struct peer *, peer_free);

static int on_reap(sd_event_source *source, void *userdata)
{
	struct control *c = userdata;

	(void)source;
	for (size_t i = 0; i < c->gone.n; i++)
		(void)peer_free(c->gone.items[i]);
	c->gone.n = 0;
	return 0;
}

static int on_disconnect(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct peer *peer = userdata;
	struct control *c = peer->control;

	(void)m;
	(void)error;
	interface_forget(&c->interface, peer->bus);
	for (size_t i = 0; i < c->peers.n; i++) {
		if (c->peers.items[i] != peer)
			continue;
		c->peers.items[i] = c->peers.items[--c->peers.n];
		/* There is room: what is gone was a peer before. */
		c->gone.items[c->gone.n++] = peer;
		break;
	}
	return sd_event_source_set_enabled(c->reap, SD_EVENT_ONESHOT);
}

/*
 * A client's first call may have come in one packet with the end of its authentication. sd-bus has
 * read it then, and waits for bytes that do not come.
 */
static int on_kick(sd_event_source *source, void *userdata)
{
	struct peer *peer = userdata;

	(void)source;
	while (sd_bus_process(peer->bus, NULL) > 0)
		;
	return 0;
}

static int on_authenticated(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct peer *peer = userdata;

	(void)m;
	(void)error;
	return sd_event_source_set_enabled(peer->kick, SD_EVENT_ONESHOT);
}

static int match_local(struct peer *p, const char *signal, sd_bus_message_handler_t handler)
{
	return sd_bus_match_signal(p->bus, NULL, "org.freedesktop.DBus.Local",
				   "/org/freedesktop/DBus/Local", "org.freedesktop.DBus.Local",
				   signal, handler, p);
}

/* Begin to talk with whoever is at the other end of @fd, which is taken over. */
static int peer_new(struct control *c, int fd, struct peer **ret_peer)
{
	_cleanup_(peer_freep) struct peer *p = calloc(1, sizeof(*p));
	sd_id128_t id;
	int r;

	r = p ? sd_bus_new(&p->bus) : -ENOMEM;
	if (r < 0) {
		(void)fd_close(fd);
		return r;
	}
	p->control = c;
	p->interface = (struct interface_peer){
		.interface = &c->interface,
		.allowed = peer_allowed(fd),
	};
	r = sd_bus_set_fd(p->bus, fd, fd);
	if (r < 0) {
		(void)fd_close(fd);
		return r;
	}
	if ((r = sd_id128_randomize(&id)) < 0 || (r = sd_bus_set_server(p->bus, true, id)) < 0 ||
	    (r = sd_bus_negotiate_fds(p->bus, true)) < 0 ||
	    (r = sd_bus_attach_event(p->bus, c->event, 0)) < 0 ||
	    (r = interface_attach(p->bus, &p->interface)) < 0 ||
	    (r = sd_event_add_defer(c->event, &p->kick, on_kick, p)) < 0 ||
	    (r = sd_event_source_set_enabled(p->kick, SD_EVENT_OFF)) < 0 ||
	    (r = sd_bus_set_connected_signal(p->bus, true)) < 0 ||
	    (r = match_local(p, "Connected", on_authenticated)) < 0 ||
	    (r = match_local(p, "Disconnected", on_disconnect)) < 0 ||
	    (r = sd_bus_start(p->bus)) < 0)
		return r;
	*ret_peer = TAKE(p);
	return 0;
}

static int on_connect(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct control *c = userdata;
	struct peer *peer;
	int connection, r;

	(void)source;
	(void)revents;
	connection = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (connection < 0)
		return 0;
	if (c->peers.n + c->gone.n >= PEERS_MAX) {
		log_warning("%u clients are connected already, refusing another", PEERS_MAX);
		(void)fd_close(connection);
		return 0;
	}
	r = peer_new(c, connection, &peer);
	if (r < 0) {
		errno = -r;
		log_warning("cannot talk with a new client, ignoring: %m");
		return 0;
	}
	c->peers.items[c->peers.n++] = peer;
	return 0;
}

int control_new(sd_event *event, struct manager *manager, int listen_fd,
		struct control **ret_control)
{
	_cleanup_(control_freep) struct control *c = calloc(1, sizeof(*c));
	int r;

	if (!c) {
		(void)fd_close(listen_fd);
		return -ENOMEM;
	}
	c->interface.manager = manager;
	c->event = sd_event_ref(event);
	r = sd_event_add_io(event, &c->listen, listen_fd, EPOLLIN, on_connect, c);
	if (r < 0) {
		(void)fd_close(listen_fd);
		return r;
	}
	if ((r = sd_event_source_set_io_fd_own(c->listen, true)) < 0 ||
	    (r = sd_event_add_defer(event, &c->reap, on_reap, c)) < 0 ||
	    (r = sd_event_source_set_enabled(c->reap, SD_EVENT_OFF)) < 0 ||
	    (r = vec_reserve(&c->peers, PEERS_MAX)) < 0 ||
	    (r = vec_reserve(&c->gone, PEERS_MAX)) < 0)
		return r;
	*ret_control = TAKE(c);
	return 0;
}

struct control *control_free(struct control *control)
{
	if (!control)
		return NULL;

	sd_event_source_disable_unref(control->listen);
	sd_event_source_disable_unref(control->reap);
	interface_deinit(&control->interface);
	for (size_t i = 0; i < control->gone.n; i++)
		(void)peer_free(control->gone.items[i]);
	for (size_t i = 0; i < control->peers.n; i++)
		(void)peer_free(control->peers.items[i]);
	vec_deinit(&control->gone);
	vec_deinit(&control->peers);
	(void)sd_event_unref(control->event);
	free(control);
	return NULL;
}

void control_job_done(struct control *control, const struct job *job)
{
	interface_job_done(&control->interface, job);
}
