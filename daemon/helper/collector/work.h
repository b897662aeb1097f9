/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Work of the collector
 *
 * What a worker does for one request. It looks at processes and files of others, so any of it may
 * wait for a file system that does not answer.
 */

#include <stddef.h>
#include <sys/types.h>

#include "base/base.h"
#include "daemon/proc/kernelmap.h"

/*
 * The list of names that a JIT compiler writes: /tmp/perf-PID.map, where its process sees /tmp, and
 * with the number that the process has for itself. In a container, or in a service with
 * PrivateTmp=, these are not those of the recorder.
 */

/*
 * Find the perf map of the process @pid_fd (/proc/PID). A symbolic link is not followed. A file
 * that was last written before the process was started is not its map: nothing removes the map of a
 * process that has ended, and numbers come again, in a container at each start.
 *
 * Return: a descriptor that only stands for what is there (O_PATH), which is the caller's; -ESRCH
 *         if the process has ended; -ENOENT; or another negative errno.
 */
_must_check_ int perfmapfile_open(int pid_fd);

struct collector_answer;
struct collector_request;
struct mappings;

/* What is remembered from one request to the next. */
struct work {
	struct mappings *mappings;   /* NULL: nothing yet */
	struct kernelmap kernel_map; /* where the names that were copied last are; or empty */
	int proc_fd;                 /* the folder /proc, for the kernel's files; or -1 */
};

void work_init(struct work *work);
void work_deinit(struct work *work);

/*
 * Do what is requested.
 *
 * @fds: two descriptors, borrowed, or -1. COLLECTOR_HASH, COLLECTOR_COPY and COLLECTOR_STAT look at
 *       the file for which the first stands; COLLECTOR_COPY writes to the second, an empty file,
 *       and COLLECTOR_HASH how far it is; COLLECTOR_MEMORY, COLLECTOR_MAPPINGS and
 *       COLLECTOR_PERF_USERS write to the first; COLLECTOR_KERNEL_NAMES and COLLECTOR_KERNEL_CODE
 *       write to both
 * @ret_fd: for COLLECTOR_OPEN_PATH, and COLLECTOR_FIND with COLLECTOR_OPEN, a descriptor that
 *          stands for the file (O_PATH), which is the caller's; otherwise -1
 */
void work_do(struct work *work, const struct collector_request *request, const int fds[static 2],
	     struct collector_answer *ret_answer, int *ret_fd);
