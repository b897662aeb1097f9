/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A program whose two threads make system calls and take signals in an order of their own, and
 * print which, in that order:
 *
 *	TID call NUMBER
 *	TID signal NUMBER
 *
 * The calls are of a kind that the C library does not make of itself. Signals come out of system
 * calls, and out of the program's code: an int3 and an instruction that does not exist.
 */

#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define N_CALLS   3000
#define N_NOTES   (2 * N_CALLS)
#define LINE_MAX_ 40

static const int calls[] = { SYS_getuid,  SYS_getgid,  SYS_geteuid,
			     SYS_getegid, SYS_getppid, SYS_getpgrp };

#define N_KINDS (sizeof(calls) / sizeof(calls[0]))

/* What a thread did, as text: it is written only at the end, by one call. */
struct notes {
	pid_t tid;
	size_t n;
	char text[N_NOTES * LINE_MAX_];
};

static __thread struct notes *notes;

static void put_number(unsigned number)
{
	char digits[16];
	unsigned n = 0;

	do {
		digits[n++] = (char)('0' + number % 10);
		number /= 10;
	} while (number > 0);
	while (n > 0)
		notes->text[notes->n++] = digits[--n];
}

static void note(const char *what, int number)
{
	if (notes->n + LINE_MAX_ > sizeof(notes->text))
		abort();
	put_number((unsigned)notes->tid);
	while (*what)
		notes->text[notes->n++] = *what++;
	put_number((unsigned)number);
	notes->text[notes->n++] = '\n';
}

static void handler(int signal, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)info;
	note(" signal ", signal);
	if (signal == SIGILL)
		uc->uc_mcontext.gregs[REG_RIP] += 2; /* behind ud2 */
}

static void *run(void *seed)
{
	unsigned random = *(const unsigned *)seed;
	const pid_t process = getpid();

	notes = calloc(1, sizeof(*notes));
	if (!notes)
		abort();
	notes->tid = (pid_t)syscall(SYS_gettid);
	for (unsigned i = 0; i < N_CALLS; i++) {
		const int number = calls[(random >> 16) % N_KINDS];

		random = random * 1103515245u + 12345;
		note(" call ", number);
		(void)syscall(number);
		if (i % 50 == 1)
			(void)syscall(SYS_tgkill, process, notes->tid,
				      random & 65536 ? SIGUSR1 : SIGUSR2);
		if (i % 97 == 1)
			__asm__ volatile("int3");
		if (i % 113 == 1)
			__asm__ volatile("ud2");
	}
	return notes;
}

static void print(const struct notes *n)
{
	if (write(STDOUT_FILENO, n->text, n->n) != (ssize_t)n->n)
		abort();
}

int main(void)
{
	static const int signals[] = { SIGUSR1, SIGUSR2, SIGTRAP, SIGILL };
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
	unsigned seeds[2] = { 1, 2 };
	pthread_t thread;
	void *other;

	for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		(void)sigaction(signals[i], &action, NULL);
	if (pthread_create(&thread, NULL, run, &seeds[1]) != 0)
		abort();
	(void)run(&seeds[0]);
	if (pthread_join(thread, &other) != 0)
		abort();
	print(notes);
	print(other);
	return 0;
}
