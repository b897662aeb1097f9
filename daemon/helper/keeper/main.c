/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ptd-keeper: holds the memory of ptd's rings while ptd restarts. */

#include "daemon/helper/keeper/keeper.h"
#include "daemon/helper/serve.h"

#define FIRST_WAIT_SECONDS 30u

static int run(int listen_fd, uid_t user)
{
	return keeper_run(listen_fd, user, FIRST_WAIT_SECONDS);
}

int main(int argc, char **argv)
{
	static const struct serve_program program = {
		"keeper",
		"Usage: ptd-keeper SOCKET [USER]\n\n"
		"Holds the memory of the rings of ptd, which runs as USER, while ptd restarts. See "
		"ptd(8).\n",
		run,
	};

	return serve_main(argc, argv, &program);
}
