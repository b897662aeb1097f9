/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Caller
 *
 * The process that asks the recorder for something, and the line in the log that says what it asked
 * for. That is logged because a snapshot has code of every user.
 */

#include <sys/types.h>

#include "base/base.h"

#define CALLER_COMM_SIZE 64

/* What the kernel said of a client when it connected, or of the sender of a signal. */
struct caller {
	uid_t uid;
	gid_t gid;
	pid_t pid; /* 0: the process is in another pid namespace */
	/* The name of the process, which the process chose; printable characters only. */
	char comm[CALLER_COMM_SIZE];
};

enum caller_action {
	CALLER_TOOK,
	CALLER_READ,
	CALLER_RECORDED,
	CALLER_PAUSED,
	CALLER_RESUMED,
	CALLER_REMOVED,
	CALLER_KEPT,
	CALLER_RELEASED,
	CALLER_RELOADED,
	CALLER_TRIGGERED,
	CALLER_UNTRIGGERED,
};

/* Set the caller to process @pid of user @uid and group @gid, and look its name up. */
void caller_init(struct caller *caller, uid_t uid, gid_t gid, pid_t pid);

/*
 * Log what the caller asked for and got. If standard error is the journal, the entry has the fields
 * that ptd(8) names, with PTD_MESSAGE_CALLER as MESSAGE_ID.
 *
 * @snapshot: the id of the snapshot, or NULL
 */
void caller_log(const struct caller *caller, enum caller_action action, const char *snapshot);
