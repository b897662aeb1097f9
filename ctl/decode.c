/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/decode.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/log.h"
#include "ctl/client.h"
#include "ctl/copyout.h"
#include "ctl/program.h"
#include "ctl/run.h"
#include "ctl/verb.h"
#include "util/beside.h"
#include "util/ptdecode.h"

#define DECODER     "ptdecode"
#define OPTIONS_MAX 8

/* The format whose output is a directory. */
#define DIRECTORY_FORMAT "drmemtrace"

/* Find the ptdecode beside this program, otherwise in PATH. */
static int find_decoder(char **ret_path)
{
	static const char *const place = DECODER;
	char path[PATH_MAX];
	const int r = beside_find(&place, 1, X_OK, path);

	if (r == BESIDE_NOWHERE)
		return program_find(DECODER, ret_path);
	if (r < 0)
		return r;
	*ret_path = strdup(path);
	return *ret_path ? 0 : -ENOMEM;
}

/* Run ptdecode with @options on @input. Return: 0 and @ret_status, or negative errno. */
static int run_decoder(const char *const *options, const char *input, int *ret_status)
{
	_cleanup_(freep) char *path = NULL;
	char *argv[OPTIONS_MAX + 3] = { (char[]){ DECODER } };
	size_t n = 1;
	int status, r;
	pid_t pid;

	for (; *options && n <= OPTIONS_MAX; options++)
		argv[n++] = (char *)(uintptr_t)*options;
	argv[n] = (char *)(uintptr_t)input;
	r = find_decoder(&path);
	(void)fflush(stdout);
	if (r == 0)
		r = run_native(path, argv, &pid, &status);
	if (r < 0)
		return r;
	if (WIFSIGNALED(status))
		log_error(DECODER " was killed by signal %d (%s)", WTERMSIG(status),
			  strsignal(WTERMSIG(status)));
	*ret_status = WIFSIGNALED(status) ? EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
	return 0;
}

static int cannot_run(int r)
{
	errno = -r;
	log_error("cannot run " DECODER ", which decodes the snapshot: %m");
	return EXIT_FAILED;
}

int decode_run(int dir_fd, const char *const *options, int *ret_status)
{
	char directory[32];
	int r;

	(void)snprintf(directory, sizeof(directory), "/proc/self/fd/%d", dir_fd);
	/* The decoder inherits the directory. */
	r = fcntl(dir_fd, F_SETFD, 0) < 0 ? -errno : run_decoder(options, directory, ret_status);
	return r < 0 ? cannot_run(r) : EXIT_OK;
}

static int check_output(const struct decode_wish *wish)
{
	int fd;

	if (!wish->output)
		return EXIT_OK;
	if (ptdecode_format_is(wish->what, DIRECTORY_FORMAT))
		return copyout_check(wish->output);
	fd = open(wish->output, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
	if (fd < 0) {
		log_error("%s: cannot write: %m", wish->output);
		return EXIT_FAILED;
	}
	(void)fd_close(fd);
	return EXIT_OK;
}

/* Run ptdecode on no recording, so that it ends with status 2 if it does not know what to do,
 * and with another one otherwise. Return: the status, or negative errno. */
static int try_decoder(const char *const *options, bool is_quiet)
{
	_cleanup_(fd_closep) int saved = -1, null = -1;
	int status, r;

	saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (saved < 0 || null < 0 || (is_quiet && dup2(null, STDERR_FILENO) < 0))
		return -errno;
	r = run_decoder(options, "/dev/null", &status);
	(void)dup2(saved, STDERR_FILENO);
	return r < 0 ? r : status;
}

int decode_check(const struct decode_wish *wish)
{
	const char *const options[] = { "-f", wish->what, wish->output ? "-o" : NULL, wish->output,
					NULL };
	int r;

	r = try_decoder(options, true);
	if (r == PTDECODE_USAGE)
		r = try_decoder(options, false);
	if (r < 0)
		return cannot_run(r);
	return r == PTDECODE_USAGE ? EXIT_USAGE : check_output(wish);
}

int decode_taken(sd_bus *bus, const char *id, const struct decode_wish *wish)
{
	const char *const options[] = { "-f", wish->what, wish->output ? "-o" : NULL, wish->output,
					NULL };
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	_cleanup_(fd_closep) int dir = -1;
	int status, r;

	r = client_open_snapshot(bus, id, &dir);
	if (r == EXIT_OK)
		r = decode_run(dir, options, &status);
	if (r == EXIT_OK && status != PTDECODE_OK && status != PTDECODE_GAPS)
		r = EXIT_FAILED;
	return r == EXIT_OK ? client_call(bus, "RemoveSnapshot", &reply, "s", id) : r;
}
