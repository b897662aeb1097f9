/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ptd-decoder: decodes for users what is theirs. */

#include <errno.h>
#include <limits.h>
#include <linux/landlock.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/decoder/decoder.h"
#include "daemon/helper/serve.h"
#include "util/beside.h"

/* One that ptd has started ends when it has had nothing to do. A service manager ends its own. */
#define WAIT_SECONDS 10u

/* Find ptdecode: beside this program, or where both are installed. It may be installed later. */
static int find_ptdecode(char ret_path[static PATH_MAX])
{
	static const char *const places[] = { "ptdecode", "../../bin/ptdecode" };
	const int r = beside_find(places, ARRAY_LEN(places), X_OK, ret_path);

	return r < 0 ? r : 0;
}

/* Without a service manager, nothing but the kernel's Landlock keeps ptdecode from the files of the
 * user that ptd runs as. */
static bool is_confined(void)
{
	return getenv("NOTIFY_SOCKET") ||
	       syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) > 0;
}

int main(int argc, char **argv)
{
	_cleanup_(fd_closep) int fd = -1, lock_fd = -1;
	const unsigned seconds = getenv("NOTIFY_SOCKET") ? 0 : WAIT_SECONDS;
	char program[PATH_MAX];
	uid_t user;
	int r;

	r = serve_begin(
	    argc, argv,
	    "Usage: ptd-decoder SOCKET [USER]\n\n"
	    "Decodes for users what their programs ran, for ptd, which runs as USER. See "
	    "ptd(8).\n",
	    &user);
	if (r != EXIT_SUCCESS)
		return r;
	if (!is_confined()) {
		log_error("this kernel has no Landlock: nothing is decoded for users");
		return EXIT_FAILURE;
	}
	r = find_ptdecode(program);
	if (r < 0) {
		(void)log_error_errno(r, "/proc/self/exe: cannot find ptdecode by it: %m");
		return EXIT_FAILURE;
	}
	r = serve_listen(argv[1], &fd, &lock_fd);
	if (r == -EWOULDBLOCK) {
		log_error("%s: another decoder serves there", argv[1]);
		return EXIT_FAILURE;
	}
	if (r == 0)
		r = decoder_drop_rights();
	if (r < 0) {
		(void)log_error_errno(r, "%s: cannot serve there: %m", argv[1]);
		return EXIT_FAILURE;
	}
	serve_say_ready();
	r = decoder_serve(fd, user, seconds, program);
	(void)unlink(argv[1]);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
