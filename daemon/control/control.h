/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Control
 *
 * The interface org.ptd.Recorder1 (ptd/control.h) over a Unix socket, D-Bus without a bus. Anybody
 * who may connect can ask; only root, the recorder's own user and members of the group "ptd" are
 * answered, because a snapshot holds everybody's code. Who asks is what the kernel says it is.
 */

#include "base/base.h"

struct control;
struct job;
struct recorder;
typedef struct sd_event sd_event;

/*
 * Serve @listen_fd, a listening Unix stream socket, which becomes the control's; @recorder is
 * copied.
 *
 * Return: 0, or negative errno: the descriptor is closed then too.
 */
_must_check_ int control_new(sd_event *event, const struct recorder *recorder, int listen_fd,
			     struct control **ret_control);
struct control *control_free(struct control *control);

DEFINE_CLEANUP(struct control *, control_free);

/* Answer those who wait for @job, which is done. */
void control_job_done(struct control *control, const struct job *job);
