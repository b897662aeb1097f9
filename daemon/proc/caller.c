/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/proc/caller.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "base/printable.h"
#include "daemon/proc/journal.h"
#include "ptd/control.h"
#include "util/textfile.h"

static const struct {
	const char *name; /* value of the field PTD_ACTION */
	const char *text;
} actions[] = {
	[CALLER_TOOK] = { "snapshot", "asked for snapshot" },
	[CALLER_READ] = { "read", "opened for reading snapshot" },
	[CALLER_RECORDED] = { "record", "opened the software source to record a program" },
	[CALLER_PAUSED] = { "pause", "paused recording" },
	[CALLER_RESUMED] = { "resume", "resumed recording" },
	[CALLER_REMOVED] = { "remove", "removed snapshot" },
	[CALLER_KEPT] = { "keep", "asked to keep snapshot" },
	[CALLER_RELEASED] = { "release", "asked to keep no longer snapshot" },
	[CALLER_RELOADED] = { "reload", "asked to have the settings read again" },
	[CALLER_TRIGGERED] = { "trigger", "asked for snapshots by a trigger" },
	[CALLER_UNTRIGGERED] = { "untrigger", "removed a trigger" },
};

void caller_init(struct caller *caller, uid_t uid, gid_t gid, pid_t pid)
{
	char path[32], comm[CALLER_COMM_SIZE] = "";
	int n;

	*caller = (struct caller){ .uid = uid, .gid = gid, .pid = pid, .comm = "?" };
	(void)snprintf(path, sizeof(path), "/proc/%" PRIdMAX "/comm", (intmax_t)pid);
	n = textfile_read(AT_FDCWD, path, comm, sizeof(comm));
	/* The kernel ends the name with a newline. */
	if (n <= 1)
		return;
	comm[n - 1] = 0;
	printable_clean(comm, (size_t)n - 1);
	memcpy(caller->comm, comm, sizeof(comm));
}

void caller_log(const struct caller *caller, enum caller_action action, const char *snapshot)
{
	char uid[24], pid[24];
	const struct journal_field fields[] = {
		{ "PTD_ACTION", actions[action].name },
		{ "PTD_CALLER_UID", uid },
		{ "PTD_CALLER_PID", pid },
		{ "PTD_CALLER_COMM", caller->comm },
		{ "PTD_SNAPSHOT", snapshot },
	};

	(void)snprintf(uid, sizeof(uid), "%" PRIuMAX, (uintmax_t)caller->uid);
	(void)snprintf(pid, sizeof(pid), "%" PRIdMAX, (intmax_t)caller->pid);
	journal_log(LOG_NOTICE, PTD_MESSAGE_CALLER, fields, ARRAY_LEN(fields),
		    "%s (process %s, user %s) %s%s%s", caller->comm, pid, uid, actions[action].text,
		    snapshot ? " " : "", snapshot ? snapshot : "");
}
