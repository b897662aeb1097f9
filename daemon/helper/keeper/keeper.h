/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Keeper
 *
 * Holds descriptors for ptd, so that the memory behind them outlives a ptd that is killed,
 * restarted or upgraded. It serves one connection at a time; the next one waits. It serves
 * processes of its own user only. When a connection has ended and no other comes in time,
 * everything that is kept is closed: recorded instructions are not to stay in memory that no
 * recorder owns.
 *
 * The kernel frees the rings of a perf event with their last mapping, even if the event is still
 * open. So the keeper maps them, too. It never reads them.
 */

#include <sys/types.h>

#include "base/base.h"

/*
 * Serve until no client has connected in time.
 *
 * @listen_fd: a SOCK_SEQPACKET socket that listens; the keeper closes it
 * @user: whose processes are served
 * @seconds: for which the keeper waits for its first connection
 *
 * Return: 0, or negative errno.
 */
_must_check_ int keeper_run(int listen_fd, uid_t user, unsigned seconds);
