/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What conditions wait for, in a thread that says who it is: when MODE [MS]
 *
 *	enter	the third of four threads enters wanted() and on_third(), once
 *	often	a thread enters wanted() a thousand times
 *	usr1	a thread takes SIGUSR1, whose handler returns
 *	segv	a thread takes SIGSEGV, which ends the process
 *	exit	a process executes this program, which ends with status 3
 *	slow	the third of four threads needs MS for the third call of tarry() and until it
 *		enters after(); the others need no time. A process that needs as long in tarry(),
 *		but ends meanwhile, comes first
 *	wait	waits for a line on standard input, then as enter
 */

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((__noinline__))

static volatile int sum;
static int slow_ms = 1200;
static pthread_barrier_t barrier;

NOINLINE void wanted(int n);
NOINLINE void on_third(int n);
NOINLINE void wanted(int n)
{
	sum += n;
}

/* Not in the mode "often". */
NOINLINE void on_third(int n)
{
	sum -= n;
}

NOINLINE void tarry(int ms);
NOINLINE void after(int n);
NOINLINE void tarry(int ms)
{
	/* Calls of itself are part of it. */
	if (ms == 1)
		tarry(0);
	if (ms > 0)
		(void)usleep((useconds_t)ms * 1000);
	sum += ms;
}

NOINLINE void after(int n)
{
	sum += n;
}

static NOINLINE void work(void)
{
	for (int i = 0; i < 2000; i++)
		sum += i & 3;
}

static void say_self(void)
{
	printf("%ld\n", syscall(SYS_gettid));
	fflush(stdout);
}

static void on_signal(int signal)
{
	sum += signal;
}

static void *run_thread(void *number)
{
	work();
	(void)pthread_barrier_wait(&barrier);
	if (*(int *)number == 2) {
		say_self();
		wanted(1);
		on_third(1);
	}
	work();
	return NULL;
}

static void *run_slowly(void *number)
{
	for (int i = 0; i < 5; i++) {
		if (*(int *)number == 2 && i == 2)
			say_self();
		tarry(*(int *)number == 2 && i == 2 ? slow_ms : 1);
		after(1);
	}
	return NULL;
}

static void end_meanwhile(void)
{
	const pid_t pid = fork();

	if (pid == 0) {
		(void)ualarm(20000, 0);
		tarry(slow_ms);
		_exit(0);
	}
	(void)waitpid(pid, NULL, 0);
}

static void run_threads(void *(*run)(void *))
{
	static int numbers[] = { 0, 1, 2, 3 };
	pthread_t threads[4];

	(void)pthread_barrier_init(&barrier, NULL, 4);
	for (int i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, run, &numbers[i]) != 0)
			exit(1);
	for (int i = 0; i < 4; i++)
		(void)pthread_join(threads[i], NULL);
}

static int execute(char *program)
{
	char *argv[] = { program, (char[]){ "end" }, NULL };
	const pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		execv(program, argv);
		_exit(1);
	}
	printf("%d\n", (int)pid);
	(void)waitpid(pid, &status, 0);
	return WEXITSTATUS(status) == 3 ? 0 : 1;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (strcmp(mode, "exit") == 0)
		return execute(argv[0]);
	work();
	if (strcmp(mode, "end") == 0)
		return 3;
	if (strcmp(mode, "enter") == 0 || (strcmp(mode, "wait") == 0 && getchar() != EOF)) {
		run_threads(run_thread);
		return 0;
	}
	if (strcmp(mode, "slow") == 0) {
		slow_ms = argc > 2 ? atoi(argv[2]) : slow_ms;
		end_meanwhile();
		run_threads(run_slowly);
		return 0;
	}
	say_self();
	if (strcmp(mode, "often") == 0)
		for (int i = 0; i < 1000; i++)
			wanted(i);
	if (strcmp(mode, "usr1") == 0) {
		(void)signal(SIGUSR1, on_signal);
		(void)raise(SIGUSR1);
	}
	if (strcmp(mode, "segv") == 0)
		*(volatile int *)sizeof(sum) = 1;
	work();
	return 0;
}
