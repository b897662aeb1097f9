/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/pt/ptusers.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/printable.h"
#include "daemon/helper/collector/link.h"

#define TIMEOUT_MS 500u /* the event loop waits */

static int ask(const char *runtime_dir, int fd)
{
	_cleanup_(collectorlink_freep) struct collectorlink *link = NULL;
	const int fds[CHANNEL_FDS_MAX] = { fd, -1 };
	struct collector_request request = {
		.verb = COLLECTOR_PERF_USERS,
		.timeout_ms = TIMEOUT_MS,
		.pid = (uint32_t)getpid(),
	};
	const int r = collectorlink_new(runtime_dir, false, &link);

	return r < 0 ? r : collectorlink_ask(link, &request, fds, NULL, NULL, NULL);
}

void ptusers_list(const char *runtime_dir, char *ret_text, size_t size)
{
	_cleanup_(fd_closep) int fd = memfd_create("ptusers", MFD_CLOEXEC);
	ssize_t n;

	n = fd < 0 || ask(runtime_dir, fd) < 0 ? -1 : pread(fd, ret_text, size - 1, 0);
	if (n <= 0) {
		(void)snprintf(ret_text, size, "a process that may not be looked into");
		return;
	}
	ret_text[n] = '\0';
	printable_clean(ret_text, (size_t)n);
}
