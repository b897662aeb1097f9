/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ptd-collector: looks at processes and files of others for ptd. */

#include <stdlib.h>

#include "daemon/helper/collector/collector.h"
#include "daemon/helper/serve.h"

/* One that ptd has started ends soon after ptd. A service manager ends its own. */
#define WAIT_SECONDS 2u

static int run(int listen_fd, uid_t user)
{
	return collector_run(listen_fd, user, getenv("NOTIFY_SOCKET") ? 0 : WAIT_SECONDS);
}

int main(int argc, char **argv)
{
	static const struct serve_program program = {
		"collector",
		"Usage: ptd-collector SOCKET [USER]\n\n"
		"Looks at processes and files of others for ptd, which runs as USER. See ptd(8).\n",
		run,
	};

	return serve_main(argc, argv, &program);
}
