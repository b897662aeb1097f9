/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Fetcher
 *
 * The helper that gets files by build-id from debuginfod servers. The decoder needs it because the
 * decoder is confined and reaches no network. The fetcher receives only build-ids from the decoder.
 *
 * Source: debuginfod_find_executable(3).
 */

#include <stdint.h>

#include "base/base.h"
#include "decoder/cmd/sandbox.h"
#include "ptd/decode.h"
#include "util/buildid.h"

/*
 * A question and an answer are one message each. If the file was found, its descriptor comes with
 * the answer.
 */
struct fetch_question {
	uint8_t what; /* enum ptd_fetch */
	struct buildid id;
};

struct fetch_answer {
	int32_t r;       /* 0, or negative errno */
	char text[4096]; /* the file's path, or the reason why there is none; ends with a NUL */
};

/*
 * Start the fetcher. The environment variable DEBUGINFOD_URLS names the servers.
 *
 * Return: 0; or negative errno and @reterr_message, which the caller frees.
 */
_must_check_ int fetcher_start(struct helper *ret_fetcher, char **reterr_message);

/* Ask the helper @fetcher for a file, and wait for it: see ptd_options.fetch(). */
_must_check_ int fetcher_get(void *fetcher, enum ptd_fetch what, const uint8_t *build_id,
			     size_t size, char **ret_path);
