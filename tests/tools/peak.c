/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * peak COMMAND...: runs it, and prints the most memory that it had at a time, in KiB, to standard
 * error. Exits as it does.
 */

#include <errno.h>
#include <error.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct rusage usage;
	int status;
	pid_t pid;

	if (argc < 2)
		error(2, 0, "usage: peak COMMAND...");
	pid = fork();
	if (pid < 0)
		error(2, errno, "fork");
	if (pid == 0) {
		(void)execvp(argv[1], argv + 1);
		error(2, errno, "%s", argv[1]);
	}
	if (wait4(pid, &status, 0, &usage) < 0)
		error(2, errno, "wait");
	fprintf(stderr, "%ld\n", usage.ru_maxrss);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
