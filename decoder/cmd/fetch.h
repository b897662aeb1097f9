/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Fetch
 *
 * Files that debuginfod servers have, by build-id. The process that decodes is confined and reaches
 * no network; it asks the process at the other end of a socket (decoder/cmd/fetcher.h) for them.
 */

#include <stdint.h>

#include "base/base.h"
#include "ptd/decode.h"
#include "util/buildid.h"

/*
 * A question and an answer are one SOCK_SEQPACKET message each. If the file was found, its
 * descriptor comes with the answer.
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
 * Ask on the socket @fetch for the file with @id, and wait until the answer comes.
 *
 * Return: the file's descriptor, which the caller closes, and @ret_path, which the caller frees; or
 *         negative errno: -ENOENT if no server has the file.
 */
_must_check_ int fetch_file(int fetch, enum ptd_fetch what, const struct buildid *id,
			    char **ret_path);

/*
 * Wait for an answer on @socket.
 *
 * Return: 0 and @ret_fd, which the caller closes (-1 if no file came with the answer); -EPIPE if
 *         the other process is gone; or another negative errno.
 */
_must_check_ int fetch_receive(int socket, struct fetch_answer *ret_answer, int *ret_fd);
