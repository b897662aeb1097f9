/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Decoder
 *
 * Decodes snapshots for users who may not have them: ptd passes the directory of a snapshot that
 * holds only what is the user's (daemon/snapshot), and what the user reads. For each such request
 * the decoder has a process that executes ptdecode, whose sandbox lets it read that directory and
 * write that output only, and kills it after the time that the request allows.
 *
 * The decoder itself reads nothing but requests. It has no capability and wants none: what ptd
 * passes is open already.
 */

#include <sys/types.h>

#include "base/base.h"

#define DECODER_RUNNING_MAX 16u /* requests at a time */

/* Give up all capabilities, for this process and for all that it executes. Return: 0, or negative
 * errno. */
_must_check_ int decoder_drop_rights(void);

/*
 * Serve at @listen_fd, a SOCK_SEQPACKET socket that listens.
 *
 * @user: whose processes are served, beside those of the decoder's own user
 * @seconds: for which the decoder waits if it has no request; 0: for ever
 * @program: the path of ptdecode
 *
 * Return: 0 after that time, or negative errno.
 */
_must_check_ int decoder_serve(int listen_fd, uid_t user, unsigned seconds, const char *program);
