/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Executes a program while threads run, wait, and fork: from the first thread, or with an argument
 * from another one, which then takes the first one's place.
 */

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile uint64_t sink;

static void *spin(void *arg)
{
	/* A loop without a condition would leave no packets: nobody could tell how often it ran. */
	while (sink + 1 != 0)
		sink = (uintptr_t)arg;
	return NULL;
}

static void *sleeper(void *arg)
{
	(void)arg;
	for (;;)
		pause();
	return NULL;
}

static void *forker(void *arg)
{
	(void)arg;
	for (;;) {
		const pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
	return NULL;
}

static void *execute(void *arg)
{
	(void)arg;
	usleep(50000);
	execl("/bin/sh", "sh", "-c", "echo $0 goes on; exit 5", "execthreads", (char *)NULL);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	(void)argv;
	pthread_create(&thread, NULL, spin, (void *)1);
	pthread_create(&thread, NULL, sleeper, NULL);
	pthread_create(&thread, NULL, forker, NULL);
	if (argc == 1) {
		execute(NULL);
		return 1;
	}
	pthread_create(&thread, NULL, execute, NULL);
	spin((void *)2);
	return 1;
}
