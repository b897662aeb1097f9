/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/control/server.h"

#include <assert.h>
#include <errno.h>
#include <grp.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>

#include "base/log.h"
#include "daemon/control/interface.h"
#include "daemon/control/owncalls.h"
#include "daemon/control/peer.h"
#include "daemon/control/snapshotcalls.h"
#include "daemon/share/share.h"
#include "ptd/control.h"
#include "util/vec.h"

/* Number of connections at a time: in all, of one user, and of all users who may see only what is
 * their own. If there is no room for a new one, the user who has more than his share loses the one
 * that is worth least (peer_worth()). */
#define PEERS_MAX      128u
#define PEERS_USER_MAX 96u
#define PEERS_OWN_MAX  48u
/* And of one such user. */
#define PEERS_OWN_USER_MAX 8u

static_assert(PEERS_MAX <= UINT8_MAX, "peer_worth() counts no further");

/* Of Linux 6.16; older headers lack it. */
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

#define TICK_US    UINT64_C(1000000)
#define SAY_US     UINT64_C(60000000) /* between two warnings about clients */
#define GROUP_US   UINT64_C(10000000) /* between two look-ups of the group */
#define GROUPS_MAX 65536u             /* supplementary groups of a client */

struct server {
	struct interface interface;
	sd_event *event;
	sd_event_source *listen;
	sd_event_source *tick; /* on while there are peers, or none can be accepted */
	VEC(struct peer *) peers;
	uint64_t group_us; /* when the group was last looked up */
	bool has_group;    /* the group exists, and its number is @gid */
	gid_t gid;
	unsigned n_cut_off; /* since the last warning */
	uint64_t said_us;   /* when that was logged */
};

static uint64_t now_us(const struct server *s)
{
	uint64_t now = 0;

	(void)sd_event_now(s->event, CLOCK_MONOTONIC, &now);
	return now;
}

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

/* The group is looked up only from time to time: it takes a hundred system calls, or a reply from
 * the network, and every user who may connect can cause it. */
static bool is_group(struct server *s, int fd, const struct ucred *peer)
{
	const uint64_t now = now_us(s);
	const struct group *group;

	if (s->group_us == 0 || now > s->group_us + GROUP_US) {
		group = getgrnam(PTD_CONTROL_GROUP);
		s->has_group = group != NULL;
		s->gid = group ? group->gr_gid : 0;
		s->group_us = now;
	}
	return s->has_group && has_group(fd, peer, s->gid);
}

static enum access access_of(struct server *s, int fd, const struct ucred *peer)
{
	return peer->uid == 0 || peer->uid == geteuid() || is_group(s, fd, peer) ? ACCESS_ALL
										 : ACCESS_OWN;
}

/* --- connections ----------------------------------------------------------------------------- */

/* Every user who may connect can cause this message, so it is not logged too often. */
static void warn_cut_off(struct server *s, const char *why, uid_t uid)
{
	const uint64_t now = now_us(s);

	s->n_cut_off++;
	if (s->said_us > 0 && now < s->said_us + SAY_US)
		return;
	log_warning("cut off a client of user %u because %s; %u since the last such message",
		    (unsigned)uid, why, s->n_cut_off);
	s->said_us = now;
	s->n_cut_off = 0;
}

static void drop_peer(struct server *s, struct peer *peer)
{
	for (size_t i = 0; i < s->peers.n; i++) {
		if (s->peers.items[i] != peer)
			continue;
		s->peers.items[i] = s->peers.items[--s->peers.n];
		break;
	}
	(void)peer_free(peer);
}

static void on_ended(struct peer *peer, const char *why, void *userdata)
{
	struct server *s = userdata;

	if (why)
		warn_cut_off(s, why, peer_uid(peer));
	drop_peer(s, peer);
}

static bool is_any(const struct peer *peer, uid_t uid)
{
	(void)peer;
	(void)uid;
	return true;
}

static bool is_of_user(const struct peer *peer, uid_t uid)
{
	return peer_uid(peer) == uid;
}

static bool sees_own_only(const struct peer *peer, uid_t uid)
{
	(void)uid;
	return peer_access(peer) != ACCESS_ALL;
}

static unsigned count_connections(const struct server *s, pid_t pid)
{
	unsigned n = 0;

	for (size_t i = 0; i < s->peers.n; i++)
		n += peer_pid(s->peers.items[i]) == pid;
	return n;
}

/* If there are @n connections for which @is_one is true, cut off the one that is worth least. */
static void make_peer_room(struct server *s, unsigned n, bool (*is_one)(const struct peer *, uid_t),
			   uid_t uid)
{
	struct peer *least = NULL;
	uint64_t least_worth = UINT64_MAX;
	unsigned count = 0;

	for (size_t i = 0; i < s->peers.n; i++)
		count += is_one(s->peers.items[i], uid);
	if (count < n)
		return;
	for (size_t i = 0; i < s->peers.n; i++) {
		struct peer *peer = s->peers.items[i];
		uint64_t worth;

		if (!is_one(peer, uid))
			continue;
		worth = peer_worth(peer, count_connections(s, peer_pid(peer)));
		if (worth < least_worth) {
			least = peer;
			least_worth = worth;
		}
	}
	warn_cut_off(s, "there are too many clients", peer_uid(least));
	drop_peer(s, least);
}

/* Find the user who has the most connections of those who have more than their shares. Return:
 * whether there is one. */
static bool find_giver(const struct server *s, uid_t *ret_uid)
{
	struct share share = {};

	for (size_t i = 0; i < s->peers.n; i++)
		share_take(&share, peer_uid(s->peers.items[i]), 1);
	return share_giver(&share, PEERS_MAX, ret_uid);
}

static void start_ticking(struct server *s)
{
	(void)sd_event_source_set_time(s->tick, now_us(s) + TICK_US);
	(void)sd_event_source_set_enabled(s->tick, SD_EVENT_ONESHOT);
}

static int on_tick(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct server *s = userdata;

	(void)source;
	(void)usec;
	for (size_t i = s->peers.n; i-- > 0;) {
		const char *why;

		if (peer_overdue(s->peers.items[i], now_us(s), &why))
			on_ended(s->peers.items[i], why, s);
		else
			peer_refresh(s->peers.items[i]);
	}
	if (s->peers.n > 0)
		start_ticking(s);
	else
		/* Free memory that many simultaneous clients took. */
		(void)malloc_trim(0);
	return sd_event_source_set_enabled(s->listen, SD_EVENT_ON);
}

/* Admit the new connection @fd, which is taken over. */
static int admit_peer(struct server *s, int fd)
{
	struct peer_options options = { .interface = &s->interface,
					.ended = on_ended,
					.userdata = s };
	struct ucred ucred;
	socklen_t size = sizeof(ucred);
	struct peer *peer;
	uid_t giver;
	int r;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &ucred, &size) < 0) {
		r = -errno;
		(void)fd_close(fd);
		return r;
	}
	caller_init(&options.caller, ucred.uid, ucred.gid, ucred.pid);
	options.access = access_of(s, fd, &ucred);
	if (options.access != ACCESS_ALL) {
		make_peer_room(s, PEERS_OWN_USER_MAX, is_of_user, ucred.uid);
		make_peer_room(s, PEERS_OWN_MAX, sees_own_only, 0);
	}
	make_peer_room(s, PEERS_USER_MAX, is_of_user, ucred.uid);
	if (s->peers.n == PEERS_MAX && find_giver(s, &giver))
		make_peer_room(s, 1, is_of_user, giver);
	make_peer_room(s, PEERS_MAX, is_any, 0);
	r = peer_new(s->event, fd, &options, &peer);
	if (r < 0)
		return r;
	if (s->peers.n == 0)
		start_ticking(s);
	s->peers.items[s->peers.n++] = peer; /* there is room */
	return 0;
}

static int on_connect(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct server *s = userdata;
	int connection, r;

	(void)revents;
	connection = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (connection < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED))
		return 0;
	r = connection < 0 ? -errno : admit_peer(s, connection);
	if (r == 0)
		return 0;
	errno = -r;
	log_warning("cannot talk with a new client: %m");
	/* If there are no descriptors, accepting would fail again at once: wait for the tick. */
	start_ticking(s);
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
	/* Clients have no reason to pass descriptors, and it takes time to close those that lie in
	 * a closed socket. If the kernel is too old to refuse them, the peer does. */
	(void)setsockopt(listen_fd, SOL_SOCKET, SO_PASSRIGHTS, &(int){ 0 }, sizeof(int));
	r = sd_event_add_io(event, &s->listen, listen_fd, EPOLLIN, on_connect, s);
	if (r < 0) {
		(void)fd_close(listen_fd);
		return r;
	}
	if ((r = sd_event_source_set_io_fd_own(s->listen, true)) < 0 ||
	    (r = sd_event_source_set_priority(s->listen, PEER_PRIORITY)) < 0 ||
	    (r = sd_event_add_time(event, &s->tick, CLOCK_MONOTONIC, 0, 0, on_tick, s)) < 0 ||
	    (r = sd_event_source_set_enabled(s->tick, SD_EVENT_OFF)) < 0 ||
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
	sd_event_source_disable_unref(server->tick);
	for (size_t i = 0; i < server->peers.n; i++)
		(void)peer_free(server->peers.items[i]);
	waiters_deinit(&server->interface.waiters);
	vec_deinit(&server->peers);
	(void)sd_event_unref(server->event);
	free(server);
	return NULL;
}

void server_job_done(struct server *server, const struct job *job)
{
	snapshotcalls_done(&server->interface, job);
}

void server_own_done(struct server *server, const char *id, const struct own_result *result)
{
	owncalls_done(&server->interface, id, result);
}
