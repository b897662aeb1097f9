/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Perf map file
 *
 * The list of names that a JIT compiler writes: /tmp/perf-PID.map, where its process sees /tmp, and
 * with the number that the process has for itself. In a container, or in a service with
 * PrivateTmp=, these are not those of the recorder.
 */

#include "base/base.h"

/*
 * Find the perf map of the process @pid_fd (/proc/PID). A symbolic link is not followed. A file
 * that was last written before the process was started is not its map: nothing removes the map of a
 * process that has ended, and numbers come again, in a container at each start.
 *
 * Return: a descriptor that only stands for what is there (O_PATH), which is the caller's; -ESRCH
 *         if the process has ended; -ENOENT; or another negative errno.
 */
_must_check_ int perfmapfile_open(int pid_fd);
