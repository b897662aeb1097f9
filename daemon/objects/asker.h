/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Asker
 *
 * For whom a file is looked at: the user whose process mapped it, as the kernel says. The owner of
 * a file would not do, since a user's file server can name any. If the process has ended, it is the
 * user who started it, by the records of tasks. If that is not known either, files of one file
 * system, or at least of one folder, count as one user's.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/map.h"

#define ASKER_ROOT UINT64_C(0)

/* Whose the processes are, remembered for a moment: to find it out, a file of /proc is read. */
struct askers {
	struct map users; /* process → its user */
	uint64_t since_ns;
};

void askers_deinit(struct askers *askers);

/*
 * @pid: 0: not known
 * @user: who started the process, if it has ended; 0: root, which is not believed, since a process
 *        of root may have become a user's; or not known
 * @dev: of the file; 0: not known
 * @path: of the file
 */
uint64_t asker_find(struct askers *askers, uint32_t pid, uid_t user, uint64_t dev,
		    const char *path);

/* Return: whether the user is not known. */
bool asker_is_unknown(uint64_t asker);

/*
 * How long the event loop waited for files of each asker lately. A file may never be found, and a
 * program may map tens of thousands of them at once: others are to be answered meanwhile. Root is
 * waited for in any case.
 */
struct patience {
	struct map waited;   /* asker → for how long, in ns of this stretch of time */
	struct map over;     /* asker → until when it is not waited for them */
	uint64_t stretch_ns; /* when the stretch began */
	uint64_t begun;      /* when patience_begin() was called last */
};

void patience_deinit(struct patience *patience);

/* Return: whether it may be waited for a file of @asker now; patience_end() is called after it. */
bool patience_begin(struct patience *patience, uint64_t asker);

/* It was waited, and @r came of it: -ETIMEDOUT is in vain. Return: @r. */
int patience_end(struct patience *patience, uint64_t asker, int r);
