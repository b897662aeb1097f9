/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Caller
 *
 * Who asks the recorder for something, and the line in the journal that says what for: a snapshot
 * holds everybody's code.
 */

#include <sys/types.h>

#include "base/base.h"

#define CALLER_COMM_SIZE 64

/* What the kernel said of a client when it connected, or of who sent a signal. */
struct caller {
	uid_t uid;
	pid_t pid; /* 0: of another namespace of processes */
	char
	    comm[CALLER_COMM_SIZE]; /* the process's name, which it chose; only what can be shown */
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
};

/* The process @pid of user @uid asks; its name is looked up. */
void caller_init(struct caller *caller, uid_t uid, pid_t pid);

/*
 * Log what the caller asked for and was given: where standard error is the journal, with the
 * fields that ptd(8) names and PTD_MESSAGE_CALLER as MESSAGE_ID.
 *
 * @snapshot: the id of the one it is about; NULL: none
 */
void caller_log(const struct caller *caller, enum caller_action action, const char *snapshot);
