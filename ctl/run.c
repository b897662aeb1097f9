/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/log.h"
#include "ctl/program.h"
#include "ctl/verb.h"
#include "util/qemuoption.h"

/* Number of the pool's descriptor until the plugin has moved it: one that no program expects for
 * its own descriptors. */
#define POOL_FD_MIN 100

static const int forwarded[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };

/* Make "PLUGIN,pool=FD[,timing=1]OPTIONS". */
static char *plugin_argument(const struct run *run, int fd)
{
	char *text = malloc(qemuoption_size(run->plugin) + strlen(run->options) + 48);

	if (text)
		(void)sprintf(qemuoption_put(text, run->plugin), ",pool=%d%s%s", fd,
			      run->timing ? ",timing=1" : "", run->options);
	return text;
}

struct launch {
	const char *path;
	char **argv;
	int fd; /* that it is to have, or -1 */
};

/* The state with which the program is to start, as if its caller had executed it directly. */
struct inherited {
	sigset_t mask;
	struct sigaction sigchld;
};

/* Run in the child. Does not return. */
static void execute_program(const struct launch *launch, const struct inherited *inherited,
			    int report)
{
	int error;

	(void)sigaction(SIGCHLD, &inherited->sigchld, NULL);
	(void)sigprocmask(SIG_SETMASK, &inherited->mask, NULL);
	if (launch->fd >= 0)
		(void)fcntl(launch->fd, F_SETFD, 0);
	execv(launch->path, launch->argv);
	error = errno;
	(void)!write(report, &error, sizeof(error));
	_exit(127);
}

static int start_program(const struct launch *launch, const struct inherited *inherited,
			 pid_t *ret_pid)
{
	_cleanup_(fd_closep) int from = -1, to = -1;
	int error, ends[2];
	ssize_t n;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	from = ends[0];
	to = ends[1];
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		execute_program(launch, inherited, to);

	/* A successful execve() closes the pipe. */
	to = fd_close(to);
	while ((n = read(from, &error, sizeof(error))) < 0 && errno == EINTR)
		;
	if (n == sizeof(error)) {
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
		return -error;
	}
	*ret_pid = pid;
	return 0;
}

/* Return: 0, or negative errno if the child's status is not available. */
static int wait_for(pid_t pid, const sigset_t *signals, int *ret_status)
{
	siginfo_t info;
	pid_t ended;

	for (;;) {
		if (sigwaitinfo(signals, &info) < 0)
			continue;
		if (info.si_signo == SIGCHLD) {
			ended = waitpid(pid, ret_status, WNOHANG);
			if (ended != 0)
				return ended < 0 ? -errno : 0;
		} else if (info.si_code != SI_KERNEL) {
			(void)kill(pid, info.si_signo);
		}
	}
}

static int run_launch(const struct launch *launch, pid_t *ret_pid, int *ret_status)
{
	const struct sigaction dfl = { .sa_handler = SIG_DFL };
	struct inherited inherited;
	sigset_t signals;
	int r;

	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	for (size_t i = 0; i < ARRAY_LEN(forwarded); i++)
		sigaddset(&signals, forwarded[i]);
	/* A process that ignores SIGCHLD cannot wait for its children, and execve() passes that
	 * on. */
	if (sigaction(SIGCHLD, &dfl, &inherited.sigchld) < 0 ||
	    sigprocmask(SIG_BLOCK, &signals, &inherited.mask) < 0)
		return -errno;
	r = start_program(launch, &inherited, ret_pid);
	if (r == 0)
		r = wait_for(*ret_pid, &signals, ret_status);
	(void)sigprocmask(SIG_SETMASK, &inherited.mask, NULL);
	(void)sigaction(SIGCHLD, &inherited.sigchld, NULL);
	return r;
}

int run_program(const struct run *run, pid_t *ret_pid, int *ret_status)
{
	static char plugin_option[] = "-plugin", argv0_option[] = "-0";
	const struct program *p = run->program;
	_cleanup_(freep) char *name = strdup(p->emulator);
	_cleanup_(freep) char *plugin = NULL;
	_cleanup_(freep) char **argv = NULL;
	_cleanup_(fd_closep) int fd = fcntl(run->pool_fd, F_DUPFD_CLOEXEC, POOL_FD_MIN);
	size_t n = 0;

	if (fd < 0)
		fd = fcntl(run->pool_fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return -errno;
	plugin = plugin_argument(run, fd);
	argv = calloc(p->n_argv + 6, sizeof(char *));
	if (!name || !plugin || !argv)
		return -ENOMEM;

	argv[n++] = name;
	argv[n++] = plugin_option;
	argv[n++] = plugin;
	argv[n++] = argv0_option;
	argv[n++] = p->argv[0];
	argv[n++] = p->path;
	for (size_t i = 1; i < p->n_argv; i++)
		argv[n++] = p->argv[i];
	return run_launch(&(struct launch){ .path = run->qemu, .argv = argv, .fd = fd }, ret_pid,
			  ret_status);
}

int run_native(const char *path, char **argv, pid_t *ret_pid, int *ret_status)
{
	return run_launch(&(struct launch){ .path = path, .argv = argv, .fd = -1 }, ret_pid,
			  ret_status);
}

/* --- remote ----------------------------------------------------------------------------------- */

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
		return log_as(EXIT_FAILED, "-H: %s", strerror(ENOMEM));
	}
	if (!reads_input(verb))
		ssh[n++] = no_input;
	ssh[n++] = uri;
	ssh[n] = command;
	r = program_find(name, &path);
	if (r == 0)
		r = run_native(path, ssh, &pid, &status);
	if (r < 0)
		return log_errno_as(EXIT_UNREACHABLE, r,
				    "ssh, which -H needs, cannot be executed: %m");
	if (WIFSIGNALED(status))
		return EXIT_SIGNAL + WTERMSIG(status);
	return WEXITSTATUS(status) == SSH_FAILED ? EXIT_UNREACHABLE : WEXITSTATUS(status);
}
