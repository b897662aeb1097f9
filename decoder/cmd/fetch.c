/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/cmd/fetch.h"

#include <errno.h>
#include <string.h>

#include "util/fdpass.h"

int fetch_receive(int socket, struct fetch_answer *ret_answer, int *ret_fd)
{
	return fdpass_receive(socket, ret_answer, sizeof(*ret_answer), ret_fd);
}

int fetch_file(int fetch, enum ptd_fetch what, const struct buildid *id, char **ret_path)
{
	const struct fetch_question question = { .what = (uint8_t)what, .id = *id };
	struct fetch_answer answer;
	int r, fd;

	r = fdpass_ask(fetch, &question, sizeof(question));
	if (r == 0)
		r = fetch_receive(fetch, &answer, &fd);
	if (r < 0)
		return r;
	if (answer.r < 0 || fd < 0) {
		(void)fd_close(fd);
		return answer.r < 0 ? answer.r : -ENOENT;
	}
	*ret_path = strndup(answer.text, sizeof(answer.text) - 1);
	if (!*ret_path) {
		(void)fd_close(fd);
		return -ENOMEM;
	}
	return fd;
}
