/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/decode.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/log.h"
#include "ctl/client.h"
#include "ctl/copyout.h"
#include "ctl/program.h"
#include "ctl/run.h"
#include "ctl/verb.h"
#include "util/beside.h"
#include "util/ptdecode.h"
#include "util/words.h"

#define DECODER   "ptdecode"
#define WORDS_MAX 64

/* A recording that is not there. */
#define NO_RECORDING "/dev/null/none"

/* Find the ptdecode beside this program, otherwise in PATH. */
static int find_decoder(char **ret_path)
{
	static const char *const place = DECODER;
	_cleanup_(freep) char *path = NULL;
	const int r = beside_find(&place, 1, X_OK, &path);

	if (r == BESIDE_NOWHERE)
		return program_find(DECODER, ret_path);
	if (r == 0)
		*ret_path = TAKE(path);
	return r;
}

/* Run ptdecode with @words on @input. Return: 0 and @ret_status, or negative errno. */
static int run_decoder(const char *const *words, const char *input, int *ret_status)
{
	_cleanup_(freep) char *path = NULL;
	char *argv[WORDS_MAX + 5] = { (char[]){ DECODER } };
	size_t n = 1;
	int status, r;
	pid_t pid;

	for (; *words && n + 2 < ARRAY_LEN(argv); words++)
		argv[n++] = (char *)(uintptr_t)*words;
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
	return log_errno_as(EXIT_FAILED, r,
			    "cannot run " DECODER ", which decodes the snapshot: %m");
}

int decode_run(int dir_fd, const char *const *words, int *ret_status)
{
	char directory[32];
	int r;

	(void)snprintf(directory, sizeof(directory), "/proc/self/fd/%d", dir_fd);
	/* The decoder inherits the directory. */
	r = fcntl(dir_fd, F_SETFD, 0) < 0 ? -errno : run_decoder(words, directory, ret_status);
	return r < 0 ? cannot_run(r) : EXIT_OK;
}

/* The words of a wish, which lie in @text. */
struct words {
	char *text;
	char *items[WORDS_MAX + 3];
};

static void words_deinit(struct words *words)
{
	free(words->text);
}

/* Return: an exit status. */
static int split_wish(const struct decode_wish *wish, struct words *ret_words)
{
	static char output_option[] = "-o";
	int n;

	ret_words->text = strdup(wish->what);
	n = ret_words->text ? words_split(ret_words->text, ret_words->items, WORDS_MAX) : -ENOMEM;
	if (n < 0) {
		(void)log_error_errno(
		    n, "--then takes a verb of " DECODER " with its options: \"%s\": %m",
		    wish->what);
		return n == -ENOMEM ? EXIT_FAILED : EXIT_USAGE;
	}
	if (wish->output) {
		ret_words->items[n++] = output_option;
		ret_words->items[n++] = (char *)(uintptr_t)wish->output;
	}
	ret_words->items[n] = NULL;
	return EXIT_OK;
}

/* Whether it is to be a file or a directory is known to ptdecode. */
static int check_output(const char *output)
{
	struct stat st;

	if (stat(output, &st) < 0 || S_ISDIR(st.st_mode))
		return copyout_check(output);
	if (access(output, W_OK) == 0)
		return EXIT_OK;
	return log_as(EXIT_FAILED, "%s: cannot write: %m", output);
}

/* Run ptdecode on no recording, so that it ends with status 2 if it does not know what to do,
 * and with another one otherwise. Return: the status, or negative errno. */
static int try_decoder(const char *const *words, bool is_quiet)
{
	_cleanup_(fd_closep) int saved = -1, null = -1;
	int status, r;

	saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (saved < 0 || null < 0 || (is_quiet && dup2(null, STDERR_FILENO) < 0))
		return -errno;
	r = run_decoder(words, NO_RECORDING, &status);
	(void)dup2(saved, STDERR_FILENO);
	return r < 0 ? r : status;
}

int decode_check(const struct decode_wish *wish)
{
	_cleanup_(words_deinit) struct words words = {};
	const char *const *items = (const char *const *)words.items;
	int r;

	if (!wish->what)
		return wish->output ? copyout_check(wish->output) : EXIT_OK;
	r = split_wish(wish, &words);
	if (r != EXIT_OK)
		return r;
	r = try_decoder(items, true);
	if (r == PTDECODE_USAGE)
		r = try_decoder(items, false);
	if (r < 0)
		return cannot_run(r);
	if (r == PTDECODE_USAGE)
		return EXIT_USAGE;
	return wish->output ? check_output(wish->output) : EXIT_OK;
}

int decode_taken(sd_bus *bus, const char *id, const struct decode_wish *wish)
{
	_cleanup_(words_deinit) struct words words = {};
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	_cleanup_(fd_closep) int dir = -1;
	int status, r;

	if (!wish->what)
		return wish->output ? copyout_snapshot(bus, id, wish->output) : EXIT_OK;
	r = split_wish(wish, &words);
	if (r == EXIT_OK)
		r = client_open_snapshot(bus, id, &dir);
	if (r == EXIT_OK)
		r = decode_run(dir, (const char *const *)words.items, &status);
	if (r == EXIT_OK && status != PTDECODE_OK && status != PTDECODE_GAPS &&
	    status != PTDECODE_EMPTY)
		r = EXIT_FAILED;
	return r == EXIT_OK ? client_call(bus, "RemoveSnapshot", &reply, "s", id) : r;
}
