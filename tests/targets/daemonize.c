/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What daemons do: forks twice, closes all descriptors that are not its own, and executes a
 * program, which has a word for the first process. Everybody's descriptors are as they should be.
 */

#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define REPORT_FD 9

static void serve(int report)
{
	if (dup2(report, REPORT_FD) < 0)
		_exit(1);
	for (int fd = 0; fd < 1024; fd++)
		if (fd != REPORT_FD && close(fd) == 0 && fd > 4)
			_exit(2); /* there was one that nobody opened */
	if (open("/dev/null", O_RDWR) != 0)
		_exit(3);
	execl("/bin/sh", "sh", "-c", "echo from the daemon >&9", (char *)NULL);
	_exit(4);
}

int main(void)
{
	char text[64];
	int pipe_fds[2], status;
	ssize_t n;

	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	if (pipe(pipe_fds) < 0)
		return 1;
	if (fork() == 0) {
		setsid();
		if (fork() == 0)
			serve(pipe_fds[1]);
		_exit(3);
	}
	wait(&status);
	close(pipe_fds[1]);
	n = read(pipe_fds[0], text, sizeof(text));
	printf("status %d, %.*s", WEXITSTATUS(status), (int)n, text);
	return 7;
}
