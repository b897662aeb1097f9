/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/collector/smallfile.h"

#include <ctype.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/collector/link.h"

#define TIMEOUT_MS 200u

static int open_file(struct collectorlink *link, const char *path, int *ret_fd)
{
	struct collector_request request = { .verb = COLLECTOR_OPEN_PATH,
					     .timeout_ms = TIMEOUT_MS,
					     .path = path };
	struct collector_answer answer;

	return collectorlink_ask(link, &request, NULL, NULL, &answer, ret_fd);
}

static int copy_file(struct collectorlink *link, int from, int to)
{
	const int fds[COLLECTOR_FDS_MAX] = { from, to };
	struct collector_request request = {
		.verb = COLLECTOR_COPY,
		.flags = COLLECTOR_FIRST,
		.timeout_ms = TIMEOUT_MS,
		.size_max = SMALLFILE_MAX - 1,
		.path = "",
	};
	struct collector_answer answer;
	int none = -1, r;

	r = collectorlink_ask(link, &request, fds, NULL, &answer, &none);
	(void)fd_close(none);
	return r;
}

int smallfile_read(struct collectorlink *link, const char *path,
		   char ret_text[static SMALLFILE_MAX])
{
	_cleanup_(fd_closep) int from = -1, to = memfd_create("smallfile", MFD_CLOEXEC);
	ssize_t n;
	int r;

	if (to < 0)
		return -errno;
	r = open_file(link, path, &from);
	if (r == 0)
		r = copy_file(link, from, to);
	if (r < 0)
		return r;
	n = pread(to, ret_text, SMALLFILE_MAX - 1, 0);
	if (n < 0)
		return -errno;
	while (n > 0 && isspace((unsigned char)ret_text[n - 1]))
		n--;
	ret_text[n] = '\0';
	return 0;
}
