/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Work of the collector
 *
 * What a worker does for one request. It looks at processes and files of others, so any of it may
 * wait for a file system that does not answer.
 */

#include "base/base.h"
#include "daemon/proc/kernelmap.h"

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
