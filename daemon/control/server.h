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
