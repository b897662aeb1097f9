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

#define ASKER_ROOT UINT64_C(0)

/*
 * @pid: 0: not known
 * @user: who started the process, if it has ended; 0: root, which is not believed, since a process
 *        of root may have become a user's; or not known
 * @dev: of the file; 0: not known
 * @path: of the file
 */
uint64_t asker_find(uint32_t pid, uid_t user, uint64_t dev, const char *path);

/* Return: whether the user is not known. */
bool asker_is_unknown(uint64_t asker);
