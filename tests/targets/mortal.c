/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Threads and processes that end in every way there is:
 *
 *	mortal threads		threads return, leave by pthread_exit, and by the system call alone,
 *				in a signal's handler, too; the first one leaves before the others,
 *				and the last but two ends the process while these compute
 *	mortal signal NUMBER	threads compute and sleep when the process dies of a signal; 0: of a
 *				fault of one of them
 *	mortal exec N		executes itself N times while threads compute, sleep and are being
 *				made, from the first thread and from another one in turn
 *	mortal reuse N		N processes, every second of which executes itself, and N threads,
 *				one after the other, all with the same number
 */

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define N_ROUNDS     6
#define N_TRIES      20
#define ARRAY_LEN(a) (sizeof(a) / sizeof(*(a)))

static volatile uint64_t sink;

/* Without a condition in the loop nobody could tell how often it ran; nor may a compiler work it
 * out. */
static __attribute__((noinline)) uint64_t compute(uint64_t n)
{
	uint64_t x = n;

	for (uint64_t i = 0; i < n; i++)
		x = x & 1 ? 3 * x + 1 : x / 2 + i;
	sink = x;
	return x;
}

static void nap(long ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

static void *compute_on(void *arg)
{
	for (;;)
		compute((uintptr_t)arg);
	return NULL;
}

static void *sleep_on(void *arg)
{
	(void)arg;
	for (;;)
		pause();
	return NULL;
}

static pthread_t start(void *(*run)(void *), uintptr_t arg)
{
	pthread_t thread;

	/* The kernel makes none while another thread executes a program, which may come to
	 * nothing. */
	while (pthread_create(&thread, NULL, run, (void *)arg) != 0)
		nap(1);
	return thread;
}

/* --- threads ---------------------------------------------------------------------------------- */

static void *do_return(void *arg)
{
	return (void *)(uintptr_t)compute((uintptr_t)arg);
}

static void *do_exit(void *arg)
{
	compute((uintptr_t)arg);
	pthread_exit(NULL);
}

/* Nothing of the library's own runs at the end. */
static void leave(int signal)
{
	(void)signal;
	syscall(SYS_exit, 0);
}

static void *do_leave(void *arg)
{
	compute((uintptr_t)arg);
	leave(0);
	return NULL;
}

static void end_round(uintptr_t round)
{
	static void *(*const runs[])(void *) = { do_return, do_exit, do_leave, compute_on,
						 sleep_on };
	pthread_t threads[ARRAY_LEN(runs)];

	for (unsigned i = 0; i < ARRAY_LEN(runs); i++)
		threads[i] = start(runs[i], 100 * round + 50);
	nap(2);
	/* To be cancelled they would have to unwind QEMU's signal frame, which they cannot. */
	pthread_kill(threads[3], SIGUSR1);
	pthread_kill(threads[4], SIGUSR1);
	for (unsigned i = 0; i < ARRAY_LEN(runs); i++)
		pthread_join(threads[i], NULL);
}

static void *end_all(void *first)
{
	pthread_join(*(pthread_t *)first, NULL);
	start(compute_on, 100);
	start(sleep_on, 0);
	nap(20);
	printf("over\n");
	fflush(stdout);
	_exit(4);
}

static void end_threads(void)
{
	static pthread_t self;

	signal(SIGUSR1, leave);
	for (uintptr_t i = 0; i < N_ROUNDS; i++)
		end_round(i);
	self = pthread_self();
	start(end_all, (uintptr_t)&self);
	pthread_exit(NULL);
}

/* --- signals ---------------------------------------------------------------------------------- */

static void die(int signal)
{
	static volatile int *volatile nowhere;

	for (unsigned i = 0; i < 3; i++)
		start(i < 2 ? compute_on : sleep_on, 100);
	nap(30);
	if (signal == 0)
		*nowhere = 1;
	else
		kill(getpid(), signal);
	compute_on((void *)100);
}

/* --- exec ------------------------------------------------------------------------------------- */

static char *program;
static int n_left;

static void *execute(void *arg)
{
	char left[16];

	(void)arg;
	nap(10);
	if (n_left == 0) {
		printf("end of the chain\n");
		fflush(stdout);
		_exit(6);
	}
	snprintf(left, sizeof(left), "%d", n_left - 1);
	execl(program, program, "exec", left, (char *)NULL);
	_exit(1);
}

static void *make_threads(void *arg)
{
	(void)arg;
	for (;;)
		pthread_join(start(do_return, 50), NULL);
	return NULL;
}

static void execute_on(void)
{
	start(compute_on, 100);
	start(sleep_on, 0);
	start(make_threads, 0);
	if (n_left % 2 == 0)
		execute(NULL);
	start(execute, 0);
	compute_on((void *)100);
}

/* --- reuse ------------------------------------------------------------------------------------ */

/* The next process or thread is to get this number: the last one given was the one before. */
static void choose_next(pid_t number)
{
	FILE *f;

	/* Under QEMU, whoever had it may be on its way out when others are told that it is gone. */
	while (syscall(SYS_tkill, number, 0) == 0)
		nap(1);
	f = fopen("/proc/sys/kernel/ns_last_pid", "we");
	if (!f || fprintf(f, "%d", (int)number - 1) < 0 || fclose(f) != 0) {
		perror("ns_last_pid");
		exit(2);
	}
}

/* @number 0: any. Return: of the child; it did nothing if it has another one. */
static pid_t fork_one(int i, pid_t number)
{
	const pid_t pid = fork();

	if (pid > 0)
		waitpid(pid, NULL, 0);
	if (pid != 0)
		return pid;
	if (number != 0 && getpid() != number)
		_exit(0);
	compute(100 * (uint64_t)i + 50);
	if (i % 2 == 1)
		execl(program, program, "exec", "1", (char *)NULL);
	_exit(0);
}

static void *tell_number(void *arg)
{
	*(pid_t *)arg = (pid_t)syscall(SYS_gettid);
	compute(333);
	return NULL;
}

static bool start_with(pid_t number)
{
	pid_t tid = 0;

	choose_next(number);
	pthread_join(start(tell_number, (uintptr_t)&tid), NULL);
	return tid == number;
}

static bool fork_with(int i, pid_t number)
{
	choose_next(number);
	return fork_one(i, number) == number;
}

static void reuse(int n)
{
	const pid_t number = fork_one(0, 0);
	int n_tries = 0;

	/* Somebody else may be given the number before us. */
	for (int i = 1; i <= n; i++) {
		while (!fork_with(i, number) && n_tries < N_TRIES)
			n_tries++;
		while (!start_with(number) && n_tries < N_TRIES)
			n_tries++;
	}
	printf("one number %s\n", n_tries < N_TRIES ? "for all" : "could not be had again");
	fflush(stdout);
	_exit(0);
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "threads") == 0) {
		end_threads();
	} else if (argc == 3 && strcmp(argv[1], "signal") == 0) {
		die(atoi(argv[2]));
	} else if (argc == 3 && strcmp(argv[1], "exec") == 0) {
		program = argv[0];
		n_left = atoi(argv[2]);
		execute_on();
	} else if (argc == 3 && strcmp(argv[1], "reuse") == 0) {
		program = argv[0];
		reuse(atoi(argv[2]));
	}
	fprintf(stderr, "usage: mortal threads | signal NUMBER | exec N | reuse N\n");
	return 2;
}
