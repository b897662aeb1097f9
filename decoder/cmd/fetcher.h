/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Fetcher
 *
 * A process of its own that gets files by build-id from debuginfod servers. The decoder needs it
 * because the decoder is confined. The fetcher receives only build-ids from the decoder.
 *
 * Source: debuginfod_find_executable(3).
 */

#include <sys/types.h>

#include "base/base.h"

struct fetcher {
	pid_t pid;
	int socket; /* to the fetcher; owned; its messages are in decoder/cmd/fetch.h */
};

/*
 * Start the fetcher, before anything foreign is read. The environment variable DEBUGINFOD_URLS
 * names the servers.
 *
 * Return: 0; or negative errno and @reterr_message, which the caller frees.
 */
_must_check_ int fetcher_start(struct fetcher *ret_fetcher, char **reterr_message);

/* End the fetcher. A fetcher that is all zero was never started. */
void fetcher_stop(struct fetcher *fetcher);
