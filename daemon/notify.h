/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Notify
 *
 * What a service manager is told (sd_notify(3)): that the recorder is ready, that it reads its
 * settings again, that it ends, and in one line what it is doing. Nobody is told anything if it was
 * not started by one.
 */

#include <stdbool.h>

struct recorder_status;

#define NOTIFY_STATUS_MAX 192

struct notify {
	char status[NOTIFY_STATUS_MAX]; /* told last */
	bool stopping;
};

/* It serves, after a start or a reload. */
void notify_ready(struct notify *notify, const struct recorder_status *status);

/* Settings are being read again; notify_ready() ends that. */
void notify_reloading(void);

/* Say what it does, if that is not what was said last. */
void notify_status(struct notify *notify, const struct recorder_status *status);

/* It ends: from now on that is its status. */
void notify_stopping(struct notify *notify);
