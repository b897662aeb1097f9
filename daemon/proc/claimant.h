/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Claimant
 *
 * The process that a record says has a file mapped. The kernel's records say what is so. Those of
 * the software source are written by the programs that it records: each may name any process and
 * any file, also a file that it may not read itself. So such a record is believed about a process
 * only if that one writes records, too; any other counts as one that has ended.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/base.h"

/* Who writes the records. */
struct claims {
	/* Return: whether the process is one of those that do. Called in any thread. NULL: the
	 * kernel does. */
	bool (*is_writer)(void *userdata, uint32_t pid);
	void *userdata; /* borrowed */
};

struct claimant {
	int pid_fd;   /* /proc/PID; -1: the process has ended */
	bool is_true; /* the kernel says that it has the file mapped */
};

/* @claims may be NULL: the kernel's. */
struct claimant claimant_find(const struct claims *claims, uint32_t pid);
void claimant_deinit(struct claimant *claimant);

/* Is the process of this user alone? One that runs with the rights of several is not. */
bool claimant_user_is(const struct claimant *claimant, uid_t uid);

/*
 * May what is at a path be read for the process? Either everybody may read it, or the process's
 * user owns it and may.
 */
bool claimant_may_read(const struct claimant *claimant, const struct stat *st);
