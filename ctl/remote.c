/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/remote.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/log.h"
#include "ctl/program.h"
#include "ctl/run.h"
#include "ctl/verb.h"

/* Exit status of ssh(1) if it failed itself. */
#define SSH_FAILED 255

/* A single quote ends the quotes, stands alone behind a backslash, and begins quotes again. */
static char *put_quoted(char *to, const char *text)
{
	*to++ = '\'';
	for (; *text; text++) {
		if (*text == '\'')
			to = stpcpy(to, "'\\'");
		*to++ = *text;
	}
	*to++ = '\'';
	return to;
}

char *remote_command(char **argv)
{
	size_t size = sizeof("ptctl");
	char *command, *to;

	for (char **a = argv; *a; a++)
		size += 4 * strlen(*a) + 3;
	command = malloc(size);
	if (!command)
		return NULL;
	to = stpcpy(command, "ptctl");
	for (char **a = argv; *a; a++) {
		*to++ = ' ';
		to = put_quoted(to, *a);
	}
	*to = 0;
	return command;
}

/* Standard input is for the recorded program, and for the HTTP request of metrics. */
static bool reads_input(const char *verb)
{
	return strcmp(verb, "record") == 0 || strcmp(verb, "metrics") == 0;
}

int remote_run(const char *host, const char *verb, char **argv)
{
	static char name[] = "ssh", no_x11[] = "-x", no_input[] = "-n";
	_cleanup_(freep) char *path = NULL, *uri = NULL, *command = remote_command(argv);
	char *ssh[6] = { name, no_x11 };
	size_t n = 2;
	pid_t pid;
	int status, r;

	/* ssh never takes a URI for an option, and knows ports and addresses of IPv6 in it. */
	if (!command || asprintf(&uri, "ssh://%s", host) < 0) {
		uri = NULL;
		log_error("-H: %s", strerror(ENOMEM));
		return EXIT_FAILED;
	}
	if (!reads_input(verb))
		ssh[n++] = no_input;
	ssh[n++] = uri;
	ssh[n] = command;
	r = program_find(name, &path);
	if (r == 0)
		r = run_native(path, ssh, &pid, &status);
	if (r < 0) {
		errno = -r;
		log_error("ssh, which -H needs, cannot be executed: %m");
		return EXIT_UNREACHABLE;
	}
	if (WIFSIGNALED(status))
		return EXIT_SIGNAL + WTERMSIG(status);
	return WEXITSTATUS(status) == SSH_FAILED ? EXIT_UNREACHABLE : WEXITSTATUS(status);
}
