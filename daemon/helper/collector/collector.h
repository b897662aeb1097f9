/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Collector
 *
 * Looks at processes and files of others for ptd, which has no right to do so, and may not wait for
 * them. The collector itself only passes messages on: for the processes of each user it has worker
 * processes, which do the work (daemon/helper/collector/work.h). A worker that takes longer than
 * its request allows is killed, and the request is answered with -ETIMEDOUT. So a file system of a
 * user that does not answer costs that user one request, and others nothing.
 *
 * Finding files and reading them are done by different workers, so that a large file of a user does
 * not delay looking at the next process.
 *
 * A worker that waits in the kernel may not end at once even if it is killed. There is a limit to
 * such workers for each user.
 *
 * The kernel says whose a process is. Once it has ended, ptd says so, if it knows; all processes of
 * which nobody does share workers.
 */

#include <sys/types.h>

#include "base/base.h"

#define COLLECTOR_CLIENTS_MAX      32u
#define COLLECTOR_WORKERS_MAX      256u
#define COLLECTOR_WORKERS_USER_MAX 6u /* with those that were killed and have not ended */

/*
 * Serve until no client has been connected for some time, and kill the workers then.
 *
 * @listen_fd: a SOCK_SEQPACKET socket that listens; the collector closes it
 * @user: whose processes are served, beside those of the collector's own user
 * @seconds: for which the collector waits if no client is connected; 0: for ever
 *
 * Return: 0, or negative errno.
 */
_must_check_ int collector_run(int listen_fd, uid_t user, unsigned seconds);
