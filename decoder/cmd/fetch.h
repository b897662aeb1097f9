/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Fetch
 *
 * Files that are to be had elsewhere, by build-id: the process at the other end of a socket gets
 * them (decoder/cmd/fetcher.h), since who decodes is confined and reaches nothing.
 */

#include <stdint.h>

#include "base/base.h"
#include "ptd/decode.h"
#include "util/buildid.h"

/* One SOCK_SEQPACKET message each. The answer has the file as a descriptor beside it, if there is
 * one. */
struct fetch_question {
	uint8_t what; /* enum ptd_fetch */
	struct buildid id;
};

struct fetch_answer {
	int32_t r;       /* 0, or negative errno */
	char text[4096]; /* the file's path, or why there is none; ends with a NUL */
};

/*
 * Ask on the socket @fetch for the file with @id. This waits as long as getting it takes.
 *
 * Return: the file, open; the caller closes it and frees @ret_path. Or negative errno: -ENOENT if
 *         nobody has it.
 */
_must_check_ int fetch_file(int fetch, enum ptd_fetch what, const struct buildid *id,
			    char **ret_path);

/*
 * Wait for an answer on @socket.
 *
 * Return: 0 and @ret_fd, -1 if there is none; -EPIPE if the other end is gone; or negative errno.
 */
_must_check_ int fetch_receive(int socket, struct fetch_answer *ret_answer, int *ret_fd);
