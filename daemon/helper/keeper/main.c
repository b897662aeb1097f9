/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ptd-keeper: holds the memory of ptd's rings while ptd restarts. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "base/log.h"
#include "daemon/helper/keeper/keeper.h"
#include "daemon/helper/serve.h"

#define FIRST_WAIT_SECONDS 30u

int main(int argc, char **argv)
{
	_cleanup_(keeper_freep) struct keeper *keeper = NULL;
	_cleanup_(fd_closep) int lock_fd = -1;
	int fd, r;

	if (argc != 2 || argv[1][0] == '-') {
		fputs("Usage: ptd-keeper SOCKET\n\n"
		      "Holds the memory of the rings of ptd while ptd restarts. See ptd(8).\n",
		      stderr);
		return 2;
	}
	/* What it holds is what all users executed. */
	(void)prctl(PR_SET_DUMPABLE, 0);
	(void)umask(077);
	r = serve_listen(argv[1], &fd, &lock_fd);
	if (r == -EWOULDBLOCK) {
		log_error("%s: another keeper serves there", argv[1]);
		return EXIT_FAILURE;
	}
	if (r == 0)
		r = keeper_new(fd, geteuid(), FIRST_WAIT_SECONDS, &keeper);
	if (r < 0) {
		(void)log_error_errno(r, "%s: cannot listen there: %m", argv[1]);
		return EXIT_FAILURE;
	}
	serve_say_ready();
	r = keeper_run(keeper);
	(void)unlink(argv[1]);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
