/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/proc/caller.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* The entry has these fields only, not those of the place in the source. */
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include "base/log.h"
#include "base/printable.h"
#include "ptd/control.h"

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
};

void caller_init(struct caller *caller, uid_t uid, pid_t pid)
{
	_cleanup_(fd_closep) int fd = -1;
	char path[32], comm[CALLER_COMM_SIZE] = "";
	ssize_t n;

	*caller = (struct caller){ .uid = uid, .pid = pid, .comm = "?" };
	(void)snprintf(path, sizeof(path), "/proc/%" PRIdMAX "/comm", (intmax_t)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, comm, sizeof(comm) - 1);
	/* The kernel ends the name with a newline. */
	if (n <= 1)
		return;
	comm[n - 1] = 0;
	printable_clean(comm, (size_t)n - 1);
	memcpy(caller->comm, comm, sizeof(comm));
}

/* Return: whether standard error is the journal. The variable alone may be inherited from another
 * process. */
static bool is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	char own[64];
	struct stat st;

	if (!stream || fstat(STDERR_FILENO, &st) < 0)
		return false;
	(void)snprintf(own, sizeof(own), "%" PRIuMAX ":%" PRIuMAX, (uintmax_t)st.st_dev,
		       (uintmax_t)st.st_ino);
	return strcmp(stream, own) == 0;
}

void caller_log(const struct caller *caller, enum caller_action action, const char *snapshot)
{
	char message[256], id[128] = "";

	(void)snprintf(message, sizeof(message),
		       "%s (process %" PRIdMAX ", user %" PRIuMAX ") %s%s%s", caller->comm,
		       (intmax_t)caller->pid, (uintmax_t)caller->uid, actions[action].text,
		       snapshot ? " " : "", snapshot ? snapshot : "");
	if (snapshot)
		(void)snprintf(id, sizeof(id), "PTD_SNAPSHOT=%s", snapshot);
	if (is_journal() &&
	    sd_journal_send("MESSAGE=%s", message, "PRIORITY=%d", LOG_NOTICE,
			    "MESSAGE_ID=" PTD_MESSAGE_CALLER, "PTD_ACTION=%s", actions[action].name,
			    "PTD_CALLER_UID=%" PRIuMAX, (uintmax_t)caller->uid,
			    "PTD_CALLER_PID=%" PRIdMAX, (intmax_t)caller->pid, "PTD_CALLER_COMM=%s",
			    caller->comm, snapshot ? "%s" : NULL, id, NULL) >= 0)
		return;
	log_notice("%s", message);
}
