/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/control.h"

#include <errno.h>
#include <grp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>
#include <systemd/sd-id128.h>

#include "base/log.h"
#include "daemon/jobs.h"
#include "daemon/manager.h"
#include "daemon/spool.h"
#include "decoder/util/vec.h"
#include "ptd/control.h"

#define PEERS_MAX   64u
#define WAITERS_MAX 256u
#define GROUPS_MAX  65536u
#define GROUP_NAME  "ptd"

struct peer {
	struct control *control; /* borrowed */
	sd_bus *bus;
	sd_event_source *kick;
	bool allowed;
};

struct control {
	struct manager *manager; /* borrowed */
	sd_event *event;
	sd_event_source *listen;
	sd_event_source *reap; /* frees @gone outside of their own callbacks */
	VEC(struct peer *) peers;
	VEC(struct peer *) gone;
	VEC(sd_bus_message *) waiters; /* calls of WaitSnapshot */
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
	group = getgrnam(GROUP_NAME);
	return group && peer_has_group(fd, &peer, group->gr_gid);
}

static int denied(const struct peer *peer, sd_bus_error *error)
{
	if (peer->allowed)
		return 0;
	return sd_bus_error_set(error, PTD_ERROR_ACCESS_DENIED,
				"Only root, the recorder's user and members of group \"" GROUP_NAME
				"\" may use the recorder.");
}

/* --- methods --------------------------------------------------------------------------------- */

static int append_string(sd_bus_message *m, const char *key, const char *value)
{
	return sd_bus_message_append(m, "{sv}", key, "s", value);
}

static int append_u64(sd_bus_message *m, const char *key, uint64_t value)
{
	return sd_bus_message_append(m, "{sv}", key, "t", value);
}

static int append_u32(sd_bus_message *m, const char *key, uint32_t value)
{
	return sd_bus_message_append(m, "{sv}", key, "u", value);
}

/* Send @reply, if @r says that it could be filled. */
static int send_reply(sd_bus_message *reply, int r)
{
	if (r >= 0)
		r = sd_bus_message_close_container(reply);
	return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static int get_status(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	const struct peer *peer = userdata;
	struct manager_status s;
	int r;

	r = denied(peer, error);
	if (r < 0)
		return r;
	s = manager_status(peer->control->manager);
	r = sd_bus_message_new_method_return(m, &reply);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "{sv}");
	if (r < 0)
		return r;
	if ((r = append_string(reply, "version", PTD_VERSION)) < 0 ||
	    (r = append_string(reply, "source", s.source)) < 0 ||
	    (r = sd_bus_message_append(reply, "{sv}", "recording", "b", s.recording)) < 0 ||
	    (r = append_u32(reply, "cpus", s.n_cpus)) < 0 ||
	    (r = append_u64(reply, "aux_size", s.aux_size)) < 0 ||
	    (r = append_u64(reply, "switch_size", s.switch_size)) < 0 ||
	    (r = append_u64(reply, "sideband_bytes", s.sideband_bytes)) < 0 ||
	    (r = append_u64(reply, "sideband_max", s.sideband_max)) < 0 ||
	    (r = append_u64(reply, "sideband_lost", s.sideband_lost)) < 0 ||
	    (r = append_u64(reply, "objects", s.n_objects)) < 0 ||
	    (r = append_u64(reply, "snapshots", s.n_snapshots)) < 0 ||
	    (r = append_u32(reply, "pending", s.n_pending)) < 0 ||
	    (r = append_string(reply, "snapshots_path",
			       spool_path(manager_spool(peer->control->manager)))) < 0)
		return r;
	return send_reply(reply, 0);
}

static int open_source(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	const struct peer *peer = userdata;
	const char *plugin;
	int fd, r;

	r = denied(peer, error);
	if (r < 0)
		return r;
	r = manager_open_source(peer->control->manager, &fd, &plugin);
	if (r == -EOPNOTSUPP)
		return sd_bus_error_set(error, PTD_ERROR_NOT_EMULATED,
					"The recorder records hardware, everything that runs: "
					"there is no program to start.");
	if (r < 0)
		return sd_bus_error_set_errno(error, r);
	return sd_bus_reply_method_return(m, "shs", "emu", fd, plugin);
}

static int take_snapshot(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	const struct peer *peer = userdata;
	const char *id, *option;
	int r;

	r = denied(peer, error);
	if (r < 0)
		return r;
	r = sd_bus_message_enter_container(m, 'a', "{sv}");
	while (r > 0 && (r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
		r = sd_bus_message_read(m, "s", &option);
		if (r >= 0)
			return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
						 "There is no option \"%s\".", option);
	}
	if (r < 0)
		return r;

	r = manager_take_snapshot(peer->control->manager, &id);
	if (r == -EBUSY)
		return sd_bus_error_setf(error, PTD_ERROR_BUSY,
					 "%u snapshots are waiting to be written already.",
					 JOBS_WAITING_MAX);
	if (r < 0)
		return sd_bus_error_set_errno(error, r);
	return sd_bus_reply_method_return(m, "s", id);
}

static int no_snapshot(sd_bus_error *error, const char *id)
{
	return sd_bus_error_setf(error, PTD_ERROR_NO_SNAPSHOT, "There is no snapshot \"%s\".", id);
}

static int reply_done(sd_bus_message *call, const char *directory, const struct job *job)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	_cleanup_(freep) char *path = NULL;
	int r;

	if (job->error < 0)
		return sd_bus_reply_method_errorf(call, PTD_ERROR_FAILED, "%s", job->message);

	if (asprintf(&path, "%s/%s", directory, job->id) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	r = sd_bus_message_new_method_return(call, &reply);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "{sv}");
	if (r < 0)
		return r;
	if ((r = append_string(reply, "id", job->id)) < 0 ||
	    (r = append_string(reply, "path", path)) < 0 ||
	    (r = append_u64(reply, "bytes", job->result.bytes)) < 0 ||
	    (r = append_u64(reply, "pt_bytes", job->result.bytes_pt)) < 0 ||
	    (r = append_u32(reply, "cpus", job->result.n_cpus)) < 0 ||
	    (r = append_u32(reply, "objects", job->result.n_objects)) < 0 ||
	    (r = append_u32(reply, "objects_missing", job->result.n_missing)) < 0)
		return r;
	return send_reply(reply, 0);
}

static int wait_snapshot(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	const struct peer *peer = userdata;
	struct control *c = peer->control;
	const struct job *job;
	const char *id;
	int r;

	r = denied(peer, error);
	if (r < 0)
		return r;
	r = sd_bus_message_read(m, "s", &id);
	if (r < 0)
		return r;
	job = jobs_find(manager_jobs(c->manager), id);
	if (!job)
		return no_snapshot(error, id);
	if (job->done)
		return reply_done(m, spool_path(manager_spool(c->manager)), job);

	if (c->waiters.n >= WAITERS_MAX)
		return sd_bus_error_set(error, PTD_ERROR_BUSY, "Too many calls are waiting.");
	r = vec_push(&c->waiters, m);
	if (r < 0)
		return r;
	(void)sd_bus_message_ref(m);
	return 1;
}

void control_job_done(struct control *control, const struct job *job)
{
	size_t n = 0;

	for (size_t i = 0; i < control->waiters.n; i++) {
		sd_bus_message *call = control->waiters.items[i];
		const char *id;

		if (sd_bus_message_rewind(call, true) >= 0 &&
		    sd_bus_message_read(call, "s", &id) >= 0 && strcmp(id, job->id) != 0) {
			control->waiters.items[n++] = call;
			continue;
		}
		/* One who went away does not hear it. */
		(void)reply_done(call, spool_path(manager_spool(control->manager)), job);
		(void)sd_bus_message_unref(call);
	}
	control->waiters.n = n;
}

static int list_snapshots(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	_cleanup_(freep) struct spool_entry *entries = NULL;
	const struct peer *peer = userdata;
	size_t n;
	int r;

	r = denied(peer, error);
	if (r < 0)
		return r;
	r = spool_list(manager_spool(peer->control->manager), &entries, &n);
	if (r < 0)
		return sd_bus_error_set_errno(error, r);
	r = sd_bus_message_new_method_return(m, &reply);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "a{sv}");
	for (size_t i = 0; r >= 0 && i < n; i++) {
		if ((r = sd_bus_message_open_container(reply, 'a', "{sv}")) < 0 ||
		    (r = append_string(reply, "id", entries[i].id)) < 0 ||
		    (r = append_string(reply, "created", entries[i].created)) < 0 ||
		    (r = append_u64(reply, "bytes", entries[i].bytes)) < 0 ||
		    (r = append_u32(reply, "cpus", entries[i].n_cpus)) < 0)
			return r;
		r = sd_bus_message_close_container(reply);
	}
	return send_reply(reply, r);
}

static int open_snapshot(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	const struct peer *peer = userdata;
	_cleanup_(fd_closep) int fd = -1;
	const char *id;
	int r;

	r = denied(peer, error);
	if (r < 0)
		return r;
	r = sd_bus_message_read(m, "s", &id);
	if (r < 0)
		return r;
	r = spool_open(manager_spool(peer->control->manager), id, &fd);
	if (r == -ENOENT)
		return no_snapshot(error, id);
	if (r < 0)
		return sd_bus_error_set_errno(error, r);
	return sd_bus_reply_method_return(m, "h", fd);
}

/* UNPRIVILEGED: or sd-bus would answer others than root before we can. */
#define METHOD(name, in, in_names, out, out_names, call)                   \
	SD_BUS_METHOD_WITH_NAMES(name, in, in_names, out, out_names, call, \
				 SD_BUS_VTABLE_UNPRIVILEGED)

static const sd_bus_vtable vtable[] = {
	SD_BUS_VTABLE_START(0),
	METHOD("GetStatus", "", , "a{sv}", SD_BUS_PARAM(status), get_status),
	METHOD("OpenSource", "", , "shs",
	       SD_BUS_PARAM(name) SD_BUS_PARAM(pool) SD_BUS_PARAM(plugin), open_source),
	METHOD("TakeSnapshot", "a{sv}", SD_BUS_PARAM(options), "s", SD_BUS_PARAM(id),
	       take_snapshot),
	METHOD("WaitSnapshot", "s", SD_BUS_PARAM(id), "a{sv}", SD_BUS_PARAM(result), wait_snapshot),
	METHOD("ListSnapshots", "", , "aa{sv}", SD_BUS_PARAM(snapshots), list_snapshots),
	METHOD("OpenSnapshot", "s", SD_BUS_PARAM(id), "h", SD_BUS_PARAM(directory), open_snapshot),
	SD_BUS_VTABLE_END,
};

/* Clients that insist on a bus, such as gdbus, ask it for a name before all else. Any will do. */
static int hello(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	(void)userdata;
	(void)error;
	return sd_bus_reply_method_return(m, "s", ":1.1");
}

static const sd_bus_vtable bus_vtable[] = {
	SD_BUS_VTABLE_START(0),
	METHOD("Hello", "", , "s", SD_BUS_PARAM(name), hello),
	SD_BUS_VTABLE_END,
};

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

static void forget_waiters(struct control *c, const sd_bus *bus)
{
	size_t n = 0;

	for (size_t i = 0; i < c->waiters.n; i++) {
		sd_bus_message *call = c->waiters.items[i];

		if (sd_bus_message_get_bus(call) == bus)
			(void)sd_bus_message_unref(call);
		else
			c->waiters.items[n++] = call;
	}
	c->waiters.n = n;
}

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
	forget_waiters(c, peer->bus);
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
	p->allowed = peer_allowed(fd);
	r = sd_bus_set_fd(p->bus, fd, fd);
	if (r < 0) {
		(void)fd_close(fd);
		return r;
	}
	if ((r = sd_id128_randomize(&id)) < 0 || (r = sd_bus_set_server(p->bus, true, id)) < 0 ||
	    (r = sd_bus_negotiate_fds(p->bus, true)) < 0 ||
	    (r = sd_bus_attach_event(p->bus, c->event, 0)) < 0 ||
	    (r = sd_bus_add_object_vtable(p->bus, NULL, PTD_CONTROL_OBJECT, PTD_CONTROL_INTERFACE,
					  vtable, p)) < 0 ||
	    (r = sd_bus_add_object_vtable(p->bus, NULL, "/org/freedesktop/DBus",
					  "org.freedesktop.DBus", bus_vtable, p)) < 0 ||
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
	c->manager = manager;
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
	for (size_t i = 0; i < control->waiters.n; i++)
		(void)sd_bus_message_unref(control->waiters.items[i]);
	for (size_t i = 0; i < control->gone.n; i++)
		(void)peer_free(control->gone.items[i]);
	for (size_t i = 0; i < control->peers.n; i++)
		(void)peer_free(control->peers.items[i]);
	vec_deinit(&control->waiters);
	vec_deinit(&control->gone);
	vec_deinit(&control->peers);
	(void)sd_event_unref(control->event);
	free(control);
	return NULL;
}
