/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Server
 *
 * The interface org.ptd.Recorder1 (ptd/control.h) over a Unix socket, D-Bus without a bus. Anybody
 * who may connect can ask; only root, the recorder's own user and members of the group "ptd" are
 * answered, because a snapshot holds everybody's code. Who asks is what the kernel says it is.
 */

#include "base/base.h"

struct server;
struct job;
struct recorder;
typedef struct sd_event sd_event;

/*
 * Serve @listen_fd, a listening Unix stream socket, which becomes the control's; @recorder is
 * copied.
 *
 * Return: 0, or negative errno: the descriptor is closed then too.
 */
_must_check_ int server_new(sd_event *event, const struct recorder *recorder, int listen_fd,
			    struct server **ret_server);
struct server *server_free(struct server *server);

DEFINE_CLEANUP(struct server *, server_free);

/* Answer those who wait for @job, which is done. */
void server_job_done(struct server *server, const struct job *job);
