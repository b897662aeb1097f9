/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ptd-collector: looks at processes and files of others for ptd. */

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "daemon/helper/collector/collector.h"
#include "daemon/helper/serve.h"

/* One that ptd has started ends soon after ptd. A service manager ends its own. */
#define WAIT_SECONDS 2u

int main(int argc, char **argv)
{
	_cleanup_(collector_freep) struct collector *collector = NULL;
	_cleanup_(fd_closep) int lock_fd = -1;
	const unsigned seconds = getenv("NOTIFY_SOCKET") ? 0 : WAIT_SECONDS;
	uid_t user;
	int fd, r;

	r = serve_begin(argc, argv,
			"Usage: ptd-collector SOCKET [USER]\n\n"
			"Looks at processes and files of others for ptd, which runs as USER. See "
			"ptd(8).\n",
			&user);
	if (r != EXIT_SUCCESS)
		return r;
	r = serve_listen(argv[1], &fd, &lock_fd);
	if (r == -EWOULDBLOCK) {
		log_error("%s: another collector serves there", argv[1]);
		return EXIT_FAILURE;
	}
	if (r == 0)
		r = collector_new(fd, user, seconds, &collector);
	if (r < 0) {
		(void)log_error_errno(r, "%s: cannot listen there: %m", argv[1]);
		return EXIT_FAILURE;
	}
	serve_say_ready();
	r = collector_run(collector);
	(void)unlink(argv[1]);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
