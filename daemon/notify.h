/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Notify
 *
 * Tells the service manager (sd_notify(3)) that the recorder is ready, reads its settings again or
 * ends, and describes in one line what it is doing. Without a service manager the functions do
 * nothing.
 */

#include <stdbool.h>

struct recorder_status;

#define NOTIFY_STATUS_MAX 192

struct notify {
	char status[NOTIFY_STATUS_MAX]; /* the last one sent */
	bool stopping;
};

/* Say that the recorder serves clients, after its start or a reload. */
void notify_ready(struct notify *notify, const struct recorder_status *status);

/* Say that the settings are being read again, until notify_ready(). */
void notify_reloading(void);

/* Describe what the recorder is doing, if that has changed. */
void notify_status(struct notify *notify, const struct recorder_status *status);

/* Say that the recorder ends; its status does not change any more. */
void notify_stopping(struct notify *notify);
