/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/notify.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <time.h>

#include "base/clock.h"
#include "daemon/control/recorder.h"

/* Return: whether the text has changed. */
static bool update_status(struct notify *notify, const struct recorder_status *s)
{
	char text[NOTIFY_STATUS_MAX], lost[64] = "", writing[64] = "";

	if (s->n_pending > 1)
		(void)snprintf(writing, sizeof(writing), " Writing a snapshot, %u more wait%s.",
			       s->n_pending - 1, s->n_pending == 2 ? "s" : "");
	else if (s->n_pending > 0)
		(void)snprintf(writing, sizeof(writing), " Writing a snapshot.");
	if (s->sideband_lost > 0)
		(void)snprintf(lost, sizeof(lost), " %" PRIu64 " task record%s lost.",
			       s->sideband_lost, s->sideband_lost == 1 ? " was" : "s were");
	(void)snprintf(text, sizeof(text), "%s (%s, %" PRIu32 " CPU%s).%s%s",
		       s->recording     ? "Recording"
		       : s->cpus.paused ? "Paused"
					: "Ready, nothing is being recorded",
		       s->source, s->n_cpus, plural(s->n_cpus), writing, lost);
	if (strcmp(text, notify->status) == 0)
		return false;
	memcpy(notify->status, text, sizeof(text));
	return true;
}

void notify_ready(struct notify *notify, const struct recorder_status *status)
{
	(void)update_status(notify, status);
	(void)sd_notifyf(0, "READY=1\nSTATUS=%s", notify->status);
}

void notify_reloading(void)
{
	(void)sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
			 clock_ns(CLOCK_MONOTONIC) / 1000);
}

void notify_status(struct notify *notify, const struct recorder_status *status)
{
	if (!notify->stopping && update_status(notify, status))
		(void)sd_notifyf(0, "STATUS=%s", notify->status);
}

void notify_stopping(struct notify *notify)
{
	notify->stopping = true;
	(void)sd_notify(0, "STOPPING=1\nSTATUS=Stopping.");
}
