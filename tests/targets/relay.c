/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 *	relay PROGRAM [ARGUMENT]...	says how wide its addresses are, has a child and a thread do
 *					some work, and executes the program: every second time, as
 *					its arguments are counted, by its descriptor
 */

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void *compute(void *arg)
{
	uintptr_t x = (uintptr_t)arg;

	for (unsigned i = 0; i < 5000; i++)
		x = x & 1 ? 3 * x + 1 : x / 2 + i;
	return (void *)x;
}

static void work(void)
{
	pthread_t thread;
	int status;
	pid_t pid;

	if (pthread_create(&thread, NULL, compute, (void *)7) != 0)
		exit(2);
	pid = fork();
	if (pid == 0)
		_exit((uintptr_t)compute((void *)9) != 0);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
	    pthread_join(thread, NULL) != 0)
		exit(2);
}

int main(int argc, char **argv)
{
	printf("%zu bits\n", 8 * sizeof(void *));
	fflush(stdout);
	work();
	if (argc < 2)
		return 0;
	if (argc % 2) {
		const int fd = open(argv[1], O_RDONLY | O_CLOEXEC);

		if (fd >= 0)
			fexecve(fd, argv + 1, environ);
	} else {
		execv(argv[1], argv + 1);
	}
	perror(argv[1]);
	return 3;
}
