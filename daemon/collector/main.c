/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ptd-collector: looks at processes and files of others for ptd. */

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "base/log.h"
#include "daemon/collector/collector.h"
#include "daemon/helper/serve.h"

/* One that ptd has started ends soon after ptd. A service manager ends its own. */
#define WAIT_SECONDS 2u

/* Return: whether there is the user @name, who is then served. */
static bool find_user(const char *name, uid_t *ret_user)
{
	const struct passwd *user;

	if (!name) {
		*ret_user = geteuid();
		return true;
	}
	user = getpwnam(name);
	if (user)
		*ret_user = user->pw_uid;
	return user;
}

int main(int argc, char **argv)
{
	_cleanup_(collector_freep) struct collector *collector = NULL;
	_cleanup_(fd_closep) int lock_fd = -1;
	const unsigned seconds = getenv("NOTIFY_SOCKET") ? 0 : WAIT_SECONDS;
	uid_t user;
	int fd, r;

	if (argc < 2 || argc > 3 || argv[1][0] == '-') {
		fputs("Usage: ptd-collector SOCKET [USER]\n\n"
		      "Looks at processes and files of others for ptd, which runs as USER. See "
		      "ptd(8).\n",
		      stderr);
		return 2;
	}
	if (!find_user(argv[2], &user)) {
		log_error("there is no user \"%s\"", argv[2]);
		return EXIT_FAILURE;
	}
	/* It has descriptors of files of all users. */
	(void)prctl(PR_SET_DUMPABLE, 0);
	(void)umask(argv[2] ? 007 : 077);
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
