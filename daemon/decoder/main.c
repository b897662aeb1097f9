/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ptd-decoder: decodes for users what is theirs. */

#include <errno.h>
#include <limits.h>
#include <linux/landlock.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/decoder/decoder.h"
#include "daemon/helper/serve.h"

/* One that ptd has started ends when it has had nothing to do. A service manager ends its own. */
#define WAIT_SECONDS 10u

/* Find ptdecode: beside this program, or where both are installed. It may be installed later. */
static int find_ptdecode(char ret_path[static PATH_MAX])
{
	static const char *const places[] = { "ptdecode", "../../bin/ptdecode" };
	char self[PATH_MAX], *slash;
	const ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		return -errno;
	self[n] = 0;
	slash = strrchr(self, '/');
	if (slash)
		*slash = 0;
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		if ((size_t)snprintf(ret_path, PATH_MAX, "%s/%s", self, places[i]) >= PATH_MAX)
			return -ENAMETOOLONG;
		if (access(ret_path, X_OK) == 0)
			break;
	}
	return 0;
}

/* Return: whether there is the user @name, who is then served. */
static bool find_user(const char *name, uid_t *ret_user)
{
	const struct passwd *user = name ? getpwnam(name) : NULL;

	*ret_user = user ? user->pw_uid : geteuid();
	return user || !name;
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

	if (argc < 2 || argc > 3 || argv[1][0] == '-') {
		fputs("Usage: ptd-decoder SOCKET [USER]\n\n"
		      "Decodes for users what their programs ran, for ptd, which runs as USER. See "
		      "ptd(8).\n",
		      stderr);
		return 2;
	}
	if (!find_user(argv[2], &user)) {
		log_error("there is no user \"%s\"", argv[2]);
		return EXIT_FAILURE;
	}
	if (!is_confined()) {
		log_error("this kernel has no Landlock: nothing is decoded for users");
		return EXIT_FAILURE;
	}
	/* What it has open is what users executed. */
	(void)prctl(PR_SET_DUMPABLE, 0);
	(void)umask(argv[2] ? 007 : 077);
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
