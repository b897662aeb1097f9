/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Server
 *
 * Accepts the connections of clients to the control socket and offers them the interface
 * org.ptd.Recorder1 (ptd/control.h), D-Bus without a bus. Clients are root, the recorder's
 * own user and members of the group "ptd"; nobody else is served. The kernel says who a client is.
 */

#include "base/base.h"

/* Gets the control socket: the one that systemd passed, or else a new one. */

/*
 * Get the listening socket, which is non-blocking.
 *
 * If systemd passed none, the socket is made at @runtime_dir/control, where it replaces one that
 * nothing listens on. @ret_path is then the path, which the caller frees and unlinks in the end;
 * otherwise it is NULL.
 *
 * Return: 0 and @ret_fd; -EADDRINUSE if another process listens there; -ENAMETOOLONG; or another
 *         negative errno.
 */
_must_check_ int listen_control(const char *runtime_dir, int *ret_fd, char **ret_path);

struct server;
struct job;
struct recorder;
typedef struct sd_event sd_event;

/*
 * Serve clients of @listen_fd, a listening Unix stream socket, which is taken over. @recorder is
 * copied.
 *
 * Return: 0, or negative errno; the descriptor is closed then, too.
 */
_must_check_ int server_new(sd_event *event, const struct recorder *recorder, int listen_fd,
			    struct server **ret_server);
struct server *server_free(struct server *server);

DEFINE_CLEANUP(struct server *, server_free);

/* Reply to the clients that wait for @job, which is done. */
void server_job_done(struct server *server, const struct job *job);
