/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Fetcher
 *
 * A process of its own that gets files by build-id from debuginfod servers, for a decoder that is
 * confined. What it is told by that is nothing but build-ids.
 *
 * Source: debuginfod_find_executable(3).
 */

#include <sys/types.h>

#include "base/base.h"

struct fetcher {
	pid_t pid;
	int socket; /* see decoder/cmd/fetch.h */
};

/*
 * Start it: before anything foreign was read. The servers are those of the environment's
 * DEBUGINFOD_URLS.
 *
 * Return: 0; or negative errno with @reterr_message, which the caller frees.
 */
_must_check_ int fetcher_start(struct fetcher *ret_fetcher, char **reterr_message);

/* End it; one that is all zero was never started. */
void fetcher_stop(struct fetcher *fetcher);
